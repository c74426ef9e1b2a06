"""Readers of corpus files: what becomes an item, and what is refused with file and line."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import CONLL, JSONL, PARQUET, PROFNER, RULE

from nerprobe.errors import CorpusFileError, CorpusFormatError, NerprobeError
from nerprobe.parquet_rows import parquet_rows
from nerprobe.readers import RawItem, json_rows, read_columns, read_rows


def columns(data: str | bytes, layout: dict[str, Any] = PROFNER) -> list[RawItem]:
    raw = data.encode() if isinstance(data, str) else data
    return list(read_columns(io.BytesIO(raw), where="f.txt", layout=layout, tag_rule=RULE, gather=True))


def rows(*lines: object, **layout: Any) -> list[RawItem]:
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    lines = json_rows(io.BytesIO(data.encode()), "f.jsonl")
    return list(read_rows(lines, where="f.jsonl", layout={**JSONL, **layout}, tag_rule=RULE))


def outcome(data: str) -> list[list[str]] | str:
    """Return the words of each item, or the place that an error names."""
    try:
        return [item.words for item in columns(data)]
    except NerprobeError as error:
        return error.where


def parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


# --- columns: grouping ---------------------------------------------------------------------------


def test_a_blank_line_inside_a_tweet_does_not_end_it() -> None:
    (item,) = columns("Hola 7 0 4 O\n. 7 4 5 O\n\nAdiós 7 6 11 O\n")
    assert item.words == ["Hola", ".", "Adiós"]
    assert (item.name, item.line) == ("7", 1)


def test_a_new_tweet_id_begins_an_item_without_a_blank_line() -> None:
    items = columns("a 7 0 1 O\nb 8 0 1 O\nc 8 2 3 O\n")
    assert [(item.name, item.words, item.line) for item in items] == [("7", ["a"], 1), ("8", ["b", "c"], 2)]


def test_a_tweet_that_comes_back_later_in_the_file_goes_on() -> None:
    items = columns("a 7 0 1 O\nb 8 0 1 O\nc 7 2 3 O\n")
    assert [(item.name, item.words) for item in items] == [("7", ["a", "c"]), ("8", ["b"])]


def test_the_last_line_needs_no_line_end() -> None:
    assert columns("a 7 0 1 O\nb 7 2 3 O")[0].words == ["a", "b"]


def test_ids_are_texts_so_a_leading_zero_tells_two_tweets_apart() -> None:
    assert [item.name for item in columns("a 07 0 1 O\nb 7 0 1 O\n")] == ["07", "7"]


@pytest.mark.parametrize("blanks", ["\n", "\n\n\n"])
def test_without_an_item_column_blank_lines_end_items_numbered_from_1(blanks: str) -> None:
    items = columns(f"{blanks}a O\nb B-PROFESION\n{blanks}c O\n{blanks}", CONLL)
    assert [(item.name, item.words) for item in items] == [("1", ["a", "b"]), ("2", ["c"])]
    assert items[0].line == 1 + len(blanks)


def test_columns_may_be_separated_by_tabs_and_words_then_hold_spaces() -> None:
    (item,) = columns("la casa\tO\n", {**CONLL, "separator": "\t"})
    assert item.words == ["la casa"]


def test_a_word_with_a_space_is_read_whole_where_its_offsets_say_so() -> None:
    (item,) = columns("la casa 7 0 7 O\n")
    assert (item.words, item.starts, item.ends) == (["la casa"], [0], [7])


# --- columns: characters -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("a\u0085b", id="NEL"),
        pytest.param("a\u2028b", id="line separator"),
        pytest.param("\u2029", id="paragraph separator alone"),
        pytest.param("a\x0b\x0c\x1cb", id="other ASCII breaks"),
        pytest.param("a\u00a0b", id="no-break space"),
        pytest.param("\u3000", id="ideographic space alone"),
        pytest.param("\ufe0f", id="variation selector alone"),
        pytest.param("\u200d", id="joiner alone"),
        pytest.param("\u0304", id="combining mark alone"),
        pytest.param("\U0001f469\u200d\u2695\ufe0f", id="emoji sequence"),
        pytest.param("me\u0301dico", id="decomposed"),
        pytest.param("\ufb01n", id="ligature"),
        pytest.param("\u0130", id="dotted capital I"),
        pytest.param("\u202e", id="right-to-left override"),
    ],
)
def test_a_word_stays_as_it_is_and_lines_end_at_lf_only(word: str) -> None:
    (item,) = columns(f"{word} 7 0 {len(word)} O\nfin 7 {len(word)} {len(word) + 3} O\n")
    assert item.words == [word, "fin"]


# --- columns: what is refused --------------------------------------------------------------------

GOOD = "a 7 0 1 O\nb 7 2 3 O\n"


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("line", "what", "expected"),
    [
        ("c 7 4 5", "too few columns", "5 columns (word item start end tag)"),
        ("c", "too few columns", "5 columns"),
        (" 7 4 5 O", "too few columns", "5 columns"),
        ("c 7 4 5 O O", "too many columns", "5 columns"),
        ("c d 7 4 9 O", "too many columns", "5 columns"),
        ("c 7 4 5 PROFESION", "tag without the prefix B- or I-", "B-PROFESION"),
        ("c 7 4 5 E-PROFESION", "tag without the prefix B- or I-", "B-PROFESION"),
        ("c 7 4 5 o", "tag without the prefix B- or I-", "O"),
        ("c 7 4 5 B-", "unknown tag", "B-PROFESION"),
        ("c 7 4 5 B-PROFESIONAL", "unknown tag", "did you mean B-PROFESION?"),
        ("c 7 4 5 B-PROF", "unknown tag", "B-PROFESION"),
        ("c 7 0 1 O", "offsets run backwards", "a start of at least 3"),
        ("c 7 5 4 O", "offsets run backwards", "start < end (half-open)"),
        ("c 7 4 4 O", "offsets run backwards", "start < end (half-open)"),
        ("cc 7 1 3 O", "offsets run backwards", "a start of at least 3"),
        ("c 7 x 5 O", "offset is no number", "two whole numbers"),
        ("c 7 4 -5 O", "offset is no number", "two whole numbers"),
        ("c 7 4.0 5 O", "offset is no number", "two whole numbers"),
        ("c 7 ٤ ٥ O", "offset is no number", "two whole numbers"),
    ],
)
def test_a_broken_line_is_named_with_what_was_expected(line: str, what: str, expected: str) -> None:
    with pytest.raises(CorpusFormatError) as caught:
        columns(GOOD + line + "\n" + "d 8 0 1 O\n")
    assert str(caught.value).startswith(f"f.txt:3: {what}")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_word_that_overlaps_the_one_before_is_refused() -> None:
    with pytest.raises(CorpusFormatError, match=r"^f\.txt:2: offsets overlap; expected a start of at least 4"):
        columns("hola 7 0 4 O\nla 7 3 5 O\n")


def test_an_offset_of_absurd_length_is_refused_in_one_line() -> None:
    with pytest.raises(CorpusFormatError, match=r"^f\.txt:1: "):
        columns(f"a 7 0 {'9' * 5000} O\n")


def test_tags_match_declared_types_exactly() -> None:
    with pytest.raises(CorpusFormatError, match="unknown tag"):
        columns("a 7 0 1 B-PROFESION_X\n")
    with pytest.raises(CorpusFormatError, match="unknown tag"):
        columns("a 7 0 1 B-profesion\n")


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("data", "layout"),
    [
        pytest.param("a 7 0 1 O\r\nb 7 2 3 O\r\n", PROFNER, id="tag last"),
        pytest.param("\r\na 7 0 1 O\r\n", PROFNER, id="a blank line first"),
        pytest.param("a O\r\n\r\nb O\r\n", CONLL, id="two columns"),
        pytest.param("O a\r\nO b\r\n", {**CONLL, "columns": ["tag", "word"]}, id="word last"),
        pytest.param("a O 7\r\n", {**CONLL, "columns": ["word", "tag", "item"]}, id="item last"),
        pytest.param("a O 0 1\r\n", {**CONLL, "columns": ["word", "tag", "start", "end"]}, id="offset last"),
    ],
)
def test_windows_line_ends_are_refused_by_name(data: str, layout: dict[str, Any]) -> None:
    with pytest.raises(CorpusFormatError, match=r"^f\.txt:1: .*CR LF"):
        columns(data, layout)


@pytest.mark.hostile
@pytest.mark.parametrize("data", [b"", b"\n\n", b" \n\t\n"])
def test_an_empty_file_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(CorpusFileError, match=r"^f\.txt: this corpus file is empty; expected at least one item"):
        columns(data)


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param("a 7 0 1 O\nmédico 7 2 8 O\n".encode("latin-1"), 2, id="latin-1"),
        pytest.param("a 7 0 1 O\n".encode("utf-16"), 1, id="UTF-16"),
        pytest.param(b"a 7 0 1 O\n\xf0\x9f\x91 7 2 3 O\n", 2, id="a cut emoji"),
        pytest.param(b"a 7 0 1 O\n\xed\xa0\x80 7 2 3 O\n", 2, id="a surrogate"),
    ],
)
def test_a_wrong_encoding_is_named_with_its_line(data: bytes, line: int) -> None:
    with pytest.raises(CorpusFormatError, match=rf"^f\.txt:{line}: wrong encoding; expected UTF-8; got byte 0x"):
        columns(data)


def test_a_byte_order_mark_does_not_become_part_of_the_first_word() -> None:
    assert outcome("\ufeffHola 7 0 4 O\n") in ([["Hola"]], "f.txt:1")


@given(st.lists(st.text(alphabet="ab O-BI7\t\r\u0085\u2028é0123", max_size=16), max_size=8))
def test_any_text_gives_items_or_one_line_of_error(lines: list[str]) -> None:
    found = outcome("\n".join(lines))
    if isinstance(found, str):
        assert re.fullmatch(r"f\.txt(:\d+)?", found)
    else:
        assert found
        assert all(found)


# --- JSON Lines ----------------------------------------------------------------------------------

ROW = {"tokens": ["una", "médica"], "tags": ["O", "B-PROFESION"], "id": "7"}


def test_a_row_of_json_is_an_item() -> None:
    (item,) = rows(ROW)
    assert (item.name, item.words, item.tags) == ("7", ["una", "médica"], ["O", "B-PROFESION"])
    assert item.starts == item.ends == []


def test_blank_lines_between_rows_mean_nothing_but_count() -> None:
    items = rows(ROW, "", " ", {**ROW, "id": "8"})
    assert [(item.name, item.line) for item in items] == [("7", 1), ("8", 4)]


def test_label_numbers_are_turned_into_tags() -> None:
    names = ["B-PROFESION", "I-PROFESION", "O"]
    (item,) = rows({**ROW, "tags": [2, 0]}, label_names=names)
    assert item.tags == ["O", "B-PROFESION"]


def test_metadata_is_carried_as_text_and_other_fields_are_left() -> None:
    (item,) = rows({**ROW, "date": "2019-10-13", "likes": 3, "other": 1}, metadata=["date", "likes"])
    assert item.metadata == {"date": "2019-10-13", "likes": "3"}


def test_words_of_a_row_stay_as_they_are() -> None:
    words = ["e\u0301", "\ufe0f", "a\u2028b", " ", "a\nb"]
    assert rows({"tokens": words, "tags": ["O"] * 5, "id": 1})[0].words == words


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("{", "this line is no JSON"),
        ("[1]", "this line is no JSON object"),
        ('"text"', "this line is no JSON object"),
        ({"tokens": ["a"], "tags": ["O"]}, "missing field"),
        ({**ROW, "tokens": None}, "missing field"),
        ({**ROW, "tags": ["O"]}, "words and tags do not fit"),
        ({**ROW, "tokens": [], "tags": []}, "words and tags do not fit"),
        ({**ROW, "tokens": ["", "a"]}, "words and tags do not fit"),
        ({**ROW, "tokens": [1, 2]}, "words and tags do not fit"),
        ({**ROW, "tags": ["O", "PROFESION"]}, "tag without the prefix"),
        ({**ROW, "tags": ["O", "B-OTHER"]}, "unknown tag"),
        ({**ROW, "tags": [0, 99]}, "unknown label number"),
        ({**ROW, "tags": [0, -1]}, "unknown label number"),
        (ROW, "an item comes twice"),
        pytest.param({"tokens": "abc", "tags": ["O", "O", "O"], "id": "8"}, "", id="tokens are one text"),
        pytest.param({"tokens": ["a"], "tags": "O", "id": "8"}, "", id="tags are one text"),
        pytest.param({"tokens": 5, "tags": ["O"], "id": "8"}, "", id="tokens are a number"),
        pytest.param({"tokens": ["a"], "tags": 5, "id": "8"}, "", id="tags are a number"),
        pytest.param({"tokens": ["a"], "tags": [True], "id": "8"}, "", id="a tag is true"),
        pytest.param('{"tokens": ["\\ud800"], "tags": ["O"], "id": "8"}', "", id="half a character"),
        pytest.param("[" * 100_000, "", id="nested without end"),
    ],
)
def test_a_broken_row_is_named_with_file_and_line(row: object, what: str) -> None:
    with pytest.raises(CorpusFormatError, match=rf"^f\.jsonl:2: {what}"):
        rows(ROW, row, label_names=["O", "B-PROFESION"])


def test_a_json_file_of_blank_lines_is_empty() -> None:
    with pytest.raises(CorpusFileError, match="this corpus file is empty"):
        rows("", "  ")


# --- Parquet -------------------------------------------------------------------------------------


def read_parquet(data: bytes, **layout: Any) -> list[RawItem]:
    found = parquet_rows(io.BytesIO(data), "f.parquet")
    return list(read_rows(found, where="f.parquet", layout={**PARQUET, **layout}, tag_rule=RULE))


def test_a_row_of_parquet_is_an_item() -> None:
    table = pa.table({"tokens": [["a", "b"], ["c"]], "tags": [[1, 0], [0]], "id": [7, 8], "date": ["x", "y"]})
    items = read_parquet(parquet(table), label_names=["O", "B-PROFESION"], metadata=["date"])
    assert [(i.name, i.words, i.tags, i.metadata) for i in items] == [
        ("7", ["a", "b"], ["B-PROFESION", "O"], {"date": "x"}),
        ("8", ["c"], ["O"], {"date": "y"}),
    ]


def test_a_broken_row_of_parquet_is_named_by_number() -> None:
    table = pa.table({"tokens": [["a"], ["b", "c"]], "tags": [["O"], ["O"]], "id": ["7", "8"]})
    with pytest.raises(CorpusFormatError, match=r"^f\.parquet:2: words and tags do not fit"):
        read_parquet(parquet(table))


def test_a_parquet_file_without_rows_is_empty() -> None:
    kinds = {"tokens": pa.list_(pa.string()), "tags": pa.list_(pa.string()), "id": pa.string()}
    table = pa.table({name: pa.array([], kind) for name, kind in kinds.items()})
    with pytest.raises(CorpusFileError, match="this corpus file is empty"):
        read_parquet(parquet(table))


def damaged_parquet() -> list[bytes]:
    table = pa.table({"tokens": [["a", "b"]] * 5, "tags": [["O", "O"]] * 5, "id": list("abcde")})
    data = parquet(table)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return [
        b"tokens,tags\n",
        data[:-1],
        data[: len(data) // 2],
        data[:footer] + b"\xff" * (len(data) - 8 - footer) + data[-8:],
        data[:4] + b"\xff" * (footer - 4) + data[footer:],
    ]


@pytest.mark.hostile
@pytest.mark.parametrize(
    "data", damaged_parquet(), ids=["no parquet", "cut by a byte", "half", "footer broken", "pages broken"]
)
def test_a_damaged_parquet_file_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(CorpusFormatError, match=r"^f\.parquet: this is no Parquet file"):
        read_parquet(data)
