"""Whether sub-words point at the characters they stand for.

A tokenizer that rewrites its text may report offsets of the rewritten one; words then get the vectors of
their neighbours, and nothing fails. So each sub-word's own spelling is compared with the characters that it
points at, both case-folded, in compatibility form and without accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from nerprobe.frozen import Tokens
from nerprobe.random_bert import byte_symbols

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_UNSEEN = ("Mn", "Me", "Cf", "Cc", "Zs", "Zl", "Zp")
_MARKS = [chr(code) for code in range(0x300, 0x346)]
_MOST_REMEMBERED = 50_000
_Part = TypeVar("_Part", str, bytes)


@dataclass(frozen=True)
class OffsetCount:
    """What a comparison found.

    Attributes:
        compared: Sub-words compared: not the unknown token, not mere word-boundary marks.
        mismatched: How many of them point at other characters than they stand for.
        example: The first of those, for people to read; empty if there is none.
    """

    compared: int
    mismatched: int
    example: str

    @property
    def share(self) -> float:
        """Return the mismatched share of the compared sub-words; 0 if none was compared."""
        return self.mismatched / self.compared if self.compared else 0.0


@lru_cache(maxsize=65536)
def _fold(char: str) -> str:
    """Return what is left of a character without case, accents, compatibility forms and invisible parts."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", char).casefold())
    return "".join(part for part in plain if unicodedata.category(part) not in _UNSEEN)


def _covers(part: _Part, pieces: Sequence[_Part]) -> bool:
    """Say whether ``part`` lies in the pieces, put end to end, and reaches into the first and the last one.

    One character may become several sub-words (a byte each, or the dots of an ellipsis): each of them is
    right to point at the whole character, and wrong to point at its neighbours too.
    """
    seen = [index for index, piece in enumerate(pieces) if piece]
    if not seen:
        return not part
    whole = pieces[0][:0].join(pieces)
    latest, least = len(pieces[seen[0]]), len(whole) - len(pieces[seen[-1]])
    start = whole.find(part)
    while 0 <= start < latest:
        if start + len(part) > least:
            return True
        start = whole.find(part, start + 1)
    return False


def _is_one(text: str) -> bool:
    return len(text) == 1


def _forms(text: str) -> Iterator[str]:
    """Give the forms that a tokenizer may have made of a text before it took bytes of it."""
    for cased in (text, text.lower()):
        for form in (cased, unicodedata.normalize("NFC", cased), unicodedata.normalize("NFKC", cased)):
            yield form.strip()
            yield form
    # A composed character may point at its base letter only, without the mark that follows it in the text.
    if len(text) == 1:
        yield from filter(_is_one, (unicodedata.normalize("NFC", text + mark) for mark in _MARKS))


class OffsetCheck:
    """Compares the sub-words of one tokenizer with the characters they point at.

    Each pair of a sub-word and its characters is judged once, so a large corpus costs little more than
    counting its pairs.

    Args:
        tokenizer: A fast tokenizer of transformers: word pieces, byte-level, or with metaspace marks.
    """

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401
        self._tokenizer = tokenizer
        backend = tokenizer.backend_tokenizer
        parts = [part.__getstate__() for part in (backend.normalizer, backend.pre_tokenizer) if part is not None]
        byte_level = any(b'"ByteLevel"' in part for part in parts)
        self._bytes = {symbol: byte for byte, symbol in enumerate(byte_symbols())} if byte_level else {}
        self._prefix = getattr(backend.model, "continuing_subword_prefix", None) or ""
        self._suffix = getattr(backend.model, "end_of_word_suffix", None) or ""
        self._added = {int(index): str(token) for index, token in tokenizer.added_tokens_decoder.items()}
        self._surfaces: dict[int, str | bytes | None] = {}
        self._judged: dict[tuple[int, str], bool | None] = {}

    def count(self, texts: Sequence[str], tokens: Sequence[Tokens]) -> OffsetCount:
        """Count the sub-words of a batch that point at other characters than they stand for.

        Args:
            texts: The texts, without prefix.
            tokens: Their sub-words; those of the prefix are left out.
        """
        pairs: Counter[tuple[int, str]] = Counter()
        for text, own in zip(texts, tokens, strict=True):
            spans = map(slice, own.starts[own.prefix :].tolist(), own.ends[own.prefix :].tolist())
            pairs.update(zip(own.ids[own.prefix :].tolist(), map(text.__getitem__, spans), strict=True))
        if len(self._judged) > _MOST_REMEMBERED:
            self._judged.clear()
        for pair in pairs:  # a difference of key sets would go through all that was judged so far
            if pair not in self._judged:
                self._judged[pair] = self._is_right(*pair)
        wrong = [pair for pair in pairs if self._judged[pair] is False]
        example = ""
        if wrong:
            example = f"{self._tokenizer.convert_ids_to_tokens(wrong[0][0])!r} points at {wrong[0][1]!r}"
        return OffsetCount(
            compared=sum(number for pair, number in pairs.items() if self._judged[pair] is not None),
            mismatched=sum(pairs[pair] for pair in wrong),
            example=example,
        )

    def _is_right(self, index: int, pointed: str) -> bool | None:
        """Say whether a sub-word stands for the characters it points at; None if that cannot be told."""
        if index not in self._surfaces:
            self._surfaces[index] = self._surface(index)
        surface = self._surfaces[index]
        if surface is None:
            return None
        if surface == pointed.strip():
            return True
        if isinstance(surface, bytes):
            return any(_covers(surface, [char.encode() for char in form]) for form in _forms(pointed))
        folded = "".join(map(_fold, surface))
        if not folded and surface in pointed:
            return True
        return _covers(folded, [_fold(char) for char in pointed])

    def _surface(self, index: int) -> str | bytes | None:
        """Return the spelling of a sub-word without its marks, bytes where it is part of a character.

        None stands for the unknown token and for sub-words that are only a mark.
        """
        if index == self._tokenizer.unk_token_id:
            return None
        if index in self._added:
            return self._added[index]
        token = str(self._tokenizer.convert_ids_to_tokens(index))
        if self._bytes and all(char in self._bytes for char in token):
            raw = bytes(self._bytes[char] for char in token)
        elif single := _BYTE_TOKEN.fullmatch(token):
            raw = bytes.fromhex(single[1])
        else:
            return token.removeprefix(self._prefix).removesuffix(self._suffix).replace("▁", " ").strip() or None
        try:
            return raw.decode().strip() or None
        except UnicodeDecodeError:
            return raw.strip()
