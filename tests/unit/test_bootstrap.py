"""Bootstrap intervals: the weight matrix against indices, and a plain loop over resamples as the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nerprobe.bootstrap import METRICS, count_array, interval, metric_values, resampled, weight_matrix

Counts = list[dict[str, tuple[int, int, int]]]
KINDS = ("P", "S")


def random_counts(items: int, seed: int) -> Counts:
    """Return tp, predicted and gold of each item and type."""
    rng = np.random.default_rng(seed)
    found: Counts = []
    for _ in range(items):
        by_type = {}
        for kind in KINDS:
            predicted, gold = (int(number) for number in rng.integers(0, 4, 2))
            by_type[kind] = (int(rng.integers(0, min(predicted, gold) + 1)), predicted, gold)
        found.append(by_type)
    return found


def per_item(counts: Counts) -> list[dict[str, Any]]:
    names = ("tp", "predicted", "gold")
    return [{"per_type": {kind: dict(zip(names, item[kind], strict=True)) for kind in KINDS}} for item in counts]


def plain_metrics(counts: Counts) -> dict[str, float]:
    """Compute the four metrics of a list of items by loops."""
    sums = {kind: [0, 0, 0] for kind in KINDS}
    for item in counts:
        for kind in KINDS:
            for index in range(3):
                sums[kind][index] += item[kind][index]
    tp, predicted, gold = (sum(sums[kind][index] for kind in KINDS) for index in range(3))

    def f1(tp: int, predicted: int, gold: int) -> float:
        precision = tp / predicted if predicted else 0.0
        recall = tp / gold if gold else 0.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    return {
        "f1": f1(tp, predicted, gold),
        "precision": tp / predicted if predicted else 0.0,
        "recall": tp / gold if gold else 0.0,
        "macro_f1": sum(f1(*sums[kind]) for kind in KINDS) / len(KINDS),
    }


def test_weights_count_the_drawn_indices() -> None:
    drawn = np.random.default_rng(20261006).integers(0, 7, (50, 7))
    weights = weight_matrix(7, resamples=50, seed=20261006)
    assert weights.shape == (50, 7)
    for row, indices in zip(weights, drawn, strict=True):
        assert row.tolist() == [list(indices).count(item) for item in range(7)]


def test_each_resample_has_as_many_items_as_the_pool() -> None:
    assert (weight_matrix(13, resamples=40, seed=3).sum(axis=1) == 13).all()


def test_one_item_is_drawn_once_each_time() -> None:
    assert weight_matrix(1, resamples=5, seed=3).tolist() == [[1.0]] * 5


def test_the_same_seed_gives_the_same_weights_and_another_others() -> None:
    first, again, other = (weight_matrix(9, resamples=20, seed=seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(("items", "resamples", "seed"), [(100, 300, 20261006), (5, 300, 1), (1, 20, 0)])
def test_resampled_metrics_and_intervals_equal_a_plain_loop(items: int, resamples: int, seed: int) -> None:
    counts = random_counts(items, seed)
    ours = resampled(count_array(per_item(counts), KINDS), weight_matrix(items, resamples=resamples, seed=seed))
    drawn = np.random.default_rng(seed).integers(0, items, (resamples, items))
    loop = [plain_metrics([counts[index] for index in row]) for row in drawn]
    for name in METRICS:
        values = np.array([metrics[name] for metrics in loop])
        np.testing.assert_allclose(ours[name], values, rtol=0, atol=1e-12)
        expected = np.quantile(values, [0.025, 0.975], method="linear")
        np.testing.assert_allclose(interval(ours[name], 0.95), expected, rtol=0, atol=1e-12)


def test_the_interval_interpolates_linearly() -> None:
    # Eleven values 0, 1, ..., 10: the 10 % quantile is 1, the 90 % quantile is 9; at 95 % 0.25 and 9.75.
    values = np.arange(11.0)
    assert interval(values, 0.8) == (pytest.approx(1.0), pytest.approx(9.0))
    assert interval(values, 0.95) == (pytest.approx(0.25), pytest.approx(9.75))


def test_metrics_of_sums_by_hand() -> None:
    values = metric_values(np.array([[2.0, 4.0, 2.0], [0.0, 0.0, 2.0]]))
    assert {name: float(value) for name, value in values.items()} == {
        "f1": 0.5,
        "precision": 0.5,
        "recall": 0.5,
        "macro_f1": pytest.approx(1 / 3),
    }


def test_a_rare_type_may_vanish_from_a_resample_without_warning_or_nan() -> None:
    # 3 mentions of S in 3 of 100 items, all found: S is absent from about .97^100 = 4.8 % of resamples.
    counts: Counts = [{"P": (1, 1, 1), "S": (1, 1, 1) if n < 3 else (0, 0, 0)} for n in range(100)]
    weights = weight_matrix(100, resamples=2000, seed=20261006)
    with np.errstate(all="raise"):
        values = resampled(count_array(per_item(counts), KINDS), weights)
    absent = weights[:, :3].sum(axis=1) == 0
    assert 0.03 < absent.mean() < 0.07
    assert (values["macro_f1"][absent] == 0.5).all()
    assert (values["macro_f1"][~absent] == 1.0).all()
    assert (values["f1"] == 1.0).all()


def test_counts_of_nothing_give_zeros() -> None:
    counts: Counts = [{"P": (0, 0, 0), "S": (0, 0, 0)}] * 4
    values = resampled(count_array(per_item(counts), KINDS), weight_matrix(4, resamples=10, seed=0))
    assert all((values[name] == 0.0).all() for name in METRICS)
    assert interval(values["f1"], 0.95) == (0.0, 0.0)
