"""Words and sub-words: pairs and windows against brute force, and the rule of most context by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerprobe.align import Pairs, overlap_pairs, place, windows_of

Spans = list[tuple[int, int]]


def pairs_of(words: Spans, tokens: Spans) -> list[tuple[int, int]]:
    columns = [np.array([span[side] for span in spans], dtype=np.int64) for spans in (words, tokens) for side in (0, 1)]
    pairs = overlap_pairs(*columns)
    return list(zip(pairs.words.tolist(), pairs.tokens.tolist(), strict=True))


def brute_pairs(words: Spans, tokens: Spans) -> list[tuple[int, int]]:
    """Compare the characters of every word with those of every sub-word."""
    return [
        (word, token)
        for word, (word_start, word_end) in enumerate(words)
        for token, (start, end) in enumerate(tokens)
        if set(range(word_start, word_end)) & set(range(start, end))
    ]


@st.composite
def word_spans(draw: st.DrawFn) -> Spans:
    spans, position = [], 0
    for length, gap in draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=8)):
        spans.append((position, position + length))
        position += length + gap
    return spans


TOKENS = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 4)).map(lambda t: (t[0], t[0] + t[1])), max_size=14)


@given(word_spans(), TOKENS)
def test_pairs_are_those_that_share_a_character_in_any_order(words: Spans, tokens: Spans) -> None:
    assert pairs_of(words, tokens) == brute_pairs(words, tokens)


@given(word_spans(), TOKENS)
def test_pairs_are_those_that_share_a_character_in_text_order(words: Spans, tokens: Spans) -> None:
    ordered = sorted(tokens)
    assert pairs_of(words, ordered) == brute_pairs(words, ordered)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        pytest.param([(0, 2), (2, 4), (5, 9)], [(0, 0), (0, 1), (1, 2)], id="pieces of words"),
        pytest.param([(0, 4), (4, 9)], [(0, 0), (1, 1)], id="a leading space belongs to the next word"),
        pytest.param([(0, 9)], [(0, 0), (1, 0)], id="one sub-word over two words"),
        pytest.param([(0, 4), (4, 5), (5, 9)], [(0, 0), (1, 2)], id="a space of its own belongs to none"),
        pytest.param([(0, 0), (0, 4), (4, 4), (9, 9)], [(0, 1)], id="empty spans belong to none"),
        pytest.param([], [], id="no sub-words"),
    ],
)
def test_pairs_by_hand(tokens: Spans, expected: list[tuple[int, int]]) -> None:
    assert pairs_of([(0, 4), (5, 9)], tokens) == expected


# --- windows -------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 40))
def test_windows_cover_all_sub_words_within_the_capacity(length: int, capacity: int) -> None:
    windows = windows_of(length, capacity)
    assert windows[0][0] == 0
    assert windows[-1][1] == length
    assert all(0 < stop - start <= capacity for start, stop in windows)
    assert all(after[0] <= before[1] for before, after in itertools.pairwise(windows))
    assert [start for start, _ in windows] == sorted({start for start, _ in windows})


@given(st.integers(2, 200), st.integers(2, 40))
def test_windows_overlap_by_at_least_half(length: int, capacity: int) -> None:
    windows = windows_of(length, capacity)
    for before, after in itertools.pairwise(windows):
        assert before[1] - after[0] >= capacity - capacity // 2


@pytest.mark.parametrize(
    ("length", "capacity", "expected"),
    [
        (4, 4, [(0, 4)]),
        (5, 4, [(0, 4), (1, 5)]),
        (6, 4, [(0, 4), (2, 6)]),
        (10, 4, [(0, 4), (2, 6), (4, 8), (6, 10)]),
        (11, 4, [(0, 4), (2, 6), (4, 8), (6, 10), (7, 11)]),
        (3, 1, [(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_windows_by_hand(length: int, capacity: int, expected: Spans) -> None:
    assert windows_of(length, capacity) == expected


# --- which window a word is read from --------------------------------------------------------------


def pairs(words: list[list[int]]) -> Pairs:
    """Return pairs from the sub-words of each word."""
    return Pairs(
        words=np.array([word for word, tokens in enumerate(words) for _ in tokens], dtype=np.int64),
        tokens=np.array([token for tokens in words for token in tokens], dtype=np.int64),
    )


def brute_window(first: int, stop: int, windows: Spans, length: int) -> int | None:
    """Return the first window with most context for a span of sub-words; None if none holds it whole.

    Context is the smaller of what lies left and right inside the window; where the window begins or ends with
    the text, no context is lost on that side.
    """
    best, most = None, -1.0
    for index, (begin, end) in enumerate(windows):
        if first < begin or stop > end:
            continue
        left = float("inf") if begin == 0 else first - begin
        right = float("inf") if end == length else end - stop
        if min(left, right) > most:
            best, most = index, min(left, right)
    return best


@st.composite
def placed_words(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    length, capacity = draw(st.integers(1, 60)), draw(st.integers(1, 16))
    words, position = [], 0
    while position < length:
        size = draw(st.integers(1, 5))
        words.append(list(range(position, min(length, position + size))))
        position += size + draw(st.integers(0, 1))
    return words, length, capacity


@given(placed_words())
def test_a_word_is_read_whole_from_the_window_with_most_context(case: tuple[list[list[int]], int, int]) -> None:
    words, length, capacity = case
    placed = place(pairs(words), length, capacity)
    assert placed.windows == windows_of(length, capacity)
    row = 0
    for tokens in words:
        whole = brute_window(tokens[0], tokens[-1] + 1, placed.windows, length)
        for token in tokens:
            expected = whole if whole is not None else brute_window(token, token + 1, placed.windows, length)
            assert placed.window[row] == expected
            row += 1


def test_a_word_in_the_overlap_is_read_where_it_is_further_from_the_cut() -> None:
    # Windows over 12 sub-words of capacity 8: [0, 8) and [4, 12). Sub-word 5 has 2 to the cut on the right of the
    # first and 1 on the left of the second; sub-word 6 has 1 and 2.
    assert windows_of(12, 8) == [(0, 8), (4, 12)]
    assert place(pairs([[5], [6]]), 12, 8).window.tolist() == [0, 1]


def test_of_equal_windows_the_first_is_read() -> None:
    # 14 sub-words: windows [0, 8), [4, 12), [6, 14). The span [5, 7) has 1 to the right of the first, 1 left of the
    # second, and does not lie in the third.
    assert windows_of(14, 8) == [(0, 8), (4, 12), (6, 14)]
    assert place(pairs([[5, 6]]), 14, 8).window.tolist() == [0, 0]


def test_a_word_longer_than_any_window_is_read_sub_word_by_sub_word() -> None:
    # Capacity 4 over 10: windows [0,4) [2,6) [4,8) [6,10). Each sub-word from where it lies deepest.
    placed = place(pairs([list(range(10))]), 10, 4)
    assert placed.window.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]


def test_a_text_that_fits_has_one_window() -> None:
    placed = place(pairs([[0], [1, 2]]), 3, 3)
    assert placed.windows == [(0, 3)]
    assert placed.window.tolist() == [0, 0, 0]


def test_words_without_sub_words_are_placed_nowhere() -> None:
    assert place(pairs([[], []]), 20, 4).window.tolist() == []
