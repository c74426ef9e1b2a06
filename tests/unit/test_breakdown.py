"""Counts by class of mention: every class by hand, and totals that no encoder can change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import make_item

from nerprobe.breakdown import EMOJI, breakdown, form, length_ranges, train_mentions
from nerprobe.items import Item, join_words
from nerprobe.score import evaluate
from nerprobe.spans import mentions

TYPES = ("P", "S")


def item_of(text: str, tags: str = "", *, item_id: str = "t1") -> Item:
    """Return an item whose words are those of a text with ``|`` where two touch."""
    words = text.replace("|", " ").split(" ")
    touching, left = [False], text
    for word in words[:-1]:
        left = left[len(word) :]
        touching.append(left[0] == "|")
        left = left[1:]
    joined, starts, ends = join_words(words, touching)
    return Item(
        item_id=item_id,
        pool="test",
        text=joined,
        words=tuple(words),
        starts=starts,
        ends=ends,
        tags=tuple(tags.split() or ["O"] * len(words)),
    )


def cell(rows: list[dict[str, Any]], dimension: str, value: str) -> tuple[int, int, int]:
    (row,) = (row for row in rows if (row["dimension"], row["value"]) == (dimension, value))
    return row["gold"], row["predicted"], row["tp"]


ITEMS = [
    (item_of("la enfermera 😷", item_id="a"), ["O", "B-P", "O"], ["O", "B-P", "O"]),
    (
        item_of("#|enfermeras y guardia civil", item_id="b"),
        ["B-P", "I-P", "O", "B-P", "I-P"],
        ["O", "B-P", "O", "B-P", "I-P"],
    ),
    (
        item_of("gracias @policia en paro hoy sí", item_id="c"),
        ["O", "B-P", "B-S", "I-S", "O", "O"],
        ["O", "O", "B-S", "I-S", "O", "B-S"],
    ),
]
TRAIN = [make_item(["La", "Enfermera"], ["O", "B-P"]), make_item(["EN", "PARO"], ["B-S", "I-S"])]


def rows_of() -> list[dict[str, Any]]:
    return breakdown(ITEMS, types=TYPES, seen=train_mentions(TRAIN))


def test_every_class_by_hand() -> None:
    # Gold: enfermera, # enfermeras, guardia civil, @policia (P), en paro (S).
    # Predicted: enfermera, enfermeras, guardia civil (P), en paro, sí (S). Right: enfermera, guardia civil, en paro.
    by_hand = {
        ("type", "P"): (4, 3, 2),
        ("type", "S"): (1, 2, 1),
        ("seen", "seen in train"): (2, 2, 2),
        ("seen", "not seen in train"): (3, 3, 1),
        ("words", "one word"): (2, 3, 1),
        ("words", "more words"): (3, 2, 2),
        ("form", "plain"): (3, 4, 3),
        ("form", "hashtag"): (1, 1, 0),
        ("form", "handle"): (1, 0, 0),
        ("emoji", "with emoji"): (1, 1, 1),
        ("emoji", "without emoji"): (4, 4, 2),
        ("length", "3 words"): (1, 1, 1),
        ("length", "4–5 words"): (2, 2, 1),
        ("length", "6 words"): (2, 2, 1),
    }
    rows = rows_of()
    assert [(row["dimension"], row["value"]) for row in rows] == list(by_hand)
    assert {key: cell(rows, *key) for key in by_hand} == by_hand


def test_rates_are_of_their_counts_and_none_where_there_is_nothing_to_divide_by() -> None:
    rows = {(row["dimension"], row["value"]): row for row in rows_of()}
    assert rows["type", "P"]["recall"] == 0.5
    assert rows["type", "P"]["precision"] == 2 / 3
    assert rows["form", "handle"]["precision"] is None
    assert rows["form", "handle"]["recall"] == 0.0
    nothing = breakdown([(item_of("nada"), ["O"], ["O"])], types=TYPES, seen=set())
    assert {(row["recall"], row["precision"]) for row in nothing} == {(None, None)}


TAGS = st.lists(st.sampled_from(["O", "B-P", "I-P", "B-S", "I-S"]), min_size=1, max_size=7)


@given(st.lists(st.tuples(TAGS, st.randoms(use_true_random=False)), min_size=1, max_size=5))
def test_classes_of_a_dimension_share_out_all_mentions(drawn: list[tuple[list[str], Any]]) -> None:
    words = ["#", "a", "@b", "c", "❤", "d", "e"]
    items = []
    for number, (gold, rng) in enumerate(drawn):
        predicted = [rng.choice(["O", "B-P", "I-P", "B-S"]) for _ in gold]
        items.append((item_of("|".join(words[: len(gold)]), item_id=f"t{number}"), gold, predicted))
    seen = {("a",), ("c", "❤")}
    rows = breakdown(items, types=TYPES, seen=seen)
    totals = evaluate([(item.item_id, gold, said) for item, gold, said in items], TYPES)["counts"]
    for dimension in ("type", "seen", "words", "form", "emoji", "length"):
        for name, total in totals.items():
            assert sum(row[name] for row in rows if row["dimension"] == dimension) == total
    # Whatever an encoder predicts, the gold of every class stays.
    silent = breakdown([(item, gold, ["O"] * len(gold)) for item, gold, _ in items], types=TYPES, seen=seen)
    assert [row["gold"] for row in silent] == [row["gold"] for row in rows]


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("la enfermera", (1, 2), "plain"),
        ("#|enfermera", (0, 2), "hashtag"),
        ("#|enfermera", (1, 2), "hashtag"),
        ("# enfermera", (1, 2), "plain"),  # the sign does not touch the word
        ("#enfermera", (0, 1), "hashtag"),
        ("la @policia", (1, 2), "handle"),
        ("el @|policia", (2, 3), "handle"),
        ("a@b", (0, 1), "plain"),
        ("guardia #|civil", (0, 3), "hashtag"),
    ],
)
def test_form_of_a_span(text: str, span: tuple[int, int], expected: str) -> None:
    assert form(item_of(text), *span) == expected


@pytest.mark.parametrize("text", ["😷", "gracias ❤\ufe0f", "❤", "👩‍⚕️", "🇪🇸", "1\ufe0f\u20e3", "☎"])
def test_emoji_are_found(text: str) -> None:
    assert EMOJI.search(text)


@pytest.mark.parametrize("text", ["¡hola!", "© 2020", "marca™ ®", "1 # * :)", "→ €", "\ufe0f", ""])
def test_what_is_no_emoji(text: str) -> None:
    assert not EMOJI.search(text)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([1, 2, 3, 4, 5, 6], [(1, 2), (3, 4), (5, 6)]),
        ([9, 2, 30], [(2, 2), (3, 9), (10, 30)]),
        ([4, 4, 4], [(4, 4)]),
        ([4, 4, 4, 9], [(4, 4), (5, 9)]),
        ([7], [(7, 7)]),
        ([], []),
    ],
)
def test_length_classes_by_hand(lengths: list[int], expected: list[tuple[int, int]]) -> None:
    assert length_ranges(lengths) == expected


@given(st.lists(st.integers(1, 40), min_size=1, max_size=50))
def test_every_length_is_in_one_class(lengths: list[int]) -> None:
    ranges = length_ranges(lengths)
    assert all(sum(low <= length <= high for low, high in ranges) == 1 for length in lengths)
    assert len(ranges) <= 3


def test_train_mentions_are_case_folded_word_sequences() -> None:
    assert train_mentions(TRAIN) == {("enfermera",), ("en", "paro")}
    assert mentions(TRAIN[1].tags) == [("S", 0, 2)]
