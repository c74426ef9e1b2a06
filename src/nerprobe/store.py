"""The store behind ``embed``: vectors of one encoder addressed by what was encoded, in blocks that never change.

It lets a run that was killed go on where it was, a subset grow, and tasks over one corpus share vectors. A
block is one safetensors file named after the hash of its bytes; a damaged one is noticed and computed again.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from nerprobe.corpus import Item
from nerprobe.files import canonical_json, write_bytes
from nerprobe.log import logger
from nerprobe.vector_files import Counts, Vectors


def address(item: Item) -> str:
    """Return 32 hex that name what an encoder sees of an item: its text and its words' spans."""
    spans = ",".join(f"{start}-{end}" for start, end in zip(item.starts, item.ends, strict=True))
    return hashlib.sha256(f"{spans}\n{item.text}".encode()).hexdigest()[:32]


class ItemStats(NamedTuple):
    """What is kept of one item beside its vectors.

    Attributes:
        words: Words, which are rows.
        subwords: Sub-words of its text, without special and prefix tokens.
        unknown: How many of them are the unknown token.
        windows: Windows that words were read from.
        mismatched: Sub-words that point at other characters than they stand for.
    """

    words: int
    subwords: int
    unknown: int
    windows: int
    mismatched: int = 0


@dataclass(frozen=True)
class _Place:
    block: Path
    first: int
    stats: ItemStats


class VectorStore:
    """Blocks of word vectors in one folder.

    Args:
        folder: ``resources/vectors/<encoder key>``.
        wanted: Addresses that will be asked for; blocks without any of them are not checked.

    Attributes:
        encoder: What the encoder said of itself when it computed them; empty if nothing is here.
    """

    def __init__(self, folder: Path, wanted: Iterable[str]) -> None:
        self.folder = folder
        self._places: dict[str, _Place] = {}
        self.encoder: dict[str, Any] = {}
        self._open: OrderedDict[Path, tuple[Vectors, Counts]] = OrderedDict()
        keep = set(wanted)
        for block in sorted(folder.glob("*.safetensors")) if folder.is_dir() else []:
            self._index(block, keep)

    def _index(self, block: Path, keep: set[str]) -> None:
        try:
            with safe_open(str(block), framework="np") as opened:
                about = json.loads(opened.metadata()["nerprobe"])
            if keep.isdisjoint(about["addresses"]):
                return
            if hashlib.sha256(block.read_bytes()).hexdigest()[:16] != block.stem:
                raise ValueError("its bytes do not fit its name")
            stats = [ItemStats(*own) for own in about["stats"]]
            encoder = dict(about["encoder"])
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            logger.warning("damaged block %s is dropped and computed again: %s", block.name, error)
            block.unlink(missing_ok=True)
            return
        self._add(block, about["addresses"], stats)
        self.encoder = encoder

    def _add(self, block: Path, addresses: Sequence[str], stats: Sequence[ItemStats]) -> None:
        first = 0
        for name, own in zip(addresses, stats, strict=True):
            self._places.setdefault(name, _Place(block, first, own))
            first += own.words

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def add(
        self,
        *,
        addresses: Sequence[str],
        stats: Sequence[ItemStats],
        encoder: Mapping[str, Any],
        vectors: Vectors,
        n_subwords: Counts,
    ) -> None:
        """Write one block.

        Args:
            addresses: One an item.
            stats: One an item; the sum of their words is the length of the arrays.
            encoder: What the encoder says of itself (width, layers, …).
            vectors: Word vectors, shape (words, width).
            n_subwords: Sub-words of each word, shape (words,).
        """
        self.encoder = dict(encoder)
        about = canonical_json(
            {"schema": 1, "addresses": list(addresses), "stats": [list(own) for own in stats], "encoder": self.encoder}
        )
        data = save(
            {"vectors": np.ascontiguousarray(vectors), "n_subwords": np.ascontiguousarray(n_subwords)},
            metadata={"nerprobe": about},
        )
        block = self.folder / f"{hashlib.sha256(data).hexdigest()[:16]}.safetensors"
        write_bytes(block, data)
        self._add(block, addresses, stats)

    def stats(self, name: str) -> ItemStats:
        """Return what is kept of one item."""
        return self._places[name].stats

    def clear(self) -> None:
        """Remove every block."""
        self._places.clear()
        self._open.clear()
        for block in self.folder.glob("*.safetensors"):
            block.unlink(missing_ok=True)

    def read(self, name: str) -> tuple[Vectors, Counts]:
        """Return the vectors, shape (words, width), and sub-word counts, shape (words,), of one item."""
        place = self._places[name]
        if place.block not in self._open:
            with safe_open(str(place.block), framework="np") as opened:
                self._open[place.block] = (opened.get_tensor("vectors"), opened.get_tensor("n_subwords"))
            while len(self._open) > 4:
                self._open.popitem(last=False)
        self._open.move_to_end(place.block)
        vectors, counts = self._open[place.block]
        rows = slice(place.first, place.first + place.stats.words)
        return vectors[rows], counts[rows]
