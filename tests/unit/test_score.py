"""Stage ``score``: strict counts and rates by hand, seqeval as the oracle, and the metrics file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from makers import TYPES, make_item
from seqeval.metrics import classification_report, f1_score, precision_score, recall_score

from nerprobe.errors import ArtefactError
from nerprobe.files import read_json, sha256_file, write_json
from nerprobe.items import corpus_table
from nerprobe.score import evaluate, rates, tally, write_metrics

Pairs = list[tuple[list[str], list[str]]]
TAG = st.sampled_from(["O", "B-P", "I-P", "B-S", "I-S"])
ITEMS: st.SearchStrategy[Pairs] = st.lists(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(st.lists(TAG, min_size=n, max_size=n), st.lists(TAG, min_size=n, max_size=n))
    ),
    min_size=1,
    max_size=6,
)


def scored(pairs: list[tuple[str, str]], types: tuple[str, ...] = ("P", "S")) -> dict[str, Any]:
    items = [(f"i{n}", gold.split(), predicted.split()) for n, (gold, predicted) in enumerate(pairs)]
    return evaluate(items, types)


@pytest.mark.parametrize(
    ("gold", "predicted", "tp", "found", "right"),
    [
        ("B-P I-P", "B-P I-P", 1, 1, 1),
        ("B-P I-P", "I-P I-P", 1, 1, 1),  # an I- at the start begins a mention: right
        ("B-P I-P", "B-P O", 0, 1, 1),  # last word wrong
        ("B-P I-P", "O I-P", 0, 1, 1),  # first word wrong
        ("B-P I-P", "B-S I-S", 0, 1, 1),  # type wrong
        ("B-P I-P", "B-P B-P", 0, 2, 1),  # cut in two
        ("B-P B-P", "B-P I-P", 0, 1, 2),  # one over two golds: counts once, as wrong
        ("B-P B-S", "B-P I-S", 2, 2, 2),
        ("O O", "O O", 0, 0, 0),
        ("O O", "B-P O", 0, 1, 0),
    ],
)
def test_strict_counts_by_hand(gold: str, predicted: str, tp: int, found: int, right: int) -> None:
    assert scored([(gold, predicted)])["counts"] == {"tp": tp, "predicted": found, "gold": right}


def test_the_same_span_in_two_items_is_two_mentions() -> None:
    assert scored([("B-P", "B-P"), ("B-P", "O")])["counts"] == {"tp": 1, "predicted": 1, "gold": 2}


def test_metrics_by_hand() -> None:
    # P: 1 right, 2 predicted, 2 gold -> F1 1/2. S: 1 right, 1 predicted, 2 gold -> F1 2/3.
    result = scored([("B-P O B-S", "B-P O B-S"), ("B-P I-P B-S", "B-P O O")])
    assert result["counts"] == {"tp": 2, "predicted": 3, "gold": 4}
    assert result["metrics"] == {
        "entity_f1_probe": pytest.approx(4 / 7, abs=1e-15),
        "entity_precision_probe": pytest.approx(2 / 3, abs=1e-15),
        "entity_recall_probe": pytest.approx(1 / 2, abs=1e-15),
        "entity_macro_f1_probe": pytest.approx((1 / 2 + 2 / 3) / 2, abs=1e-15),
    }
    assert result["per_type"]["P"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "tp": 1, "predicted": 2, "gold": 2}
    assert result["per_type"]["S"]["recall"] == 0.5
    assert [item["item_id"] for item in result["per_item"]] == ["i0", "i1"]
    assert [(item["tp"], item["predicted"], item["gold"]) for item in result["per_item"]] == [(2, 2, 2), (0, 1, 2)]


def test_macro_f1_is_over_declared_types_also_where_gold_has_none() -> None:
    assert scored([("B-P", "B-P")])["metrics"]["entity_macro_f1_probe"] == 0.5


def test_a_type_that_is_not_declared_does_not_count() -> None:
    result = scored([("B-P B-X", "B-P B-X")], types=("P",))
    assert result["counts"] == {"tp": 1, "predicted": 1, "gold": 1}
    assert result["metrics"]["entity_macro_f1_probe"] == 1.0


def test_a_type_whose_name_holds_another_is_not_matched() -> None:
    assert tally(["B-GPE_ORG"], ["B-GPE"], ["GPE", "GPE_ORG"]) == {
        "GPE": {"tp": 0, "predicted": 1, "gold": 0},
        "GPE_ORG": {"tp": 0, "predicted": 0, "gold": 1},
    }


@pytest.mark.parametrize(
    ("pairs", "precision", "recall"),
    [([("B-P", "O")], 0.0, 0.0), ([("O", "B-P")], 0.0, 0.0), ([("O", "O")], 0.0, 0.0)],
)
def test_what_is_undefined_is_zero(pairs: list[tuple[str, str]], precision: float, recall: float) -> None:
    metrics = scored(pairs)["metrics"]
    assert metrics["entity_precision_probe"] == precision
    assert metrics["entity_recall_probe"] == recall
    assert metrics["entity_f1_probe"] == metrics["entity_macro_f1_probe"] == 0.0


def test_rates_of_nothing_are_zero() -> None:
    assert rates({"tp": 0, "predicted": 0, "gold": 0}) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


@given(ITEMS)
def test_metrics_are_those_of_seqeval_in_default_mode(pairs: Pairs) -> None:
    gold, predicted = [one for one, _ in pairs], [two for _, two in pairs]
    result = evaluate([(str(n), *pair) for n, pair in enumerate(pairs)], ("P", "S"))
    oracle = {"entity_f1_probe": f1_score, "entity_precision_probe": precision_score}
    for name, function in {**oracle, "entity_recall_probe": recall_score}.items():
        assert result["metrics"][name] == pytest.approx(function(gold, predicted, zero_division=0), abs=1e-12)


@given(ITEMS)
def test_scores_by_type_are_those_of_seqeval(pairs: Pairs) -> None:
    gold, predicted = [one for one, _ in pairs], [two for _, two in pairs]
    assume(any(tag != "O" for item in gold + predicted for tag in item))
    report = classification_report(gold, predicted, output_dict=True, zero_division=0)
    per_type = evaluate([(str(n), *pair) for n, pair in enumerate(pairs)], ("P", "S"))["per_type"]
    for kind in ("P", "S"):
        expected = report.get(kind, {"precision": 0, "recall": 0, "f1-score": 0, "support": 0})
        assert per_type[kind]["gold"] == expected["support"]
        for ours, theirs in (("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")):
            assert per_type[kind][ours] == pytest.approx(expected[theirs], abs=1e-12)


@given(ITEMS)
def test_the_number_of_gold_mentions_does_not_depend_on_predictions(pairs: Pairs) -> None:
    first = evaluate([(str(n), *pair) for n, pair in enumerate(pairs)], ("P", "S"))
    other = evaluate([(str(n), gold, ["O"] * len(gold)) for n, (gold, _) in enumerate(pairs)], ("P", "S"))
    assert first["counts"]["gold"] == other["counts"]["gold"]


# --- the stage -----------------------------------------------------------------------------------


RUN = "test2-train2-00000000"


def stage_files(folder: Path, order: list[str]) -> dict[str, Path]:
    """Write predictions of two items and what belongs to them."""
    names = ("predictions", "facts", "exploratory", "subset", "corpus", "corpus_info", "output")
    files = {name: folder / name for name in names}
    table = {
        "item_id": ["t1", "t1", "t2"],
        "word": pa.array([0, 1, 0], pa.int32()),
        "gold": ["B-PROFESION", "I-PROFESION", "O"],
        "predicted": ["B-PROFESION", "I-PROFESION", "B-PROFESION"],
        "probability": [0.9, 0.8, 0.5],
    }
    pq.write_table(pa.table(table), files["predictions"])
    evaluation = {"protocol": "probe", "regime": "train", "train_pool": "train", "test_pool": "test"}
    fit = {"kind": "logistic", "C": 1.0, "max_iter": 9, "tol": 1e-6, "iterations": 9, "converged": False}
    write_json(
        files["facts"],
        {
            "model": "m",
            "run": RUN,
            "encoder": {"key": "k"},
            "evaluation": evaluation,
            **fit,
            "predictions_sha256": sha256_file(files["predictions"]),
        },
    )
    write_json(files["subset"], {"id": "s", "seed": 1, "counts": {}, "items": {"test": order, "train": ["r1"]}})
    chosen = {"C": 10.0, "grid": [1.0, 10.0], "folds": 3, "cv_f1": {"1": 0.25, "10": 0.5}, "converged": True}
    beside = {**chosen, "tags": {"t1": {"0": "B-PROFESION", "1": "I-PROFESION"}}}
    made = {"schema": 1, "model": "m", "predictions_sha256": sha256_file(files["predictions"])}
    write_json(files["exploratory"], {**made, "exploratory": beside})
    items = [
        make_item(["Médica", "forense"], ["B-PROFESION", "I-PROFESION"], item_id="t1"),
        make_item(["médica"], ["O"], item_id="t2"),
        make_item(["médica"], ["B-PROFESION"], item_id="r1", pool="train"),
        make_item(["casa"], ["B-PROFESION"], item_id="r2", pool="train"),
    ]
    pq.write_table(corpus_table(items, []), files["corpus"])
    data = {
        "task": "tiny",
        "types": list(TYPES),
        "source": "path",
        "repo": None,
        "revision": None,
        "sha256": {"f": "0"},
    }
    write_json(files["corpus_info"], data)
    return files


def test_the_metrics_file_has_the_fields_of_the_contract(tmp_path: Path) -> None:
    write_metrics(run=RUN, **stage_files(tmp_path, ["t2", "t1"]))
    metrics = json.loads((tmp_path / "output").read_text())
    assert {"task", "model", "run", "dataset", "encoder", "evaluations", "probe", "versions"} <= set(metrics)
    assert (metrics["task"], metrics["model"], metrics["run"]) == ("tiny", "m", RUN)
    assert {"repo", "revision", "sha256"} <= set(metrics["dataset"])
    assert {"C", "max_iter", "tol", "iterations", "converged"} <= set(metrics["probe"])
    assert metrics["probe"]["converged"] is False
    (evaluation,) = metrics["evaluations"]
    assert {"protocol", "regime", "test_pool", "counts", "metrics", "per_type", "per_item"} <= set(evaluation)
    assert evaluation["counts"] == {"tp": 1, "predicted": 2, "gold": 1}
    assert evaluation["metrics"]["entity_f1_probe"] == 2 / 3
    assert [item["item_id"] for item in evaluation["per_item"]] == ["t2", "t1"]
    assert {"scikit-learn", "transformers", "torch"} <= set(metrics["versions"])


def test_the_exploratory_score_is_of_its_own_tags(tmp_path: Path) -> None:
    write_metrics(run=RUN, **stage_files(tmp_path, ["t2", "t1"]))
    metrics = json.loads((tmp_path / "output").read_text())
    right = {"f1": 1.0, "precision": 1.0, "recall": 1.0, "macro_f1": 0.5}
    how = {"C": 10.0, "grid": [1.0, 10.0], "folds": 3, "cv_f1": {"1": 0.25, "10": 0.5}, "converged": True}
    assert metrics["exploratory"] == {**how, "metrics": right}
    assert metrics["evaluations"][0]["metrics"]["entity_f1_probe"] == 2 / 3


def test_no_exploratory_score_where_there_was_no_cross_validation(tmp_path: Path) -> None:
    files = stage_files(tmp_path, ["t2", "t1"])
    write_json(files["exploratory"], {**read_json(files["exploratory"]), "exploratory": None})
    write_metrics(run=RUN, **files)
    assert json.loads((tmp_path / "output").read_text())["exploratory"] is None


def test_the_breakdown_takes_texts_and_train_mentions_from_the_corpus(tmp_path: Path) -> None:
    write_metrics(run=RUN, **stage_files(tmp_path, ["t2", "t1"]))
    (evaluation,) = json.loads((tmp_path / "output").read_text())["evaluations"]
    rows = {(row["dimension"], row["value"]): (row["gold"], row["predicted"]) for row in evaluation["breakdown"]}
    assert rows["seen", "seen in train"] == (0, 1)  # médica; that casa was one is not known: r2 is not chosen
    assert rows["seen", "not seen in train"] == (1, 1)  # Médica forense
    assert rows["words", "more words"] == (1, 1)


def test_a_corpus_with_other_tags_is_refused(tmp_path: Path) -> None:
    files = stage_files(tmp_path, ["t2", "t1"])
    items = [make_item(["a"] * words, item_id=name) for name, words in (("t1", 2), ("t2", 1), ("r1", 1))]
    pq.write_table(corpus_table(items, []), files["corpus"])
    with pytest.raises(ArtefactError, match=r"corpus: t1: the corpus has other gold tags than the predictions"):
        write_metrics(run=RUN, **files)


@pytest.mark.parametrize("order", [["t1"], ["t1", "t2", "t3"], ["t1", "other"]])
def test_predictions_of_other_items_are_refused(tmp_path: Path, order: list[str]) -> None:
    with pytest.raises(ArtefactError, match="predictions are not of this subset"):
        write_metrics(run=RUN, **stage_files(tmp_path, order))
    assert not (tmp_path / "output").exists()


def test_predictions_that_changed_are_refused(tmp_path: Path) -> None:
    files = stage_files(tmp_path, ["t1", "t2"])
    files["predictions"].write_bytes(files["predictions"].read_bytes() + b"\0")
    with pytest.raises(ArtefactError, match="differs from its record in facts"):
        write_metrics(run=RUN, **files)


def test_a_head_of_another_run_is_refused(tmp_path: Path) -> None:
    files = stage_files(tmp_path, ["t1", "t2"])
    with pytest.raises(ArtefactError, match=f"of another run; expected other-run; got {RUN}"):
        write_metrics(run="other-run", **files)


def test_exploratory_tags_of_another_fit_are_refused(tmp_path: Path) -> None:
    files = stage_files(tmp_path, ["t1", "t2"])
    write_json(files["exploratory"], {**read_json(files["exploratory"]), "predictions_sha256": "0" * 64})
    with pytest.raises(ArtefactError, match="exploratory: this was not made with its head"):
        write_metrics(run=RUN, **files)
