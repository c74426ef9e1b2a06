localrules:
    errors_page,


rule errors_page:
    input:
        predictions=expand(
            "results/{{task}}/{{run}}/predictions/{model}.parquet", model=ENCODERS
        ),
        table=ancient("results/{task}/{run}/corpus.parquet"),
        info="results/{task}/{run}/corpus.json",
        subset="results/{task}/{run}/subset.json",
        board="results/{task}/{run}/leaderboard.json",
    output:
        page="results/{task}/{run}/errors.html",
    log:
        "logs/{task}/{run}/errors_page.log",
    conda:
        ENVIRONMENT
    threads: 1
    params:
        code=fingerprint("errors_page"),
    shell:
        "python -m nerprobe errors-page --folder results/{wildcards.task}/{wildcards.run} --log {log:q}"
