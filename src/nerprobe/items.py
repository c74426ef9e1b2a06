"""Items, and ``corpus.parquet``, the table that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nerprobe.digests import digest
from nerprobe.errors import ArtefactError
from nerprobe.files import AGAIN, check_sha256, read_json
from nerprobe.spans import count_types

ROWS = 1024
"""Items of one row group of ``corpus.parquet``."""
READ = 256
"""Items that are Python objects at a time when it is read."""
COLUMNS = ("item_id", "pool", "text", "words", "starts", "ends", "tags")
"""Columns of every ``corpus.parquet``; metadata fields follow."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One text with its words.

    Attributes:
        item_id: The task's prefix and the id in its file.
        pool: Pool of the task.
        text: The text that encoders get.
        words: Words in order.
        starts: Start of each word in ``text``, in code points.
        ends: End of each word in ``text``, half-open.
        tags: One IOB2 tag of a scored type, or O, a word.
        metadata: Further fields of the task.
    """

    item_id: str
    pool: str
    text: str
    words: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    tags: tuple[str, ...]
    metadata: dict[str, str] = field(default_factory=dict)


def join_words(words: Sequence[str], touching: Sequence[bool]) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """Rebuild a text: one space between words, nothing where they touch.

    Args:
        words: Words in order.
        touching: For each word, whether it touches the word before it (ignored for the first).

    Returns:
        The text, and each word's start and end in it, in code points, half-open.
    """
    parts: list[str] = []
    starts, ends = [], []
    position = 0
    for index, word in enumerate(words):
        if index and not touching[index]:
            parts.append(" ")
            position += 1
        starts.append(position)
        parts.append(word)
        position += len(word)
        ends.append(position)
    return "".join(parts), tuple(starts), tuple(ends)


def corpus_table(items: Sequence[Item], metadata: Sequence[str]) -> pa.Table:
    """Return ``corpus.parquet`` as a table: a row an item (columns as in DESIGN section 2)."""
    words = pa.list_(pa.string())
    offsets = pa.list_(pa.int32())
    columns = {
        "item_id": pa.array([item.item_id for item in items], pa.string()),
        "pool": pa.array([item.pool for item in items], pa.string()),
        "text": pa.array([item.text for item in items], pa.string()),
        "words": pa.array([item.words for item in items], words),
        "starts": pa.array([item.starts for item in items], offsets),
        "ends": pa.array([item.ends for item in items], offsets),
        "tags": pa.array([item.tags for item in items], words),
    }
    for name in metadata:
        columns[name] = pa.array([item.metadata[name] for item in items], pa.string())
    return pa.table(columns)


def stored_batches(path: Path, columns: Sequence[str] | None = None, *, rows: int = ROWS) -> Iterator[pa.RecordBatch]:
    """Give ``corpus.parquet`` in batches of rows, so that a large corpus takes little memory.

    Raises:
        ArtefactError: If the file is damaged, or is not the one that ``corpus.json`` beside it tells of.
    """
    info = path.with_suffix(".json")
    if info.exists():  # as for every stage, whose rule asks for it
        check_sha256(path, read_json(info).get("corpus_sha256"), record=info)
    try:
        table = pq.ParquetFile(path)
        for group in range(table.num_row_groups):  # all groups at once would hold the whole file
            yield from table.iter_batches(batch_size=rows, columns=columns, row_groups=[group])
    except (pa.ArrowException, OSError) as error:
        raise ArtefactError("this corpus file is damaged", where=str(path), got=str(error)[:200], todo=AGAIN) from error


def rows_of(path: Path, wanted: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Mark some items' rows of ``corpus.parquet``, shape (rows,): a byte a row, where ids take a hundred.

    Args:
        path: The file.
        wanted: Ids of the items.

    Raises:
        ArtefactError: If the file is damaged or lacks wanted items.
    """
    digests = np.unique(np.fromiter(map(digest, wanted), np.uint64))
    marks = [np.zeros(0, dtype=np.bool_)]
    for batch in stored_batches(path, ["item_id"]):
        marks.append(np.isin(np.fromiter(map(digest, batch.column(0).to_pylist()), np.uint64), digests))
    rows = np.concatenate(marks)
    if rows.sum() < len(digests):
        raise ArtefactError(
            "this corpus file lacks items of the subset",
            where=str(path),
            expected=f"{len(digests)} of them",
            got=str(rows.sum()),
            todo=AGAIN,
        )
    return rows


def chosen_batches(
    path: Path, rows: npt.NDArray[np.bool_] | None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Give some rows of ``corpus.parquet`` in batches.

    Args:
        path: The file.
        rows: The rows to read, as from ``rows_of``; all of them if None.
        columns: The columns to read; all of them if None.

    Raises:
        ArtefactError: If the file is damaged.
    """
    first = 0
    for batch in stored_batches(path, columns, rows=READ):
        yield batch if rows is None else batch.filter(pa.array(rows[first : first + len(batch)]))
        first += len(batch)


def stored_items(path: Path, rows: npt.NDArray[np.bool_] | None = None) -> Iterator[Item]:
    """Read ``corpus.parquet`` back, item by item, in file order; arguments and errors as for ``chosen_batches``."""
    for batch in chosen_batches(path, rows):
        for row in batch.to_pylist():
            yield _stored_item(row)


def _stored_item(row: Mapping[str, Any]) -> Item:
    return Item(
        item_id=row["item_id"],
        pool=row["pool"],
        text=row["text"],
        words=tuple(row["words"]),
        starts=tuple(row["starts"]),
        ends=tuple(row["ends"]),
        tags=tuple(row["tags"]),
        metadata={name: value for name, value in row.items() if name not in COLUMNS},
    )


def load_items(path: Path, wanted: Iterable[str] | None = None) -> dict[str, Item]:
    """Read ``corpus.parquet`` back.

    Args:
        path: The file.
        wanted: Ids of the items to read; all of them if None.

    Returns:
        Items by id, in file order.

    Raises:
        ArtefactError: If the file is damaged or lacks wanted items.
    """
    rows = None if wanted is None else rows_of(path, wanted)
    return {item.item_id: item for item in stored_items(path, rows)}


def count_pool(tags: Iterable[Sequence[str]], types: Sequence[str]) -> dict[str, Any]:
    """Return items, words, items with mentions, and mentions by type of one pool."""
    counts: dict[str, Any] = {"items": 0, "words": 0, "items_with_mentions": 0, "mentions": dict.fromkeys(types, 0)}
    for item in tags:
        counts["items"] += 1
        counts["words"] += len(item)
        counts["items_with_mentions"] += any(tag != "O" for tag in item)
        for kind, number in count_types([item], types).items():
            counts["mentions"][kind] += number
    return counts
