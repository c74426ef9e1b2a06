"""Stage ``corpus``: a task's files become one table of items with rebuilt texts and words at code points."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from nerprobe.digests import Seen
from nerprobe.errors import CorpusFileError, CorpusFormatError, HashMismatchError
from nerprobe.files import atomic_path, sha256_file, write_json
from nerprobe.items import COLUMNS, ROWS, Item, corpus_table, count_pool, join_words
from nerprobe.log import logger
from nerprobe.readers import RawItem, ScatteredItem, TagRule, file_lines, read_file
from nerprobe.sample import generate_lines


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
