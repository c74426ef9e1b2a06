"""What people type around the pipeline: boards in the terminal, the registry, pins, removal, task checks."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from rich.table import Table
from rich.text import Text

from nerprobe.config import PROJECT, closest, load_lock, load_registry, load_task, read_config
from nerprobe.encoders import HUB_ID
from nerprobe.errors import ArtefactError, TaskFileError, UnknownModelError
from nerprobe.files import read_json, write_text
from nerprobe.plan import make_plan, make_run
from nerprobe.redact import visible
from nerprobe.render import mentions, print_board, rank_text, score, wide_console
from nerprobe.run_predictions import load_board

REGISTRY = PROJECT / "config" / "models.yaml"
LOCK = PROJECT / "config" / "models.lock.yaml"
SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
KEYED = re.compile(r"(?P<model>.+)\.(?P<key>[0-9a-f]{12})\.(parquet|json)")


def board_files(places: Sequence[Path]) -> list[Path]:
    """Return the leaderboard.json files meant, oldest first.

    Raises:
        ArtefactError: If a place holds none.
    """
    if not places:
        found = sorted(
            Path("results").glob("*/*/leaderboard.json"),
            key=lambda path: (path.parent / "subset.json").stat().st_mtime,
        )
        if not found:
            raise ArtefactError("no board here yet", where="results/", todo="run snakemake, or make demo")
        return found
    files = [place if place.suffix == ".json" else place / "leaderboard.json" for place in places]
    for file in files:
        if not file.is_file():
            raise ArtefactError("no board here", where=str(file), todo="name a run folder: results/<task>/<run>")
    return files


def run_folders(configfile: Path) -> list[Path]:
    """Return the run folders of a configuration file on top of the default one."""
    return [Path(run.folder) for run in make_plan(read_config(configfile), base=Path.cwd()).runs.values()]


def show_boards(places: Sequence[Path]) -> None:
    """Print boards and the paths of their pages."""
    for file in board_files(places):
        print_board(load_board(file))
        print(f"\nPage: {visible(str(file.with_suffix('.html').resolve()))}\n")


def compare_models(first: str, second: str, places: Sequence[Path]) -> None:
    """Print the paired comparison of two models on each board that has both.

    Raises:
        UnknownModelError: If no board has scores of both.
    """
    told = 0
    for file in board_files(places):
        board = load_board(file)
        rows = {row["model"]: row for row in board["rows"] if row["status"] == "ok"}
        pair = next((pair for pair in board["pairs"] if {pair["first"], pair["second"]} == {first, second}), None)
        if pair is None:
            continue
        told += 1
        resamples = board["bootstrap"]["comparisons"]
        print(f"{visible(board['title'])}, {board['run']}: {resamples:,} paired resamples of the test items")
        for name in (pair["first"], pair["second"]):
            print(f"  {name}: F1 {score(rows[name], 'f1')}, rank {rank_text(rows[name])}, tier {rows[name]['tier']}")
        level = f"{100 * board['bootstrap']['level']:g} % interval"
        print(f"  difference {pair['difference']:.3f} [{pair['low']:.3f}, {pair['high']:.3f}] ({level})")
        print(
            f"  p {pair['p']:.4f} for this pair alone, {pair['p_bh']:.4f} adjusted over all pairs (Benjamini-Hochberg)"
        )
        separated = pair["p"] < 1 - board["bootstrap"]["level"]
        verdict = (
            "separated, if this is the only pair looked at" if separated else "not separated: the order may be chance"
        )
        print(f"  {verdict}")
        print(f"  the mentions behind it: nerprobe errors {first} {second} {file.parent}")
    if not told:
        both = f"{first[:100]} and {second[:100]}"
        raise UnknownModelError("no board has scores of both", where=both, todo="nerprobe show lists the boards")


def list_models(name: str) -> None:
    """Print the registry."""
    console = wide_console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Name", "Source", "Family", "Languages", "Licence"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "Name")
    shown = 0
    for model, entry in load_registry(REGISTRY).items():
        source = entry["source"]
        text = {"hub": "{repo}@{revision:.8}…", "wheel": "wheel", "folder": "{path}"}.get(source["kind"], "built in")
        where = text.format(**source) if source["kind"] != "wheel" else f"wheel {source['wheels'][0]['package']}"
        if name.lower() in f"{model} {where}".lower():
            told = (model, where, entry["family"], entry.get("languages", ""), entry.get("licence", "not stated"))
            table.add_row(*(Text(visible(text)) for text in told))
            shown += 1
    for repo, revision in load_lock(LOCK).items():
        if name.lower() in repo.lower():
            table.add_row(repo, f"locked at {revision[:8]}…", "", "", "")
            shown += 1
    if not shown:
        raise UnknownModelError("nothing in the registry matches", where=repr(name))
    console.print(table)


def lock_models(repos: Sequence[str], *, revision: str) -> None:
    """Resolve hub ids to full commits and write them to ``config/models.lock.yaml``."""
    from nerprobe.hub import resolve_revision

    for repo in repos:
        if not HUB_ID.fullmatch(repo):
            raise UnknownModelError("this is no hub id", where=repr(repo[:120]), expected="org/name")
    pinned = load_lock(LOCK)
    for repo in repos:
        pinned[repo] = resolve_revision(repo=repo, revision=revision)
        print(f"{repo}@{pinned[repo]}")
    write_text(LOCK, "# Written by nerprobe lock.\n" + yaml.safe_dump(pinned, sort_keys=True))
    print(f"written to {LOCK.relative_to(PROJECT)}; use: --config 'models=[{','.join(repos)}]'")


def files_of(model: str, root: Path) -> tuple[list[Path], list[Path]]:
    """Return what a model left behind.

    Args:
        model: Its slug.
        root: Working directory.

    Returns:
        Files and store folders to remove, and the run folders whose boards hold it. A store folder that
        another model's manifest names as well is not among them.
    """
    files: list[Path] = []
    keys: dict[str, set[str]] = {}
    for path in sorted(root.glob("results/*/*/embeddings/*")):
        match = KEYED.fullmatch(path.name)
        if match:
            keys.setdefault(match["key"], set()).add(match["model"])
            files += [path] if match["model"] == model else []
    for pattern in (
        "predictions/{}.parquet",
        "heads/{}.safetensors",
        "heads/{}.json",
        "exploratory/{}.json",
        "metrics/{}.json",
        "failures/{}.json",
        "sweeps/{}.json",
        "curves/{}.json",
    ):
        files += sorted(root.glob("results/*/*/" + pattern.format(model)))
    runs = sorted({path.parents[1] for path in files})
    files += [
        path
        for path in (
            root / f"resources/encoders/{model}.json",
            root / f"resources/encoders/failures/{model}.json",
        )
        if path.exists()
    ]
    swept: dict[str, set[str]] = {}
    for path in root.glob("results/*/*/sweeps/*.json"):
        with suppress(ArtefactError):
            swept.setdefault(str(read_json(path)["encoder"]["key"]), set()).add(path.stem)
    for kind, owners in (("vectors", keys), ("sweeps", swept)):
        own = [key for key, models in owners.items() if models == {model}]
        files += [folder for key in own if (folder := root / "resources" / kind / key).is_dir()]
    return files, runs


def forget_model(model: str, *, yes: bool) -> None:
    """Remove what a model left behind, after saying what; boards that held it are written anew.

    Raises:
        UnknownModelError: If nothing is there.
    """
    root = Path()
    files, runs = files_of(model, root) if SLUG.fullmatch(model) else ([], [])
    if not files:
        known = sorted({path.stem for path in root.glob("results/*/*/metrics/*.json")})
        raise UnknownModelError(
            "nothing of this model is here", where=repr(model[:120]), todo=closest(model[:120], known)
        )
    print(f"This removes {len(files)} files and folders of {model}:")
    for path in files:
        print(visible(f"  {path}{'/' if path.is_dir() else ''}"))
    if not yes:
        if not sys.stdin.isatty():
            raise UnknownModelError("nothing was removed", where=model, todo="say --yes to remove without being asked")
        if input("Remove them? [y/N] ").strip().lower() not in ("y", "yes"):
            print("Nothing was removed.")
            return
    for path in files:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    _rewrite_boards(runs, model)
    print("Removed. Take it off the list in the configuration too, or the next run computes it again.")


def _rewrite_boards(runs: Sequence[Path], model: str) -> None:
    from nerprobe.errors_page import write_errors_page
    from nerprobe.leaderboard import FILES, write_board

    for folder in runs:
        board_file = folder / "leaderboard.json"
        if not board_file.exists():
            continue
        board: dict[str, Any] = read_json(board_file)
        rest = [row["model"] for row in board["rows"] if row["model"] != model]
        page = folder / "errors.html"
        if rest:
            write_board(folder, requested=rest, bootstrap=board["bootstrap"], errors_page=page.exists())
        else:
            for name in FILES:
                (folder / name).unlink(missing_ok=True)
        if page.exists():
            write_errors_page(folder) if rest else page.unlink()


def check_task_file(file: Path, *, data_dir: Path | None) -> None:
    """Check a task file against its schema and read its corpus as the pipeline would."""
    from nerprobe.corpus import read_items
    from nerprobe.items import count_pool

    if file.suffix != ".yaml":
        raise TaskFileError("a task file is named <task>.yaml", where=str(file))
    task = load_task(file)
    print(visible(f"{file}: fits the schema"))
    config = {
        "data_dir": None if data_dir is None else str(data_dir),
        "subset": {"seed": 0, "test": "all", "train": "all"},
        "probe": {},
    }
    items, hashes = read_items(make_run(task, config, base=Path.cwd()).corpus)
    for name, digest in hashes.items():
        print(visible(f"{name}: sha256 {digest}"))
    for pool in task.pools:
        own = [item for item in items if item.pool == pool]
        print(visible(f"pool {pool}: {mentions(count_pool([item.tags for item in own], task.types))}"))
        example = next((item for item in own if any(tag != "O" for tag in item.tags)), None)
        if example is not None:
            marked = ", ".join(f"{w}/{t}" for w, t in zip(example.words, example.tags, strict=True) if t != "O")
            print(visible(f"  first with a mention: {example.item_id}: {marked}"))
    print("ok")
