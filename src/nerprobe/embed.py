"""Stage ``embed``: word vectors of one encoder over a run's items, into one Parquet file and its manifest."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nerprobe.errors import ArtefactError, NonFiniteError
from nerprobe.files import AGAIN, canonical_json, read_json, sha256_file, write_json, write_text
from nerprobe.items import Item, rows_of, stored_items
from nerprobe.lease import leased_device
from nerprobe.log import logger, progress_bar
from nerprobe.readers import Seen
from nerprobe.store import VectorStore, address
from nerprobe.subset import load_subset
from nerprobe.vector_files import Counts, Vectors, schema_of, write_vectors
from nerprobe.versions import VECTORS_VERSION

if TYPE_CHECKING:
    from nerprobe.frozen import FrozenEncoder

BLOCK_ITEMS = 512
"""Items of one block of the store: what a killed run loses, twice over, and what is held in memory at a time."""


@dataclass
class Health:
    """How an encoder's tokenizer copes with the texts.

    Attributes:
        words: Words in all items.
        subwords: Sub-words in all texts.
        fertility: Sub-words a word, over words that have any.
        unknown_rate: Share of sub-words that are the unknown token.
        words_without_subwords: Words with the fallback vector.
        items_windowed: Items longer than the encoder takes.
        offset_mismatches: Sub-words that point at other characters than they stand for.
        items_embedded: Items computed now; the others came from the store.
        padding: Share of padding in the batches computed now.
    """

    words: int = 0
    subwords: int = 0
    fertility: float = 0.0
    unknown_rate: float = 0.0
    words_without_subwords: int = 0
    items_windowed: int = 0
    offset_mismatches: int = 0
    items_embedded: int = 0
    padding: float = 0.0


Items = Callable[[], Iterable[Item]]
"""Gives the items anew, in one and the same order: they are gone through several times and never all held."""


def blocks_of(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Give the items in blocks, each text and segmentation once."""
    seen = Seen()
    once = (item for item in items if not seen.again(address(item)))
    while block := list(islice(once, size)):
        yield block


def _lacking(items: Items, store: VectorStore) -> Iterator[Item]:
    return (item for item in items() if address(item) not in store)


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
    lacking = sum(map(len, blocks_of(_lacking(items, store), BLOCK_ITEMS)))
    if not lacking:
        return 0, 0.0
    if device == "auto" and spec["source"]["kind"] == "random":
        device = "cpu"  # controls ask Snakemake for no GPU, so they take none
    with leased_device(device) as own:
        return _fill(items, lacking, encoder=encoder, spec=spec, store=store, device=own, budget=budget)


def _fill(
    items: Items,
    lacking: int,
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
        return lacking, compute(items, total=lacking, encoder=network, **how)
    except NonFiniteError as error:
        if network.dtype == "float32":
            raise
        # Blocks of two precisions are never mixed: all of this key is computed anew, and stays in float32.
        logger.warning("%s; computing all of it again in float32", error)
        store.clear()
        write_text(fallback, f"{error}\n")
    network = FrozenEncoder(folder, dtype="float32", **load)
    lacking = sum(map(len, blocks_of(items(), BLOCK_ITEMS)))
    return lacking, compute(items, total=lacking, encoder=network, **how)


def compute(
    items: Items,
    *,
    total: int,
    encoder: FrozenEncoder,
    settings: Mapping[str, Any],
    store: VectorStore,
    budget: int | None,
) -> float:
    """Compute what the store lacks block by block; the next block is tokenised while this one is computed.

    Args:
        items: What is wanted.
        total: How many of them the store lacks.
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
    blocks = blocks_of(_lacking(items, store), BLOCK_ITEMS)
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


def stored(items: Items, store: VectorStore, health: Health) -> Iterator[tuple[Item, Vectors, Counts]]:
    """Give the vectors of items that the store has, and sum up how the tokenizer coped with them."""
    covered = unknown = 0
    for item in items():
        vectors, counts = store.read(address(item))
        own = store.stats(address(item))
        health.words += own.words
        health.subwords += own.subwords
        health.items_windowed += own.windows > 1
        health.offset_mismatches += own.mismatched
        health.words_without_subwords += int((counts == 0).sum())
        covered += int(counts.sum())
        unknown += own.unknown
        yield item, vectors, counts
    health.fertility = covered / max(1, health.words - health.words_without_subwords)
    health.unknown_rate = unknown / max(1, health.subwords)


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


def embed_ngrams(items: Items, *, spec: Mapping[str, Any], schema: pa.Schema, output: Path) -> Health:
    """Write the vectors of the control ``char-ngrams``."""
    from nerprobe.controls import CharNgrams

    control = CharNgrams(spec["source"])
    health = Health()

    def rows() -> Iterator[tuple[Item, Vectors, Counts]]:
        left = iter(items())
        while block := list(islice(left, BLOCK_ITEMS)):
            vectors, counts = control.vectors(block)
            stops = np.cumsum([len(item.words) for item in block])[:-1]
            health.words += len(counts)
            health.words_without_subwords += int((counts == 0).sum())
            health.items_embedded += len(block)
            yield from zip(block, np.split(vectors, stops), np.split(counts, stops), strict=True)

    write_vectors(rows(), schema=schema, output=output)
    return health


def write_embeddings(
    spec: Mapping[str, Any],
    *,
    corpus: Path,
    subset: Path,
    encoder: Path | None,
    store: Path,
    device: str,
    budget: int | None,
    output: Path,
    manifest: Path,
) -> None:
    """Run the stage: write the Parquet file and its manifest.

    Args:
        spec: ``model``, ``key``, ``source`` and ``settings`` made by ``nerprobe.plan``.
        corpus: ``corpus.parquet``.
        subset: ``subset.json``.
        encoder: What ``fetch_encoder`` wrote; None for controls that need no files.
        store: ``resources/vectors/<key>``.
        device: As in the configuration.
        budget: Most tokens of a padded batch; None fits the device.
        output: The Parquet file.
        manifest: Its manifest.
    """
    begun = time.monotonic()
    chosen = load_subset(subset)
    rows = rows_of(corpus, (item_id for pool in sorted(chosen["items"]) for item_id in chosen["items"].pop(pool)))
    items = partial(stored_items, corpus, rows)
    provenance = {
        "schema": 1,
        **{name: spec[name] for name in ("model", "key", "source", "settings")},
        "vectors_version": VECTORS_VERSION,
        "subset": chosen["id"],
    }
    storage = spec["settings"]["storage"]
    if encoder is None:
        about: dict[str, Any] = {"width": 3 * int(spec["source"]["features"])}
        schema = schema_of(about["width"], storage, provenance)
        health = embed_ngrams(items, spec=spec, schema=schema, output=output)
    else:
        vectors = VectorStore(store)
        health = Health()
        health.items_embedded, health.padding = fill_store(
            items, encoder=encoder, spec=spec, store=vectors, device=device, budget=budget
        )
        about = vectors.encoder
        schema = schema_of(about["width"], storage, provenance)
        write_vectors(stored(items, vectors, health), schema=schema, output=output)
    record = {
        **provenance,
        "encoder": about,
        "rows": health.words,
        "sha256": sha256_file(output),
        "bytes": output.stat().st_size,
        "health": asdict(health),
        "seconds": time.monotonic() - begun,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    write_json(manifest, record)
    logger.info("%d words of %d items, %d computed now", record["rows"], rows.sum(), health.items_embedded)


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
