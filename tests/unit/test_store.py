"""The store of word vectors: what is written is found again, damage is noticed, nothing is counted twice."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from makers import make_item
from safetensors.numpy import save

from nerprobe.fill import mark_lacking
from nerprobe.store import ItemStats, VectorStore, address

WIDTH = 3


def put(store: VectorStore, words: dict[str, int], *, first: float = 0.0, counts: list[int]) -> None:
    """Add one block of items with so many words each; its numbers count up from the first."""
    rows = sum(words.values())
    store.add(
        addresses=list(words),
        stats=[ItemStats(words=number, subwords=5, unknown=1, windows=2) for number in words.values()],
        encoder={"width": WIDTH},
        vectors=np.arange(rows * WIDTH, dtype=np.float32).reshape(rows, WIDTH) + np.float32(first),
        n_subwords=np.array(counts, np.int32),
    )


def filled(folder: Path) -> VectorStore:
    """Return a store of two blocks: aa (2 words) and bb (1 word); cc (3 words)."""
    store = VectorStore(folder)
    put(store, {"aa": 2, "bb": 1}, counts=[1, 2, 3])
    put(store, {"cc": 3}, first=100, counts=[4, 5, 6])
    return store


def check(store: VectorStore) -> None:
    for name, first, numbers in (("aa", [0.0, 1.0, 2.0], [1, 2]), ("bb", [6.0, 7.0, 8.0], [3])):
        vectors, counts = store.read(name)
        assert vectors[0].tolist() == first
        assert counts.tolist() == numbers


def block_of(folder: Path, name: str) -> Path:
    """Return the block that holds an item, found by its bytes."""
    (block,) = [path for path in folder.glob("*.safetensors") if f'\\"{name}\\"'.encode() in path.read_bytes()]
    return block


def test_what_is_added_can_be_read(tmp_path: Path) -> None:
    check(filled(tmp_path))


def test_a_new_store_on_the_same_folder_knows_all_of_it(tmp_path: Path) -> None:
    filled(tmp_path)
    store = VectorStore(tmp_path)
    assert all(name in store for name in ("aa", "bb", "cc"))
    assert "dd" not in store
    check(store)


def test_what_is_kept_beside_the_vectors_is_found_again(tmp_path: Path) -> None:
    filled(tmp_path)
    store = VectorStore(tmp_path)
    assert store.stats("cc") == ItemStats(words=3, subwords=5, unknown=1, windows=2)
    assert store.encoder == {"width": WIDTH}


def test_an_empty_or_missing_folder_holds_nothing(tmp_path: Path) -> None:
    assert "aa" not in VectorStore(tmp_path / "none")


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "foreign"])
def test_a_damaged_block_is_dropped_and_the_others_stay(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path)
    block = block_of(tmp_path, "cc")
    data = bytearray(block.read_bytes())
    data[-1] ^= 1
    broken = {"cut": bytes(data[:-9]), "empty": b"", "flipped": bytes(data), "foreign": b"not safetensors"}[damage]
    block.write_bytes(broken)
    with caplog.at_level(logging.WARNING, logger="nerprobe"):
        store = VectorStore(tmp_path)
    assert "cc" not in store
    assert not block.exists()
    assert block.name in caplog.text
    check(store)


def test_a_whole_block_of_another_layout_is_dropped_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = save(
        {"vectors": np.zeros((1, WIDTH), np.float32), "n_subwords": np.ones(1, np.int32)},
        metadata={"nerprobe": json.dumps({"schema": 1, "addresses": ["cc"], "rows": [1]})},
    )
    block = tmp_path / f"{hashlib.sha256(data).hexdigest()[:16]}.safetensors"
    block.write_bytes(data)
    with caplog.at_level(logging.WARNING, logger="nerprobe"):
        assert "cc" not in VectorStore(tmp_path)
    assert block.name in caplog.text


def test_a_dropped_item_can_be_added_again(tmp_path: Path) -> None:
    filled(tmp_path)
    block = block_of(tmp_path, "cc")
    whole = block.read_bytes()
    block.write_bytes(whole[:-1])
    store = VectorStore(tmp_path)
    put(store, {"cc": 3}, first=100, counts=[4, 5, 6])
    assert block.read_bytes() == whole
    assert VectorStore(tmp_path).read("cc")[1].tolist() == [4, 5, 6]


def test_an_unfinished_write_is_no_block(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / ".0123456789abcdef.safetensors.xyz.tmp").write_bytes(b"half")
    check(VectorStore(tmp_path))


def test_writing_the_same_block_twice_keeps_one_file(tmp_path: Path) -> None:
    filled(tmp_path)
    filled(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) == 2


def test_clear_leaves_no_block(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.clear()
    assert "aa" not in store
    assert list(tmp_path.glob("*.safetensors")) == []


def test_many_blocks_can_be_read_in_any_order(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    for number in range(12):
        put(store, {f"{number:02x}": 1}, first=number, counts=[1])
    for number in (11, 0, 5, 11, 3, 7, 1, 0):
        assert store.read(f"{number:02x}")[0][0, 0] == number


# --- addresses -----------------------------------------------------------------------------------


def test_an_address_is_of_text_and_word_spans_not_of_id_pool_or_tags() -> None:
    one = make_item(["a", "b"], ["O", "O"], item_id="1", pool="test")
    same = make_item(["a", "b"], ["B-PROFESION", "O"], item_id="2", pool="train")
    assert address(one) == address(same)


def test_the_same_text_in_other_words_has_another_address() -> None:
    assert address(make_item(["a b"])) != address(make_item(["a", "b"]))
    assert address(make_item(["a", "b"])) != address(make_item(["a", "c"]))


def test_what_is_lacking_is_marked_once_a_text(tmp_path: Path) -> None:
    items = [make_item([word], item_id=str(n)) for n, word in enumerate("abacbd")]
    store = VectorStore(tmp_path)
    assert list(mark_lacking(lambda: items, store)) == [1, 1, 0, 1, 0, 1]
    put(store, {address(items[1]): 1}, counts=[1])
    assert list(mark_lacking(lambda: items, store)) == [1, 0, 0, 1, 0, 1]
