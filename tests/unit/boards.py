"""Makers of a run folder with metrics of hand-made predictions, for the tests of the board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from makers import TYPES

from nerprobe.files import write_json
from nerprobe.leaderboard import build_board
from nerprobe.score import evaluate

RUN = "test4-train2-0a1b2c3d"
P, S = TYPES
GOLD = {
    "t1": f"B-{P} I-{P} O",
    "t2": f"B-{S} O",
    "t3": "O O O",
    "t4": f"B-{P} O B-{S}",
}
NOTHING = {"t1": "O O O", "t2": "O O", "t4": "O O O"}
BOOTSTRAP = {"resamples": 200, "level": 0.95, "seed": None}
EVALUATION = {"protocol": "probe", "regime": "train", "train_pool": "train", "test_pool": "test"}
COUNTS = {
    "test": {"items": 4, "words": 11, "items_with_mentions": 3, "mentions": {P: 2, S: 2}},
    "train": {"items": 2, "words": 4, "items_with_mentions": 1, "mentions": {P: 1, S: 0}},
}


def run_folder(root: Path, **corpus: Any) -> Path:
    """Write what a run folder holds before its first encoder."""
    folder = root / "results" / "tiny" / RUN
    about = {
        "task": "tiny",
        "title": "Tiny",
        "source": "path",
        "repo": None,
        "revision": None,
        "sha256": {"test.txt": "0" * 64},
        "types": list(TYPES),
        "labels": {},
        "licence": "cc0-1.0",
        "evaluations": [EVALUATION],
    }
    write_json(folder / "corpus.json", about | corpus)
    subset = {"id": "00ff", "seed": 7, "rule": "r", "counts": COUNTS, "items": {"test": list(GOLD), "train": ["r1"]}}
    write_json(folder / "subset.json", subset)
    return folder


def metrics_of(model: str, predicted: Mapping[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """Return metrics of a model that is right but where ``predicted`` says otherwise."""
    rows = [(item, gold.split(), (predicted or {}).get(item, gold).split()) for item, gold in GOLD.items()]
    metrics = {
        "schema": 1,
        "task": "tiny",
        "model": model,
        "run": RUN,
        "dataset": {"source": "path", "repo": None, "revision": None, "sha256": {}},
        "subset": {"id": "00ff", "seed": 7, "counts": COUNTS},
        "encoder": {
            "source": {"kind": "hub", "repo": "org/name", "revision": "f" * 40},
            "revision": "f" * 40,
            "settings": {"dtype": "float32", "storage": "float32"},
            "info": {"family": "BERT", "parameters": 22_700_000, "licence": "mit"},
            "key": "0123456789ab",
            "baseline": False,
            "measured": {"width": 384},
        },
        "evaluations": [{**EVALUATION, **evaluate(rows, TYPES)}],
        "probe": {"kind": "logistic", "C": 1.0, "max_iter": 1000, "tol": 1e-6, "iterations": 9, "converged": True},
        "versions": {},
    }
    return metrics | changes


def put_metrics(folder: Path, model: str, predicted: Mapping[str, str] | None = None, **changes: Any) -> None:
    write_json(folder / "metrics" / f"{model}.json", metrics_of(model, predicted, **changes))


def put_failure(folder: Path, model: str, reason: str) -> None:
    write_json(folder / "failures" / f"{model}.json", {"schema": 1, "stage": "embed", "model": model, "reason": reason})


def board_of(folder: Path, requested: list[str], **bootstrap: Any) -> dict[str, Any]:
    from nerprobe.files import read_json

    return build_board(
        folder,
        requested=requested,
        corpus=read_json(folder / "corpus.json"),
        subset=read_json(folder / "subset.json"),
        bootstrap=BOOTSTRAP | bootstrap,
    )
