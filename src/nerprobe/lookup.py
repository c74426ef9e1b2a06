"""The baseline ``train-lookup``: no vectors, only what was a mention in the train items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nerprobe.spans import mentions

Words = tuple[str, ...]


def _folded(words: Sequence[str]) -> Words:
    return tuple(word.casefold() for word in words)


@dataclass(frozen=True)
class Lookup:
    """Case-folded word sequences that were a mention in train more often than not.

    Attributes:
        entries: Type of each sequence, and the share of its occurrences in train that were that mention.
    """

    entries: Mapping[Words, tuple[str, float]]

    @classmethod
    def fit(cls, words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> Lookup:
        """Learn from train items.

        A sequence is kept if it was a mention in more than half of the places where it occurs (overlapping
        places counted), with the type that it had most often, the first by name of equals.

        Args:
            words: Words of each item.
            tags: Gold tags of each item.
        """
        folded = [_folded(item) for item in words]
        seen: Counter[tuple[Words, str]] = Counter()
        for item, item_tags in zip(folded, tags, strict=True):
            seen.update((item[first:stop], kind) for kind, first, stop in mentions(item_tags))
        lengths = sorted({len(sequence) for sequence, _ in seen})
        wanted = {sequence for sequence, _ in seen}
        total: Counter[Words] = Counter()
        for item in folded:
            for length in lengths:
                total.update(part for part in _parts(item, length) if part in wanted)
        mentioned: Counter[Words] = Counter()
        for (sequence, _), count in seen.items():
            mentioned[sequence] += count
        entries: dict[Words, tuple[str, float]] = {}
        for (sequence, kind), count in sorted(seen.items(), key=lambda entry: (entry[0][0], -entry[1], entry[0][1])):
            if sequence not in entries and 2 * mentioned[sequence] > total[sequence]:
                entries[sequence] = (kind, count / total[sequence])
        return cls(entries)

    def predict(self, words: Sequence[str]) -> tuple[list[str], list[float]]:
        """Tag one item, from left to right, longest match first.

        Returns:
            IOB2 tags, and for each word the share behind its tag (1 where nothing matched).
        """
        folded = _folded(words)
        longest = max((len(sequence) for sequence in self.entries), default=0)
        tags, shares = ["O"] * len(folded), [1.0] * len(folded)
        position = 0
        while position < len(folded):
            for length in range(min(longest, len(folded) - position), 0, -1):
                entry = self.entries.get(folded[position : position + length])
                if entry is not None:
                    kind, share = entry
                    span = slice(position, position + length)
                    tags[span] = [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
                    shares[span] = [share] * length
                    position += length
                    break
            else:
                position += 1
        return tags, shares


def _parts(item: Words, length: int) -> list[Words]:
    return [item[first : first + length] for first in range(len(item) - length + 1)]
