localrules:
    draw_curves,


# On demand: snakemake learning_curve
rule learning_curve:
    input:
        CURVES,


rule fit_curve:
    input:
        table=ancient(wide("corpus.parquet")),
        info=wide("corpus.json"),
        subset=wide("subset.json"),
        vectors=vectors_of("parquet", PLAN.wide),
        manifest=vectors_of("json", PLAN.wide),
    output:
        curve="results/{task}/{run}/curves/{model}.json",
    log:
        "logs/{task}/{run}/curve/{model}.log",
    benchmark:
        "logs/{task}/{run}/curve/{model}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        spec=curve_spec,
        code=fingerprint("curve"),
    shell:
        "python -m nerprobe curve --spec {params.spec:q} --corpus {input.table:q} --corpus-info {input.info:q}"
        " --subset {input.subset:q} --vectors={input.vectors:q} --manifest={input.manifest:q}"
        " --output {output.curve:q} --threads {threads} --log {log:q}"


rule draw_curves:
    input:
        curves=expand("results/{{task}}/{{run}}/curves/{model}.json", model=ENCODERS),
        subset="results/{task}/{run}/subset.json",
        info="results/{task}/{run}/corpus.json",
    output:
        svg="results/{task}/{run}/learning_curve.svg",
        markdown="results/{task}/{run}/learning_curve.md",
        csv="results/{task}/{run}/learning_curve.csv",
        json="results/{task}/{run}/learning_curve.json",
    log:
        "logs/{task}/{run}/learning_curve.log",
    conda:
        ENVIRONMENT
    threads: 1
    params:
        spec=leaderboard_spec,
        code=fingerprint("learning_curve"),
    shell:
        "python -m nerprobe learning-curve --spec {params.spec:q}"
        " --folder results/{wildcards.task}/{wildcards.run} --log {log:q}"
