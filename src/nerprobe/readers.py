"""Readers of corpus files: columns (IOB2/CoNLL), JSON Lines and Parquet, each giving the same raw items.

They give item after item, so that memory does not grow with the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nerprobe.config import closest
from nerprobe.digests import Seen
from nerprobe.errors import CorpusFileError, CorpusFormatError
from nerprobe.parquet_rows import parquet_rows


@dataclass
class RawItem:
    """One item as its file has it.

    Attributes:
        name: The item's id in the file.
        line: Line (or row) it begins at, from 1.
        words: Words in order.
        tags: One tag a word.
        starts: Start of each word, in code points, where the file has offsets.
        ends: End of each word, in code points, half-open.
        metadata: Further fields carried along.
    """

    name: str
    line: int
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TagRule:
    """Which tags a file may hold, and which of them are scored."""

    types: tuple[str, ...]
    ignored_types: tuple[str, ...]

    def check(self, tag: str, where: str) -> None:
        """Refuse a tag that is no IOB2 tag of a declared type.

        Raises:
            CorpusFormatError: With the place and the nearest allowed tag.
        """
        known = [*self.types, *self.ignored_types]
        prefix, dash, kind = tag.partition("-")
        if tag == "O" or (prefix in ("B", "I") and kind in known):
            return
        allowed = ["O"] + [f"{p}-{k}" for k in known for p in "BI"]
        what = "unknown tag"
        if not dash or prefix not in ("B", "I"):
            what = "tag without the prefix B- or I-"
        raise CorpusFormatError(
            what, where=where, expected=", ".join(allowed), got=repr(tag), todo=closest(tag, allowed)
        )

    def scored(self, tags: Sequence[str]) -> list[str]:
        """Replace tags of ignored types by O; an I- orphaned by that begins a mention, so becomes B-."""
        kept = ["O" if tag.partition("-")[2] in self.ignored_types else tag for tag in tags]
        for position, tag in enumerate(kept):
            lost = position > 0 and tags[position - 1] != "O" and kept[position - 1] == "O"
            if tag.startswith("I-") and lost:
                kept[position] = "B-" + tag[2:]
        return kept


class ScatteredItem(Exception):  # noqa: N818 - not a fault: the file is then read in another way
    """The lines of an item do not follow each other."""


def file_lines(path: Path) -> Iterator[bytes]:
    """Give the lines of a file, which end at LF only."""
    with path.open("rb") as opened:
        yield from opened


def decoded(lines: Iterable[bytes], where: str) -> Iterator[tuple[int, str]]:
    """Give the lines of a UTF-8 file, numbered from 1, without their LF.

    Raises:
        CorpusFileError: If it holds nothing.
        CorpusFormatError: If it is not UTF-8, with the line.
    """
    blank: list[tuple[int, str]] | None = []  # lines before the first that holds something
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise CorpusFormatError(
                "wrong encoding",
                where=f"{where}:{number}",
                expected="UTF-8",
                got=f"byte 0x{line[error.start]:02x}",
                todo="convert the file, for example: iconv -f latin1 -t utf-8",
            ) from error
        # A byte order mark belongs to the file, not to its first word (unless it is that word by itself).
        if number == 1 and text.startswith("\ufeff") and text[1:2] not in (" ", "\t"):
            text = text[1:]
        if blank is not None:
            blank.append((number, text))
            if not text.strip():
                continue
            yield from blank
            blank = None
        else:
            yield number, text
    if blank is not None:
        raise CorpusFileError("this corpus file is empty", where=where, expected="at least one item")


def read_columns(
    lines: Iterable[bytes], *, where: str, layout: Mapping[str, Any], tag_rule: TagRule, gather: bool = False
) -> Iterator[RawItem]:
    """Read a file of one word a line.

    Lines end at LF only. With an ``item`` column, items are grouped by it and blank lines mean nothing;
    without one, blank lines end items, which are numbered from 1.

    Args:
        lines: The file's lines.
        where: The file's name, for errors.
        layout: ``columns`` and ``separator`` of the task file's ``format``.
        tag_rule: Allowed tags.
        gather: Hold all items until the end, so that one may lie in several places of the file.

    Raises:
        CorpusFileError: If the file holds nothing.
        CorpusFormatError: On a broken line, with file and line.
        ScatteredItem: If an item goes on after another one, without ``gather``.
    """
    columns: list[str] = layout["columns"]
    items: dict[str, RawItem] = {}
    seen = Seen()
    segment = 0
    blank = True
    for number, line in decoded(lines, where):
        if line == "":
            blank = True
            continue
        place = f"{where}:{number}"
        if line.endswith("\r"):
            raise CorpusFormatError(
                "line ends with CR LF", where=place, expected="LF", todo="convert the file, for example with dos2unix"
            )
        cells = dict(zip(columns, _split(line, columns, layout["separator"], place), strict=True))
        segment += blank
        blank = False
        name = cells.get("item", str(segment))
        if name not in items:
            if not gather:
                yield from items.values()
                items.clear()
                if seen.again(name):
                    raise ScatteredItem(place)
            items[name] = RawItem(name=name, line=number)
        _append_word(items[name], cells, tag_rule, place)
    yield from items.values()


def _append_word(item: RawItem, cells: Mapping[str, str], tag_rule: TagRule, place: str) -> None:
    tag_rule.check(cells["tag"], place)
    if "start" in cells and "end" in cells:
        _append_offsets(item, cells, place)
    item.words.append(cells["word"])
    item.tags.append(cells["tag"])


def _split(line: str, columns: Sequence[str], separator: str, place: str) -> list[str]:
    """Split one line; a first column ``word`` may itself hold the separator if its offsets say so."""
    cells = line.split(separator)
    if len(cells) > len(columns) and columns[0] == "word" and {"start", "end"} <= set(columns):
        cells = line.rsplit(separator, len(columns) - 1)
        span = [cells[columns.index(name)] for name in ("start", "end")]
        if not all(map(_is_offset, span)) or int(span[1]) - int(span[0]) != len(cells[0]):
            cells = line.split(separator)
    if len(cells) != len(columns) or "" in cells:
        few = len([cell for cell in cells if cell]) < len(columns)
        raise CorpusFormatError(
            "too few columns" if few else "too many columns",
            where=place,
            expected=f"{len(columns)} columns ({separator.join(columns)})",
            got=repr(line[:200]),
        )
    return cells


def _is_offset(cell: str) -> bool:
    return cell.isascii() and cell.isdigit() and len(cell) < 10


def _append_offsets(item: RawItem, cells: Mapping[str, str], place: str) -> None:
    if not (_is_offset(cells["start"]) and _is_offset(cells["end"])):
        raise CorpusFormatError(
            "offset is no number",
            where=place,
            expected="two whole numbers, in code points",
            got=f"{cells['start']!r} {cells['end']!r}",
        )
    start, end = int(cells["start"]), int(cells["end"])
    previous = item.ends[-1] if item.ends else 0
    if end <= start:
        raise CorpusFormatError(
            "offsets run backwards", where=place, expected="start < end (half-open)", got=f"{start} {end}"
        )
    if start < previous:
        what = "offsets overlap" if start > item.starts[-1] else "offsets run backwards"
        raise CorpusFormatError(
            what,
            where=place,
            expected=f"a start of at least {previous}, the end of the word before",
            got=f"{start} {end} in item {item.name}",
        )
    item.starts.append(start)
    item.ends.append(end)


def json_rows(lines: Iterable[bytes], where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the numbered rows of a JSON Lines file.

    Raises:
        CorpusFormatError: If a line is no JSON object.
    """
    for number, line in decoded(lines, where):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusFormatError("this line is no JSON", where=f"{where}:{number}", got=str(error)[:200]) from error
        if not isinstance(row, dict):
            raise CorpusFormatError("this line is no JSON object", where=f"{where}:{number}", got=line[:80])
        yield number, row


def read_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]], *, where: str, layout: Mapping[str, Any], tag_rule: TagRule
) -> Iterator[RawItem]:
    """Read a file of one item a row (JSON Lines or Parquet): lists of words and of tags.

    Raises:
        CorpusFileError: If the file holds nothing.
        CorpusFormatError: On a broken row, with file and row.
    """
    seen = Seen()
    empty = True
    for number, row in rows:
        empty = False
        place = f"{where}:{number}"
        fields = [layout["words"], layout["tags"], layout["item"], *layout.get("metadata", [])]
        missing = [name for name in fields if row.get(name) is None]
        if missing:
            raise CorpusFormatError("missing field", where=place, expected=", ".join(fields), got=f"no {missing[0]}")
        words, tags = _words_and_tags(row, layout, place)
        for tag in tags:
            tag_rule.check(tag, place)
        name = str(row[layout["item"]])
        metadata = {field: str(row[field]) for field in layout.get("metadata", [])}
        if not _is_text(name) or not _is_text("".join(["-", *metadata.values()])):
            raise CorpusFormatError(
                "an id or metadata field is no text",
                where=place,
                expected="an id that is not empty, and nothing that UTF-8 cannot write",
                got=f"{name[:40]!a} {ascii(metadata)[:80]}",
            )
        if seen.again(name):
            raise CorpusFormatError("an item comes twice", where=place, got=name)
        yield RawItem(name=name, line=number, words=list(words), tags=tags, metadata=metadata)
    if empty:
        raise CorpusFileError("this corpus file is empty", where=where, expected="at least one item")


def read_file(
    lines: Iterable[bytes], *, path: Path | None, where: str, layout: Mapping[str, Any], tag_rule: TagRule, gather: bool
) -> Iterator[RawItem]:
    """Read a file in its format.

    Args:
        lines: Its lines; not touched for Parquet.
        path: Where it lies, for Parquet.
        where: Its name, for errors.
        layout: ``format`` of the task file.
        tag_rule: Allowed tags.
        gather: As for ``read_columns``.

    Raises:
        CorpusFileError, CorpusFormatError, ScatteredItem: As the readers above.
    """
    if layout["kind"] == "columns":
        return read_columns(lines, where=where, layout=layout, tag_rule=tag_rule, gather=gather)
    table = path if layout["kind"] == "parquet" else None
    rows = json_rows(lines, where) if table is None else parquet_rows(table, where)
    return read_rows(rows, where=where, layout=layout, tag_rule=tag_rule)


def _words_and_tags(row: Mapping[str, Any], layout: Mapping[str, Any], place: str) -> tuple[list[str], list[str]]:
    """Return the words and tags of one row, refusing what is no list of them."""
    words, tags = row[layout["words"]], row[layout["tags"]]
    fit = isinstance(words, list) and isinstance(tags, list) and 0 < len(words) == len(tags)
    if not fit or not all(isinstance(word, str) and _is_text(word) for word in words):
        raise CorpusFormatError(
            "words and tags do not fit",
            where=place,
            expected="two lists of one length, of at least one word, each a text that is not empty",
            got=f"{str(words)[:60]!r} and {str(tags)[:60]!r}",
        )
    return words, _tag_names(tags, layout, place)


def _is_text(word: str) -> bool:
    """Whether a word holds something, and nothing that UTF-8 cannot write."""
    return bool(word) and not any("\ud800" <= char <= "\udfff" for char in word)


def _tag_names(tags: Iterable[Any], layout: Mapping[str, Any], place: str) -> list[str]:
    names: list[str] = layout.get("label_names", [])
    found = []
    for tag in tags:
        number = isinstance(tag, int) and not isinstance(tag, bool)
        if not (isinstance(tag, str) or (number and 0 <= tag < len(names))):
            raise CorpusFormatError(
                "unknown label number",
                where=place,
                expected=f"0 to {len(names) - 1} (format.label_names)",
                got=str(tag),
            )
        found.append(tag if isinstance(tag, str) else names[tag])
    return found
