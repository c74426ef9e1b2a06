"""Stage ``score``: strict counts of mentions and the card's four metrics."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nerprobe.breakdown import breakdown, train_mentions
from nerprobe.errors import ArtefactError
from nerprobe.files import AGAIN, check_sha256, read_json, write_json
from nerprobe.items import load_items
from nerprobe.spans import mentions
from nerprobe.subset import load_subset

Tally = dict[str, int]
"""``tp``, ``predicted`` and ``gold`` mentions."""
PACKAGES = ("numpy", "pandas", "pyarrow", "scikit-learn", "tokenizers", "torch", "transformers")


def tally(gold: Sequence[str], predicted: Sequence[str], types: Sequence[str]) -> dict[str, Tally]:
    """Count the mentions of one item by type.

    A mention is right if type, first and last word are; sets are compared, so nothing counts twice
    (strict matching of ProfNER, Miranda-Escalada et al. 2021).

    Args:
        gold: One tag a word.
        predicted: One tag a word.
        types: Declared types; others do not count.
    """
    right, found = set(mentions(gold)), set(mentions(predicted))
    return {
        kind: {
            "tp": sum(mention[0] == kind for mention in right & found),
            "predicted": sum(mention[0] == kind for mention in found),
            "gold": sum(mention[0] == kind for mention in right),
        }
        for kind in types
    }


def add(tallies: Sequence[Tally]) -> Tally:
    """Return the sum of several tallies."""
    return {name: sum(one[name] for one in tallies) for name in ("tp", "predicted", "gold")}


def rates(counts: Tally) -> dict[str, float]:
    """Return precision, recall and F1; 0 where undefined."""
    tp, predicted, gold = counts["tp"], counts["predicted"], counts["gold"]
    return {
        "precision": tp / predicted if predicted else 0.0,
        "recall": tp / gold if gold else 0.0,
        "f1": 2 * tp / (predicted + gold) if predicted + gold else 0.0,
    }


def evaluate(items: Sequence[tuple[str, Sequence[str], Sequence[str]]], types: Sequence[str]) -> dict[str, Any]:
    """Score one evaluation.

    Args:
        items: Item id, gold tags and predicted tags, in rank order.
        types: Declared types.

    Returns:
        ``counts``, ``metrics``, ``per_type`` and ``per_item`` of ``metrics/<model>.json``. The macro F1 is the
        mean of the declared types' F1 (0 where undefined).
    """
    per_item: list[dict[str, Any]] = []
    for item_id, gold, predicted in items:
        by_type = tally(gold, predicted, types)
        per_item.append({"item_id": item_id, **add(list(by_type.values())), "per_type": by_type})
    totals = {kind: add([item["per_type"][kind] for item in per_item]) for kind in types}
    per_type = {kind: {**rates(total), **total} for kind, total in totals.items()}
    counts = add(list(totals.values()))
    micro = rates(counts)
    return {
        "counts": counts,
        "metrics": {
            "entity_f1_probe": micro["f1"],
            "entity_precision_probe": micro["precision"],
            "entity_recall_probe": micro["recall"],
            "entity_macro_f1_probe": sum(per_type[kind]["f1"] for kind in types) / len(types),
        },
        "per_type": per_type,
        "per_item": per_item,
    }


def tags_by_item(path: Path, order: Sequence[str]) -> list[tuple[str, list[str], list[str]]]:
    """Return item id, gold and predicted tags of each test item, in rank order.

    Args:
        path: ``predictions/<model>.parquet``.
        order: Ids of the test items in rank order.

    Raises:
        ArtefactError: If the file is missing, damaged or of another subset.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    try:
        rows = pq.read_table(path, columns=["item_id", "gold", "predicted"]).to_pylist()
    except (pa.ArrowException, OSError) as error:
        what = "cannot read these predictions"
        raise ArtefactError(what, where=str(path), got=str(error)[:200], todo=AGAIN) from error
    for row in rows:
        gold, predicted = found.setdefault(row["item_id"], ([], []))
        gold.append(row["gold"])
        predicted.append(row["predicted"])
    if set(found) != set(order):
        raise ArtefactError(
            "predictions are not of this subset",
            where=str(path),
            expected=f"{len(order)} items",
            got=f"{len(found)} items",
            todo=AGAIN,
        )
    return [(item_id, *found[item_id]) for item_id in order]


def _breakdown(
    rows: Sequence[tuple[str, list[str], list[str]]], *, table: Path, train: Sequence[str], types: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the counts by class of mention; texts and train mentions come from ``corpus.parquet``."""
    known = load_items(table, [*(item_id for item_id, _, _ in rows), *train])
    other = [item_id for item_id, gold, _ in rows if list(known[item_id].tags) != gold]
    if other:
        raise ArtefactError(
            "the corpus has other gold tags than the predictions",
            where=f"{table}: {other[0]}",
            todo=AGAIN,
        )
    seen = train_mentions(known[item_id] for item_id in train)
    return breakdown([(known[item_id], gold, said) for item_id, gold, said in rows], types=types, seen=seen)


def _exploratory(
    found: dict[str, Any] | None, rows: Sequence[tuple[str, list[str], list[str]]], types: Sequence[str]
) -> dict[str, Any] | None:
    """Return the four metrics under the C that cross-validation chose, with how it was chosen; None without one."""
    if found is None:
        return None
    tags = found.pop("tags")
    said = [
        (item_id, gold, [tags.get(item_id, {}).get(str(word), "O") for word in range(len(gold))])
        for item_id, gold, _ in rows
    ]
    metrics = evaluate(said, types)["metrics"].items()
    return {**found, "metrics": {name.removeprefix("entity_").removesuffix("_probe"): value for name, value in metrics}}


def write_metrics(
    *,
    run: str,
    predictions: Path,
    facts: Path,
    exploratory: Path,
    subset: Path,
    corpus: Path,
    corpus_info: Path,
    output: Path,
) -> None:
    """Run the stage: write ``metrics/<model>.json`` (DESIGN section 2)."""
    about, data, chosen = read_json(facts), read_json(corpus_info), load_subset(subset)
    check_sha256(predictions, about["predictions_sha256"], record=facts)
    if about["run"] != run:
        raise ArtefactError("this head is of another run", where=str(facts), expected=run, got=about["run"], todo=AGAIN)
    beside = read_json(exploratory)
    if beside["predictions_sha256"] != about["predictions_sha256"]:
        raise ArtefactError("this was not made with its head", where=str(exploratory), todo=AGAIN)
    evaluation = about["evaluation"]
    rows = tags_by_item(predictions, chosen["items"][evaluation["test_pool"]])
    train = chosen["items"][evaluation["train_pool"]]
    dataset = {name: data[name] for name in ("source", "repo", "revision", "sha256")}
    fit = {name: about[name] for name in ("C", "max_iter", "tol", "iterations", "converged")}
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    write_json(
        output,
        {
            "schema": 1,
            "task": data["task"],
            "model": about["model"],
            "run": run,
            "dataset": dataset,
            "subset": {"id": chosen["id"], "seed": chosen["seed"], "counts": chosen["counts"]},
            "encoder": about["encoder"],
            "predictions_sha256": about["predictions_sha256"],
            "evaluations": [
                {
                    "protocol": evaluation["protocol"],
                    "regime": evaluation["regime"],
                    "train_pool": evaluation["train_pool"],
                    "test_pool": evaluation["test_pool"],
                    **evaluate(rows, data["types"]),
                    "breakdown": _breakdown(rows, table=corpus, train=train, types=data["types"]),
                }
            ],
            "exploratory": _exploratory(beside["exploratory"], rows, data["types"]),
            "probe": {"kind": about["kind"], **fit},
            "versions": {**versions, "python": platform.python_version()},
        },
    )
