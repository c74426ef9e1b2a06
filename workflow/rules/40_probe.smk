rule probe:
    input:
        table=ancient("results/{task}/{run}/corpus.parquet"),
        info=ancient("results/{task}/{run}/corpus.json"),
        subset="results/{task}/{run}/subset.json",
        vectors=vectors_of("parquet"),
        manifest=vectors_of("json"),
    output:
        predictions="results/{task}/{run}/predictions/{model}.parquet",
        head="results/{task}/{run}/heads/{model}.safetensors",
        facts="results/{task}/{run}/heads/{model}.json",
        exploratory="results/{task}/{run}/exploratory/{model}.json",
    log:
        "logs/{task}/{run}/probe/{model}.log",
    benchmark:
        "logs/{task}/{run}/probe/{model}.tsv"
    conda:
        ENVIRONMENT
    threads: 1
    params:
        spec=probe_spec,
        code=fingerprint("probe"),
        failure=failure_of,
    shell:
        "python -m nerprobe probe --spec {params.spec:q} --corpus {input.table:q} --subset {input.subset:q}"
        " --vectors={input.vectors:q} --manifest={input.manifest:q}"
        " --predictions {output.predictions:q} --head {output.head:q} --facts {output.facts:q}"
        " --exploratory {output.exploratory:q}"
        " --threads {threads} --failure {params.failure:q} --log {log:q}"
