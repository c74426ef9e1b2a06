"""Stage ``leaderboard``: one board over all encoders that a run has evaluated, with every interval."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nerprobe.bootstrap import METRICS, Floats, count_array, resampled, weight_matrix
from nerprobe.compare import COMPARISONS, POWER, Pair, Standing, pairs, separable_gap, standings, visible_gap
from nerprobe.errors import ArtefactError
from nerprobe.files import AGAIN, hashes, read_json, sha256_file, write_bytes, write_json, write_text
from nerprobe.redact import visible
from nerprobe.render import board_markdown
from nerprobe.rows import INFO, board_row

COUNTS = ("tp", "predicted", "gold", "iterations")
FILES = (
    *(f"leaderboard.{suffix}" for suffix in ("csv", "md", "html", "json")),
    *(f"plots/{name}.svg" for name in ("forest", "pairs", "cost")),
)
"""What the stage writes into a run's folder."""
STANDING = tuple(field.name for field in fields(Standing))


def read_metrics(
    folder: Path, requested: Sequence[str], keys: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the metrics of a run: the requested encoders together with those already evaluated.

    Args:
        folder: ``results/<task>/<run>``.
        requested: Slugs that were asked for.
        keys: Key of each requested encoder; metrics of another key are of another state of it.

    Returns:
        Metrics by slug, and the reason of each encoder that has none.

    Raises:
        ArtefactError: If a requested encoder's file is damaged or of another run.
    """
    found: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for path in sorted((folder / "metrics").glob("*.json")):
        try:
            found[path.stem] = _checked(read_json(path), path, folder)
        except ArtefactError as error:
            if path.stem in requested:
                raise
            failed[path.stem] = str(error)
    for model in requested:
        reason = _failure(folder, model)
        if reason:
            found.pop(model, None)
            failed[model] = reason
        elif model not in found or found[model]["encoder"]["key"] != keys.get(model, found[model]["encoder"]["key"]):
            found.pop(model, None)
            failed[model] = _ended(folder, model, keys.get(model, ""))
    return found, failed


def _failure(folder: Path, model: str) -> str:
    """Return why a model failed in this run, or empty. A failed fetch belongs to all runs and is copied here."""
    record = folder / "failures" / f"{model}.json"
    fetched = folder.parents[2] / "resources" / "encoders" / "failures" / f"{model}.json"
    if fetched.exists():
        (folder / "metrics" / f"{model}.json").unlink(missing_ok=True)
        write_bytes(record, fetched.read_bytes())
    try:
        return str(read_json(record)["reason"]) if record.exists() else ""
    except ArtefactError as error:
        return str(error)


def _ended(folder: Path, model: str, key: str) -> str:
    """Return what the logs tell of a model that left neither metrics nor a reason, as a killed job does."""
    logs = folder.parents[2] / "logs" / folder.parent.name / folder.name
    stages = (("embed", f"{model}.{key}", "embeddings"), ("probe", model, "heads"), ("score", model, "metrics"))
    for stage, name, outputs in stages:
        log = logs / stage / f"{name}.log"
        if log.exists() and not (folder / outputs / f"{name}.json").exists():
            return f"{stage} was ended from outside: too little memory, time run out, or cancelled; see {log}"
    return "not evaluated; the log under logs/ says why"


def _checked(metrics: dict[str, Any], path: Path, folder: Path) -> dict[str, Any]:
    where = f"{folder.parent.name}/{folder.name}"
    got = f"{metrics.get('task')}/{metrics.get('run')}"
    if got != where or metrics.get("schema") != 1 or metrics.get("model") != path.stem:
        what = "these metrics are of another run or model"
        raise ArtefactError(what, where=str(path), expected=where, got=got, todo=AGAIN)
    return metrics


def _same_items(found: Mapping[str, Any]) -> None:
    """Refuse rows that do not share test items and gold counts: they would not compare."""
    first: tuple[str, Any] | None = None
    for model, metrics in found.items():
        gold = [(item["item_id"], item["gold"]) for item in metrics["evaluations"][0]["per_item"]]
        if first is None:
            first = (model, gold)
        elif gold != first[1]:
            raise ArtefactError(
                "two encoders were scored on different items or gold mentions",
                where=f"{first[0]} and {model}",
                todo="nerprobe forget the older one, then run snakemake again",
            )


def ranked(rows: Sequence[dict[str, Any]], values: Floats, *, level: float) -> list[dict[str, Any]]:
    """Sort by F1, best first, and say where each row stands; failed rows come last, without a rank.

    Args:
        rows: Good rows in the order of the values, then failed ones.
        values: F1 of each good row on each resample, shape (resamples, rows).
        level: Level of the rank intervals.
    """
    good = [row for row in rows if row["status"] == "ok"]
    bad = sorted((row for row in rows if row["status"] != "ok"), key=lambda row: row["model"])
    scores = np.array([row["f1"] for row in good])
    placed = [
        {**asdict(standing), **row} for row, standing in zip(good, standings(scores, values, level=level), strict=True)
    ]
    placed.sort(key=lambda row: (row["rank"], row["model"]))
    return placed + [{**dict.fromkeys(STANDING), **row} for row in bad]


def compared(rows: Sequence[Mapping[str, Any]], found: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return every paired comparison, by name instead of by place among the good rows."""
    good = [row["model"] for row in rows if row["status"] == "ok"]
    return [{**asdict(pair), "first": good[pair.first], "second": good[pair.second]} for pair in found]


def _scored(
    found: Mapping[str, Any], folder: Path, *, types: Sequence[str], weights: Floats, resamples: int, level: float
) -> tuple[list[dict[str, Any]], Floats]:
    """Return a row for each model, not yet ranked, and its F1 on each resample, shape (draws, models)."""
    rows, f1 = [], np.zeros((len(weights), len(found)))
    for index, metrics in enumerate(found.values()):
        counts = count_array(metrics["evaluations"][0]["per_item"], types)
        values = resampled(counts, weights)
        f1[:, index] = values["f1"]
        first = {name: drawn[:resamples] for name, drawn in values.items()}
        rows.append(board_row(metrics, folder, values=first, level=level))
    return rows, f1


def build_board(
    folder: Path,
    *,
    requested: Sequence[str],
    corpus: Mapping[str, Any],
    subset: Mapping[str, Any],
    bootstrap: Mapping[str, Any],
    keys: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the board of one run, as ``leaderboard.json`` holds it.

    Args:
        folder: ``results/<task>/<run>``.
        requested: Slugs that were asked for.
        corpus: ``corpus.json``.
        subset: ``subset.json``.
        bootstrap: ``resamples``, ``level`` and ``seed`` (None: the subset's).
        keys: Key of each requested encoder, as far as known.
    """
    found, failed = read_metrics(folder, requested, keys or {})
    _same_items(found)
    evaluation = corpus["evaluations"][0]
    test = subset["items"][evaluation["test_pool"]]
    seed = subset["seed"] if bootstrap["seed"] is None else bootstrap["seed"]
    resamples, level = bootstrap["resamples"], bootstrap["level"]
    # One draw for all: the intervals read its first rows, comparisons and ranks all of it.
    weights = weight_matrix(len(test), resamples=max(resamples, COMPARISONS), seed=seed)
    rows, f1 = _scored(found, folder, types=corpus["types"], weights=weights, resamples=resamples, level=level)
    for model, reason in failed.items():
        rows.append({"model": model, "status": "failed", "reason": reason, "flags": reason})
    dataset = {name: corpus[name] for name in ("source", "repo", "revision", "sha256")}
    found_pairs = pairs(np.array([row["f1"] for row in rows if row["status"] == "ok"]), f1, level=level)
    leakage = folder / "leakage.json"
    return {
        "schema": 1,
        "task": corpus["task"],
        "title": corpus["title"],
        "run": folder.name,
        "types": corpus["types"],
        "labels": corpus["labels"],
        "licence": corpus["licence"],
        "dataset": dataset,
        "evaluation": evaluation,
        "subset": {"id": subset["id"], "seed": subset["seed"], "counts": subset["counts"]},
        "bootstrap": {"resamples": resamples, "level": level, "seed": seed, "comparisons": len(weights)},
        "rows": ranked(rows, f1, level=level),
        "pairs": compared(rows, found_pairs),
        "smallest_gap": {
            "gap": separable_gap(found_pairs, alpha=1 - level),
            "visible": visible_gap(f1, alpha=1 - level, power=POWER),
            "power": POWER,
            "items": len(test),
        },
        "leakage": read_json(leakage) if leakage.exists() else None,
        "texts_shareable": bool(corpus.get("texts_shareable")),
    }


def board_frame(board: Mapping[str, Any]) -> pd.DataFrame:
    """Return the board as a frame, a row an encoder, in the columns of ``leaderboard.csv``."""
    columns = ["rank", "rank_low", "rank_high", "tier", "p_best", "model", "status", "revision"]
    for name in METRICS:
        columns += [name, f"{name}_ci_low", f"{name}_ci_high"]
    columns += [*INFO, "seconds", "health", "flags", "kind", "p_top3", *COUNTS, "converged", "dtype", "key", "reason"]
    rows = [{k: visible(v) if isinstance(v, str) else v for k, v in row.items()} for row in board["rows"]]
    frame = pd.DataFrame(rows, columns=columns)
    beside = [row.get("exploratory") or {} for row in board["rows"]]
    frame["exploratory_f1"] = [found["metrics"]["f1"] if found else None for found in beside]
    frame["exploratory_C"] = [found.get("C") for found in beside]
    whole = ["rank", "rank_low", "rank_high", "tier", "parameters", "width", "layers", "max_tokens", *COUNTS]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def write_board(
    folder: Path,
    *,
    requested: Sequence[str],
    bootstrap: Mapping[str, Any],
    keys: Mapping[str, str] | None = None,
    errors_page: bool = True,
    stale: bool = False,
) -> dict[str, Any]:
    """Run the stage: write ``leaderboard.csv``, ``.md``, ``.json`` and ``.html``, and the plots.

    Args:
        folder: ``results/<task>/<run>``.
        requested: Slugs that were asked for.
        bootstrap: As in the configuration.
        keys: Key of each of them, as far as known.
        errors_page: Whether the run has an ``errors.html``, to which the page then leads; if not, one of another time
            is removed.
        stale: Mark the files as older than any input, so that the next run makes them again (used after a
            failure, when Snakemake itself could not).
    """
    from nerprobe.charts import plots  # with their libraries, which only this stage needs
    from nerprobe.page import board_page

    corpus, subset = read_json(folder / "corpus.json"), read_json(folder / "subset.json")
    board = build_board(folder, requested=requested, keys=keys, corpus=corpus, subset=subset, bootstrap=bootstrap)
    write_text(folder / "leaderboard.csv", board_frame(board).to_csv(index=False, lineterminator="\n"))
    write_text(folder / "leaderboard.md", board_markdown(board))
    write_text(folder / "leaderboard.html", board_page(board, errors_page=errors_page))
    for name, svg in plots(board).items():
        write_text(folder / "plots" / f"{name}.svg", svg)
    # What the board was made from and what was made with it, for nerprobe verify.
    rows = [folder / "metrics" / f"{row['model']}.json" for row in board["rows"] if row["status"] == "ok"]
    board |= {"metrics_sha256": hashes(rows)}
    board |= {"files": {name: sha256_file(folder / name) for name in FILES if name != "leaderboard.json"}}
    write_json(folder / "leaderboard.json", board)
    if not errors_page:
        (folder / "errors.html").unlink(missing_ok=True)
    if stale:
        for name in FILES:
            os.utime(folder / name, (1, 1))
    return board
