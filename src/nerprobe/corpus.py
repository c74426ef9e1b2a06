"""Stage ``corpus``: a task's files become one table of items with rebuilt texts and words at code points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nerprobe.errors import ArtefactError, CorpusFileError, CorpusFormatError, HashMismatchError
from nerprobe.files import atomic_path, sha256_file, write_json
from nerprobe.log import logger
from nerprobe.readers import RawItem, TagRule, read_columns, read_rows
from nerprobe.sample import generate
from nerprobe.spans import count_types

ROWS = 2048
"""Items of one row group of ``corpus.parquet``."""
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


def build_item(raw: RawItem, *, pool: str, prefix: str, text_rule: str, tag_rule: TagRule) -> Item:
    """Return the item of a raw one.

    Args:
        raw: As its file has it.
        pool: Pool it belongs to.
        prefix: Put before its id.
        text_rule: ``offsets`` (a space where ``start > previous end``) or ``spaces``.
        tag_rule: Which types are scored.
    """
    touching = [False] * len(raw.words)
    if text_rule == "offsets":
        touching[1:] = [start == end for start, end in zip(raw.starts[1:], raw.ends, strict=False)]
    text, starts, ends = join_words(raw.words, touching)
    return Item(
        item_id=prefix + raw.name,
        pool=pool,
        text=text,
        words=tuple(raw.words),
        starts=starts,
        ends=ends,
        tags=tuple(tag_rule.scored(raw.tags)),
        metadata=raw.metadata,
    )


def read_source(spec: Mapping[str, Any], pool: str) -> tuple[bytes, str]:
    """Return the bytes of a pool's file and the name to call it in errors.

    Raises:
        CorpusFileError: If a local file is missing.
        HashMismatchError: If it is not the file that the run's name was made from.
        HubError: If the hub does not give it.
    """
    source, file = spec["source"], spec["pools"][pool]["file"]
    if source["kind"] == "sample":
        return generate(pool=pool, items=spec["pools"][pool]["items"], seed=source["seed"]).encode(), file
    if source["kind"] == "hub":
        from nerprobe.hub import hub_file

        path = hub_file(
            repo=source["repo"],
            repo_type="dataset",
            revision=source["revision"],
            filename=file,
            sha256=spec["pools"][pool].get("sha256"),
            ways_out=f"--config data_dir=DIR reads DIR/{spec['task']}/{file} instead",
        )
        return path.read_bytes(), file
    path = Path(source["folder"]) / file
    if not path.is_file():
        raise CorpusFileError("no such corpus file", where=str(path))
    if sha256_file(path) != source["sha256"][file]:
        raise HashMismatchError("this file changed while the run was on", where=str(path), todo="run snakemake again")
    return path.read_bytes(), str(path)


def read_items(spec: Mapping[str, Any]) -> tuple[list[Item], dict[str, str]]:
    """Read all pools of a task.

    Args:
        spec: The corpus specification made by ``nerprobe.plan``.

    Returns:
        Items in file order, pool by pool, and the SHA-256 of each file read.

    Raises:
        CorpusFileError, CorpusFormatError: With file and line.
    """
    taken = sorted(set(spec["format"].get("metadata", [])) & set(COLUMNS))
    if taken:
        raise CorpusFormatError(
            "a metadata field has the name of a corpus column", where="format.metadata", got=taken[0]
        )
    tag_rule = TagRule(types=tuple(spec["types"]), ignored_types=tuple(spec["ignored_types"]))
    reader = read_columns if spec["format"]["kind"] == "columns" else read_rows
    items: list[Item] = []
    pools: dict[str, tuple[str, str]] = {}
    hashes: dict[str, str] = {}
    for pool in sorted(spec["pools"]):
        data, where = read_source(spec, pool)
        hashes[spec["pools"][pool]["file"]] = hashlib.sha256(data).hexdigest()
        prefix = spec["item_prefix"] + ("" if "item" in _item_field(spec) else f"{pool}-")
        raws = reader(data, where=where, layout=spec["format"], tag_rule=tag_rule)
        _warn_lengths(raws, where)
        for raw in raws:
            item = build_item(raw, pool=pool, prefix=prefix, text_rule=spec["text"], tag_rule=tag_rule)
            if item.item_id in pools:
                raise CorpusFormatError(
                    "an item id is in two pools",
                    where=f"{where}:{raw.line}",
                    expected="each id in one pool only",
                    got=f"{raw.name}, also in pool {pools[item.item_id][0]} ({pools[item.item_id][1]})",
                )
            pools[item.item_id] = (pool, f"{where}:{raw.line}")
            items.append(item)
    return items, hashes


def _item_field(spec: Mapping[str, Any]) -> Sequence[str]:
    """Return the fields that can name an item; empty if items are only numbered."""
    layout = spec["format"]
    return layout["columns"] if layout["kind"] == "columns" else ["item"]


def _warn_lengths(raws: Iterable[RawItem], where: str) -> None:
    odd = [
        raw for raw in raws if any(e - s != len(w) for w, s, e in zip(raw.words, raw.starts, raw.ends, strict=False))
    ]
    if odd:
        logger.warning(
            "%s:%d: item %s (and %d others) has offsets that do not span its words; are they code points?",
            where,
            odd[0].line,
            odd[0].name,
            len(odd) - 1,
        )


def count_pool(tags: Sequence[Sequence[str]], types: Sequence[str]) -> dict[str, Any]:
    """Return items, words, items with mentions, and mentions by type of one pool."""
    return {
        "items": len(tags),
        "words": sum(map(len, tags)),
        "items_with_mentions": sum(any(tag != "O" for tag in item) for item in tags),
        "mentions": count_types(tags, types),
    }


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


def load_items(path: Path, wanted: Iterable[str] | None = None) -> dict[str, Item]:
    """Read ``corpus.parquet`` back.

    Args:
        path: The file.
        wanted: Ids of the items to read; all of them if None.

    Returns:
        Items by id, in file order.

    Raises:
        ArtefactError: If the file is damaged.
    """
    try:
        keep = None if wanted is None else pa.array(wanted, pa.string())
        rows = []
        # In batches, so that a few items of a large corpus take little memory.
        for batch in pq.ParquetFile(path).iter_batches(batch_size=ROWS):
            part = batch if keep is None else batch.filter(pc.is_in(batch.column("item_id"), value_set=keep))
            rows += part.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ArtefactError(
            "this corpus file is damaged", where=str(path), got=str(error)[:200], todo=f"remove it: rm {path}"
        ) from error
    return {
        row["item_id"]: Item(
            item_id=row["item_id"],
            pool=row["pool"],
            text=row["text"],
            words=tuple(row["words"]),
            starts=tuple(row["starts"]),
            ends=tuple(row["ends"]),
            tags=tuple(row["tags"]),
            metadata={name: value for name, value in row.items() if name not in COLUMNS},
        )
        for row in rows
    }


def write_corpus(spec: Mapping[str, Any], *, table_path: Path, info_path: Path) -> None:
    """Run the stage: write ``corpus.parquet`` and ``corpus.json``."""
    items, hashes = read_items(spec)
    table = corpus_table(items, spec["format"].get("metadata", []))
    with atomic_path(table_path) as temporary:
        pq.write_table(table, temporary, compression="zstd", row_group_size=ROWS)
    source = spec["source"]
    by_pool = {pool: [item.tags for item in items if item.pool == pool] for pool in spec["pools"]}
    info = {
        "schema": 1,
        "task": spec["task"],
        "title": spec["title"],
        "language": spec["language"],
        "licence": spec["licence"],
        "texts_shareable": spec["texts_shareable"],
        "labels": spec["labels"],
        "source": source["kind"],
        "repo": spec["repo"],
        "revision": source.get("revision"),
        "sha256": hashes,
        "corpus_sha256": sha256_file(table_path),
        "types": list(spec["types"]),
        "ignored_types": list(spec["ignored_types"]),
        "evaluations": spec["evaluations"],
        "counts": {pool: count_pool(tags, spec["types"]) for pool, tags in by_pool.items()},
    }
    write_json(info_path, info)
    logger.info("%d items from %s", len(items), ", ".join(hashes))
