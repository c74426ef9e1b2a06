"""What a store of vectors lacks is computed: blocks of items through the encoder, the next one tokenised meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nerprobe.digests import Seen
from nerprobe.errors import ArtefactError, NonFiniteError
from nerprobe.files import AGAIN, canonical_json, read_json, sha256_file, write_text
from nerprobe.items import Item
from nerprobe.lease import leased_device
from nerprobe.log import logger, progress_bar
from nerprobe.store import VectorStore, address
from nerprobe.vector_files import Vectors

if TYPE_CHECKING:
    from nerprobe.frozen import FrozenEncoder

BLOCK_ITEMS = 768
"""Items of one block of the store. Two are held at a time, one computed and one tokenised: all that a kill can lose."""
Items = Callable[[], Iterable[Item]]
"""Gives the items anew, in one and the same order: they are gone through several times and never all held."""
Marks = Sequence[int]
"""1 or 0 an item, a byte each."""


def blocks_of(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Give the items in blocks."""
    left = iter(items)
    while block := list(islice(left, BLOCK_ITEMS)):
        yield block


def mark_lacking(items: Items, store: VectorStore) -> bytearray:
    """Mark the items that the store lacks, each text and segmentation once, shape (items,)."""
    seen = Seen()
    names = map(address, items())
    return bytearray(name not in store and not seen.again(name) for name in names)


def fill_store(
    items: Items,
    *,
    encoder: Path,
    spec: Mapping[str, Any],
    store: VectorStore,
    device: str,
    budget: int | None,
) -> tuple[int, float]:
    """Compute what the store lacks of some items; where it lacks nothing, the encoder is not even loaded.

    Args:
        items: What is wanted.
        encoder: What ``fetch_encoder`` wrote.
        spec: ``settings`` and ``source`` of the encoder.
        store: Where finished blocks are kept.
        device: As in the configuration.
        budget: Most tokens of a padded batch; None fits the device.

    Returns:
        How many items were computed, and the share of padding in their batches.

    Raises:
        EncoderFolderError, AlignmentError, NonFiniteError: If this encoder cannot be used.
    """
    marks = mark_lacking(items, store)
    if not any(marks):
        return 0, 0.0
    if device == "auto" and spec["source"]["kind"] == "random":
        device = "cpu"  # controls ask Snakemake for no GPU, so they take none
    with leased_device(device) as own:
        return _fill(items, marks, encoder=encoder, spec=spec, store=store, device=own, budget=budget)


def _fill(
    items: Items,
    marks: Marks,
    *,
    encoder: Path,
    spec: Mapping[str, Any],
    store: VectorStore,
    device: str,
    budget: int | None,
) -> tuple[int, float]:
    """Compute what is lacking, or all where the encoder's own precision proves too narrow; as ``fill_store``."""
    from nerprobe.frozen import FrozenEncoder

    settings = spec["settings"]
    folder = _checked_folder(encoder, spec)
    load = {
        "device": device,
        "layer": settings["layer"],
        "max_length": settings["max_length"],
        "trust_remote_code": bool(spec["source"].get("trust_remote_code", False)),
    }
    fallback = store.folder / "float32-fallback"
    network = FrozenEncoder(folder, dtype="float32" if fallback.exists() else settings["dtype"], **load)
    how: dict[str, Any] = {"settings": settings, "store": store, "budget": budget}
    try:
        return sum(marks), compute(compress(items(), marks), total=sum(marks), encoder=network, **how)
    except NonFiniteError as error:
        if network.dtype == "float32":
            raise
        # Blocks of two precisions are never mixed: all of this key is computed anew, and stays in float32.
        logger.warning("%s; computing all of it again in float32", error)
        store.clear()
        write_text(fallback, f"{error}\n")
    network = FrozenEncoder(folder, dtype="float32", **load)
    marks = mark_lacking(items, store)
    return sum(marks), compute(compress(items(), marks), total=sum(marks), encoder=network, **how)


def compute(
    items: Iterable[Item],
    *,
    total: int,
    encoder: FrozenEncoder,
    settings: Mapping[str, Any],
    store: VectorStore,
    budget: int | None,
) -> float:
    """Compute items block by block; the next block is tokenised while this one is computed.

    Args:
        items: What the store lacks.
        total: How many they are.
        encoder: The encoder.
        settings: ``prefix``, ``pooling`` and ``storage``.
        store: Where finished blocks are kept.
        budget: Most tokens of a padded batch; None fits the device.

    Returns:
        The share of padding in the batches.
    """
    from nerprobe.offsets import OffsetCheck
    from nerprobe.pooling import Work, prepare, word_vectors

    work = Work()
    how = {"prefix": settings["prefix"], "pooling": settings["pooling"], "check": OffsetCheck(encoder.tokenizer)}
    blocks = blocks_of(items)
    with ThreadPoolExecutor(max_workers=1) as ahead, progress_bar("embed", total) as bar:
        block = next(blocks, None)
        pending = ahead.submit(prepare, block or [], encoder, **how)
        while block is not None:
            prepared = pending.result()
            following = next(blocks, None)
            if following is not None:
                pending = ahead.submit(prepare, following, encoder, **how)
            vectors = word_vectors(prepared, encoder, pooling=settings["pooling"], budget=budget, work=work)
            store.add(
                addresses=[address(item) for item in block],
                stats=prepared.stats,
                encoder=encoder.about(),
                vectors=_narrow(vectors) if settings["storage"] == "float16" else vectors,
                n_subwords=prepared.n_subwords,
            )
            bar.advance(len(block))
            block = following
    return 1 - work.tokens / work.padded if work.padded else 0.0


def _narrow(vectors: Vectors) -> Vectors:
    """Return vectors as float16, refusing values that it cannot hold."""
    with np.errstate(over="ignore"):
        narrow = vectors.astype(np.float16)
    if not np.isfinite(narrow).all():
        raise NonFiniteError(
            "vectors do not fit into float16",
            where="embed.storage",
            expected="values below 65504",
            got=f"{np.abs(vectors).max():.3g}",
            todo="use embed.storage: float32",
        )
    return narrow


def _checked_folder(encoder: Path, spec: Mapping[str, Any]) -> Path:
    """Return the encoder's folder once every file in it has the hash it was fetched with.

    Raises:
        ArtefactError: If the record is of another source, or files are gone or changed.
    """
    record = read_json(encoder)
    if record.get("source") != spec["source"]:
        raise ArtefactError(
            "this record is of another encoder or revision",
            where=str(encoder),
            expected=canonical_json(spec["source"]),
            got=canonical_json(record.get("source")),
            todo=AGAIN,
        )
    folder = Path(record["folder"])
    for file in record["files"]:
        path = folder / file["name"]
        if not path.is_file() or path.stat().st_size != file["size"] or sha256_file(path) != file["sha256"]:
            raise ArtefactError("a file of this encoder is gone or changed", where=str(path), todo=AGAIN)
    return folder
