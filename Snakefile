# nerprobe: rank frozen text encoders by a token probe for named entities.
# snakemake --cores 8 --config 'models=[minilm-l6,xlm-roberta-base]'
from snakemake.utils import min_version

min_version("9.0")


configfile: str(workflow.current_basedir.join("config/config.yaml"))


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/10_fetch.smk"
include: "workflow/rules/20_corpus.smk"
include: "workflow/rules/30_embed.smk"
include: "workflow/rules/40_probe.smk"
include: "workflow/rules/50_score.smk"
include: "workflow/rules/60_leaderboard.smk"
include: "workflow/rules/70_errors_page.smk"
include: "workflow/rules/80_learning_curve.smk"


rule all:
    default_target: True
    input:
        boards=BOARDS,
        errors=ERRORS,
        metrics=METRICS,


# Everything that needs a network, and nothing else: for a machine that has one, before jobs run where there is none.
rule fetch_all:
    input:
        corpora=CORPORA,
        encoders=RECORDS,


onstart:
    refuse_read_only()


onsuccess:
    show_boards()


onerror:
    write_boards_after_failure()
