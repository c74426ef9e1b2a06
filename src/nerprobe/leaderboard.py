"""Stage ``leaderboard``: one board over all encoders that a run has evaluated, with every interval."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nerprobe.bootstrap import METRICS, Floats, count_array, interval, resampled, weight_matrix
from nerprobe.errors import ArtefactError
from nerprobe.files import read_json, write_bytes, write_json, write_text
from nerprobe.render import board_html, board_markdown

CARD_NAMES = {
    "f1": "entity_f1_probe",
    "precision": "entity_precision_probe",
    "recall": "entity_recall_probe",
    "macro_f1": "entity_macro_f1_probe",
}
INFO = ("family", "parameters", "width", "layers", "max_tokens", "licence")
FEW_MENTIONS = 10
"""Below this many gold mentions a type's scores are flagged."""


def read_metrics(folder: Path, requested: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the metrics of a run: the requested encoders together with those already evaluated.

    Args:
        folder: ``results/<task>/<run>``.
        requested: Slugs that were asked for.

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
        elif model not in found:
            failed[model] = "not evaluated; the log under logs/ says why"
    return found, failed


def _failure(folder: Path, model: str) -> str:
    """Return why a model failed in this run, or empty. A failed fetch belongs to all runs and is copied here."""
    record = folder / "failures" / f"{model}.json"
    fetched = folder.parents[2] / "resources" / "encoders" / "failures" / f"{model}.json"
    if fetched.exists():
        write_bytes(record, fetched.read_bytes())
    return str(read_json(record)["reason"]) if record.exists() else ""


def _checked(metrics: Any, path: Path, folder: Path) -> Any:  # noqa: ANN401
    where = f"{folder.parent.name}/{folder.name}"
    got = f"{metrics.get('task')}/{metrics.get('run')}" if isinstance(metrics, dict) else "no object"
    if got != where or metrics.get("schema") != 1 or metrics.get("model") != path.stem:
        raise ArtefactError(
            "these metrics are of another run",
            where=str(path),
            expected=where,
            got=got,
            todo=f"remove it: rm {path}",
        )
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
                todo="remove the older metrics file and run snakemake again",
            )


def command_of(metrics: Mapping[str, Any]) -> str:
    """Return the command that makes a row; DIR stands for a local data directory, FOLDER for an encoder's."""
    source = metrics["encoder"]["source"]
    model = metrics["model"]
    if source["kind"] == "folder":
        model = f"FOLDER/{model}"
    elif source["kind"] == "hub" and "--" in model:
        model = f"{source['repo']}@{source['revision']}"
    sizes = re.match(r"test([a-z0-9]+)-train([a-z0-9]+)-", metrics["run"])
    test, train = sizes.groups() if sizes else ("all", "all")
    parts = [
        f"'tasks=[{metrics['task']}]'",
        f"'models=[{model}]'",
        f"'subset={{seed: {metrics['subset']['seed']}, test: {test}, train: {train}}}'",
    ]
    probe = metrics["probe"]
    if probe["kind"] == "logistic":
        parts.append(f"'probe={{C: {probe['C']}, tol: {probe['tol']}, max_iter: {probe['max_iter']}}}'")
    settings = metrics["encoder"]["settings"] or {}
    if (settings.get("dtype", "float32"), settings.get("storage", "float32")) != ("float32", "float32"):
        parts.append(f"'embed={{dtype: {settings['dtype']}, storage: {settings['storage']}}}'")
    if metrics["dataset"]["source"] == "path":
        parts.append("data_dir=DIR")
    return "snakemake --cores 8 --config " + " ".join(parts)


def _manifest(folder: Path, metrics: Mapping[str, Any]) -> dict[str, Any]:
    path = folder / "embeddings" / f"{metrics['model']}.{metrics['encoder']['key']}.json"
    manifest: dict[str, Any] = read_json(path) if path.exists() else {}
    return manifest


def _flags(evaluation: Mapping[str, Any], probe: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """Return what a reader should know before believing a row."""
    flags = []
    if evaluation["metrics"][CARD_NAMES["f1"]] in (0.0, 1.0):
        flags.append("degenerate interval")
    if not probe["converged"]:
        flags.append("fit not converged")
    flags += [
        f"only {counts['gold']} gold mentions of {kind}"
        for kind, counts in evaluation["per_type"].items()
        if counts["gold"] < FEW_MENTIONS
    ]
    if manifest.get("encoder", {}).get("dtype_used", "float32") != manifest.get("settings", {}).get("dtype", "float32"):
        flags.append("recomputed in float32")
    return flags


def _health(manifest: Mapping[str, Any]) -> str:
    health = manifest.get("health")
    if not health:
        return ""
    if not health["subwords"]:
        return "no sub-words"
    return (
        f"{health['fertility']:.2f} sub-words/word, {100 * health['unknown_rate']:.1f} % unknown, "
        f"{health['words_without_subwords']} words without, {health['items_windowed']} windowed"
    )


def board_row(
    metrics: Mapping[str, Any], folder: Path, weights: Floats, types: Sequence[str], level: float
) -> dict[str, Any]:
    """Return one encoder's row, not yet ranked.

    Args:
        metrics: Its ``metrics/<model>.json``.
        folder: The run's folder.
        weights: Shared weight matrix, shape (resamples, items).
        types: Declared types.
        level: Level of the intervals.
    """
    evaluation = metrics["evaluations"][0]
    values = resampled(count_array(evaluation["per_item"], types), weights)
    encoder = metrics["encoder"]
    manifest = _manifest(folder, metrics)
    row: dict[str, Any] = {
        "model": metrics["model"],
        "status": "ok",
        "kind": "baseline" if encoder["baseline"] else "encoder",
        "revision": encoder["revision"],
    }
    for name in METRICS:
        row[name] = evaluation["metrics"][CARD_NAMES[name]]
        row[f"{name}_ci_low"], row[f"{name}_ci_high"] = interval(values[name], level)
    known = {**encoder["info"], **{k: v for k, v in encoder["measured"].items() if k in INFO}}
    row |= {name: known.get(name) for name in INFO}
    row |= {
        "seconds": manifest.get("seconds"),
        "health": _health(manifest),
        "flags": "; ".join(_flags(evaluation, metrics["probe"], manifest)),
        "tp": evaluation["counts"]["tp"],
        "predicted": evaluation["counts"]["predicted"],
        "gold": evaluation["counts"]["gold"],
        "iterations": metrics["probe"]["iterations"],
        "converged": metrics["probe"]["converged"],
        "dtype": encoder["measured"].get("dtype_used"),
        "key": encoder["key"],
        "metrics_file": f"metrics/{metrics['model']}.json",
        "command": command_of(metrics),
        "reason": None,
        "per_type": evaluation["per_type"],
    }
    return row


def ranked(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort by F1, best first, and number the rows; equal scores share the better rank; failed rows come last."""
    good = sorted((row for row in rows if row["status"] == "ok"), key=lambda row: (-row["f1"], row["model"]))
    bad = sorted((row for row in rows if row["status"] != "ok"), key=lambda row: row["model"])
    numbered = [{"rank": 1 + sum(other["f1"] > row["f1"] for other in good), **row} for row in good]
    return numbered + [{"rank": None, **row} for row in bad]


def build_board(
    folder: Path,
    *,
    requested: Sequence[str],
    corpus: Mapping[str, Any],
    subset: Mapping[str, Any],
    bootstrap: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the board of one run, as ``leaderboard.json`` holds it.

    Args:
        folder: ``results/<task>/<run>``.
        requested: Slugs that were asked for.
        corpus: ``corpus.json``.
        subset: ``subset.json``.
        bootstrap: ``resamples``, ``level`` and ``seed`` (None: the subset's).
    """
    found, failed = read_metrics(folder, requested)
    _same_items(found)
    evaluation = corpus["evaluations"][0]
    test = subset["items"][evaluation["test_pool"]]
    seed = subset["seed"] if bootstrap["seed"] is None else bootstrap["seed"]
    weights = weight_matrix(len(test), resamples=bootstrap["resamples"], seed=seed)
    rows = [board_row(metrics, folder, weights, corpus["types"], bootstrap["level"]) for metrics in found.values()]
    for model, reason in failed.items():
        rows.append({"model": model, "status": "failed", "reason": reason, "flags": reason})
    dataset = {name: corpus[name] for name in ("source", "repo", "revision", "sha256")}
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
        "bootstrap": {"resamples": bootstrap["resamples"], "level": bootstrap["level"], "seed": seed},
        "rows": ranked(rows),
    }


def board_frame(board: Mapping[str, Any]) -> pd.DataFrame:
    """Return the board as a frame, a row an encoder, in the columns of ``leaderboard.csv``."""
    columns = ["rank", "model", "status", "kind", "revision"]
    for name in METRICS:
        columns += [name, f"{name}_ci_low", f"{name}_ci_high"]
    columns += [
        *INFO,
        "seconds",
        "health",
        "flags",
        "tp",
        "predicted",
        "gold",
        "iterations",
        "converged",
        "dtype",
        "key",
        "reason",
    ]
    frame = pd.DataFrame(board["rows"], columns=columns)
    whole = ["rank", "parameters", "width", "layers", "max_tokens", "tp", "predicted", "gold", "iterations"]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def write_board(
    folder: Path, *, requested: Sequence[str], bootstrap: Mapping[str, Any], stale: bool = False
) -> dict[str, Any]:
    """Run the stage: write ``leaderboard.csv``, ``.md``, ``.json`` and ``.html``.

    Args:
        folder: ``results/<task>/<run>``.
        requested: Slugs that were asked for.
        bootstrap: As in the configuration.
        stale: Mark the files as older than any input, so that the next run makes them again (used after a
            failure, when Snakemake itself could not).
    """
    corpus, subset = read_json(folder / "corpus.json"), read_json(folder / "subset.json")
    board = build_board(folder, requested=requested, corpus=corpus, subset=subset, bootstrap=bootstrap)
    write_text(folder / "leaderboard.csv", board_frame(board).to_csv(index=False, lineterminator="\n"))
    write_text(folder / "leaderboard.md", board_markdown(board))
    write_text(folder / "leaderboard.html", board_html(board))
    write_json(folder / "leaderboard.json", board)
    if stale:
        for suffix in ("csv", "md", "html", "json"):
            os.utime(folder / f"leaderboard.{suffix}", (1, 1))
    return board
