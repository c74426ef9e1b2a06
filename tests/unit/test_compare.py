"""Comparisons against hand calculations and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from nerprobe.bootstrap import weight_matrix
from nerprobe.compare import benjamini_hochberg, holm, p_values, pairs, standings, tiers


def test_p_value_counts_the_smaller_side_and_one_more():
    # 9 resamples: one is zero or below, nine are... by hand: #{<=0} = 2, #{>=0} = 8; 2 * (1 + 2) / 10
    differences = np.array([[0.1, 0.2, 0.1, 0.0, -0.1, 0.3, 0.2, 0.1, 0.1]]).T
    assert p_values(differences).tolist() == [0.6]


def test_the_smallest_p_value_is_two_over_resamples_and_one():
    assert p_values(np.full((999, 1), 0.5)).tolist() == [2 / 1000]


def test_equal_encoders_have_p_one():
    assert p_values(np.zeros((50, 1))).tolist() == [1.0]


def test_holm_by_hand():
    # sorted .01 .03 .04: times 3, 2, 1 = .03 .06 .04, made monotone: .03 .06 .06
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, 0.03])), [0.06, 0.03, 0.06])


def test_benjamini_hochberg_equals_scipy():
    p = np.random.default_rng(3).random(40) ** 2
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p, method="bh"), rtol=1e-12)


def test_equal_scores_share_the_better_rank_and_split_the_first_place():
    scores = np.array([0.5, 0.7, 0.7])
    values = np.tile(scores, (100, 1))
    found = standings(scores, values, level=0.95)
    assert [one.rank for one in found] == [3, 1, 1]
    assert [(one.rank_low, one.rank_high) for one in found] == [(3, 3), (1, 1), (1, 1)]
    assert [one.p_best for one in found] == [0.0, 0.5, 0.5]
    assert [one.p_top3 for one in found] == [1.0, 1.0, 1.0]


def test_top_three_splits_the_last_place_among_equals():
    scores = np.array([0.9, 0.8, 0.5, 0.5])
    found = standings(scores, np.tile(scores, (10, 1)), level=0.95)
    assert [one.p_top3 for one in found] == [1.0, 1.0, 0.5, 0.5]


def test_rank_intervals_equal_a_loop_over_resamples():
    values = np.random.default_rng(5).random((400, 6)).round(1)
    scores = values.mean(axis=0)
    loop = [[1 + sum(other > one for other in row) for one in row] for row in values]
    found = standings(scores, values, level=0.9)
    for index, one in enumerate(found):
        ordered = sorted(row[index] for row in loop)
        assert (one.rank_low, one.rank_high) == (ordered[20 - 1], ordered[380 - 1])
    assert sum(one.p_best for one in found) == pytest.approx(1.0)
    assert sum(one.p_top3 for one in found) == pytest.approx(3.0)


def test_a_tier_holds_what_is_not_separated_from_its_best():
    rng = np.random.default_rng(1)
    common = rng.normal(0, 0.05, (2000, 1))
    noise = rng.normal(0, 0.02, (2000, 5))
    scores = np.array([0.80, 0.79, 0.50, 0.49, 0.10])
    assert tiers(scores, scores + common + noise, alpha=0.05) == [1, 1, 2, 2, 3]


def test_a_true_gap_is_seen_in_pairs_though_the_intervals_overlap():
    # Two taggers on the same items: whatever the first gets, the second gets too, and some more.
    weights = weight_matrix(100, resamples=10_000, seed=7)
    first = (np.arange(100) % 5 == 0).astype(float)
    second = (np.arange(100) % 5 == 0) | (np.arange(100) % 10 == 1)
    values = np.stack([weights @ first, weights @ second], axis=1) / 100
    scores = np.array([first.mean(), second.mean()])
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    assert low[1] < high[0]
    [pair] = pairs(scores, values, level=0.95)
    assert (pair.first, pair.second) == (1, 0)
    assert pair.p < 0.01
    assert pair.low > 0


def test_pairs_are_the_better_one_first_and_only_the_leader_s_carry_holm():
    values = np.random.default_rng(2).normal([0.3, 0.5, 0.4], 0.05, (500, 3))
    found = pairs(np.array([0.3, 0.5, 0.4]), values, level=0.95)
    assert [(pair.first, pair.second) for pair in found] == [(1, 2), (1, 0), (2, 0)]
    assert [pair.p_leader is None for pair in found] == [False, False, True]
    assert all(pair.p_bh >= pair.p for pair in found)


def test_the_first_rows_of_a_long_draw_are_the_short_draw():
    np.testing.assert_array_equal(
        weight_matrix(100, resamples=10_000, seed=20261006)[:1000], weight_matrix(100, resamples=1000, seed=20261006)
    )


def test_one_encoder_alone_is_first_and_best():
    [one] = standings(np.array([0.4]), np.full((10, 1), 0.4), level=0.95)
    assert (one.rank, one.rank_low, one.rank_high, one.tier, one.p_best) == (1, 1, 1, 1, 1.0)
    assert pairs(np.array([0.4]), np.full((10, 1), 0.4), level=0.95) == []
