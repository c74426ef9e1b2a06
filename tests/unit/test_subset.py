"""Stage ``subset``: the rank rule, recomputed here, and what follows from it."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import TYPES, corpus_spec, make_item

from nerprobe.corpus import write_corpus
from nerprobe.errors import ArtefactError, SubsetSizeError
from nerprobe.files import sha256_file, write_json
from nerprobe.items import Item, corpus_table
from nerprobe.subset import load_subset, rank, take, write_subset

P, S = TYPES
IDS = [f"profner-{number}" for number in range(40)]


def digest(seed: int, item_id: str) -> str:
    return hashlib.sha256((str(seed) + "|" + item_id).encode("utf-8")).hexdigest()


def test_items_are_ranked_by_the_hash_of_seed_and_id() -> None:
    ranked = rank(IDS, 20261006)
    keys = [digest(20261006, item_id) for item_id in ranked]
    assert sorted(ranked) == sorted(IDS)
    assert keys == sorted(keys)


def test_the_rank_of_three_items_by_a_tool_apart() -> None:
    # printf '20261006|profner-a' | sha256sum: f382dd25…; profner-b: cae4f0d5…; profner-c: 97772f17….
    assert rank(["profner-a", "profner-b", "profner-c"], 20261006) == ["profner-c", "profner-b", "profner-a"]


@given(st.lists(st.text(max_size=6), unique=True, max_size=12), st.integers(0, 2**40))
def test_the_order_of_the_file_does_not_matter(ids: list[str], seed: int) -> None:
    assert rank(ids, seed) == rank(list(reversed(ids)), seed)


def test_another_seed_gives_another_order() -> None:
    assert rank(IDS, 1) != rank(IDS, 2)


def test_a_smaller_subset_is_the_beginning_of_a_larger_one() -> None:
    small, large = (take(IDS, seed=7, size=size, pool="test", where="t") for size in (10, 25))
    assert large[:10] == small
    assert take(IDS, seed=7, size="all", pool="test", where="t")[:25] == large


def test_all_takes_the_pool_in_rank_order() -> None:
    assert take(IDS, seed=7, size="all", pool="test", where="t") == rank(IDS, 7)


def test_the_whole_pool_by_number_is_allowed_and_one_more_is_not() -> None:
    assert len(take(IDS, seed=7, size=40, pool="test", where="t")) == 40
    with pytest.raises(SubsetSizeError, match=r"task t: pool test has fewer .* expected at most 40, or all; got 41"):
        take(IDS, seed=7, size=41, pool="test", where="task t")


CORPUS: dict[str, Item] = {
    item.item_id: item
    for item in (
        make_item(["a", "b"], [f"B-{P}", f"I-{P}"], item_id="t1", pool="test"),
        make_item(["a"], ["O"], item_id="t2", pool="test"),
        make_item(["a", "b", "c"], [f"I-{S}", f"B-{S}", f"I-{P}"], item_id="t3", pool="test"),
        make_item(["a"], [f"B-{P}"], item_id="r1", pool="train"),
        make_item(["a"], ["O"], item_id="r2", pool="train"),
    )
}


EVALUATION = {"protocol": "probe", "regime": "train", "train_pool": "train", "test_pool": "test"}


def subset_of(test: int | str, train: int | str, seed: int = 5) -> dict[str, Any]:
    """Run the stage on the corpus above."""
    spec = {"task": "tiny", "seed": seed, "sizes": {"test": test, "train": train}}
    with tempfile.TemporaryDirectory() as place:
        table, info, output, leakage = (Path(place) / name for name in ("c.parquet", "c.json", "s.json", "l.json"))
        pq.write_table(corpus_table(list(CORPUS.values()), []), table, row_group_size=2)
        write_json(info, {"types": list(TYPES), "evaluations": [EVALUATION], "corpus_sha256": sha256_file(table)})
        write_subset(spec, corpus=table, corpus_info=info, output=output, leakage=leakage)
        return load_subset(output)


def test_counts_are_of_the_chosen_items_only() -> None:
    # By hand: in rank order of seed 5 the test items come first to last as sorted by their hash.
    first = min(("t1", "t2", "t3"), key=lambda item_id: digest(5, item_id))
    by_hand = {
        "t1": {"items": 1, "words": 2, "items_with_mentions": 1, "mentions": {P: 1, S: 0}},
        "t2": {"items": 1, "words": 1, "items_with_mentions": 0, "mentions": {P: 0, S: 0}},
        "t3": {"items": 1, "words": 3, "items_with_mentions": 1, "mentions": {P: 1, S: 2}},
    }
    chosen = subset_of(1, "all")
    assert chosen["items"]["test"] == [first]
    assert chosen["counts"]["test"] == by_hand[first]
    assert chosen["counts"]["train"] == {"items": 2, "words": 2, "items_with_mentions": 1, "mentions": {P: 1, S: 0}}


def test_counts_of_all_items() -> None:
    counts = subset_of("all", 2)["counts"]
    assert counts["test"] == {"items": 3, "words": 6, "items_with_mentions": 2, "mentions": {P: 2, S: 2}}


def test_the_file_has_the_fields_of_the_contract() -> None:
    chosen = subset_of(2, 1)
    assert set(chosen) == {"id", "seed", "rule", "counts", "items"}
    assert re.fullmatch(r"[0-9a-f]{16}", str(chosen["id"]))
    assert chosen["seed"] == 5


def test_the_id_follows_the_chosen_items_and_not_how_they_were_asked_for() -> None:
    assert subset_of(3, 2)["id"] == subset_of("all", "all")["id"]
    assert subset_of(2, 2)["id"] != subset_of(3, 2)["id"]
    assert subset_of(3, 2, seed=5)["id"] != subset_of(3, 2, seed=6)["id"]


def test_the_stage_reads_the_corpus_and_writes_the_subset(tmp_path: Path) -> None:
    files = {"test": b"a 1 0 1 B-PROFESION\nb 2 0 1 O\n", "train": b"c 3 0 1 O\n"}
    table, info, out = (tmp_path / name for name in ("c.parquet", "c.json", "s.json"))
    write_corpus(corpus_spec(tmp_path / "in", files), table_path=table, info_path=info)
    spec = {"task": "tiny", "seed": 9, "sizes": {"test": "all", "train": 1}}
    write_subset(spec, corpus=table, corpus_info=info, output=out, leakage=tmp_path / "l.json")
    expected = sorted(["tiny-1", "tiny-2"], key=lambda item_id: digest(9, item_id))
    assert load_subset(out)["items"] == {"test": expected, "train": ["tiny-3"]}


def test_more_than_the_pool_has_leaves_no_file(tmp_path: Path) -> None:
    files = {"test": b"a 1 0 1 O\n", "train": b"c 3 0 1 O\n"}
    table, info, out = (tmp_path / name for name in ("c.parquet", "c.json", "out/s.json"))
    write_corpus(corpus_spec(tmp_path / "in", files), table_path=table, info_path=info)
    with pytest.raises(SubsetSizeError):
        write_subset(
            {"task": "tiny", "seed": 9, "sizes": {"test": 2, "train": 1}},
            corpus=table,
            corpus_info=info,
            output=out,
            leakage=tmp_path / "l.json",
        )
    assert not out.exists()


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"id": "x"})])
def test_a_damaged_subset_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ArtefactError, match=r"s\.json"):
        load_subset(tmp_path / "s.json")
