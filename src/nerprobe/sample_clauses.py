"""Clauses of the sample task: templates filled at random, with mentions marked."""

from __future__ import annotations

import functools
import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nerprobe import sample_words as words

SCORED = frozenset("PSaf")
"""Marks that hold a mention of a scored type."""

_SLOT = re.compile(r"\{([a-z]+)\}")
_MARK = re.compile(r"\[([PSAFaf]) ([^\]]+)\]")
_ENDINGS = {"@": ("o", "a", "os", "as"), "+": ("", "a", "es", "as"), "^": ("", "", "s", "s")}


@dataclass(frozen=True)
class Noun:
    """A noun for a person.

    Attributes:
        forms: Masculine and feminine singular, masculine and feminine plural.
        trade: Key of its complements; empty where it takes none.
    """

    forms: tuple[str, ...]
    trade: str


@dataclass(frozen=True)
class Span:
    """A stretch of text and the letter of its mark, empty outside mentions."""

    text: str
    mark: str = ""


@functools.cache
def _entries(text: str) -> tuple[str, ...]:
    """Split a word list at its slashes; it may be wrapped at any blank."""
    return tuple(" ".join(text.split()).split(" / "))


@functools.cache
def _nouns(text: str) -> tuple[Noun, ...]:
    """Read a list of nouns, as described in `sample_words`."""
    nouns = []
    for entry in _entries(text):
        forms = entry.split(" ")
        trade = forms.pop() if len(forms[-1]) == 1 else ""
        if forms[0][-1] in _ENDINGS:
            forms = [forms[0][:-1] + ending for ending in _ENDINGS[forms[0][-1]]]
        nouns.append(Noun(tuple(forms) if len(forms) == 4 else (*forms[:1] * 2, *forms[1:] * 2), trade))
    return tuple(nouns)


def parse(text: str) -> list[Span]:
    """Turn marked text into spans."""
    spans, at = [], 0
    for match in _MARK.finditer(text):
        spans += [Span(text[at : match.start()]), Span(match[2], match[1])]
        at = match.end()
    return [s for s in (*spans, Span(text[at:])) if s.text]


def capital(spans: list[Span]) -> list[Span]:
    """Begin a clause with a capital, after an opening mark if it has one."""
    first = spans[0]
    skip = first.text[:1] in "¡¿«“"
    text = first.text[:skip] + first.text[skip : skip + 1].upper() + first.text[skip + 1 :]
    return [Span(text, first.mark), *spans[1:]]


class Draws:
    """Choices from one random stream, with nothing but exact arithmetic on its numbers."""

    def __init__(self, *parts: object) -> None:
        digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
        self.random = random.Random(int.from_bytes(digest, "big")).random

    def chance(self, p: float) -> bool:
        """Return True with probability `p`."""
        return self.random() < p

    def below(self, n: int, *, power: int = 1) -> int:
        """Draw from 0 to n - 1; the higher the power (1, 2 or 4), the lower."""
        r = self.random()
        return int((r if power == 1 else r * r if power == 2 else r * r * r * r) * n)

    def pick(self, items: Sequence[str], *, power: int = 1) -> str:
        """Draw an item; a higher power favours the first ones."""
        return items[self.below(len(items), power=power)]

    def shuffled(self, n: int) -> list[int]:
        """Return 0 to n - 1 in random order."""
        return [i for _, i in sorted((self.random(), i) for i in range(n))]


class Clauses:
    """Writes clauses of one pool."""

    def __init__(self, draws: Draws, pool: str) -> None:
        self.draws = draws
        self.pool = pool

    def plain(self, *, ignored: bool = False) -> list[Span]:
        """Write a clause with no scored mention; with `ignored`, one of an ignored type."""
        draw = self.draws.random()
        kind = words.FILLERS if draw < 0.84 else words.PERSONS if draw < 0.90 else words.DECOYS
        return parse(self.expand(self.draws.pick(_entries(words.IGNORED if ignored else kind)), "N"))

    def mention(self) -> list[Span]:
        """Write a clause with one or two mentions, or none where the annotator missed it."""
        draw = self.draws.random()
        if draw < 0.40:
            template = self.draws.pick(_entries(words.PERSONS))
            return parse(self.expand(template, "S" if draw < 0.05 else "P"))
        kind = words.PROFESSION_CONTEXTS if draw < 0.89 else words.STATUS_CONTEXTS
        if draw >= 0.985:
            kind = words.ORPHANS
        return parse(self.expand(self.draws.pick(_entries(kind), power=2), "P"))

    def expand(self, template: str, role: str) -> str:
        """Fill a template's slots, and theirs; persons are P (profession), S (status) or N (no mention)."""
        while "{" in template:
            template = _SLOT.sub(lambda match: self._fill(match[1], role), template)
        return f" {template}".replace(" a el ", " al ").replace(" de el ", " del ")[1:]

    def _fill(self, slot: str, role: str) -> str:
        if slot in ("el", "un", "los", "s", "p"):
            return self._person(slot, role)
        if slot == "n":
            return str(2 + self.draws.below(90, power=2))
        if slot == "d":
            return str(2 + self.draws.below(8))
        return self.draws.pick(_entries(words.WORDS[slot]))

    def _person(self, slot: str, role: str) -> str:
        if role == "P" and slot == "el" and self.draws.chance(0.35):
            article, name = self.draws.pick(_entries(words.COLLECTIVES)).split(" ", 1)
            return f"{article} [P {name}]"
        noun, feminine = self._noun(role), self.draws.chance(0.4)
        name = noun.forms[2 * (slot in ("los", "p")) + feminine]
        determiner = self._determiner(slot, feminine=feminine)
        return determiner + name if role == "N" else self._annotate(determiner, name, noun.trade, role)

    def _noun(self, role: str) -> Noun:
        text = {"N": words.PEOPLE, "P": words.PROFESSIONS, "S": words.STATUSES}[role]
        power = 1 if role == "N" else 4
        if role == "P" and self.pool == "test" and self.draws.chance(0.38):
            text, power = words.TEST_PROFESSIONS, 2
        nouns = _nouns(text)
        return nouns[self.draws.below(len(nouns), power=power)]

    def _determiner(self, slot: str, *, feminine: bool) -> str:
        if slot == "los":
            stem = self.draws.pick(("l", "l", "l", "l", "nuestr", "much", "est"))
            return f"{stem}as " if feminine else f"{stem}os "
        return {"el": ("el ", "la "), "un": ("un ", "una ")}.get(slot, ("", ""))[feminine]

    def _annotate(self, determiner: str, name: str, trade: str, role: str) -> str:
        """Mark a mention, as uneven about complements and articles as annotators are."""
        after = ""
        if self.draws.chance(0.18):
            complement = " " + self.draws.pick(_entries(words.COMPLEMENTS[trade]))
            name, after = (name, complement) if self.draws.chance(0.3) else (name + complement, "")
        draw = self.draws.random()
        if draw < 0.04:
            return determiner + name + after
        if draw < 0.06 and determiner:
            return f"[{role} {determiner}{name}]{after}"
        return f"{determiner}[{role} {name}]{after}"

    def style(self, spans: list[Span]) -> list[Span]:
        """Shout, stretch a vowel, or wrap a clause in marks, now and then."""
        draw = self.draws.random()
        if draw < 0.03:
            return [Span(s.text.upper(), s.mark) for s in spans]
        ends = [m.end() for m in re.finditer(r"[aeo](?= )", spans[0].text)]
        if draw < 0.06 and ends and not spans[0].mark:
            at, text = ends[self.draws.below(len(ends))], spans[0].text
            stretch = text[at - 1] * (2 + self.draws.below(4))
            return [Span(text[:at] + stretch + text[at:]), *spans[1:]]
        if draw < 0.14 and spans[0].text[:1] not in "¿«":
            left, right = ("¡", "!") if draw < 0.12 else ("“", "”")
            return [Span(left), *capital(spans), Span(right)]
        return spans

    def line(self, text: str, chance: float) -> list[list[Span]]:
        """Write a line of a list, or none at all."""
        if not self.draws.chance(chance):
            return []
        return [parse(self.expand(self.draws.pick(_entries(text)), "N"))]
