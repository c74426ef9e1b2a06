"""Where an encoder is right and wrong: gold, predicted and right mentions by class along several dimensions.

A mention, gold or predicted, falls into the class of its own words and of its item, so the classes of a dimension
share out all mentions, and the gold of a class is the same for every encoder. Each class comes with its counts, so
that nobody reads a rate over three mentions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import regex

from nerprobe.items import Item
from nerprobe.spans import Mention, mentions

Words = tuple[str, ...]
Tagged = tuple[Item, Sequence[str], Sequence[str]]
"""A test item, its gold tags and its predicted ones."""
Range = tuple[int, int]

# Unicode TR 51: pictographs (less three signs of trade and law), flags, and keycaps. The module `regex` keeps in
# step with Unicode's tables, which the standard library's `re` and `unicodedata` do not carry.
EMOJI = regex.compile(r"(?![©®™])\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3")


def folded(words: Sequence[str], first: int = 0, stop: int | None = None) -> Words:
    """Return the case-folded words of a span."""
    return tuple(word.casefold() for word in words[first:stop])


def train_mentions(items: Iterable[Item]) -> set[Words]:
    """Return the case-folded words of every gold mention, of whatever type."""
    return {folded(item.words, first, stop) for item in items for _, first, stop in mentions(item.tags)}


def form(item: Item, first: int, stop: int) -> str:
    """Return ``hashtag``, ``handle`` or ``plain``: whether a word of the span begins with or touches ``#`` or ``@``."""
    signs = {
        char for start in item.starts[first:stop] for char in (item.text[start : start + 1], item.text[:start][-1:])
    }
    return "hashtag" if "#" in signs else "handle" if "@" in signs else "plain"


def length_ranges(lengths: Sequence[int]) -> list[Range]:
    """Return three ranges of item length in words with about as many items each; fewer where lengths are equal.

    Bounds are the terciles of the lengths (inverted distribution function), so each is the length of an item.
    """
    cuts = np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf").astype(int).tolist() if lengths else []
    bounds = sorted({*cuts, max(lengths)}) if lengths else []
    lows = [min(lengths), *(bound + 1 for bound in bounds[:-1])] if lengths else []
    return list(zip(lows, bounds, strict=True))


def _range_text(bounds: Range) -> str:
    low, high = bounds
    return f"{low}–{high} words" if low != high else "1 word" if low == 1 else f"{low} words"


def _classes(item: Item, mention: Mention, *, seen: set[Words], ranges: Sequence[Range]) -> dict[str, str]:
    """Return the class of a mention along each dimension."""
    kind, first, stop = mention
    size = len(item.words)
    return {
        "type": kind,
        "seen": "seen in train" if folded(item.words, first, stop) in seen else "not seen in train",
        "words": "one word" if stop - first == 1 else "more words",
        "form": form(item, first, stop),
        "emoji": "with emoji" if EMOJI.search(item.text) else "without emoji",
        "length": next(_range_text(bounds) for bounds in ranges if bounds[0] <= size <= bounds[1]),
    }


def breakdown(items: Sequence[Tagged], *, types: Sequence[str], seen: set[Words]) -> list[dict[str, Any]]:
    """Count the mentions of the test items by class.

    Args:
        items: Test items with gold and predicted tags.
        types: Declared types; mentions of others do not count.
        seen: Words of the train mentions, from ``train_mentions``.

    Returns:
        A row a class, also where it is empty: ``dimension``, ``value``, ``gold``, ``predicted``, ``tp``, ``recall``
        (None where there is no gold) and ``precision`` (None where nothing is predicted).
    """
    ranges = length_ranges([len(item.words) for item, _, _ in items])
    values = {
        "type": list(types),
        "seen": ["seen in train", "not seen in train"],
        "words": ["one word", "more words"],
        "form": ["plain", "hashtag", "handle"],
        "emoji": ["with emoji", "without emoji"],
        "length": [_range_text(bounds) for bounds in ranges],
    }
    counts: Counter[tuple[str, str, str]] = Counter()
    for item, gold, predicted in items:
        right, found = set(mentions(gold)), set(mentions(predicted))
        for mention in (one for one in right | found if one[0] in types):
            named = [("gold", mention in right), ("predicted", mention in found), ("tp", mention in right & found)]
            for dimension, value in _classes(item, mention, seen=seen, ranges=ranges).items():
                counts.update((dimension, value, name) for name, holds in named if holds)
    return [
        _row(dimension, value, {name: counts[dimension, value, name] for name in ("gold", "predicted", "tp")})
        for dimension, several in values.items()
        for value in several
    ]


def _row(dimension: str, value: str, count: dict[str, int]) -> dict[str, Any]:
    return {
        "dimension": dimension,
        "value": value,
        **count,
        "recall": count["tp"] / count["gold"] if count["gold"] else None,
        "precision": count["tp"] / count["predicted"] if count["predicted"] else None,
    }
