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
        json="results/{task}/{run}/leaderboard.json",
        html=report(
            "results/{task}/{run}/leaderboard.html",
            caption="../report/page.rst",
            category="Boards",
            labels={"task": "{task}", "run": "{run}", "what": "page"},
        ),
        markdown=report(
            "results/{task}/{run}/leaderboard.md",
            caption="../report/table.rst",
            category="Boards",
            labels={"task": "{task}", "run": "{run}", "what": "table"},
        ),
        forest=report(
            "results/{task}/{run}/plots/forest.svg",
            caption="../report/forest.rst",
            category="Plots",
            labels={"task": "{task}", "run": "{run}", "what": "F1 and tiers"},
        ),
        pairs=report(
            "results/{task}/{run}/plots/pairs.svg",
            caption="../report/pairs.rst",
            category="Plots",
            labels={"task": "{task}", "run": "{run}", "what": "pairs"},
        ),
        cost=report(
            "results/{task}/{run}/plots/cost.svg",
            caption="../report/cost.rst",
            category="Plots",
            labels={"task": "{task}", "run": "{run}", "what": "cost"},
        ),
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
