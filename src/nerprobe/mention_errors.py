"""Wrong mentions and their kinds, and where two models differ.

The kinds are those that people read out of a tagged text, close to the MUC-5 categories missing, spurious, partial
and incorrect (Chinchor and Sundheim 1993). Every wrong mention, gold or predicted, has exactly one: a gold and a
predicted mention that overlap are told together, one to one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nerprobe.spans import Mention


class Kind(StrEnum):
    """What is wrong with a mention, as typed after ``--kind``."""

    MISSED = "missed"
    INVENTED = "invented"
    BOUNDARY = "boundary"
    TYPE = "type"
    BOTH = "both"


class Side(StrEnum):
    """How two models differ in one mention, as typed after ``--kind``."""

    FIRST_RIGHT = "first-right"
    SECOND_RIGHT = "second-right"
    FIRST_WRONG = "first-wrong"
    SECOND_WRONG = "second-wrong"


LABELS = {
    Kind.MISSED: "missed",
    Kind.INVENTED: "invented",
    Kind.BOUNDARY: "wrong boundary",
    Kind.TYPE: "wrong type",
    Kind.BOTH: "wrong boundary and type",
}
"""In the order in which they are shown."""


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """One error against gold.

    Attributes:
        kind: What is wrong.
        gold: The gold mention; None if invented.
        predicted: The predicted mention; None if missed.
    """

    kind: Kind
    gold: Mention | None
    predicted: Mention | None

    @property
    def shown(self) -> Mention:
        """Return the gold mention, or the predicted one where there is none."""
        found = self.gold or self.predicted
        assert found is not None
        return found


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One mention that only one of two models predicts: its side, and the mention."""

    side: Side
    mention: Mention


def _place(mention: Mention) -> tuple[int, int, str]:
    kind, first, stop = mention
    return first, stop, kind


def _likeness(gold: Mention, predicted: Mention) -> tuple[int, int, Kind] | None:
    """Return rank, words not shared (negative) and kind of a possible couple; None if it shares no word."""
    shared = min(gold[2], predicted[2]) - max(gold[1], predicted[1])
    if shared <= 0:
        return None
    if gold[1:] == predicted[1:]:
        return 0, -shared, Kind.TYPE
    return (1, -shared, Kind.BOUNDARY) if gold[0] == predicted[0] else (2, -shared, Kind.BOTH)


def wrong_mentions(gold: Iterable[Mention], predicted: Iterable[Mention]) -> list[Wrong]:
    """Return the errors of one item, by place in the text.

    Right mentions (same type, first and last word) are left out. Of the rest, overlapping ones are coupled one to
    one: those with the same words first (wrong type), then those of the same type (wrong boundary), then others
    (both wrong); within each the couple that shares most words, then the earlier one. What is left over is missed
    or invented. So ``gold - tp`` and ``predicted - tp`` are each the sum over the kinds that have such a mention.

    Args:
        gold: Gold mentions, half-open, in words.
        predicted: Predicted mentions.
    """
    golds, said = set(gold), set(predicted)
    golds, said = golds - said, said - golds
    couples = sorted(
        (rank, less, _place(one), _place(other), kind, one, other)
        for one in golds
        for other in said
        if (likeness := _likeness(one, other)) is not None
        for rank, less, kind in [likeness]
    )
    found: list[Wrong] = []
    for *_, kind, one, other in couples:
        if one in golds and other in said:
            golds.remove(one)
            said.remove(other)
            found.append(Wrong(kind=kind, gold=one, predicted=other))
    found += [Wrong(kind=Kind.MISSED, gold=one, predicted=None) for one in golds]
    found += [Wrong(kind=Kind.INVENTED, gold=None, predicted=other) for other in said]
    return sorted(found, key=lambda wrong: (_place(wrong.shown), wrong.kind))


def differences(gold: Iterable[Mention], first: Iterable[Mention], second: Iterable[Mention]) -> list[Difference]:
    """Return the mentions of one item that only one of two models predicts, by place in the text.

    Args:
        gold: Gold mentions: they say which side is right.
        first: Mentions of the first model.
        second: Mentions of the second model.
    """
    golds, one, other = set(gold), set(first), set(second)
    sides = [(mention, Side.FIRST_RIGHT if mention in golds else Side.FIRST_WRONG) for mention in one - other]
    sides += [(mention, Side.SECOND_RIGHT if mention in golds else Side.SECOND_WRONG) for mention in other - one]
    return [Difference(side=side, mention=mention) for mention, side in sorted(sides, key=lambda s: _place(s[0]))]


def folded(words: Sequence[str], mention: Mention) -> tuple[str, ...]:
    """Return a mention's case-folded words: equal ones count as the same mention seen before."""
    return tuple(word.casefold() for word in words[mention[1] : mention[2]])
