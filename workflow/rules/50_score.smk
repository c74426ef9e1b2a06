localrules:
    score,


rule score:
    input:
        predictions="results/{task}/{run}/predictions/{model}.parquet",
        facts="results/{task}/{run}/heads/{model}.json",
        exploratory="results/{task}/{run}/exploratory/{model}.json",
        subset="results/{task}/{run}/subset.json",
        table=ancient("results/{task}/{run}/corpus.parquet"),
        info="results/{task}/{run}/corpus.json",
    output:
        metrics="results/{task}/{run}/metrics/{model}.json",
    log:
        "logs/{task}/{run}/score/{model}.log",
    conda:
        ENVIRONMENT
    threads: 1
    params:
        code=fingerprint("score"),
        failure=failure_of,
    shell:
        "python -m nerprobe score --run {wildcards.run:q} --predictions {input.predictions:q}"
        " --facts {input.facts:q} --exploratory {input.exploratory:q} --subset {input.subset:q}"
        " --corpus {input.table:q} --corpus-info {input.info:q}"
        " --output {output.metrics:q} --failure {params.failure:q} --log {log:q}"
