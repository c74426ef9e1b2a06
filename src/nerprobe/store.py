"""The store behind ``embed``: vectors of one encoder addressed by what was encoded, in blocks that never change.

It lets a run that was killed go on where it was, a subset grow, and tasks over one corpus share vectors. A
block is one safetensors file named after the hash of its bytes; a damaged one is noticed and computed again.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from nerprobe.files import SCHEMA, canonical_json, write_bytes
from nerprobe.items import Item
from nerprobe.log import logger
from nerprobe.vector_files import Counts, Vectors

PLACE_BITS = 20
"""A block has at most a million items."""


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


class _Block:
    """One block file: which rows are whose.

    Attributes:
        path: The file.
        firsts: First row of each item, shape (items,).
        stats: ``ItemStats`` of each item, shape (items, 5).
        encoder: What the encoder said of itself.
        whole: Whether its bytes were found to fit its name.
    """

    def __init__(self, path: Path, stats: Sequence[ItemStats], encoder: Mapping[str, Any], *, whole: bool) -> None:
        self.path, self.encoder, self.whole = path, dict(encoder), whole
        self.stats = np.array([list(ItemStats(*own)) for own in stats], dtype=np.int32).reshape(-1, 5)
        self.firsts = np.cumsum(self.stats[:, 0]) - self.stats[:, 0]


class VectorStore:
    """Blocks of word vectors in one folder; a block is checked when something in it is first asked for.

    Args:
        folder: ``resources/vectors/<encoder key>``.

    Attributes:
        encoder: What the encoder said of itself when it computed what was last found; empty if nothing was.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.encoder: dict[str, Any] = {}
        self._blocks: list[_Block | None] = []
        # Where each address is: number of its block, and place in it in the last bits. A large corpus has many, so
        # keys are bytes, not hex, and the values one number.
        self._places: dict[bytes, int] = {}
        self._open: OrderedDict[Path, tuple[Vectors, Counts]] = OrderedDict()
        for block in sorted(folder.glob("*.safetensors")) if folder.is_dir() else []:
            self._index(block)

    def _index(self, block: Path) -> None:
        try:
            with safe_open(str(block), framework="np") as opened:
                about = json.loads(opened.metadata()["nerprobe"])
            if about["schema"] != SCHEMA:
                raise ValueError(f"schema {about['schema']}")
            self._add(about["addresses"], _Block(block, about["stats"], about["encoder"], whole=False))
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            self._drop(block, error)

    def _drop(self, block: Path, why: object) -> None:
        logger.warning("damaged block %s is dropped and computed again: %s", block.name, why)
        block.unlink(missing_ok=True)

    def _add(self, addresses: Sequence[str], block: _Block) -> None:
        number = len(self._blocks)
        self._blocks.append(block)
        for place, name in enumerate(addresses):
            self._places[bytes.fromhex(name)] = number << PLACE_BITS | place

    def _found(self, name: str) -> tuple[_Block, int] | None:
        """Return the block of an address and the place in it, if the block is whole."""
        found = self._places.get(bytes.fromhex(name), -1)
        number, place = found >> PLACE_BITS, found & (1 << PLACE_BITS) - 1
        block = self._blocks[number] if number >= 0 else None
        if block is not None and not block.whole:
            if hashlib.sha256(block.path.read_bytes()).hexdigest()[:16] != block.path.stem:
                self._drop(block.path, "its bytes do not fit its name")
                self._blocks[number] = block = None
            else:
                block.whole = True
        if block is None:
            return None
        self.encoder = block.encoder
        return block, place

    def __contains__(self, name: str) -> bool:
        return self._found(name) is not None

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
            {
                "schema": SCHEMA,
                "addresses": list(addresses),
                "stats": [list(own) for own in stats],
                "encoder": self.encoder,
            }
        )
        data = save(
            {"vectors": np.ascontiguousarray(vectors), "n_subwords": np.ascontiguousarray(n_subwords)},
            metadata={"nerprobe": about},
        )
        block = self.folder / f"{hashlib.sha256(data).hexdigest()[:16]}.safetensors"
        write_bytes(block, data)
        self._add(addresses, _Block(block, stats, encoder, whole=True))

    def stats(self, name: str) -> ItemStats:
        """Return what is kept of one item.

        Raises:
            KeyError: If nothing is.
        """
        block, place = self._known(name)
        return ItemStats(*map(int, block.stats[place]))

    def _known(self, name: str) -> tuple[_Block, int]:
        found = self._found(name)
        if found is None:
            raise KeyError(name)
        return found

    def clear(self) -> None:
        """Remove every block."""
        self._places.clear()
        self._blocks.clear()
        self._open.clear()
        for block in self.folder.glob("*.safetensors"):
            block.unlink(missing_ok=True)

    def read(self, name: str) -> tuple[Vectors, Counts]:
        """Return the vectors, shape (words, width), and sub-word counts, shape (words,), of one item.

        Raises:
            KeyError: If nothing is kept of it.
        """
        block, place = self._known(name)
        if block.path not in self._open:
            with safe_open(str(block.path), framework="np") as opened:
                self._open[block.path] = (opened.get_tensor("vectors"), opened.get_tensor("n_subwords"))
            while len(self._open) > 4:
                self._open.popitem(last=False)
        self._open.move_to_end(block.path)
        vectors, counts = self._open[block.path]
        rows = slice(int(block.firsts[place]), int(block.firsts[place] + block.stats[place, 0]))
        return vectors[rows], counts[rows]
