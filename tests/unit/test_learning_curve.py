"""Stages ``curve`` and ``learning_curve``: which parts are fit, scores by hand, and what is told of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from boards import EVALUATION
from makers import TYPES, make_item

from nerprobe.curve import curve_sizes, repeat_parts, write_curve
from nerprobe.embed import write_embeddings
from nerprobe.files import read_json, write_json
from nerprobe.items import Item, corpus_table
from nerprobe.learning_curve import write_learning_curve
from nerprobe.probe import write_probe

P, S = TYPES
FIT = {"C": 1.0, "tol": 1e-6, "max_iter": 1000}
SOURCE = {"kind": "char-ngrams", "ngrams": [2, 4], "features": 64, "scale": 10.0}


@pytest.mark.parametrize(
    ("available", "sizes", "expected"),
    [
        (6000, [50, 100, 200, 500, "all"], [50, 100, 200, 500, 1000, 2000, 4000, 6000]),
        (1000, [500, "all"], [500, 1000]),
        (80, [50, 100, "all"], [50, 80]),
        (80, ["all"], [80]),
        (30, [50, "all"], [30]),
        (500, [200, 100, 500], [100, 200, 500]),
    ],
)
def test_sizes_go_on_by_doubling(available: int, sizes: list[int | str], expected: list[int]) -> None:
    assert curve_sizes(available, sizes) == expected


@pytest.mark.parametrize(
    ("available", "size", "repeats", "firsts"),
    [(1700, 500, 10, [0, 500, 1000]), (6000, 500, 2, [0, 500]), (900, 500, 10, []), (900, "all", 10, [])],
)
def test_repeats_are_whole_parts_side_by_side(available: int, size: int | str, repeats: int, firsts: list[int]) -> None:
    assert [first for first, _ in repeat_parts(available, size=size, repeats=repeats)] == firsts


WORDS = [("la", "O"), ("médica", f"B-{P}"), ("casa", "O"), ("jubilado", f"B-{S}"), ("hoy", "O"), ("taxista", f"B-{P}")]


def items_of(pool: str, number: int) -> list[Item]:
    """Return items of three words each, which go on through ``WORDS``."""
    made = []
    for n in range(number):
        own = [WORDS[(3 * n + k + n // 2) % len(WORDS)] for k in range(3)]
        made.append(make_item([w for w, _ in own], [t for _, t in own], item_id=f"{pool}{n}", pool=pool))
    return made


TRAIN, TEST = items_of("train", 9), items_of("test", 5)
# In rank order, which is not the file's.
SUBSET = {"test": [item.item_id for item in TEST[::-1]], "train": [item.item_id for item in TRAIN[::-1]]}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Write the run that embeds the train pool."""
    made = {name: tmp_path / name for name in ("corpus", "subset", "vectors", "manifest", "corpus_info")}
    pq.write_table(corpus_table([*TRAIN, *TEST], []), made["corpus"])
    write_json(made["subset"], {"id": "s", "seed": 1, "counts": {}, "items": SUBSET})
    write_json(made["corpus_info"], {"task": "tiny", "types": list(TYPES)})
    write_embeddings(
        {"model": "m", "key": "k", "source": SOURCE, "settings": {"storage": "float32"}},
        corpus=made["corpus"],
        subset=made["subset"],
        encoder=None,
        store=tmp_path / "store",
        device="cpu",
        budget=64,
        output=made["vectors"],
        manifest=made["manifest"],
    )
    return made


def curve(files: dict[str, Path], output: Path, model: str = "m", **changes: Any) -> dict[tuple[int, int], Any]:
    """Run the stage; return its fits by first rank and size."""
    spec = {"model": model, "encoder": {"key": "k"}, "evaluation": EVALUATION, **FIT}
    spec |= {"sizes": [2, 4, "all"], "repeats": 5, "train": 4}
    write_curve(spec | changes, threads=1, output=output, **files)
    return {(fit["first_rank"], fit["train_items"]): fit for fit in read_json(output)["fits"]}


def test_the_parts_that_are_fit(files: dict[str, Path], tmp_path: Path) -> None:
    fits = curve(files, tmp_path / "m.json")
    assert {part: fit["repeat"] for part, fit in fits.items()} == {
        (0, 2): False,
        (0, 4): True,  # a point of the curve and a repeat, fit once
        (0, 8): False,
        (0, 9): False,
        (4, 4): True,
    }


@pytest.mark.parametrize("part", [(0, 4), (4, 4), (0, 9)])
def test_each_fit_is_that_of_the_probe_on_these_train_items(
    files: dict[str, Path], tmp_path: Path, part: tuple[int, int]
) -> None:
    fit = curve(files, tmp_path / "m.json")[part]
    first, size = part
    own = files | {"subset": tmp_path / "own.json"}
    chosen = {**SUBSET, "train": SUBSET["train"][first : first + size]}
    write_json(own["subset"], {"id": "s", "seed": 1, "counts": {}, "items": chosen})
    outputs = {name: tmp_path / f"own-{name}" for name in ("predictions", "head", "facts", "exploratory")}
    spec = {"model": "m", "encoder": {"key": "k"}, "evaluation": EVALUATION, "seed": 1, "cross_validate": False, **FIT}
    del own["corpus_info"]
    write_probe(spec, threads=1, **own, **outputs)
    table = pq.read_table(outputs["predictions"]).to_pylist()
    # Every mention here is one word, so it is right where its tag is.
    for place, item_id in enumerate(SUBSET["test"]):
        words = [row for row in table if row["item_id"] == item_id]
        assert fit["gold"][place] == sum(row["gold"] != "O" for row in words)
        assert fit["predicted"][place] == sum(row["predicted"] != "O" for row in words)
        assert fit["tp"][place] == sum(row["gold"] == row["predicted"] != "O" for row in words)
    sums = {name: sum(fit[name]) for name in ("tp", "predicted", "gold")}
    assert sums["gold"] == 7
    assert fit["f1"] == pytest.approx(2 * sums["tp"] / (sums["predicted"] + sums["gold"]))


def test_the_lookup_baseline_needs_no_vectors(files: dict[str, Path], tmp_path: Path) -> None:
    fits = curve(files | {"vectors": None, "manifest": None}, tmp_path / "l.json", "train-lookup")  # type: ignore[dict-item]
    assert fits[0, 9]["f1"] == 1.0  # all that is a mention in test was one in train
    assert fits[0, 2]["f1"] < 1.0


# --- all encoders ------------------------------------------------------------------------------------


@pytest.fixture
def told(files: dict[str, Path], tmp_path: Path) -> Path:
    """Write the curves of a run and what is told of them."""
    folder = tmp_path / "test5-train4-00ff00ff"
    curve(files, folder / "curves" / "m.json")
    curve(files | {"vectors": None, "manifest": None}, folder / "curves" / "l<k>.json", "l<k>", max_iter=1)  # type: ignore[dict-item]
    write_json(folder / "corpus.json", {"task": "tiny", "title": "Tiny", "evaluations": [EVALUATION]})
    write_json(folder / "subset.json", {"id": "s", "seed": 3, "counts": {}, "items": SUBSET})
    spec = {"models": ["m", "l<k>"], "bootstrap": {"resamples": 300, "level": 0.9, "seed": None}}
    write_learning_curve(spec, folder=folder)
    return folder


def test_points_have_the_board_s_interval_by_a_plain_loop(told: Path) -> None:
    found = json.loads((told / "learning_curve.json").read_text())
    assert (found["test_items"], found["run"], found["task"]) == (5, told.name, "tiny")
    (one,) = (one for one in found["models"] if one["model"] == "m")
    assert [point["train_items"] for point in one["curve"]] == [2, 4, 8, 9]
    fit = next(fit for fit in read_json(told / "curves" / "m.json")["fits"] if fit["train_items"] == 2)
    values = []
    for row in np.random.default_rng(3).integers(0, 5, (300, 5)):
        tp, predicted, gold = (sum(fit[name][index] for index in row) for name in ("tp", "predicted", "gold"))
        values.append(2 * tp / (predicted + gold) if predicted + gold else 0.0)
    low, high = np.percentile(values, [5, 95])
    assert one["curve"][0] == pytest.approx({"train_items": 2, "f1": fit["f1"], "low": low, "high": high})


def test_the_spread_over_train_subsets_by_hand(told: Path) -> None:
    (one,) = (one for one in read_json(told / "learning_curve.json")["models"] if one["model"] == "m")
    first, second = one["repeats"]
    assert (first["first_rank"], second["first_rank"], second["train_items"]) == (0, 4, 4)
    assert one["repeat_mean"] == pytest.approx((first["f1"] + second["f1"]) / 2)
    # Of two numbers: their distance by the root of 2.
    assert one["repeat_sd"] == pytest.approx(abs(first["f1"] - second["f1"]) / 2**0.5)


def test_the_table_keeps_both_spreads_apart(told: Path) -> None:
    text = (told / "learning_curve.md").read_text()
    assert "| Model | 2 | 4 | 8 | 9 |" in text
    assert "Brackets: 90 % percentile bootstrap over test items." in text
    assert "F1 over train subsets of 4 items that share none." in text
    assert "| l\\<k\\> | 2 |" in text.split("share none")[1]
    with (told / "learning_curve.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    kinds = [(row["model"], row["kind"], row["first_rank"], row["train_items"]) for row in rows]
    assert ("m", "repeat", "4", "4") in kinds
    assert len([kind for kind in kinds if kind[0] == "m"]) == 6
    assert {row["low"] for row in rows if row["kind"] == "repeat"} == {""}


def test_the_plot_shows_all_models_with_their_names_escaped(told: Path) -> None:
    svg = (told / "learning_curve.svg").read_text()
    assert svg.startswith("<svg")
    assert "l&lt;k&gt;" in svg
    assert "l<k>" not in svg
    assert "Train items" in svg


def test_no_repeats_no_second_table(files: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    curve(files, folder / "curves" / "m.json", train=5)
    write_json(folder / "corpus.json", {"task": "tiny", "title": "Tiny", "evaluations": [EVALUATION]})
    write_json(folder / "subset.json", {"id": "s", "seed": 3, "counts": {}, "items": SUBSET})
    boot = {"resamples": 20, "level": 0.9, "seed": 1}
    write_learning_curve({"models": ["m"], "bootstrap": boot}, folder=folder)
    (one,) = read_json(folder / "learning_curve.json")["models"]
    assert (one["repeats"], one["repeat_mean"], one["repeat_sd"]) == ([], None, None)
    assert "share none" not in (folder / "learning_curve.md").read_text()
    assert (folder / "learning_curve.svg").stat().st_size > 1000
