"""The command ``nerprobe``: the stages, and what people type around the pipeline."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from nerprobe.errors import NerprobeError
from nerprobe.files import storage_error
from nerprobe.redact import scrub
from nerprobe.stage_commands import stages

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Rank frozen text encoders by a token probe for named entities.",
)
app.add_typer(stages)


@app.command()
def show(
    places: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders or leaderboard.json files; default: all under results/."),
    ] = None,
    configfile: Annotated[Path | None, typer.Option(help="Show the runs of this configuration.")] = None,
) -> None:
    """Print boards, and where their pages are."""
    from nerprobe.manage import run_folders, show_boards

    show_boards([*(places or []), *(run_folders(configfile) if configfile else [])])


@app.command()
def compare(
    first: Annotated[str, typer.Argument(help="Name as on the board.")],
    second: Annotated[str, typer.Argument(help="Name as on the board.")],
    places: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders or leaderboard.json files; default: all under results/."),
    ] = None,
) -> None:
    """Compare two models on the same resampled items."""
    from nerprobe.manage import compare_models

    compare_models(first, second, places or [])


@app.command()
def errors(
    model: Annotated[str, typer.Argument(help="Name as on the board.")],
    rest: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OTHER] [PLACES]...",
            help="Another name: show where the two differ. Then run folders (results/<task>/<run>) or "
            "leaderboard.json files; default: the newest board under results/ that has them.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="missed, invented, boundary, type or both; for two models first-right, second-right, first-wrong or "
            "second-wrong."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most test items shown.")] = 20,
) -> None:
    """Show a model's wrong mentions in context, or where two models differ."""
    from nerprobe.errors_terminal import print_errors, split_places
    from nerprobe.manage import board_files

    others, places = split_places(rest or [])
    print_errors(model, others, board_files(places), every=bool(places), kind=kind, limit=limit)


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="Name as on the board.")],
    place: Annotated[
        Path | None, typer.Argument(help="Run folder; default: the newest board under results/ that has it.")
    ] = None,
) -> None:
    """Print a model's scores as the evaluation block of a hub model card."""
    from nerprobe.export import export_model
    from nerprobe.manage import board_files
    from nerprobe.run_predictions import find_runs

    (folder,) = find_runs([model], board_files([place] if place else []), every=False)
    print(export_model(folder, model), end="")


@app.command()
def power(
    first: Annotated[str, typer.Argument(help="Name as on the board.")],
    second: Annotated[str, typer.Argument(help="Name as on the board.")],
    places: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders or leaderboard.json files; default: all under results/."),
    ] = None,
    power: Annotated[float, typer.Option(min=0.5, max=0.99, help="Share of boards that should separate them.")] = 0.8,
) -> None:
    """Say how many test items would separate two models."""
    from nerprobe.power import power_report

    power_report(first, second, places or [], power=power)


@app.command()
def models(
    name: Annotated[str, typer.Argument(help="Only entries whose name or source holds this.")] = "",
) -> None:
    """List the encoder registry."""
    from nerprobe.manage import list_models

    list_models(name)


@app.command()
def doctor(
    model: Annotated[str, typer.Argument(help="Registry name, org/name@<40 hex> or folder, as in models.")],
    configfile: Annotated[Path | None, typer.Option(help="Estimate the tasks of this configuration.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Read hub tasks from DIR/<task>/ instead.")] = None,
) -> None:
    """Say in seconds whether an encoder can be used, and what a run with it would take."""
    from nerprobe.doctor import diagnose, report

    if not report(model, diagnose(model, configfile=configfile, data_dir=data_dir, base=Path.cwd())):
        raise typer.Exit(1)


@app.command()
def sweep(
    model: Annotated[str, typer.Argument(help="Registry name, org/name@<40 hex> or folder, as in models.")],
    task: Annotated[str | None, typer.Option(help="Task file, by name; default: the configuration's first.")] = None,
    layers: Annotated[str, typer.Option(help="Such as 0,6,last or --layers=-4,-1; default: all.")] = "",
    configfile: Annotated[Path | None, typer.Option(help="Take task, sizes and probe of this configuration.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Read hub tasks from DIR/<task>/ instead.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Fits at a time.")] = 1,
) -> None:
    """Compare an encoder's layers and poolings on a split of the train items; exploratory, without the test items."""
    from nerprobe.sweep import sweep as compare_layers
    from nerprobe.sweep_report import report

    found = compare_layers(
        model, task=task, layers=layers, configfile=configfile, data_dir=data_dir, jobs=jobs, base=Path.cwd()
    )
    report(*found)


@app.command()
def lock(
    repos: Annotated[list[str], typer.Argument(help="Hub ids, org/name.")],
    revision: Annotated[str, typer.Option(help="Branch, tag or commit to resolve.")] = "main",
) -> None:
    """Pin hub ids to a full revision in config/models.lock.yaml."""
    from nerprobe.manage import lock_models

    lock_models(repos, revision=revision)


@app.command()
def forget(
    model: Annotated[str, typer.Argument(help="Name as on the board.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
) -> None:
    """Remove a model's results and vectors, after saying what goes."""
    from nerprobe.manage import forget_model

    forget_model(model, yes=yes)


@app.command()
def verify(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders; default: all under results/, and resources/."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what is damaged, after asking.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
) -> None:
    """Check every artefact against its hash and name the damaged ones."""
    from nerprobe.verify import verify_artefacts

    if not verify_artefacts(folders or [], remove=remove, yes=yes):
        raise typer.Exit(1)


@app.command(name="check-task")
def check_task(
    file: Annotated[Path, typer.Argument(help="Task file.")],
    data_dir: Annotated[Path | None, typer.Option(help="Read hub files from DIR/<task>/ instead.")] = None,
) -> None:
    """Check a task file and read its corpus, as the pipeline would."""
    from nerprobe.manage import check_task_file

    check_task_file(file, data_dir=data_dir)


def main() -> None:
    """Run the command; a mistake that a user can mend ends in one line and exit code 1."""
    # Arrow's own allocator keeps what was freed; the system's gives it back.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        app()
    except NerprobeError as error:
        sys.stderr.write(f"nerprobe: {scrub(str(error))}\n")
        sys.exit(1)
    except OSError as error:
        known = storage_error(error, error.filename or "")
        if known is None:
            raise
        sys.stderr.write(f"nerprobe: {scrub(str(known))}\n")
        sys.exit(1)
