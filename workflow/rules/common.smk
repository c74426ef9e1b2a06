# Configuration, wildcard constraints, and what is known when the workflow is read.
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

PROJECT = Path(str(workflow.current_basedir)).parents[1]
sys.path.insert(0, str(PROJECT / "src"))

from nerprobe.errors import NerprobeError
from nerprobe.files import canonical_json, sha256_text
from nerprobe.plan import make_plan


def typed_in():
    """Return the folder that the command was typed in: where relative paths of the user start.

    With --directory Snakemake has changed folder before it reads a Snakefile; the folder it came from is
    kept by the handler that will change back. Jobs that read the workflow again get it by environment.
    """
    known = os.environ.get("NERPROBE_TYPED_IN")
    if known:
        return Path(known)
    for frame in inspect.stack():
        handler = getattr(frame.frame.f_locals.get("self"), "_workdir_handler", None)
        if getattr(handler, "olddir", None):
            return Path(handler.olddir)
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

RUNS = {run.task.name: run for run in PLAN.runs.values()}
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


def one_of(names):
    return "|".join(map(re.escape, names))


wildcard_constraints:
    task=one_of(RUNS),
    run=one_of(run.label for run in RUNS.values()),
    model=one_of(ENCODERS),
    key=one_of(encoder.key for encoder in ENCODERS.values()),


# Modules that each cheap stage runs: editing one re-runs that stage. (embed has no fingerprint: there a
# comment would cost GPU hours, so VECTORS_VERSION is bumped by hand instead, guarded by golden vectors.)
MODULES = {
    "probe": (
        "corpus",
        "logistic",
        "lookup",
        "probe",
        "spans",
        "subset",
        "vector_files",
    ),
    "score": ("score", "spans", "subset"),
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
        "corpus",
        "errors_page",
        "mention_errors",
        "render",
        "run_predictions",
        "score",
        "spans",
        "subset",
    ),
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


def fetch_spec(wildcards):
    return canonical_json(ENCODERS[wildcards.model].source)


def corpus_spec(wildcards):
    return canonical_json(RUNS[wildcards.task].corpus)


def subset_spec(wildcards):
    return canonical_json(RUNS[wildcards.task].subset)


def embed_spec(wildcards):
    return canonical_json(ENCODERS[wildcards.model].embed_spec)


def probe_spec(wildcards):
    return canonical_json(
        {**RUNS[wildcards.task].probe, **ENCODERS[wildcards.model].probe_spec}
    )


def leaderboard_spec(wildcards):
    return canonical_json(PLAN.board_of(RUNS[wildcards.task]))


def encoder_record(wildcards):
    """Return the fetched encoder, or nothing for a control that needs no files."""
    encoder = ENCODERS[wildcards.model]
    return f"resources/encoders/{encoder.slug}.json" if encoder.fetched else []


def gpus(wildcards):
    """Ask for a GPU, except for controls."""
    return 0 if ENCODERS[wildcards.model].baseline else 1


def vectors_of(suffix):
    """Return an input function for one file of the embed stage; nothing for a model without vectors."""

    def path(wildcards):
        encoder = ENCODERS[wildcards.model]
        if not encoder.embedded:
            return []
        file = f"results/{wildcards.task}/{wildcards.run}/embeddings/{encoder.slug}.{encoder.key}.{suffix}"
        # Files over 1 MB are compared by time only: a touched Parquet must not re-run the probe, which
        # follows the small manifest with the file's hash.
        return ancient(file) if suffix == "parquet" else file

    return path


def failure_of(wildcards):
    return f"results/{wildcards.task}/{wildcards.run}/failures/{wildcards.model}.json"


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
