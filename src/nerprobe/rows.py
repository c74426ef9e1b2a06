"""Rows of a board: what one encoder's files say of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nerprobe.bootstrap import METRICS, Floats, interval
from nerprobe.files import read_json

CARD_NAMES = {
    "f1": "entity_f1_probe",
    "precision": "entity_precision_probe",
    "recall": "entity_recall_probe",
    "macro_f1": "entity_macro_f1_probe",
}
INFO = ("family", "parameters", "width", "layers", "max_tokens", "licence")
MISALIGNED = 0.005
"""Above this share of sub-words that point at other characters a row is flagged."""
FEW_MENTIONS = 10
"""Below this many gold mentions a type's scores are flagged."""


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


def _degenerate(row: Mapping[str, Any]) -> list[str]:
    """Return the flag of metrics whose interval says nothing: at 0 or 1, or of no width (one item, or all alike)."""
    flat = [
        name.replace("_f1", " F1")
        for name in METRICS
        if row[name] in (0.0, 1.0) or row[f"{name}_ci_low"] == row[f"{name}_ci_high"]
    ]
    if "f1" in flat:
        return ["degenerate interval"]
    return [f"degenerate interval of {' and '.join(flat)}"] if flat else []


def _flags(evaluation: Mapping[str, Any], probe: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """Return what a reader should know before believing a row."""
    flags = []
    if not probe["converged"]:
        flags.append("fit not converged")
    flags += [
        f"only {counts['gold']} gold mentions of {kind}"
        for kind, counts in evaluation["per_type"].items()
        if counts["gold"] < FEW_MENTIONS
    ]
    health = manifest.get("health") or {}
    if health.get("offset_mismatches", 0) > MISALIGNED * max(1, health.get("subwords", 0)):
        flags.append(f"{health['offset_mismatches']} sub-words point at other characters")
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
    metrics: Mapping[str, Any], folder: Path, *, values: Mapping[str, Floats], level: float
) -> dict[str, Any]:
    """Return one encoder's row, not yet ranked.

    Args:
        metrics: Its ``metrics/<model>.json``.
        folder: The run's folder.
        values: Each of the card's metrics on each resample, shape (resamples,).
        level: Level of the intervals.
    """
    evaluation = metrics["evaluations"][0]
    encoder = metrics["encoder"]
    manifest = _manifest(folder, metrics)
    row: dict[str, Any] = {
        "model": metrics["model"],
        "status": "ok",
        "revision": encoder["revision"],
    }
    for name in METRICS:
        row[name] = evaluation["metrics"][CARD_NAMES[name]]
        row[f"{name}_ci_low"], row[f"{name}_ci_high"] = interval(values[name], level)
    known = {**encoder["info"], **{k: v for k, v in encoder["measured"].items() if k in INFO}}
    row |= {name: known.get(name) for name in INFO}
    row |= {
        "kind": "baseline" if encoder["baseline"] else "encoder",
        "seconds": manifest.get("seconds"),
        "health": _health(manifest),
        "health_values": manifest.get("health"),
        "flags": "; ".join(_degenerate(row) + _flags(evaluation, metrics["probe"], manifest)),
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
        "breakdown": evaluation.get("breakdown") or [],
        "exploratory": metrics.get("exploratory"),
    }
    return row
