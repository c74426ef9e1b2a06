"""Stage ``corpus``: rebuilt texts, offsets, tags and ids of tiny corpora worked out by hand, and the real command."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import CONLL, JSONL, PARQUET, corpus_spec, run_nerprobe

from nerprobe.corpus import read_items, write_corpus
from nerprobe.errors import ArtefactError, CorpusFileError, CorpusFormatError, HashMismatchError
from nerprobe.items import Item, count_pool, join_words, load_items
from nerprobe.spans import mentions

TRAIN = b"x 900 0 1 O\n"


def read_one(folder: Path, lines: str, *, train: bytes = TRAIN, **changes: Any) -> Item:
    """Return the one test item of a corpus."""
    items, _ = read_items(corpus_spec(folder, {"test": lines.encode(), "train": train}, **changes))
    (item,) = [item for item in items if item.pool == "test"]
    return item


# --- text and offsets ----------------------------------------------------------------------------


def test_touching_words_are_joined_without_a_space_and_others_with_one(tmp_path: Path) -> None:
    item = read_one(tmp_path, "¡ 1 0 1 O\nHola 1 1 5 O\n, 1 5 6 O\nBerlin 1 7 13 O\n. 1 13 14 O\n")
    assert item.text == "¡Hola, Berlin."
    assert item.starts == (0, 1, 5, 7, 13)
    assert item.ends == (1, 5, 6, 13, 14)


def test_a_gap_of_several_characters_becomes_one_space(tmp_path: Path) -> None:
    item = read_one(tmp_path, "uno 1 0 3 O\ndos 1 8 11 O\ntres 1 100 104 O\n")
    assert item.text == "uno dos tres"
    assert item.starts == (0, 4, 8)
    assert item.ends == (3, 7, 12)


def test_a_text_begins_with_its_first_word(tmp_path: Path) -> None:
    item = read_one(tmp_path, "uno 1 5 8 O\ndos 1 9 12 O\n")
    assert (item.text, item.starts) == ("uno dos", (0, 4))


def test_adjacency_is_kept_over_a_blank_line(tmp_path: Path) -> None:
    assert read_one(tmp_path, "fin 1 0 3 O\n. 1 3 4 O\n\n. 1 4 5 O\nYa 1 6 8 O\n").text == "fin.. Ya"


def test_offsets_are_code_points_also_beyond_the_basic_plane(tmp_path: Path) -> None:
    # A four-byte emoji is one code point; the sequence woman, joiner, staff, selector is four; the accent is one.
    lines = (
        "Soy 1 0 3 O\n\U0001f469 1 4 5 B-PROFESION\n\u200d 1 5 6 I-PROFESION\n⚕ 1 6 7 I-PROFESION\n"
        "\ufe0f 1 7 8 I-PROFESION\n, 1 8 9 O\nme\u0301dica 1 13 20 B-PROFESION\n"
    )
    item = read_one(tmp_path, lines)
    assert item.text == "Soy \U0001f469\u200d⚕\ufe0f, me\u0301dica"
    assert item.starts == (0, 4, 5, 6, 7, 8, 10)
    assert item.ends == (3, 5, 6, 7, 8, 9, 17)
    assert len(item.text) == 17


def test_words_that_only_hold_marks_keep_their_rows(tmp_path: Path) -> None:
    item = read_one(tmp_path, "❤ 1 0 1 O\n\ufe0f 1 1 2 O\n\ufe0f 1 3 4 O\n\u0304 1 5 6 O\n\u200b 1 6 7 O\n")
    assert item.words == ("❤", "\ufe0f", "\ufe0f", "\u0304", "\u200b")
    assert item.text == "❤\ufe0f \ufe0f \u0304\u200b"


def test_nothing_is_normalised(tmp_path: Path) -> None:
    words = ["me\u0301dico", "m\u00e9dico", "\ufb01n", "\u212b", "\u1100\u1161"]
    lines, position = "", 0
    for word in words:
        lines += f"{word} 1 {position} {position + len(word)} O\n"
        position += len(word) + 1
    item = read_one(tmp_path, lines)
    assert item.words == tuple(words)
    assert item.text == " ".join(words)


def test_a_text_without_offsets_has_one_space_between_words(tmp_path: Path) -> None:
    item = read_one(tmp_path, "Hola O\n, O\nBerlin O\n. O\n", train=b"x O\n", format=CONLL, text="spaces")
    assert item.text == "Hola , Berlin ."
    assert item.starts == (0, 5, 7, 14)
    assert item.ends == (4, 6, 13, 15)


def test_offsets_are_not_used_where_the_task_says_spaces(tmp_path: Path) -> None:
    assert read_one(tmp_path, "Hola 1 0 4 O\n, 1 4 5 O\n", text="spaces").text == "Hola ,"


@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), st.booleans()), min_size=1, max_size=8))
def test_each_word_lies_where_its_offsets_say(pairs: list[tuple[str, bool]]) -> None:
    words, touching = [word for word, _ in pairs], [flag for _, flag in pairs]
    text, starts, ends = join_words(words, touching)
    assert [text[start:end] for start, end in zip(starts, ends, strict=True)] == words
    gaps = [start - end for start, end in zip(starts[1:], ends, strict=False)]
    assert gaps == [0 if flag else 1 for flag in touching[1:]]
    assert (starts[0], ends[-1]) == (0, len(text))


def test_offsets_that_do_not_span_their_words_are_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # UTF-16 units: the emoji takes two.
    with caplog.at_level(logging.WARNING, logger="nerprobe"):
        item = read_one(tmp_path, "\U0001f600 1 0 2 O\nhola 1 3 7 O\n")
    assert item.text == "\U0001f600 hola"
    assert len(caplog.records) == 1
    assert "test.txt:1: item 1 " in caplog.text


# --- tags ----------------------------------------------------------------------------------------

P, S = "PROFESION", "SITUACION_LABORAL"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        pytest.param("B-ACTIVIDAD I-ACTIVIDAD O", [], id="ignored types are O"),
        pytest.param("B-FIGURATIVA B-PROFESION O", [(P, 1, 2)], id="a mention after an ignored one"),
        pytest.param("B-ACTIVIDAD I-PROFESION I-PROFESION", [(P, 1, 3)], id="an orphan begins a mention"),
        pytest.param("B-PROFESION I-FIGURATIVA I-PROFESION", [(P, 0, 1), (P, 2, 3)], id="an ignored tag cuts"),
        pytest.param("B-PROFESION I-ACTIVIDAD I-SITUACION_LABORAL", [(P, 0, 1), (S, 2, 3)], id="orphan, other type"),
        pytest.param("O I-PROFESION I-PROFESION", [(P, 1, 3)], id="I after O begins"),
        pytest.param("I-SITUACION_LABORAL I-PROFESION O", [(S, 0, 1), (P, 1, 2)], id="I after another type begins"),
        pytest.param("B-PROFESION B-PROFESION I-PROFESION", [(P, 0, 1), (P, 1, 3)], id="B after B begins"),
    ],
)
def test_mentions_after_the_removal_of_ignored_types(
    tmp_path: Path, tags: str, expected: list[tuple[str, int, int]]
) -> None:
    lines = "".join(f"w 1 {2 * i} {2 * i + 1} {tag}\n" for i, tag in enumerate(tags.split()))
    item = read_one(tmp_path, lines)
    assert mentions(item.tags) == expected
    assert not any("ACTIVIDAD" in tag or "FIGURATIVA" in tag for tag in item.tags)


def test_an_orphaned_i_is_written_as_b(tmp_path: Path) -> None:
    assert read_one(tmp_path, "a 1 0 1 B-ACTIVIDAD\nb 1 2 3 I-PROFESION\n").tags == ("O", "B-PROFESION")


# --- ids and pools -------------------------------------------------------------------------------


def test_an_item_id_is_the_prefix_and_the_tweet_id(tmp_path: Path) -> None:
    assert read_one(tmp_path, "a 12345 0 1 O\n", item_prefix="profner-").item_id == "profner-12345"


def test_numbered_items_are_named_by_pool_and_number(tmp_path: Path) -> None:
    files = {"test": b"a O\n\nb O\n", "train": b"a O\n"}
    items, _ = read_items(corpus_spec(tmp_path, files, format=CONLL, text="spaces"))
    assert [item.item_id for item in items] == ["tiny-test-1", "tiny-test-2", "tiny-train-1"]


def test_a_tweet_in_both_pools_is_refused_with_both_places(tmp_path: Path) -> None:
    files = {"test": b"a 1 0 1 O\n", "train": b"x 3 0 1 O\ny 1 0 1 O\n"}
    with pytest.raises(CorpusFormatError) as caught:
        read_items(corpus_spec(tmp_path, files))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'train.txt'}:2: an item id is in two pools")
    assert f"{tmp_path / 'test.txt'}:1" in message


@pytest.mark.parametrize("layout", [JSONL, PARQUET], ids=["jsonl", "parquet"])
def test_json_lines_and_parquet_give_the_same_items(tmp_path: Path, layout: dict[str, Any]) -> None:
    row = {"tokens": ["médica", "."], "tags": ["B-PROFESION", "O"], "id": "a", "date": "2019-10-13"}
    files = {}
    for pool in ("test", "train"):
        mine = {**row, "id": f"{pool}1"}
        if layout is JSONL:
            files[pool] = (json.dumps(mine) + "\n").encode()
        else:
            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pylist([mine]), sink)
            files[pool] = sink.getvalue().to_pybytes()
    spec = corpus_spec(tmp_path, files, format={**layout, "metadata": ["date"]}, text="spaces")
    items, hashes = read_items(spec)
    assert [item.item_id for item in items] == ["tiny-test1", "tiny-train1"]
    assert items[0].text == "médica ."
    assert (items[0].starts, items[0].ends) == ((0, 7), (6, 8))
    assert items[0].tags == ("B-PROFESION", "O")
    assert items[0].metadata == {"date": "2019-10-13"}
    assert hashes == {f"{pool}.txt": hashlib.sha256(data).hexdigest() for pool, data in files.items()}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    spec = corpus_spec(tmp_path, {"test": b"a 1 0 1 O\n", "train": TRAIN})
    (tmp_path / "train.txt").unlink()
    with pytest.raises(CorpusFileError, match=r"train\.txt: no such corpus file"):
        read_items(spec)


def test_a_file_that_changed_after_the_run_got_its_name_is_refused(tmp_path: Path) -> None:
    spec = corpus_spec(tmp_path, {"test": b"a 1 0 1 O\n", "train": TRAIN})
    (tmp_path / "test.txt").write_bytes(b"a 1 0 1 B-PROFESION\n")
    with pytest.raises(HashMismatchError, match=r"test\.txt: this file changed"):
        read_items(spec)


# --- artefacts -----------------------------------------------------------------------------------

FILES = {
    "test": "Una 1 0 3 O\nmédica 1 4 10 B-PROFESION\n\n. 1 10 11 O\nyo 2 0 2 O\n".encode(),
    "train": b"en 3 0 2 B-SITUACION_LABORAL\nparo 3 3 7 I-SITUACION_LABORAL\n"
    b"juez 3 8 12 I-PROFESION\nactor 4 0 5 B-FIGURATIVA\n",
}


def test_counts_are_items_words_and_mentions_by_type() -> None:
    tags = [["O", "B-PROFESION", "I-PROFESION"], ["O"], ["I-SITUACION_LABORAL", "B-SITUACION_LABORAL"]]
    assert count_pool(tags, [P, S]) == {"items": 3, "words": 6, "items_with_mentions": 2, "mentions": {P: 1, S: 2}}


def test_the_table_has_the_columns_and_types_of_the_contract(tmp_path: Path) -> None:
    write_corpus(corpus_spec(tmp_path / "in", FILES), table_path=tmp_path / "c.parquet", info_path=tmp_path / "c.json")
    table = pq.read_table(tmp_path / "c.parquet")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert list(kinds) == ["item_id", "pool", "text", "words", "starts", "ends", "tags"]
    assert kinds["item_id"] == kinds["pool"] == kinds["text"] == "string"
    assert "string" in kinds["words"]
    assert "string" in kinds["tags"]
    assert "int32" in kinds["starts"]
    assert "int32" in kinds["ends"]
    first = table.to_pylist()[0]
    assert first["item_id"] == "tiny-1"
    assert first["text"] == "Una médica."
    assert (first["starts"], first["ends"]) == ([0, 4, 10], [3, 10, 11])


def test_the_record_holds_hashes_and_counts(tmp_path: Path) -> None:
    write_corpus(corpus_spec(tmp_path / "in", FILES), table_path=tmp_path / "c.parquet", info_path=tmp_path / "c.json")
    info = json.loads((tmp_path / "c.json").read_text())
    assert info["source"] == "path"
    assert info["revision"] is None
    assert info["sha256"] == {f"{pool}.txt": hashlib.sha256(data).hexdigest() for pool, data in FILES.items()}
    assert info["corpus_sha256"] == hashlib.sha256((tmp_path / "c.parquet").read_bytes()).hexdigest()
    assert info["counts"] == {
        "test": {"items": 2, "words": 4, "items_with_mentions": 1, "mentions": {P: 1, S: 0}},
        "train": {"items": 2, "words": 4, "items_with_mentions": 1, "mentions": {P: 1, S: 1}},
    }


def test_a_corpus_reads_back_as_it_was(tmp_path: Path) -> None:
    spec = corpus_spec(tmp_path / "in", FILES)
    write_corpus(spec, table_path=tmp_path / "c.parquet", info_path=tmp_path / "c.json")
    assert list(load_items(tmp_path / "c.parquet").values()) == read_items(spec)[0]


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        spec = corpus_spec(tmp_path / "in", FILES)
        write_corpus(spec, table_path=tmp_path / f"{name}.parquet", info_path=tmp_path / f"{name}.json")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all"])
def test_a_damaged_table_is_refused_in_one_line(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "c.parquet").write_bytes(damage)
    with pytest.raises(ArtefactError, match=r"c\.parquet: this corpus file is damaged"):
        load_items(tmp_path / "c.parquet")


@pytest.mark.parametrize("name", ["text", "tags", "words", "pool"])
def test_metadata_never_takes_the_place_of_a_column_of_the_contract(tmp_path: Path, name: str) -> None:
    row = {"tokens": ["a"], "tags": ["O"], "id": 1, "words": "w", "text": "other", "pool": "other"}
    files = {"test": json.dumps(row).encode(), "train": json.dumps({**row, "id": 2}).encode()}
    spec = corpus_spec(tmp_path / "in", files, format={**JSONL, "metadata": [name]}, text="spaces")
    try:
        write_corpus(spec, table_path=tmp_path / "c.parquet", info_path=tmp_path / "c.json")
    except CorpusFormatError:
        return
    item = load_items(tmp_path / "c.parquet")["tiny-1"]
    assert (item.text, item.tags, item.words, item.pool) == ("a", ("O",), ("a",), "test")


# --- the real command ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "place", "what"),
    [
        pytest.param(b"a 1 0 1 O\nb 1 2\n", "test.txt:2", "too few columns", id="columns"),
        pytest.param(b"a 1 0 1 PROFESION\n", "test.txt:1", "tag without the prefix", id="prefix"),
        pytest.param(b"a 1 0 1 B-PROFESOR\n", "test.txt:1", "unknown tag", id="tag"),
        pytest.param(b"a 1 5 6 O\nb 1 0 1 O\n", "test.txt:2", "offsets run backwards", id="backwards"),
        pytest.param(b"abc 1 0 3 O\nb 1 2 3 O\n", "test.txt:2", "offsets overlap", id="overlap"),
        pytest.param(b"a 900 0 1 O\n", "train.txt:1", "an item id is in two pools", id="two pools"),
        pytest.param(b"", "test.txt", "this corpus file is empty", id="empty"),
        pytest.param("\n\né 1 0 1 O\n".encode("latin-1"), "test.txt:3", "wrong encoding", id="encoding"),
        pytest.param(b"a 1 0 1 O\r\n", "test.txt:1", "CR LF", id="CR LF"),
    ],
)
def test_the_command_ends_a_bad_file_in_one_line_and_leaves_nothing(
    tmp_path: Path, test: bytes, place: str, what: str
) -> None:
    spec = corpus_spec(tmp_path / "in", {"test": test, "train": TRAIN})
    out = tmp_path / "out"
    out.mkdir()
    done = run_nerprobe(
        "corpus", "--spec", json.dumps(spec), "--table", str(out / "c.parquet"), "--info", str(out / "c.json"), cwd=out
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert place in line
    assert what in line
    assert "Traceback" not in line
    assert list(out.iterdir()) == []


def test_the_command_writes_both_files_and_says_nothing(tmp_path: Path) -> None:
    spec = corpus_spec(tmp_path / "in", FILES)
    out = tmp_path / "out"
    done = run_nerprobe(
        "corpus",
        *("--spec", json.dumps(spec), "--table", str(out / "c.parquet"), "--info", str(out / "c.json")),
        *("--log", str(tmp_path / "corpus.log")),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in out.iterdir()) == ["c.json", "c.parquet"]
    assert "4 items" in (tmp_path / "corpus.log").read_text()


def test_a_few_items_are_read_alone_and_in_file_order(tmp_path: Path) -> None:
    files = {"test": b"a 1 0 1 O\nb 2 0 1 O\nc 3 0 1 O\n", "train": b"d 4 0 1 O\n"}
    write_corpus(corpus_spec(tmp_path / "in", files), table_path=tmp_path / "c.parquet", info_path=tmp_path / "c.json")
    whole = load_items(tmp_path / "c.parquet")
    some = load_items(tmp_path / "c.parquet", ["tiny-4", "tiny-1"])
    assert list(some) == ["tiny-1", "tiny-4"]
    assert some == {name: whole[name] for name in some}
    with pytest.raises(ArtefactError, match=r"lacks items of the subset.*expected 2 of them; got 1"):
        load_items(tmp_path / "c.parquet", ["tiny-4", "tiny-99"])


def test_an_item_whose_lines_lie_apart_is_gathered(tmp_path: Path) -> None:
    """Blank lines are no ends of items, and nothing says that an item's lines follow each other."""
    files = {"test": b"a 1 0 1 O\nb 2 0 1 O\n\nc 1 2 3 B-PROFESION\n", "train": b"d 4 0 1 O\n"}
    spec = corpus_spec(tmp_path / "in", files)
    write_corpus(spec, table_path=tmp_path / "c.parquet", info_path=tmp_path / "c.json")
    known = load_items(tmp_path / "c.parquet")
    assert [(item.item_id, item.words) for item in known.values()] == [
        ("tiny-1", ("a", "c")),
        ("tiny-2", ("b",)),
        ("tiny-4", ("d",)),
    ]
    info = json.loads((tmp_path / "c.json").read_text())
    assert info["counts"]["test"]["items"] == 2
    assert info["counts"]["test"]["mentions"]["PROFESION"] == 1
    assert list(known.values()) == read_items(spec)[0]
