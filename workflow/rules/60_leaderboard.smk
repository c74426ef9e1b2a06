localrules:
    leaderboard,


rule leaderboard:
    input:
        metrics=expand("results/{{task}}/{{run}}/metrics/{model}.json", model=ENCODERS),
        subset="results/{task}/{run}/subset.json",
        leakage="results/{task}/{run}/leakage.json",
        info="results/{task}/{run}/corpus.json",
    output:
        csv="results/{task}/{run}/leaderboard.csv",
        markdown="results/{task}/{run}/leaderboard.md",
        json="results/{task}/{run}/leaderboard.json",
        html="results/{task}/{run}/leaderboard.html",
    log:
        "logs/{task}/{run}/leaderboard.log",
    conda:
        ENVIRONMENT
    threads: 1
    params:
        spec=leaderboard_spec,
        code=fingerprint("leaderboard"),
    shell:
        "python -m nerprobe leaderboard --spec {params.spec:q}"
        " --folder results/{wildcards.task}/{wildcards.run} --log {log:q}"
