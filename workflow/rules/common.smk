# Configuration, wildcard constraints, and what is known when the workflow is read.
import inspect
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

# A full disk must not turn each line of Snakemake's own log into a traceback.
logging.raiseExceptions = False

PROJECT = Path(str(workflow.current_basedir)).parents[1]
sys.path.insert(0, str(PROJECT / "src"))

from nerprobe.errors import NerprobeError
from nerprobe.files import canonical_json, read_only, sha256_text
from nerprobe.plan import make_plan


def typed_in():
    """Return the folder that the command was typed in: where relative paths of the user start.

    With --directory Snakemake has changed folder before it reads a Snakefile; the folder it came from is
    kept by the handler that will change back. Jobs that read the workflow again get it by environment.
    """
    known = os.environ.get("NERPROBE_TYPED_IN")
    if known:
        return Path(known)
    frame = inspect.currentframe()
    while frame is not None:
        handler = getattr(frame.f_locals.get("self"), "_workdir_handler", None)
        if getattr(handler, "olddir", None):
            return Path(handler.olddir)
        frame = frame.f_back
    return Path.cwd()


BASE = typed_in()
try:
    PLAN = make_plan(config, base=BASE, project=PROJECT)
except NerprobeError as error:
    raise WorkflowError(str(error)) from None

# Jobs use this Python and this source tree, also where nothing is activated and from any folder. How embed
# makes its batches goes by environment too: it changes no result, so it must not change a job's parameters.
os.environ.update(
    PATH=os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    ),
    PYTHONPATH=os.pathsep.join(
        filter(None, [str(PROJECT / "src"), os.environ.get("PYTHONPATH")])
    ),
    PYTHONSAFEPATH="1",  # or a random.py in the working folder would be run in every job
    NERPROBE_TYPED_IN=str(BASE),
    NERPROBE_EMBED=f"--device {PLAN.config['embed']['device']}"
    f" --batch-tokens {PLAN.config['embed']['batch_tokens'] or 0}",
)

# What jobs run in with --software-deployment-method conda. The default computes on CPUs too; NERPROBE_ENV=cpu takes
# the smaller one, without CUDA.
ENVIRONMENT = "../../envs/nerprobe{}.yaml".format(
    "-cpu" if os.environ.get("NERPROBE_ENV") == "cpu" else ""
)

RUNS = {run.task.name: run for run in PLAN.runs.values()}
# With the runs that only embed the train pool, for `snakemake learning_curve`.
ALL_RUNS = {
    (run.task.name, run.label): run
    for run in [*PLAN.wide.values(), *PLAN.runs.values()]
}
ENCODERS = PLAN.encoders
BOARDS = [
    f"{run.folder}/{file}"
    for run in RUNS.values()
    for file in (
        *(f"leaderboard.{suffix}" for suffix in ("csv", "md", "json", "html")),
        *(f"plots/{name}.svg" for name in ("forest", "pairs", "cost")),
    )
]
ERRORS = [
    f"{run.folder}/errors.html" for run in RUNS.values() if PLAN.has_errors_page(run)
]
METRICS = [
    f"{run.folder}/metrics/{model}.json" for run in RUNS.values() for model in ENCODERS
]
# What needs a network: the corpus of each task and the files of each encoder.
CORPORA = [f"{run.folder}/corpus.json" for run in RUNS.values()]
RECORDS = [
    f"resources/encoders/{encoder.slug}.json"
    for encoder in ENCODERS.values()
    if encoder.fetched
]
CURVES = [
    f"{run.folder}/learning_curve.{suffix}"
    for run in RUNS.values()
    for suffix in ("svg", "md", "csv", "json")
]


def one_of(names, many=None):
    """Return the pattern of some names, or a wider one where they are many.

    Snakemake writes the pattern into every file name that it works with: with a list of 1,000 models a quarter
    of its time to plan would go there. What is not in the configuration is then refused by encoder_of.
    """
    known = list(map(re.escape, names))
    return many if many and len(known) > 200 else "|".join(known)


wildcard_constraints:
    task=one_of(RUNS),
    run=one_of(sorted({label for _, label in ALL_RUNS})),
    model=one_of(ENCODERS, many="[^/]+"),
    key=one_of(
        sorted({encoder.key for encoder in ENCODERS.values()}), many="[0-9a-f]{12}"
    ),


# Modules that each cheap stage runs: editing one re-runs that stage. (embed has no fingerprint: there a
# comment would cost GPU hours, so VECTORS_VERSION is bumped by hand instead, guarded by golden vectors.)
MODULES = {
    "probe": (
        "cross_validate",
        "digests",
        "items",
        "logistic",
        "lookup",
        "probe",
        "spans",
        "subset",
        "vector_files",
    ),
    "score": ("breakdown", "digests", "items", "score", "spans", "subset"),
    "leaderboard": (
        "bootstrap",
        "charts",
        "compare",
        "leaderboard",
        "page",
        "render",
        "rows",
    ),
    "errors_page": (
        "digests",
        "errors_page",
        "items",
        "mention_errors",
        "run_predictions",
        "score",
        "spans",
        "subset",
    ),
    "curve": (
        "curve",
        "digests",
        "items",
        "logistic",
        "lookup",
        "probe",
        "score",
        "spans",
        "subset",
        "vector_files",
    ),
    "learning_curve": ("bootstrap", "learning_curve", "render", "subset"),
}
TEMPLATES = {
    "leaderboard": ("leaderboard.css", "leaderboard.html", "leaderboard.js"),
    "errors_page": ("errors.html", "errors.js"),
}


def fingerprint(stage):
    """Return a hash of the sources of a stage; a mere touch does not change it."""
    sources = [PROJECT / "src" / "nerprobe" / f"{name}.py" for name in MODULES[stage]]
    templates = PROJECT / "src" / "nerprobe" / "templates"
    sources += [templates / name for name in TEMPLATES.get(stage, ())]
    return sha256_text("\n".join(path.read_text(encoding="utf-8") for path in sources))[
        :16
    ]


def encoder_of(wildcards):
    """Return the encoder that a file is of.

    Raises:
        WorkflowError: If the configuration has no such encoder, or not with this key.
    """
    encoder = ENCODERS.get(wildcards.model)
    key = wildcards.get("key", encoder.key if encoder else "")
    if encoder is None or key != encoder.key:
        raise WorkflowError(
            f"no encoder {wildcards.model} {key}".rstrip()
            + " in this configuration: name it in models"
        )
    return encoder


def fetch_spec(wildcards):
    return canonical_json(encoder_of(wildcards).source)


def corpus_spec(wildcards):
    return canonical_json(RUNS[wildcards.task].corpus)


def subset_spec(wildcards):
    return canonical_json(ALL_RUNS[wildcards.task, wildcards.run].subset)


def embed_spec(wildcards):
    return canonical_json(encoder_of(wildcards).embed_spec)


def probe_spec(wildcards):
    return canonical_json(
        {**RUNS[wildcards.task].probe, **encoder_of(wildcards).probe_spec}
    )


def leaderboard_spec(wildcards):
    return canonical_json(PLAN.board_of(RUNS[wildcards.task]))


def curve_spec(wildcards):
    return canonical_json(
        {**PLAN.curve_spec(wildcards.task), **ENCODERS[wildcards.model].probe_spec}
    )


def wide(file):
    """Return an input function for a file of the run that embeds the train pool of a task."""

    def path(wildcards):
        return f"{PLAN.wide[wildcards.task].folder}/{file}"

    return path


def encoder_record(wildcards):
    """Return the fetched encoder, or nothing for a control that needs no files."""
    encoder = encoder_of(wildcards)
    return f"resources/encoders/{encoder.slug}.json" if encoder.fetched else []


def gpus(wildcards):
    """Ask for a GPU, except for controls."""
    return 0 if encoder_of(wildcards).baseline else 1


def vectors_of(suffix, runs=None):
    """Return an input function for one file of the embed stage; nothing for a model without vectors.

    It is of the run in the path, or of the task's run among those given.
    """

    def path(wildcards):
        encoder = encoder_of(wildcards)
        if not encoder.embedded:
            return []
        run = runs[wildcards.task].label if runs else wildcards.run
        file = f"results/{wildcards.task}/{run}/embeddings/{encoder.slug}.{encoder.key}.{suffix}"
        # Files over 1 MB are compared by time only: a touched Parquet must not re-run the probe, which
        # follows the small manifest with the file's hash.
        return ancient(file) if suffix == "parquet" else file

    return path


def failure_of(wildcards):
    return f"results/{wildcards.task}/{wildcards.run}/failures/{wildcards.model}.json"


def refuse_read_only():
    """End with one clear line where nothing can be written, before a job runs into it."""
    for folder in map(Path, ("results", "resources", "logs")):
        if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise WorkflowError(str(read_only(folder)))


def show_boards():
    """Print the boards of this run, unless the caller will."""
    if os.environ.get("NERPROBE_BOARD") == "no":
        return
    folders = [
        run.folder
        for run in RUNS.values()
        if Path(run.folder, "leaderboard.json").exists()
    ]
    if folders:
        subprocess.run(["python", "-m", "nerprobe", "show", *folders], check=False)


def write_boards_after_failure():
    """Build the boards that the failed encoders kept Snakemake from building, and show them."""
    for run in RUNS.values():
        if Path(run.folder, "subset.json").exists():
            command = ["python", "-m", "nerprobe", "leaderboard", "--after-failure"]
            command += ["--spec", canonical_json(PLAN.board_of(run))]
            command += ["--folder", run.folder]
            subprocess.run(command, check=False)
            if PLAN.has_errors_page(run):
                command = ["python", "-m", "nerprobe", "errors-page"]
                subprocess.run([*command, "--folder", run.folder], check=False)
    show_boards()
