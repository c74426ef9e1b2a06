"""Readers of corpus files: columns (IOB2/CoNLL), JSON Lines and Parquet, each giving the same raw items."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nerprobe.config import closest
from nerprobe.errors import CorpusFileError, CorpusFormatError


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


def decode(data: bytes, where: str) -> str:
    """Return the text of a UTF-8 file.

    Raises:
        CorpusFileError: If it is empty.
        CorpusFormatError: If it is not UTF-8, with the line.
    """
    if not data.strip():
        raise CorpusFileError("this corpus file is empty", where=where, expected="at least one item")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusFormatError(
            "wrong encoding",
            where=f"{where}:{line}",
            expected="UTF-8",
            got=f"byte 0x{data[error.start]:02x}",
            todo="convert the file, for example: iconv -f latin1 -t utf-8",
        ) from error
    # A byte order mark belongs to the file, not to its first word (unless it is that word by itself).
    return text[1:] if text.startswith("\ufeff") and text[1:2] not in (" ", "\t") else text


def read_columns(data: bytes, *, where: str, layout: Mapping[str, Any], tag_rule: TagRule) -> list[RawItem]:
    """Read a file of one word a line.

    Lines end at LF only. With an ``item`` column, items are grouped by it and blank lines mean nothing;
    without one, blank lines end items, which are numbered from 1.

    Args:
        data: The file's bytes.
        where: The file's name, for errors.
        layout: ``columns`` and ``separator`` of the task file's ``format``.
        tag_rule: Allowed tags.

    Raises:
        CorpusFileError: If the file holds nothing.
        CorpusFormatError: On a broken line, with file and line.
    """
    columns: list[str] = layout["columns"]
    items: dict[str, RawItem] = {}
    segment = 0
    blank = True
    for number, line in enumerate(decode(data, where).split("\n"), start=1):
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
        item = items.setdefault(name, RawItem(name=name, line=number))
        tag_rule.check(cells["tag"], place)
        if "start" in cells and "end" in cells:
            _append_offsets(item, cells, place)
        item.words.append(cells["word"])
        item.tags.append(cells["tag"])
    return list(items.values())


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


def _rows(data: bytes, kind: str, where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give numbered rows of a JSON Lines or Parquet file."""
    if kind == "parquet":
        import pyarrow
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(io.BytesIO(data))
        except (pyarrow.ArrowException, OSError) as error:
            raise CorpusFormatError("this is no Parquet file", where=where, got=str(error)[:200]) from error
        yield from enumerate(table.to_pylist(), start=1)
        return
    for number, line in enumerate(decode(data, where).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusFormatError("this line is no JSON", where=f"{where}:{number}", got=str(error)[:200]) from error
        if not isinstance(row, dict):
            raise CorpusFormatError("this line is no JSON object", where=f"{where}:{number}", got=line[:80])
        yield number, row


def read_rows(data: bytes, *, where: str, layout: Mapping[str, Any], tag_rule: TagRule) -> list[RawItem]:
    """Read a file of one item a row (JSON Lines or Parquet): lists of words and of tags.

    Raises:
        CorpusFileError: If the file holds nothing.
        CorpusFormatError: On a broken row, with file and row.
    """
    items: dict[str, RawItem] = {}
    for number, row in _rows(data, layout["kind"], where):
        place = f"{where}:{number}"
        fields = [layout["words"], layout["tags"], layout["item"], *layout.get("metadata", [])]
        missing = [name for name in fields if row.get(name) is None]
        if missing:
            raise CorpusFormatError("missing field", where=place, expected=", ".join(fields), got=f"no {missing[0]}")
        words, tags = _words_and_tags(row, layout, place)
        for tag in tags:
            tag_rule.check(tag, place)
        name = str(row[layout["item"]])
        if name in items:
            raise CorpusFormatError("an item comes twice", where=place, got=f"{name}, first in row {items[name].line}")
        metadata = {field: str(row[field]) for field in layout.get("metadata", [])}
        items[name] = RawItem(name=name, line=number, words=list(words), tags=tags, metadata=metadata)
    if not items:
        raise CorpusFileError("this corpus file is empty", where=where, expected="at least one item")
    return list(items.values())


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
