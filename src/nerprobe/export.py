"""``nerprobe export``: a model's scores as the evaluation block of a hub model card (``model-index``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nerprobe.errors import UnknownModelError
from nerprobe.files import read_json
from nerprobe.redact import visible
from nerprobe.render import HEADINGS, mentions, rank_text
from nerprobe.rows import CARD_NAMES

Facts = Mapping[str, Any]
NAMES = {
    "f1": "Entity F1, strict",
    "precision": "Entity precision, strict",
    "recall": "Entity recall, strict",
    "macro_f1": "Macro entity F1 over types, strict",
}
SHOWN_SETTINGS = ("layer", "pooling", "dtype", "prefix", "max_length")


def _probe_args(metrics: Facts) -> dict[str, Any]:
    """Return how a score came about: the frozen encoder's settings and the probe's."""
    probe, encoder = metrics["probe"], metrics["encoder"]
    settings = encoder["settings"] or {}
    args: dict[str, Any] = {"probe": probe["kind"], "encoder_frozen": True, "encoder_revision": encoder["revision"]}
    args |= {name: settings[name] for name in SHOWN_SETTINGS if settings.get(name) not in (None, "")}
    args |= {name: probe[name] for name in ("C", "tol", "max_iter", "converged") if probe[name] is not None}
    return args


def _dataset_args(metrics: Facts, corpus: Facts) -> dict[str, Any]:
    """Return which items were used, so that nobody takes the score for one on the whole set."""
    evaluation, subset = metrics["evaluations"][0], metrics["subset"]
    args: dict[str, Any] = {"subset_id": subset["id"], "subset_seed": subset["seed"]}
    for role in ("test", "train"):
        pool = evaluation[f"{role}_pool"]
        args[f"{role}_items"] = subset["counts"][pool]["items"]
        args[f"{role}_items_in_pool"] = corpus["counts"][pool]["items"]
        args[f"{role}_mentions"] = dict(subset["counts"][pool]["mentions"])
        file = corpus.get("files", {}).get(pool)
        if file is not None:
            args[f"{role}_file"] = file
            args[f"{role}_file_sha256"] = corpus["sha256"][file]
    return args


def _dataset_name(metrics: Facts, corpus: Facts) -> str:
    pool = metrics["evaluations"][0]["test_pool"]
    some, whole = metrics["subset"]["counts"][pool]["items"], corpus["counts"][pool]["items"]
    part = f"all {whole:,} items" if some == whole else f"seeded subset of {some:,} of {whole:,} items"
    file = corpus.get("files", {}).get(pool)
    return f"{corpus['title']}, {part}" + (f" of {file}" if file else f" of pool {pool}")


def _name(metrics: Facts) -> str:
    source = metrics["encoder"]["source"]
    return str(source["repo"]).rpartition("/")[2] if source["kind"] == "hub" else str(metrics["model"])


def model_card(board: Facts, row: Facts, metrics: Facts, corpus: Facts) -> str:
    """Return the block: YAML front matter that the hub reads, and a paragraph that says what the numbers are.

    Args:
        board: ``leaderboard.json``.
        row: The model's row of it.
        metrics: ``metrics/<model>.json``.
        corpus: ``corpus.json``.
    """
    from huggingface_hub import EvalResult, ModelCardData

    boot, evaluation = board["bootstrap"], metrics["evaluations"][0]
    how = _probe_args(metrics)
    results = [
        EvalResult(
            task_type="token-classification",
            task_name="Entity mentions by a token probe on the frozen encoder",
            dataset_type=corpus["repo"] or corpus["task"],
            dataset_name=visible(_dataset_name(metrics, corpus)),
            dataset_split=evaluation["test_pool"],
            dataset_revision=corpus["revision"],
            dataset_args=_dataset_args(metrics, corpus),
            metric_type=CARD_NAMES[name],
            metric_name=f"{NAMES[name]} (token probe, frozen encoder)",
            metric_value=row[name],
            metric_args={
                "interval": [row[f"{name}_ci_low"], row[f"{name}_ci_high"]],
                "interval_level": boot["level"],
                "interval_method": f"percentile bootstrap over test items, {boot['resamples']} resamples",
                **how,
            },
        )
        for name in HEADINGS
    ]
    card = ModelCardData(model_name=_name(metrics), eval_results=results)
    return f"---\n{card.to_yaml()}\n---\n\n{_paragraph(board, row, metrics, corpus)}\n"


def _paragraph(board: Facts, row: Facts, metrics: Facts, corpus: Facts) -> str:
    counts, evaluation = metrics["subset"]["counts"], metrics["evaluations"][0]
    rows = [other for other in board["rows"] if other["status"] == "ok"]
    better = [other["model"] for other in rows if other["kind"] == "baseline" and other["f1"] >= row["f1"]]
    lines = [
        "These scores come from a token probe: the encoder is frozen and was not fine-tuned; a logistic regression on "
        "its word vectors tags each word. They do not compare with scores of fine-tuned models or on other subsets.",
        f"Train: {mentions(counts[evaluation['train_pool']])}. Test: {mentions(counts[evaluation['test_pool']])}. "
        f"F1 {row['f1']:.3f}, {100 * board['bootstrap']['level']:g} % interval {row['f1_ci_low']:.3f} to "
        f"{row['f1_ci_high']:.3f}; rank {rank_text(row)} of {len(rows)} on its board.",
    ]
    if better:
        lines.append(f"Not below it without a pretrained encoder: {', '.join(better)}.")
    if corpus["source"] == "path":
        lines.append("The corpus was read from local files; their hashes stand in the block above.")
    if corpus["source"] == "sample":
        lines.append("The corpus is generated: the scores say nothing about encoders.")
    lines += [f"Note: {flag}." for flag in row["flags"].split("; ") if flag]
    return visible(" ".join(lines))


def export_model(folder: Path, model: str) -> str:
    """Return the block of one model of a run folder.

    Raises:
        UnknownModelError: If it is a baseline, which has no card.
    """
    board = read_json(folder / "leaderboard.json")
    row = next(row for row in board["rows"] if row["model"] == model)
    if row["kind"] == "baseline":
        raise UnknownModelError("a baseline is no encoder and has no model card", where=model, todo="name an encoder")
    return model_card(board, row, read_json(folder / row["metrics_file"]), read_json(folder / "corpus.json"))
