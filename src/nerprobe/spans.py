"""Mentions from tags.

The rule is conlleval's (Tjong Kim Sang and De Meulder 2003): B-X begins a mention; I-X continues one of
type X and begins one after O, after another type and at an item's start. Spans are half-open, in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

Mention = tuple[str, int, int]
"""Type, first word, and the word after the last one."""


def mentions(tags: Sequence[str]) -> list[Mention]:
    """Return the mentions of one item in order of their first word.

    Args:
        tags: One IOB2 tag a word: ``O``, ``B-TYPE`` or ``I-TYPE``.
    """
    found: list[Mention] = []
    kind, first = "", 0
    for position, tag in enumerate(tags):
        prefix, _, this = tag.partition("-")
        if kind and (prefix != "I" or this != kind):
            found.append((kind, first, position))
            kind = ""
        if not kind and prefix in ("B", "I"):
            kind, first = this, position
    if kind:
        found.append((kind, first, len(tags)))
    return found


def count_types(items: Iterable[Sequence[str]], types: Sequence[str]) -> dict[str, int]:
    """Return the number of mentions of each declared type over the tags of several items."""
    counts = Counter(kind for tags in items for kind, _, _ in mentions(tags))
    return {kind: counts[kind] for kind in types}
