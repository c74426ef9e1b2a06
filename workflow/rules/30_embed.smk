rule embed:
    input:
        table=ancient("results/{task}/{run}/corpus.parquet"),
        info=ancient("results/{task}/{run}/corpus.json"),
        subset="results/{task}/{run}/subset.json",
        encoder=encoder_record,
    output:
        vectors="results/{task}/{run}/embeddings/{model}.{key}.parquet",
        manifest="results/{task}/{run}/embeddings/{model}.{key}.json",
    log:
        "logs/{task}/{run}/embed/{model}.{key}.log",
    benchmark:
        "logs/{task}/{run}/embed/{model}.{key}.tsv"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        gpu=gpus,
    params:
        spec=embed_spec,
        failure=failure_of,
    shell:
        "python -m nerprobe embed --spec {params.spec:q} --corpus {input.table:q} --subset {input.subset:q}"
        " --encoder={input.encoder:q}"
        " --store resources/vectors/{wildcards.key} --threads {threads} $NERPROBE_EMBED"
        " --output {output.vectors:q} --manifest {output.manifest:q} --failure {params.failure:q} --log {log:q}"
