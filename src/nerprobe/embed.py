"""Stage ``embed``: word vectors of one encoder over a run's items, into one Parquet file and its manifest."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nerprobe.corpus import Item, load_items
from nerprobe.errors import ArtefactError, NonFiniteError
from nerprobe.files import canonical_json, read_json, sha256_file, write_json, write_text
from nerprobe.log import logger, progress_bar
from nerprobe.store import VectorStore, address
from nerprobe.subset import load_subset
from nerprobe.vector_files import Counts, Vectors, schema_of, write_vectors
from nerprobe.versions import VECTORS_VERSION

if TYPE_CHECKING:
    from nerprobe.frozen import FrozenEncoder

BLOCK_ITEMS = 1024
"""Items of one block of the store: what a killed run loses at most."""


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


def blocks_of(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Give the items in blocks, each text and segmentation once."""
    seen: set[str] = set()
    block: list[Item] = []
    for item in items:
        name = address(item)
        if name in seen:
            continue
        seen.add(name)
        block.append(item)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block


def _stored(items: Sequence[Item], store: VectorStore) -> Iterator[tuple[Item, Vectors, Counts]]:
    for item in items:
        yield item, *store.read(address(item))


def fill_store(
    items: Sequence[Item],
    *,
    encoder: Path,
    spec: Mapping[str, Any],
    store: VectorStore,
    device: str,
    budget: int | None,
) -> Health:
    """Compute what the store lacks of some items; where it lacks nothing, the encoder is not even loaded.

    Args:
        items: What is wanted, in the order of the file.
        encoder: What ``fetch_encoder`` wrote.
        spec: ``settings`` and ``source`` of the encoder.
        store: Where finished blocks are kept.
        device: As in the configuration.
        budget: Most tokens of a padded batch; None fits the device.

    Raises:
        EncoderFolderError, AlignmentError, NonFiniteError: If this encoder cannot be used.
    """
    lacking = [item for item in items if address(item) not in store]
    if not lacking:
        return health_of(items, store)
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
    try:
        padding = _compute(lacking, encoder=network, settings=settings, store=store, budget=budget)
    except NonFiniteError as error:
        if network.dtype == "float32":
            raise
        # Blocks of two precisions are never mixed: all of this key is computed anew, and stays in float32.
        logger.warning("%s; computing all of it again in float32", error)
        store.clear()
        write_text(fallback, f"{error}\n")
        network = FrozenEncoder(folder, dtype="float32", **load)
        lacking = list(items)
        padding = _compute(lacking, encoder=network, settings=settings, store=store, budget=budget)
    health = health_of(items, store)
    health.items_embedded, health.padding = len({address(item) for item in lacking}), padding
    return health


def health_of(items: Sequence[Item], store: VectorStore) -> Health:
    """Sum up what the store keeps of some items."""
    stats = [store.stats(address(item)) for item in items]
    health = Health(
        words=sum(own.words for own in stats),
        subwords=sum(own.subwords for own in stats),
        items_windowed=sum(own.windows > 1 for own in stats),
        offset_mismatches=sum(own.mismatched for own in stats),
    )
    covered = 0
    for item in items:
        counts = store.read(address(item))[1]
        covered += int(counts.sum())
        health.words_without_subwords += int((counts == 0).sum())
    health.fertility = covered / max(1, health.words - health.words_without_subwords)
    health.unknown_rate = sum(own.unknown for own in stats) / max(1, health.subwords)
    return health


def _compute(
    items: Sequence[Item],
    *,
    encoder: FrozenEncoder,
    settings: Mapping[str, Any],
    store: VectorStore,
    budget: int | None,
) -> float:
    """Compute items block by block; the next block is tokenised while this one is computed.

    Returns:
        The share of padding in the batches.
    """
    from nerprobe.offsets import OffsetCheck
    from nerprobe.pooling import Work, prepare, word_vectors

    work = Work()
    how = {"prefix": settings["prefix"], "pooling": settings["pooling"], "check": OffsetCheck(encoder.tokenizer)}
    blocks = list(blocks_of(items, BLOCK_ITEMS))
    with ThreadPoolExecutor(max_workers=1) as ahead, progress_bar("embed", sum(map(len, blocks))) as bar:
        pending = ahead.submit(prepare, blocks[0], encoder, **how)
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            prepared = pending.result()
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


def embed_ngrams(items: Sequence[Item], *, spec: Mapping[str, Any], schema: pa.Schema, output: Path) -> Health:
    """Write the vectors of the control ``char-ngrams``."""
    from nerprobe.controls import CharNgrams

    control = CharNgrams(spec["source"])
    health = Health(items_embedded=len(items))

    def rows() -> Iterator[tuple[Item, Vectors, Counts]]:
        for block in (items[first : first + BLOCK_ITEMS] for first in range(0, len(items), BLOCK_ITEMS)):
            vectors, counts = control.vectors(block)
            stops = np.cumsum([len(item.words) for item in block])[:-1]
            health.words += len(counts)
            health.words_without_subwords += int((counts == 0).sum())
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
    order = [item_id for pool in sorted(chosen["items"]) for item_id in chosen["items"][pool]]
    known = load_items(corpus, order)
    items = [known[item_id] for item_id in order]
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
        vectors = VectorStore(store, (address(item) for item in items))
        health = fill_store(items, encoder=encoder, spec=spec, store=vectors, device=device, budget=budget)
        about = vectors.encoder
        write_vectors(_stored(items, vectors), schema=schema_of(about["width"], storage, provenance), output=output)
    record = {
        **provenance,
        "encoder": about,
        "rows": sum(len(item.words) for item in items),
        "sha256": sha256_file(output),
        "bytes": output.stat().st_size,
        "health": asdict(health),
        "seconds": time.monotonic() - begun,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    write_json(manifest, record)
    logger.info("%d words of %d items, %d computed now", record["rows"], len(items), health.items_embedded)


def _checked_folder(encoder: Path, spec: Mapping[str, Any]) -> Path:
    """Return the encoder's folder once every file in it has the hash it was fetched with.

    Raises:
        ArtefactError: If the record is of another source, or files are gone or changed.
    """
    record = read_json(encoder)
    again = f"fetch it again: snakemake --forcerun fetch_encoder (or rm {encoder})"
    if record.get("source") != spec["source"]:
        raise ArtefactError(
            "this record is of another encoder or revision",
            where=str(encoder),
            expected=canonical_json(spec["source"]),
            got=canonical_json(record.get("source")),
            todo=again,
        )
    folder = Path(record["folder"])
    for file in record["files"]:
        path = folder / file["name"]
        if not path.is_file() or path.stat().st_size != file["size"] or sha256_file(path) != file["sha256"]:
            raise ArtefactError("a file of this encoder is gone or changed", where=str(path), todo=again)
    return folder
