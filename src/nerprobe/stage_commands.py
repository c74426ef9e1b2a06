"""Commands that the rules call: one a stage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from nerprobe.stage import stage

Spec = Annotated[str, typer.Option(help="Specification, one JSON object.")]
File = Annotated[Path, typer.Option()]
MaybeFile = Annotated[
    Path | None,
    typer.Option(help="Empty where the model has no such file.", parser=lambda text: Path(text) if str(text) else None),
]
Log = Annotated[Path | None, typer.Option(help="Log file.")]
Failure = Annotated[Path | None, typer.Option(help="Where the reason of a failure is left.")]
PANEL = "Stages (called by the rules)"
stages = typer.Typer()


def _spec(text: str) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(text)
    return spec


@stages.command(rich_help_panel=PANEL)
def fetch(spec: Spec, output: File, log: Log = None, failure: Failure = None) -> None:
    """Fetch one encoder's files and write down their hashes."""
    from nerprobe.fetch import write_encoder

    with stage("fetch", log=log, failure=failure):
        write_encoder(_spec(spec), output)


@stages.command(rich_help_panel=PANEL)
def corpus(spec: Spec, table: File, info: File, log: Log = None) -> None:
    """Read a task's files into one table of items."""
    from nerprobe.corpus import write_corpus

    with stage("corpus", log=log):
        write_corpus(_spec(spec), table_path=table, info_path=info)


@stages.command(rich_help_panel=PANEL)
def subset(spec: Spec, corpus: File, corpus_info: File, output: File, leakage: File, log: Log = None) -> None:
    """Take the seed-hash subset of each pool, and tell which test texts are in train too."""
    from nerprobe.subset import write_subset

    with stage("subset", log=log):
        write_subset(_spec(spec), corpus=corpus, corpus_info=corpus_info, output=output, leakage=leakage)


@stages.command(rich_help_panel=PANEL)
def embed(
    spec: Spec,
    corpus: File,
    subset: File,
    store: File,
    output: File,
    manifest: File,
    encoder: MaybeFile = None,
    device: str = "auto",
    batch_tokens: Annotated[int, typer.Option(help="Most tokens of a padded batch; 0 fits the device.")] = 0,
    threads: int = 1,
    log: Log = None,
    failure: Failure = None,
) -> None:
    """Compute one encoder's word vectors."""
    from nerprobe.embed import write_embeddings

    with stage("embed", log=log, failure=failure):
        _set_up_torch(threads)
        write_embeddings(
            _spec(spec),
            corpus=corpus,
            subset=subset,
            encoder=encoder,
            store=store,
            device=device,
            budget=batch_tokens or None,
            output=output,
            manifest=manifest,
        )


def _set_up_torch(threads: int) -> None:
    """Keep every pool of threads at what the rule asked for, and every library off the network."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[name] = str(threads)


@stages.command(rich_help_panel=PANEL)
def probe(
    spec: Spec,
    corpus: File,
    subset: File,
    predictions: File,
    head: File,
    facts: File,
    exploratory: File,
    vectors: MaybeFile = None,
    manifest: MaybeFile = None,
    threads: int = 1,
    log: Log = None,
    failure: Failure = None,
) -> None:
    """Fit the head on the train items and tag the test items."""
    from nerprobe.probe import write_probe

    with stage("probe", log=log, failure=failure):
        write_probe(
            _spec(spec),
            corpus=corpus,
            subset=subset,
            vectors=vectors,
            manifest=manifest,
            predictions=predictions,
            head=head,
            facts=facts,
            exploratory=exploratory,
            threads=threads,
        )


@stages.command(rich_help_panel=PANEL)
def score(
    run: Annotated[str, typer.Option(help="Name of the run.")],
    predictions: File,
    facts: File,
    exploratory: File,
    subset: File,
    corpus: File,
    corpus_info: File,
    output: File,
    log: Log = None,
    failure: Failure = None,
) -> None:
    """Count mentions and write one encoder's metrics."""
    from nerprobe.score import write_metrics

    with stage("score", log=log, failure=failure):
        write_metrics(
            run=run,
            predictions=predictions,
            facts=facts,
            exploratory=exploratory,
            subset=subset,
            corpus=corpus,
            corpus_info=corpus_info,
            output=output,
        )


@stages.command(rich_help_panel=PANEL)
def leaderboard(
    spec: Spec,
    folder: File,
    after_failure: Annotated[bool, typer.Option(help="The next run makes the board again.")] = False,
    log: Log = None,
) -> None:
    """Write the board of one run over all its encoders."""
    from nerprobe.leaderboard import write_board

    with stage("leaderboard", log=log):
        asked = _spec(spec)
        write_board(
            folder,
            requested=list(asked["models"]),
            keys=asked["models"],
            bootstrap=asked["bootstrap"],
            errors_page=asked.get("errors_page", True),
            stale=after_failure,
        )


@stages.command(name="errors-page", rich_help_panel=PANEL)
def errors_page(
    folder: Annotated[Path, typer.Option(help="Run folder, results/<task>/<run>.")],
    log: Log = None,
) -> None:
    """Write errors.html of one run: it holds corpus texts."""
    from nerprobe.errors_page import write_errors_page

    with stage("errors-page", log=log):
        write_errors_page(folder)


@stages.command(rich_help_panel=PANEL)
def curve(
    spec: Spec,
    corpus: File,
    corpus_info: File,
    subset: File,
    output: File,
    vectors: MaybeFile = None,
    manifest: MaybeFile = None,
    threads: int = 1,
    log: Log = None,
) -> None:
    """Fit one encoder's probe on growing and on other parts of the train pool."""
    from nerprobe.curve import write_curve

    with stage("curve", log=log):
        write_curve(
            _spec(spec),
            corpus=corpus,
            corpus_info=corpus_info,
            subset=subset,
            vectors=vectors,
            manifest=manifest,
            output=output,
            threads=threads,
        )


@stages.command(name="learning-curve", rich_help_panel=PANEL)
def learning_curve(spec: Spec, folder: File, log: Log = None) -> None:
    """Write the learning curves of all encoders of a run."""
    from nerprobe.learning_curve import write_learning_curve

    with stage("learning-curve", log=log):
        write_learning_curve(_spec(spec), folder=folder)
