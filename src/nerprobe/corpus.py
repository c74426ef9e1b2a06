"""Stage ``corpus``: a task's files become one table of items with rebuilt texts and words at code points."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nerprobe.errors import ArtefactError, CorpusFileError, CorpusFormatError, HashMismatchError
from nerprobe.files import AGAIN, atomic_path, check_sha256, read_json, sha256_file, write_json
from nerprobe.log import logger
from nerprobe.readers import RawItem, ScatteredItem, Seen, TagRule, file_lines, read_file
from nerprobe.sample import generate_lines
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


@dataclass(frozen=True)
class PoolFile:
    """The file of one pool.

    Attributes:
        where: Its name, for errors.
        path: Where it lies; None for generated ones.
        lines: Opens it anew and gives its lines.
        sha256: Of its bytes; empty for generated ones, whose bytes are only known once they are made.
    """

    where: str
    path: Path | None
    lines: Callable[[], Iterator[bytes]]
    sha256: str


def pool_file(spec: Mapping[str, Any], pool: str) -> PoolFile:
    """Return the file of a pool.

    Raises:
        CorpusFileError: If a local file is missing.
        HashMismatchError: If it is not the file that the run's name was made from.
        HubError: If the hub does not give it.
    """
    source, file = spec["source"], spec["pools"][pool]["file"]
    if source["kind"] == "sample":
        made = partial(generate_lines, pool=pool, items=spec["pools"][pool]["items"], seed=source["seed"])
        return PoolFile(file, None, lambda: (line.encode() for line in made()), "")
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
        return PoolFile(file, path, partial(file_lines, path), sha256_file(path))
    path = Path(source["folder"]) / file
    if not path.is_file():
        raise CorpusFileError("no such corpus file", where=str(path))
    sha256 = sha256_file(path)
    if sha256 != source["sha256"][file]:
        raise HashMismatchError("this file changed while the run was on", where=str(path), todo="run snakemake again")
    return PoolFile(str(path), path, partial(file_lines, path), sha256)


def iterate_items(spec: Mapping[str, Any], hashes: dict[str, str], *, gather: bool = False) -> Iterator[Item]:
    """Read all pools of a task, item by item.

    Args:
        spec: The corpus specification made by ``nerprobe.plan``.
        hashes: Filled with the SHA-256 of each file once it is read.
        gather: As in ``nerprobe.readers.read_columns``.

    Returns:
        Items in file order, pool by pool.

    Raises:
        CorpusFileError, CorpusFormatError: With file and line.
        ScatteredItem: As in ``nerprobe.readers.read_columns``.
    """
    taken = sorted(set(spec["format"].get("metadata", [])) & set(COLUMNS))
    if taken:
        raise CorpusFormatError(
            "a metadata field has the name of a corpus column", where="format.metadata", got=taken[0]
        )
    tag_rule = TagRule(types=tuple(spec["types"]), ignored_types=tuple(spec["ignored_types"]))
    how: dict[str, Any] = {"layout": spec["format"], "tag_rule": tag_rule, "gather": gather}
    seen = Seen()
    for pool in sorted(spec["pools"]):
        opened = _hashed(pool_file(spec, pool), hashes, spec["pools"][pool]["file"])
        prefix = spec["item_prefix"] + ("" if "item" in _item_field(spec) else f"{pool}-")
        raws = read_file(opened.lines(), path=opened.path, where=opened.where, **how)
        for raw in _length_checked(raws, opened.where):
            if seen.again(prefix + raw.name):
                raise _in_two_pools(spec, pool, f"{opened.where}:{raw.line}", raw.name)
            yield build_item(raw, pool=pool, prefix=prefix, text_rule=spec["text"], tag_rule=tag_rule)


def _hashed(opened: PoolFile, hashes: dict[str, str], name: str) -> PoolFile:
    """Note the file's hash, or see to it that it is noted when the last line has been read."""
    if opened.sha256:
        hashes[name] = opened.sha256
        return opened

    def lines() -> Iterator[bytes]:
        digest = hashlib.sha256()
        for line in opened.lines():
            digest.update(line)
            yield line
        hashes[name] = digest.hexdigest()

    return replace(opened, lines=lines)


def _in_two_pools(spec: Mapping[str, Any], pool: str, place: str, name: str) -> CorpusFormatError:
    """Return the error for an item id that came before, after looking for where."""
    rule = TagRule(types=tuple(spec["types"]), ignored_types=tuple(spec["ignored_types"]))
    how: dict[str, Any] = {"layout": spec["format"], "tag_rule": rule, "gather": True}
    earlier = "another pool"
    for other in sorted(spec["pools"])[: sorted(spec["pools"]).index(pool)]:
        opened = pool_file(spec, other)
        for raw in read_file(opened.lines(), path=opened.path, where=opened.where, **how):
            if raw.name == name:
                earlier = f"pool {other} ({opened.where}:{raw.line})"
    return CorpusFormatError(
        "an item id is in two pools",
        where=place,
        expected="each id in one pool only",
        got=f"{name}, also in {earlier}",
    )


def read_items(spec: Mapping[str, Any]) -> tuple[list[Item], dict[str, str]]:
    """Read all pools of a task at once.

    Returns:
        Items in file order, pool by pool, and the SHA-256 of each file read.

    Raises:
        CorpusFileError, CorpusFormatError: With file and line.
    """
    hashes: dict[str, str] = {}
    try:
        return list(iterate_items(spec, hashes)), hashes
    except ScatteredItem:
        return list(iterate_items(spec, hashes, gather=True)), hashes


def _item_field(spec: Mapping[str, Any]) -> Sequence[str]:
    """Return the fields that can name an item; empty if items are only numbered."""
    layout = spec["format"]
    return layout["columns"] if layout["kind"] == "columns" else ["item"]


def _length_checked(raws: Iterable[RawItem], where: str) -> Iterator[RawItem]:
    """Pass raw items on, and say at the end if offsets of some do not span their words."""
    first: RawItem | None = None
    others = -1
    for raw in raws:
        if any(e - s != len(w) for w, s, e in zip(raw.words, raw.starts, raw.ends, strict=False)):
            first, others = first or raw, others + 1
        yield raw
    if first is not None:
        logger.warning(
            "%s:%d: item %s (and %d others) has offsets that do not span its words; are they code points?",
            where,
            first.line,
            first.name,
            others,
        )


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
        yield from pq.ParquetFile(path).iter_batches(batch_size=rows, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise ArtefactError("this corpus file is damaged", where=str(path), got=str(error)[:200], todo=AGAIN) from error


def stored_items(path: Path, wanted: Iterable[str] | pa.Array | None = None) -> Iterator[Item]:
    """Read ``corpus.parquet`` back, item by item, in file order.

    Args:
        path: The file.
        wanted: Ids of the items to read; all of them if None.

    Raises:
        ArtefactError: If the file is damaged or lacks wanted items.
    """
    keep = wanted if wanted is None or isinstance(wanted, pa.Array) else pa.array(wanted, pa.string())
    found = 0
    for batch in stored_batches(path):
        part = batch if keep is None else batch.filter(pc.is_in(batch.column("item_id"), value_set=keep))
        found += len(part)
        for first in range(0, len(part), READ):
            for row in part.slice(first, READ).to_pylist():
                yield _stored_item(row)
    if keep is not None and found < len(keep.unique()):
        raise ArtefactError(
            "this corpus file lacks items of the subset",
            where=str(path),
            expected=f"{len(keep.unique())} of them",
            got=str(found),
            todo=AGAIN,
        )


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


def load_items(path: Path, wanted: Iterable[str] | pa.Array | None = None) -> dict[str, Item]:
    """Read ``corpus.parquet`` back; arguments and errors as for ``stored_items``.

    Returns:
        Items by id, in file order.
    """
    return {item.item_id: item for item in stored_items(path, wanted)}


def _write_table(spec: Mapping[str, Any], table_path: Path, hashes: dict[str, str], *, gather: bool) -> dict[str, Any]:
    """Write ``corpus.parquet`` in row groups and return what each pool holds."""
    metadata = spec["format"].get("metadata", [])
    counts = {pool: count_pool([], spec["types"]) for pool in spec["pools"]}
    items = iterate_items(spec, hashes, gather=gather)
    with (
        atomic_path(table_path) as temporary,
        pq.ParquetWriter(temporary, corpus_table([], metadata).schema, compression="zstd") as writer,
    ):
        while group := list(islice(items, ROWS)):
            writer.write_table(corpus_table(group, metadata))
            for pool, so_far in counts.items():
                _add_counts(so_far, count_pool((item.tags for item in group if item.pool == pool), spec["types"]))
    return counts


def _add_counts(so_far: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name in ("items", "words", "items_with_mentions"):
        so_far[name] += more[name]
    for kind, number in more["mentions"].items():
        so_far["mentions"][kind] += number


def write_corpus(spec: Mapping[str, Any], *, table_path: Path, info_path: Path) -> None:
    """Run the stage: write ``corpus.parquet`` and ``corpus.json``."""
    hashes: dict[str, str] = {}
    try:
        counts = _write_table(spec, table_path, hashes, gather=False)
    except ScatteredItem as place:
        logger.info("%s: an item goes on here after others: all items are gathered before any is written", place)
        counts = _write_table(spec, table_path, hashes, gather=True)
    source = spec["source"]
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
        "files": {pool: spec["pools"][pool]["file"] for pool in spec["pools"]},
        "revision": source.get("revision"),
        "sha256": hashes,
        "corpus_sha256": sha256_file(table_path),
        "types": list(spec["types"]),
        "ignored_types": list(spec["ignored_types"]),
        "evaluations": spec["evaluations"],
        "counts": counts,
    }
    write_json(info_path, info)
    logger.info("%d items from %s", sum(own["items"] for own in counts.values()), ", ".join(hashes))
