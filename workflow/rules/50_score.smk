localrules:
    score,


rule score:
    input:
        predictions="results/{task}/{run}/predictions/{model}.parquet",
        facts="results/{task}/{run}/heads/{model}.json",
        subset="results/{task}/{run}/subset.json",
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
        " --facts {input.facts:q} --subset {input.subset:q} --corpus-info {input.info:q}"
        " --output {output.metrics:q} --failure {params.failure:q} --log {log:q}"
