"""Stage ``embed``: word vectors of one encoder over a run's items, into one Parquet file and its manifest."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nerprobe.files import sha256_file, write_json
from nerprobe.fill import Items, blocks_of, fill_store
from nerprobe.items import Item, rows_of, stored_items
from nerprobe.log import logger
from nerprobe.store import VectorStore, address
from nerprobe.subset import load_subset
from nerprobe.vector_files import Counts, Vectors, schema_of, write_vectors
from nerprobe.versions import VECTORS_VERSION

if TYPE_CHECKING:
    pass


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


def embed_network(
    items: Items,
    *,
    spec: Mapping[str, Any],
    encoder: Path,
    store: Path,
    device: str,
    budget: int | None,
    provenance: Mapping[str, Any],
    output: Path,
) -> tuple[dict[str, Any], Health]:
    """Write the vectors of an encoder; return what it says of itself, and its health."""
    vectors, health = VectorStore(store), Health()
    health.items_embedded, health.padding = fill_store(
        items, encoder=encoder, spec=spec, store=vectors, device=device, budget=budget
    )
    schema = schema_of(vectors.encoder["width"], spec["settings"]["storage"], provenance)
    write_vectors(stored(items, vectors, health), schema=schema, output=output)
    return vectors.encoder, health


def embed_ngrams(
    items: Items, *, spec: Mapping[str, Any], provenance: Mapping[str, Any], output: Path
) -> tuple[dict[str, Any], Health]:
    """Write the vectors of the control ``char-ngrams``; as ``embed_network``."""
    from nerprobe.controls import CharNgrams

    control = CharNgrams(spec["source"])
    health = Health()
    width = 3 * int(spec["source"]["features"])

    def rows() -> Iterator[tuple[Item, Vectors, Counts]]:
        for block in blocks_of(items()):
            vectors, counts = control.vectors(block)
            stops = np.cumsum([len(item.words) for item in block])[:-1]
            health.words += len(counts)
            health.words_without_subwords += int((counts == 0).sum())
            health.items_embedded += len(block)
            yield from zip(block, np.split(vectors, stops), np.split(counts, stops), strict=True)

    write_vectors(rows(), schema=schema_of(width, spec["settings"]["storage"], provenance), output=output)
    return {"width": width}, health


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
    how: dict[str, Any] = {"spec": spec, "provenance": provenance, "output": output}
    if encoder is None:
        about, health = embed_ngrams(items, **how)
    else:
        about, health = embed_network(items, encoder=encoder, store=store, device=device, budget=budget, **how)
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
