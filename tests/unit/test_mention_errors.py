"""Kinds of errors by hand, and that they add up on any tags."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerprobe.mention_errors import Kind, Side, Wrong, differences, wrong_mentions
from nerprobe.spans import mentions

A, B = "A", "B"


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ([(A, 0, 2)], [(A, 0, 2)], []),
        ([(A, 0, 2)], [], [(Kind.MISSED, (A, 0, 2), None)]),
        ([], [(B, 3, 4)], [(Kind.INVENTED, None, (B, 3, 4))]),
        ([(A, 0, 2)], [(A, 1, 2)], [(Kind.BOUNDARY, (A, 0, 2), (A, 1, 2))]),
        ([(A, 0, 2)], [(B, 0, 2)], [(Kind.TYPE, (A, 0, 2), (B, 0, 2))]),
        ([(A, 0, 2)], [(B, 1, 3)], [(Kind.BOTH, (A, 0, 2), (B, 1, 3))]),
        # half-open: spans that only touch share no word
        ([(A, 0, 2)], [(A, 2, 3)], [(Kind.MISSED, (A, 0, 2), None), (Kind.INVENTED, None, (A, 2, 3))]),
        # one prediction over two gold mentions: told with the one it shares most words with, the other is missed
        ([(A, 0, 1), (A, 1, 4)], [(A, 0, 4)], [(Kind.MISSED, (A, 0, 1), None), (Kind.BOUNDARY, (A, 1, 4), (A, 0, 4))]),
        # two predictions inside one gold mention: equal shares, the earlier one is told with it
        ([(A, 0, 2)], [(A, 0, 1), (A, 1, 2)], [(Kind.BOUNDARY, (A, 0, 2), (A, 0, 1)), (Kind.INVENTED, None, (A, 1, 2))]),
        # the same type goes before more shared words
        ([(A, 0, 4)], [(B, 0, 3), (A, 3, 4)], [(Kind.INVENTED, None, (B, 0, 3)), (Kind.BOUNDARY, (A, 0, 4), (A, 3, 4))]),
    ],
)  # fmt: skip
def test_kinds_by_hand(gold, predicted, expected):
    found = wrong_mentions(gold, predicted)
    assert sorted(found, key=str) == sorted((Wrong(kind=k, gold=g, predicted=p) for k, g, p in expected), key=str)


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(*[st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B"]), min_size=n, max_size=n)] * 3)))  # fmt: skip
def test_every_wrong_mention_is_told_once_and_the_counts_add_up(tags):
    gold, first, second = (mentions(one) for one in tags)
    found = wrong_mentions(gold, first)
    right = set(gold) & set(first)
    assert Counter(wrong.gold for wrong in found if wrong.gold) == Counter(set(gold) - right)
    assert Counter(wrong.predicted for wrong in found if wrong.predicted) == Counter(set(first) - right)
    sides = Counter(one.side for one in differences(gold, first, second))
    assert sides[Side.FIRST_RIGHT] - sides[Side.SECOND_RIGHT] == len(right) - len(set(gold) & set(second))
    assert sum(sides.values()) == len(set(first) ^ set(second))


def test_differences_by_hand():
    gold, first, second = [(A, 0, 1), (A, 2, 3)], [(A, 0, 1), (B, 5, 6)], [(A, 2, 3), (B, 5, 7)]
    assert [(one.side, one.mention) for one in differences(gold, first, second)] == [
        (Side.FIRST_RIGHT, (A, 0, 1)),
        (Side.SECOND_RIGHT, (A, 2, 3)),
        (Side.FIRST_WRONG, (B, 5, 6)),
        (Side.SECOND_WRONG, (B, 5, 7)),
    ]
