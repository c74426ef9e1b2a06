"""Mentions from tags: conlleval's rule by hand, and seqeval in its default mode as the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from nerprobe.spans import count_types, mentions

KINDS = ["P", "S", "GPE", "GPE_ORG", "NON-GPE"]
TAGS = st.lists(st.sampled_from(["O", *(f"{prefix}-{kind}" for kind in KINDS for prefix in "BI")]), max_size=14)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-P", [("P", 0, 1)]),
        ("B-P I-P I-P O", [("P", 0, 3)]),
        ("I-P", [("P", 0, 1)]),
        ("I-P I-P", [("P", 0, 2)]),
        ("O I-P I-P", [("P", 1, 3)]),
        ("B-P B-P", [("P", 0, 1), ("P", 1, 2)]),
        ("B-P I-P B-P I-P", [("P", 0, 2), ("P", 2, 4)]),
        ("B-P I-S", [("P", 0, 1), ("S", 1, 2)]),
        ("B-P I-S I-S I-P", [("P", 0, 1), ("S", 1, 3), ("P", 3, 4)]),
        ("B-P O I-P", [("P", 0, 1), ("P", 2, 3)]),
        ("I-P B-P I-P", [("P", 0, 1), ("P", 1, 3)]),
        ("B-GPE I-GPE_ORG", [("GPE", 0, 1), ("GPE_ORG", 1, 2)]),
        ("B-NON-GPE I-NON-GPE", [("NON-GPE", 0, 2)]),
        ("B-NON-GPE I-GPE", [("NON-GPE", 0, 1), ("GPE", 1, 2)]),
    ],
)
def test_mentions_by_hand(tags: str, expected: list[tuple[str, int, int]]) -> None:
    assert mentions(tags.split()) == expected


@given(TAGS)
def test_mentions_are_those_of_seqeval_also_for_invalid_sequences(tags: list[str]) -> None:
    assert mentions(tags) == [(kind, first, last + 1) for kind, first, last in get_entities(tags)]


@given(TAGS)
def test_mentions_cover_exactly_the_words_outside_of_o(tags: list[str]) -> None:
    covered = [word for _, first, stop in mentions(tags) for word in range(first, stop)]
    assert covered == [index for index, tag in enumerate(tags) if tag != "O"]


def test_items_are_counted_apart() -> None:
    assert count_types([["B-P"], ["I-P", "O"], ["O"]], ["P", "S"]) == {"P": 2, "S": 0}


def test_undeclared_types_are_not_counted() -> None:
    assert count_types([["B-P", "B-X"]], ["P"]) == {"P": 1}
