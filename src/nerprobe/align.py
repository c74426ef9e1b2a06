"""Words and sub-words: which sub-words belong to a word, and which window a word is read from.

A sub-word belongs to every word whose characters it overlaps (special tokens, prefix tokens and empty spans
belong to none). A text longer than the encoder takes is read in windows that overlap by half, and each word
is taken from the window where it has most context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """Which sub-words form which words: a row a (word, sub-word) pair, sorted by word, then by sub-word.

    Attributes:
        words: Index of the word, shape (pairs,).
        tokens: Index of the sub-word in the text, shape (pairs,).
    """

    words: Ints
    tokens: Ints


@dataclass(frozen=True)
class Placed:
    """Where each pair is read.

    Attributes:
        windows: Half-open ranges of sub-words.
        window: Index of the window of each pair, shape (pairs,).
    """

    windows: list[tuple[int, int]]
    window: Ints


def overlap_pairs(word_starts: Ints, word_ends: Ints, token_starts: Ints, token_ends: Ints) -> Pairs:
    """Pair words with the sub-words whose characters overlap theirs.

    Args:
        word_starts: Start of each word in the text, shape (words,), ascending, in code points.
        word_ends: End of each word, half-open.
        token_starts: Start of each sub-word in the text, shape (sub-words,).
        token_ends: End of each sub-word, half-open; equal to its start for an empty span.
    """
    kept = np.flatnonzero(token_ends > token_starts)
    starts, ends = token_starts[kept], token_ends[kept]
    if np.all(np.diff(starts) >= 0) and np.all(np.diff(ends) >= 0):
        low = np.searchsorted(ends, word_starts, side="right")
        high = np.maximum(np.searchsorted(starts, word_ends, side="left"), low)
        counts = high - low
        words = np.repeat(np.arange(len(word_starts)), counts)
        first = np.repeat(low - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        return Pairs(words=words, tokens=kept[np.arange(counts.sum()) + first])
    # Out of order offsets are rare (some normalizers move characters): compare every pair.
    hit = (starts[None, :] < word_ends[:, None]) & (ends[None, :] > word_starts[:, None])
    words, index = np.nonzero(hit)
    return Pairs(words=words.astype(np.int64), tokens=kept[index])


def windows_of(length: int, capacity: int) -> list[tuple[int, int]]:
    """Return the windows over ``length`` sub-words, each of at most ``capacity``, overlapping by half.

    The last one is moved back to end with the text, so that it is as full as the others.
    """
    if length <= capacity:
        return [(0, length)]
    step = max(1, capacity // 2)
    starts = [*range(0, length - capacity, step), length - capacity]
    return [(start, start + capacity) for start in starts]


def _context(first: Ints, stop: Ints, windows: Sequence[tuple[int, int]], length: int) -> Ints:
    """Return each span's context in each window, shape (spans, windows); -1 where it does not fit in.

    Context is the smaller of the sub-words to the left and to the right inside the window; the text's own
    start and end limit nothing.
    """
    far = length + 1
    begins = np.array([window[0] for window in windows])[None, :]
    ends = np.array([window[1] for window in windows])[None, :]
    left = np.where(begins == 0, far, first[:, None] - begins)
    right = np.where(ends == length, far, ends - stop[:, None])
    inside = (first[:, None] >= begins) & (stop[:, None] <= ends)
    return np.where(inside, np.minimum(left, right), -1)


def place(pairs: Pairs, length: int, capacity: int) -> Placed:
    """Choose the window of each pair.

    A word is read whole from the window where it has most context (the first of equals). A word that lies
    whole in no window is read sub-word by sub-word, each from the window where that sub-word has most context.

    Args:
        pairs: As from ``overlap_pairs``.
        length: Number of sub-words of the text.
        capacity: Sub-words that fit into one window.
    """
    windows = windows_of(length, capacity)
    if len(windows) == 1 or not len(pairs.words):
        return Placed(windows=windows, window=np.zeros(len(pairs.words), dtype=np.int64))
    _, first, counts = np.unique(pairs.words, return_index=True, return_counts=True)
    spans = _context(pairs.tokens[first], pairs.tokens[first + counts - 1] + 1, windows, length)
    best = np.repeat(np.argmax(spans, axis=1), counts)
    fits = np.repeat(spans.max(axis=1) >= 0, counts)
    single = np.argmax(_context(pairs.tokens, pairs.tokens + 1, windows, length), axis=1)
    return Placed(windows=windows, window=np.where(fits, best, single))
