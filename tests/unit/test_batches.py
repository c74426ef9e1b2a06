"""Batches: every window once, never over the budget, little padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerprobe.pooling import FULL, Window, batches


def windows(lengths):
    none = np.zeros(0, dtype=np.int64)
    return [Window(ids=np.full(length, index), rows=none, positions=none) for index, length in enumerate(lengths)]


@given(st.lists(st.integers(1, 512), max_size=200), st.integers(512, 20_000))
def test_every_window_is_in_one_batch_and_no_batch_is_over_the_budget(lengths, budget):
    groups = batches(windows(lengths), budget)
    assert sorted(int(one.ids[0]) for group in groups for one in group) == list(range(len(lengths)))
    assert all(max(len(one.ids) for one in group) * len(group) <= budget for group in groups)


@given(st.lists(st.integers(1, 512), min_size=1, max_size=200))
def test_the_longest_window_of_a_batch_comes_first(lengths):
    for group in batches(windows(lengths), 4096):
        assert len(group[0].ids) == max(len(one.ids) for one in group)


def test_a_window_longer_than_the_budget_is_a_batch_of_its_own():
    assert [len(group) for group in batches(windows([512, 512, 10]), 100)] == [1, 1, 1]


@pytest.mark.parametrize("budget", [1024, 4096, 16384])
def test_tweets_of_usual_lengths_waste_at_most_five_percent(budget):
    lengths = np.random.default_rng(1).normal(73, 25, 600).clip(8, 200).astype(int).tolist()
    groups = batches(windows(lengths), budget)
    padded = sum(len(group[0].ids) * len(group) for group in groups)
    assert 1 - sum(lengths) / padded <= 0.05


def test_batches_stay_large_where_lengths_differ():
    groups = batches(windows(list(range(1, 400))), 16384)
    full = [group for group in groups if sum(len(one.ids) for one in group) >= FULL]
    assert len(full) >= len(groups) - 1
