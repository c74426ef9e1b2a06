"""C chosen by cross-validation over train items: folds, pooled F1 and choice against scikit-learn and seqeval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from makers import make_item
from seqeval.metrics import f1_score
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict

import nerprobe.cross_validate
from nerprobe.cross_validate import GRID, cross_validated, exploratory_fit, pooled_f1
from nerprobe.items import Item
from nerprobe.logistic import Floats, fit_logistic, warm_model

WIDTH = 12
SETTINGS = {"C": 1.0, "tol": 1e-6, "max_iter": 1000}


def corpus_of(items: int, seed: int = 3, pool: str = "train") -> tuple[list[Item], dict[str, Floats]]:
    """Return items whose words' vectors tell their tags, but for noise that a penalty helps against."""
    rng = np.random.default_rng(seed)
    made, vectors = [], {}
    centres = {"O": 0, "B-P": 1, "I-P": 2, "B-S": 3}
    for number in range(items):
        tags: list[str] = []
        for _ in range(int(rng.integers(2, 6))):
            tags += [["O"], ["B-P"], ["B-P", "I-P"], ["B-S"]][rng.choice(4, p=[0.6, 0.2, 0.1, 0.1])]
        item = make_item(["w"] * len(tags), tags, item_id=f"{pool}-{number}", pool=pool)
        noise = rng.normal(0, 0.45, (len(tags), WIDTH))
        vectors[item.item_id] = (np.eye(WIDTH)[[centres[tag] for tag in tags]] + noise).astype(np.float32)
        made.append(item)
    return made, vectors


TRAIN, VECTORS = corpus_of(31)
TEST, NEW = corpus_of(7, seed=4, pool="test")
STACKED = np.concatenate([VECTORS[item.item_id] for item in TRAIN])


def oracle(C: float) -> float:
    """Return the pooled F1 by scikit-learn's own folds, a fresh fit each, and seqeval."""
    fold = [number % 3 for number, item in enumerate(TRAIN) for _ in item.words]
    tags = np.array([tag for item in TRAIN for tag in item.tags])
    model = LogisticRegression(C=C, tol=1e-9, max_iter=5000)
    said = cross_val_predict(model, STACKED.astype(np.float64), tags, cv=PredefinedSplit(fold))
    cuts = np.cumsum([len(item.words) for item in TRAIN])[:-1]
    return float(f1_score([list(item.tags) for item in TRAIN], [list(part) for part in np.split(said, cuts)]))


def test_scores_are_those_of_scikit_learn_s_folds_and_seqeval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nerprobe.cross_validate, "FOLD_TOL", 1e-7)
    scores = cross_validated(STACKED, TRAIN, max_iter=5000)
    assert list(scores) == list(GRID)
    assert scores == pytest.approx({C: oracle(C) for C in GRID}, abs=1e-12)
    assert len(set(scores.values())) > 1


def test_the_looser_tolerance_chooses_the_same() -> None:
    loose = cross_validated(STACKED, TRAIN, max_iter=1000)
    assert max(loose, key=lambda C: loose[C]) == max(GRID, key=oracle)


def test_pooled_f1_by_hand() -> None:
    items = [make_item(["a", "b"], ["B-P", "I-P"]), make_item(["a"], ["O"]), make_item(["a"], ["B-S"])]
    # gold 2, predicted 2, right 1; an I- at the start begins a mention.
    assert pooled_f1(items, [["I-P", "I-P"], ["B-P"], ["O"]]) == 0.5
    assert pooled_f1(items[1:2], [["O"]]) == 0.0


def test_the_choice_is_fit_on_all_train_items_and_tags_the_test_items() -> None:
    found = exploratory_fit(VECTORS | NEW, TRAIN, TEST, SETTINGS)
    assert found is not None
    best = max(GRID, key=lambda C: (found["cv_f1"][f"{C:g}"], -C))
    assert found["C"] == best
    fresh = LogisticRegression(C=best, tol=1e-6, max_iter=1000)
    fresh.fit(STACKED, [tag for item in TRAIN for tag in item.tags])
    for item in TEST:
        said = fresh.predict(NEW[item.item_id]).tolist()
        tags = found["tags"].get(item.item_id, {})
        assert [tags.get(str(word), "O") for word in range(len(said))] == said
    assert (found["grid"], found["folds"], found["converged"]) == ([0.1, 1.0, 10.0, 100.0], 3, True)


def test_test_items_have_no_part_in_the_choice() -> None:
    first, second = (exploratory_fit(VECTORS | NEW, TRAIN, part, SETTINGS) for part in (TEST, TEST[:1]))
    assert first is not None
    assert second is not None
    assert first["cv_f1"] == second["cv_f1"]


def same(scores: dict[float, float]) -> Any:
    return lambda *_, **__: scores


def test_of_equal_scores_the_smaller_c_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nerprobe.cross_validate, "cross_validated", same({0.1: 0.2, 1.0: 0.5, 10.0: 0.5, 100.0: 0.4}))
    found = exploratory_fit(VECTORS | NEW, TRAIN, TEST, SETTINGS)
    assert found is not None
    assert found["C"] == 1.0


def test_fewer_items_than_folds_give_no_score() -> None:
    assert exploratory_fit(VECTORS | NEW, TRAIN[:2], TEST, SETTINGS) is None


def test_a_fold_whose_other_items_have_one_tag_only_says_that_tag() -> None:
    items = [make_item(["a", "b"], ["O", tag], item_id=f"i{number}") for number, tag in enumerate(["B-P", "O", "O"])]
    vectors = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)
    assert cross_validated(vectors, items, max_iter=100)[0.1] == 0.0


def test_every_c_is_really_fit_where_there_are_thousands_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loose tolerance lets a warm start stay where it is, and all larger C score alike."""
    items, vectors = corpus_of(1200)
    steps = []

    def noting(*args: Any, **kwargs: Any) -> Any:
        head = fit_logistic(*args, **kwargs)
        steps.append(head.iterations)
        return head

    monkeypatch.setattr(nerprobe.cross_validate, "fit_logistic", noting)
    stacked = 5 * np.concatenate([vectors[item.item_id] for item in items])  # as long as those of encoders
    cross_validated(stacked, items, max_iter=1000)
    assert len(steps) == 12
    # From C = 1 to 10 the three folds took 29 steps when this was written, and 7 with a tolerance of 1e-4.
    assert sum(steps[2::4]) > 15


def test_a_warm_start_ends_where_a_cold_one_does_in_fewer_steps() -> None:
    tags = [tag for item in TRAIN for tag in item.tags]
    model = warm_model()
    for C in (0.1, 1.0, 2.0):
        warm = fit_logistic(STACKED, tags, C=C, tol=1e-6, max_iter=1000, model=model)
    cold = fit_logistic(STACKED, tags, C=2.0, tol=1e-6, max_iter=1000)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=2e-3)
    assert warm.iterations < cold.iterations
