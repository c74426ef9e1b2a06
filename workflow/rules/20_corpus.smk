localrules:
    corpus,
    subset,


rule corpus:
    output:
        table="results/{task}/{run}/corpus.parquet",
        info="results/{task}/{run}/corpus.json",
    log:
        "logs/{task}/{run}/corpus.log",
    conda:
        ENVIRONMENT
    threads: 1
    params:
        spec=corpus_spec,
    shell:
        "python -m nerprobe corpus --spec {params.spec:q} --table {output.table:q}"
        " --info {output.info:q} --log {log:q}"


rule subset:
    input:
        table=ancient("results/{task}/{run}/corpus.parquet"),
        info="results/{task}/{run}/corpus.json",
    output:
        subset="results/{task}/{run}/subset.json",
        leakage="results/{task}/{run}/leakage.json",
    log:
        "logs/{task}/{run}/subset.log",
    conda:
        ENVIRONMENT
    threads: 1
    params:
        spec=subset_spec,
    shell:
        "python -m nerprobe subset --spec {params.spec:q} --corpus {input.table:q}"
        " --corpus-info {input.info:q} --output {output.subset:q}"
        " --leakage {output.leakage:q} --log {log:q}"
