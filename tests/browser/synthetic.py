"""A run folder with synthetic metrics of any number of models, from which the library makes a board."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from boards import EVALUATION, P, S, run_folder

from nerprobe.files import write_json
from nerprobe.leaderboard import write_board
from nerprobe.score import evaluate

ITEMS = 100
KEY = "0123456789ab"
BOOTSTRAP = {"resamples": 1000, "level": 0.95, "seed": None}
PARTS = {"seen": ("seen in train", "not seen in train"), "words": ("one word", "more words")}
Items = list[tuple[str, list[str]]]


def gold_items(rng: random.Random) -> Items:
    """Return ids and gold tags: one mention in two items of three, most of the first type."""
    found = []
    for number in range(ITEMS):
        tags = ["O"] * 8
        if number % 3:
            place, kind = rng.randrange(6), P if rng.random() < 0.85 else S
            tags[place] = f"B-{kind}"
            if rng.random() < 0.3:
                tags[place + 1] = f"I-{kind}"
        found.append((f"t{number}", tags))
    return found


def guessed(gold: list[str], rng: random.Random, quality: float) -> list[str]:
    """Return tags that keep a mention with the probability ``quality`` and add a false one now and then."""
    tags = list(gold) if rng.random() < quality else ["O"] * len(gold)
    if rng.random() < 0.25 * (1 - quality):
        tags[-1] = f"B-{P}"
    return tags


def breakdown(counts: dict[str, int]) -> list[dict[str, Any]]:
    """Return a breakdown in the form of the metrics files: the counts split in two, without a check of meaning."""
    found = []
    for dimension, values in PARTS.items():
        for place, value in enumerate(values):
            tp, gold, predicted = (
                counts[name] // 2 + place * (counts[name] % 2) for name in ("tp", "gold", "predicted")
            )
            rates = {"recall": tp / gold if gold else None, "precision": tp / predicted if predicted else None}
            counted = {"gold": gold, "predicted": predicted, "tp": tp}
            found.append({"dimension": dimension, "value": value, **counted, **rates})
    return found


def metrics(model: str, run: str, subset: dict[str, Any], items: Items, *, seed: int, quality: float) -> dict[str, Any]:
    rng = random.Random(f"{seed} {model}")
    scored = evaluate([(item, gold, guessed(gold, rng, quality)) for item, gold in items], (P, S))
    info = {"family": rng.choice(["BERT", "RoBERTa", "XLM-R"]), "licence": "mit"}
    return {
        "schema": 1,
        "task": "tiny",
        "model": model,
        "run": run,
        "dataset": {"source": "path", "repo": None, "revision": None, "sha256": {}},
        "subset": {name: subset[name] for name in ("id", "seed", "counts")},
        "encoder": {
            "source": {"kind": "hub", "repo": "org/name", "revision": "f" * 40},
            "revision": "f" * 40,
            "settings": {"dtype": "float32", "storage": "float32"},
            "info": info | {"parameters": int(10 ** rng.uniform(7, 9))},
            "key": KEY,
            "baseline": model.startswith("base-"),
            "measured": {"width": 768, "layers": 12, "dtype_used": "float32"},
        },
        "evaluations": [{**EVALUATION, **scored, "breakdown": breakdown(scored["counts"])}],
        "exploratory": {"C": 10.0, "grid": [0.1, 10.0], "folds": 5, "cv_f1": {"0.1": 0.2, "10.0": 0.4}}
        | {"metrics": {"f1": quality, "precision": quality, "recall": quality, "macro_f1": quality}},
        "probe": {"kind": "logistic", "C": 1.0, "max_iter": 1000, "tol": 1e-6, "iterations": 9, "converged": True},
        "versions": {},
    }


def manifest(seed: int) -> dict[str, Any]:
    health = {"words": 800, "subwords": 1200, "fertility": 1.5, "unknown_rate": 0.01, "words_without_subwords": 2}
    return {
        "seconds": 1.0 + seed,
        "settings": {"dtype": "float32"},
        "encoder": {"dtype_used": "float32"},
        "health": health | {"items_windowed": 0, "offset_mismatches": 3, "items_embedded": 600, "padding": 0.03},
    }


def synthetic_board(root: Path, models: dict[str, float], *, failed: dict[str, str] | None = None) -> Path:
    """Write a run folder with a board and return the folder.

    Args:
        root: Where ``results/`` goes.
        models: Share of mentions that each model finds, by name.
        failed: Reason of each failed model by name.
    """
    items = gold_items(random.Random(1))
    kinds = {kind: sum(tag == f"B-{kind}" for _, tags in items for tag in tags) for kind in (P, S)}
    held = sum(any(tag != "O" for tag in tags) for _, tags in items)
    pool = {"items": ITEMS, "words": 8 * ITEMS, "items_with_mentions": held, "mentions": kinds}
    folder = run_folder(root, texts_shareable=True, title="Synthetic scores")
    subset = {"id": "00ff", "seed": 7, "rule": "r", "counts": {"test": pool, "train": pool}}
    write_json(folder / "subset.json", subset | {"items": {"test": [item for item, _ in items], "train": ["r1"]}})
    for number, (model, quality) in enumerate(models.items()):
        about = metrics(model, folder.name, subset, items, seed=number, quality=quality)
        write_json(folder / "metrics" / f"{model}.json", about)
        write_json(folder / "embeddings" / f"{model}.{KEY}.json", manifest(number))
    for model, reason in (failed or {}).items():
        record = {"schema": 1, "stage": "embed", "model": model, "reason": reason}
        write_json(folder / "failures" / f"{model}.json", record)
    leakage = {"exact": 2, "near": 1, "threshold": 0.9, "test_items": ITEMS}
    pairs = [{"test": "t1", "train": "r1", "similarity": 1.0}]
    write_json(folder / "leakage.json", leakage | {"pairs": pairs})
    write_board(folder, requested=[*models, *(failed or {})], bootstrap=BOOTSTRAP)
    return folder
