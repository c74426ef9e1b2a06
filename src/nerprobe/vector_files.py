"""Embeddings files: word vectors in Parquet, a row a word, streamed out and read back checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nerprobe.errors import ArtefactError
from nerprobe.files import AGAIN, atomic_path, canonical_json, check_sha256
from nerprobe.items import Item

Vectors = npt.NDArray[np.floating[Any]]
Counts = npt.NDArray[np.int32]
GROUP_WORDS = 4096
"""Words of one row group of the Parquet file."""


def schema_of(width: int, storage: str, provenance: Mapping[str, Any]) -> pa.Schema:
    """Return the schema of an embeddings file: item_id, word, vector, n_subwords."""
    number = pa.float16() if storage == "float16" else pa.float32()
    fields = [
        pa.field("item_id", pa.string(), nullable=False),
        pa.field("word", pa.int32(), nullable=False),
        pa.field("vector", pa.list_(pa.field("item", number, nullable=False), width), nullable=False),
        pa.field("n_subwords", pa.int32(), nullable=False),
    ]
    return pa.schema(fields, metadata={"nerprobe": canonical_json(provenance)})


def _table(rows: Sequence[tuple[Item, Vectors, Counts]], schema: pa.Schema) -> pa.Table:
    kind = schema.field("vector").type
    number = np.float16 if kind.value_type == pa.float16() else np.float32
    flat = np.concatenate([vectors for _, vectors, _ in rows]).astype(number).reshape(-1)
    columns = [
        pa.array([item.item_id for item, _, _ in rows for _ in item.words], pa.string()),
        pa.array(np.concatenate([np.arange(len(item.words), dtype=np.int32) for item, _, _ in rows])),
        pa.FixedSizeListArray.from_arrays(pa.array(flat), type=kind),
        pa.array(np.concatenate([counts for _, _, counts in rows])),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def write_vectors(rows: Iterator[tuple[Item, Vectors, Counts]], *, schema: pa.Schema, output: Path) -> None:
    """Stream items into a Parquet file, written atomically, in row groups of about ``GROUP_WORDS`` words."""
    with (
        atomic_path(output) as temporary,
        pq.ParquetWriter(
            temporary, schema, compression="zstd", compression_level=1, use_dictionary=["item_id"]
        ) as writer,
    ):
        group: list[tuple[Item, Vectors, Counts]] = []
        words = 0
        for row in rows:
            group.append(row)
            words += len(row[0].words)
            if words >= GROUP_WORDS:
                writer.write_table(_table(group, schema))
                group, words = [], 0
        if group:
            writer.write_table(_table(group, schema))


def read_vectors(path: Path, manifest: Mapping[str, Any], wanted: Sequence[Item]) -> dict[str, Vectors]:
    """Read word vectors, checking that they are the ones the manifest tells of.

    Args:
        path: The Parquet file.
        manifest: What ``embed`` wrote beside it.
        wanted: Items whose vectors are needed.

    Returns:
        Vectors by item id, float32, shape (words, width).

    Raises:
        ArtefactError: If the file is damaged, foreign, or lacks words.
    """
    check_sha256(path, manifest["sha256"], record=path.with_suffix(".json"))
    opened = pq.ParquetFile(path)
    width = opened.schema_arrow.field("vector").type.list_size
    need = {item.item_id: len(item.words) for item in wanted}
    found: dict[str, list[Vectors]] = {item_id: [] for item_id in need}
    for group in range(opened.num_row_groups):
        table = opened.read_row_group(group, columns=["item_id", "vector"])
        flat = table["vector"].combine_chunks().values.to_numpy(zero_copy_only=False)
        vectors = flat.reshape(-1, width).astype(np.float32, copy=False)
        names = np.asarray(table["item_id"].to_pylist())
        cuts = np.flatnonzero(names[1:] != names[:-1]) + 1
        for first, part in zip([0, *cuts], np.split(vectors, cuts), strict=True):
            if names[first] in found:
                found[names[first]].append(part)
    joined = {item_id: np.concatenate(parts) for item_id, parts in found.items() if parts}
    wrong = [item_id for item_id, count in need.items() if len(joined.get(item_id, ())) != count]
    if wrong:
        raise ArtefactError(
            "vectors and words do not fit",
            where=f"{path}: {wrong[0]}",
            expected=f"{need[wrong[0]]} rows",
            got=str(len(joined.get(wrong[0], ()))),
            todo=AGAIN,
        )
    return joined
