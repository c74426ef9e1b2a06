"""Stage ``probe``: fit a head on the train items' word vectors and tag the test items' words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save
from threadpoolctl import threadpool_limits

from nerprobe.cross_validate import exploratory_fit
from nerprobe.errors import ArtefactError
from nerprobe.files import AGAIN, atomic_path, read_json, sha256_file, write_bytes, write_json
from nerprobe.items import Item, load_items
from nerprobe.log import logger, progress_bar
from nerprobe.logistic import Floats, fit_logistic
from nerprobe.lookup import Lookup
from nerprobe.subset import load_subset
from nerprobe.vector_files import read_vectors

Prediction = tuple[list[str], Sequence[float] | Floats]
"""Tags and probabilities of all test words, item after item."""


def probe_vectors(
    vectors: Mapping[str, Floats], train: Sequence[Item], test: Sequence[Item], settings: Mapping[str, Any]
) -> tuple[Prediction, dict[str, Any], dict[str, Floats]]:
    """Fit the logistic head and tag the test words.

    Returns:
        The prediction, facts on the fit, and the head's arrays.
    """
    stacked = np.concatenate([vectors[item.item_id] for item in train])
    tags = [tag for item in train for tag in item.tags]
    with progress_bar(f"fit on {len(tags)} words", None):
        head = fit_logistic(stacked, tags, C=settings["C"], tol=settings["tol"], max_iter=settings["max_iter"])
    if not head.converged:
        logger.warning("the fit did not converge within %d iterations", settings["max_iter"])
    prediction = head.predict(np.concatenate([vectors[item.item_id] for item in test]))
    facts = {
        "kind": "logistic",
        "classes": list(head.classes),
        "C": settings["C"],
        "tol": settings["tol"],
        "max_iter": settings["max_iter"],
        "iterations": head.iterations,
        "converged": head.converged,
    }
    return prediction, facts, {"weights": head.weights, "bias": head.bias}


def probe_lookup(train: Sequence[Item], test: Sequence[Item]) -> tuple[Prediction, dict[str, Any], dict[str, Floats]]:
    """Tag the test words with the baseline ``train-lookup``; returns as ``probe_vectors``."""
    lookup = Lookup.fit([item.words for item in train], [item.tags for item in train])
    tags: list[str] = []
    shares: list[float] = []
    for item in test:
        item_tags, item_shares = lookup.predict(item.words)
        tags += item_tags
        shares += item_shares
    entries = sorted(lookup.entries.items())
    facts = {
        "kind": "train-lookup",
        "classes": sorted({kind for _, (kind, _) in entries}),
        "entries": [[list(words), kind] for words, (kind, _) in entries],
        "C": None,
        "tol": None,
        "max_iter": None,
        "iterations": 0,
        "converged": True,
    }
    return (tags, shares), facts, {"share": np.array([share for _, (_, share) in entries], dtype=np.float32)}


def prediction_table(test: Sequence[Item], prediction: Prediction) -> pa.Table:
    """Return ``predictions/<model>.parquet``: item_id, word, gold, predicted, probability; a row a word."""
    tags, shares = prediction
    return pa.table(
        {
            "item_id": pa.array([item.item_id for item in test for _ in item.words], pa.string()),
            "word": pa.array([index for item in test for index in range(len(item.words))], pa.int32()),
            "gold": pa.array([tag for item in test for tag in item.tags], pa.string()),
            "predicted": pa.array(tags, pa.string()),
            "probability": pa.array(np.asarray(shares, dtype=np.float64)),
        }
    )


def check_manifest(about: Mapping[str, Any], path: Path, **expected: str) -> None:
    """Refuse vectors of another encoder, of another state of it, or of other items."""
    for name, value in expected.items():
        if about[name] != value:
            what = f"these vectors are of another {name}"
            raise ArtefactError(what, where=str(path), expected=value, got=str(about[name])[:100], todo=AGAIN)


def write_probe(
    spec: Mapping[str, Any],
    *,
    corpus: Path,
    subset: Path,
    vectors: Path | None,
    manifest: Path | None,
    predictions: Path,
    head: Path,
    facts: Path,
    exploratory: Path,
    threads: int,
) -> None:
    """Run the stage: write the predictions and the head.

    Args:
        spec: ``model``, ``encoder`` and the probe's settings made by ``nerprobe.plan``.
        corpus: ``corpus.parquet``.
        subset: ``subset.json``.
        vectors: The encoder's Parquet file; None for the lookup baseline.
        manifest: Its manifest.
        predictions: Parquet file to write.
        head: Safetensors file to write.
        facts: JSON file to write beside it.
        exploratory: JSON file to write with the test tags under a C chosen by cross-validation.
        threads: Threads of the linear algebra.
    """
    evaluation = spec["evaluation"]
    of_run = load_subset(subset)
    chosen = of_run["items"]
    known = load_items(corpus, [item_id for pool in chosen.values() for item_id in pool])
    train = [known[item_id] for item_id in chosen[evaluation["train_pool"]]]
    test = [known[item_id] for item_id in chosen[evaluation["test_pool"]]]
    measured: dict[str, Any] = {}
    beside: dict[str, Any] | None = None
    if vectors is None or manifest is None:
        prediction, fit, arrays = probe_lookup(train, test)
    else:
        about = read_json(manifest)
        check_manifest(about, manifest, model=spec["model"], key=spec["encoder"]["key"], subset=of_run["id"])
        measured = {name: value for name, value in about["encoder"].items() if name != "device"}
        with threadpool_limits(limits=threads):
            rows = read_vectors(vectors, about, [*train, *test])
            prediction, fit, arrays = probe_vectors(rows, train, test, spec)
            if spec["cross_validate"]:
                beside = exploratory_fit(rows, train, test, spec)
    with atomic_path(predictions) as temporary:
        pq.write_table(prediction_table(test, prediction), temporary, compression="zstd")
    write_bytes(head, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
    made = {"run": facts.resolve().parents[1].name, "predictions_sha256": sha256_file(predictions)}
    write_json(exploratory, {"schema": 1, "model": spec["model"], **made, "exploratory": beside})
    record = {
        "schema": 1,
        "model": spec["model"],
        "encoder": {**spec["encoder"], "measured": measured},
        "evaluation": evaluation,
        "head_sha256": sha256_file(head),
    }
    write_json(facts, {**record, **fit, **made})
