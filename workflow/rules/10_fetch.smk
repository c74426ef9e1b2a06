localrules:
    fetch_encoder,


rule fetch_encoder:
    output:
        encoder="resources/encoders/{model}.json",
    log:
        "logs/fetch_encoder/{model}.log",
    conda:
        ENVIRONMENT
    threads: 0  # it waits for the network, so it runs while another encoder computes
    resources:
        download=1,
    params:
        spec=fetch_spec,
    shell:
        "python -m nerprobe fetch --spec {params.spec:q} --output {output.encoder:q}"
        " --failure resources/encoders/failures/{wildcards.model}.json --log {log:q}"
