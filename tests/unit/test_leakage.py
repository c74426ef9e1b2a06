"""Duplicates between test and train items: by hand, and by plain sets of 5-grams."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase

import pyarrow.parquet as pq
import pytest
from makers import make_item

import nerprobe.leakage
from nerprobe.files import read_json
from nerprobe.items import corpus_table
from nerprobe.leakage import THRESHOLD, find_leakage, normalise, read_texts, similar_pairs, write_leakage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("¡Gracias  a\ttodos!\n", "¡gracias a todos!"),
        ("Mira https://t.co/Ab1 y www.a.es/x", "mira y"),
        ("@policia: GRACIAS @a_b", ": gracias"),
        ("STRASSE Straße", "strasse strasse"),
        ("HTTPS://T.CO/x", ""),
        ("#QuédateEnCasa a@b.c", "#quédateencasa a .c"),
    ],
)
def test_what_is_compared_of_a_text(text: str, expected: str) -> None:
    assert normalise(text) == expected


LONG = "hoy aplaudimos a las enfermeras y a los médicos de todos los hospitales del país"


def test_duplicates_by_hand() -> None:
    test = [
        ("t1", "Gracias a TODOS https://t.co/1"),
        ("t2", LONG),
        ("t3", "nada de nada, nada"),
        ("t4", "https://t.co/2"),
        ("t5", "si"),
    ]
    train = [
        ("r1", "@ana gracias a todos"),
        ("r2", LONG.replace("hoy", "ayer")),
        ("r3", "gracias  a todos"),
        ("r4", "https://t.co/2"),
        ("r5", "Si"),
        ("r6", "sí"),
    ]
    found = find_leakage(test, train)
    assert {name: found[name] for name in ("exact", "near", "test_items", "threshold")} == {
        "exact": 2,
        "near": 1,
        "test_items": 5,
        "threshold": THRESHOLD,
    }
    # As " hoy" of t2 becomes "ayer" three characters with the two before and after them change: 5 5-grams of the
    # 80 go (those that begin at -2 to 2) and 6 of 81 come: 75 / (80 + 81 - 75), if no 5-gram is twice in it.
    pairs = [(pair["test"], pair["train"], pair["similarity"]) for pair in found["pairs"]]
    assert pairs[:3] == [("t1", "r1", 1.0), ("t1", "r3", 1.0), ("t5", "r5", 1.0)]
    assert pairs[3:] == [("t2", "r2", pytest.approx(plain_jaccard(LONG, LONG.replace("hoy", "ayer"))))]
    assert found["pairs"][3]["similarity"] == pytest.approx(0.87, abs=0.02)


def plain_jaccard(first: str, second: str) -> float:
    grams = [{f"__{text}__"[n : n + 5] for n in range(len(text))} for text in (first, second)]
    return len(grams[0] & grams[1]) / len(grams[0] | grams[1])


def test_the_index_by_hand() -> None:
    # abcdefgh and abcdefgx: 8 5-grams each, of which the first 5 are shared: 5 / 11.
    assert plain_jaccard("abcdefgh", "abcdefgx") == 5 / 11
    # The alphabet has 26 of them, with a "!" behind it 27, and all but the two at its end are shared: 24 / 29.
    ((_, _, similarity),) = similar_pairs([("t", ascii_lowercase)], [("r", ascii_lowercase + "!")])
    assert similarity == pytest.approx(24 / 29)


def drawn_texts() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return test texts, and train texts that are some of them with 0 to 4 letters more at the end."""
    rng = random.Random(1)
    words = ["la", "enfermera", "y", "el", "médico", "en", "paro", "hoy", "no", "van", "a", "casa"]
    test = [(f"t{n}", " ".join(rng.choices(words, k=rng.randint(2, 8)))) for n in range(30)]
    train = [(f"r{n}", rng.choice(test)[1] + "abcd"[: rng.randint(0, 4)]) for n in range(200)]
    return test, train


@pytest.mark.parametrize("cells", [1, 100, 2_000_000])
def test_pairs_equal_a_plain_loop_whatever_the_chunk(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr(nerprobe.leakage, "CELLS", cells)
    test, train = drawn_texts()
    by_loop = {}
    for name, text in test:
        for other, known in train:
            similarity = plain_jaccard(text, known)
            if similarity >= THRESHOLD:
                by_loop[name, other] = min(similarity, 1 - 1e-6) if text != known else 1.0
    found = {(one, other): similarity for one, other, similarity in similar_pairs(test, train)}
    assert min(sum(value == 1.0 for value in by_loop.values()), sum(value < 1.0 for value in by_loop.values())) > 20
    assert found == pytest.approx(by_loop)


def test_texts_with_the_same_5_grams_are_near_and_not_exact() -> None:
    found = find_leakage([("t", "jajajajaja")], [("r", "jajajajajaja")])
    assert (found["exact"], found["near"]) == (0, 1)


def test_an_item_with_both_kinds_counts_once_as_exact() -> None:
    found = find_leakage([("t", LONG)], [("a", LONG), ("b", LONG + "!")])
    assert (found["exact"], found["near"], len(found["pairs"])) == (1, 0, 2)


def test_no_items_no_duplicates() -> None:
    assert find_leakage([], [("r", "a")])["pairs"] == []
    assert find_leakage([("t", "a")], [])["pairs"] == []


def test_at_most_a_hundred_pairs_are_kept_and_the_train_items_are_read_once() -> None:
    def train() -> Iterator[tuple[str, str]]:
        yield from ((f"r{n:03}", LONG + "!" * (n % 2)) for n in range(300))

    found = find_leakage([("t", LONG)], train())
    assert len(found["pairs"]) == 100
    assert found["pairs"][0] == {"test": "t", "train": "r000", "similarity": 1.0}
    assert {pair["similarity"] for pair in found["pairs"]} == {1.0}


def test_the_file_is_of_the_chosen_items_only(tmp_path: Path) -> None:
    items = [make_item(LONG.split(), item_id=name, pool=name[0]) for name in ("t1", "t2", "r1", "r2")]
    pq.write_table(corpus_table(items, []), tmp_path / "c.parquet")
    assert list(read_texts(tmp_path / "c.parquet", ["r2", "t1"])) == [("t1", LONG), ("r2", LONG)]
    chosen = {"test": ["t1"], "train": ["r2"]}
    evaluation = {"test_pool": "test", "train_pool": "train"}
    write_leakage(chosen, evaluation=evaluation, corpus=tmp_path / "c.parquet", output=tmp_path / "l.json")
    assert read_json(tmp_path / "l.json")["pairs"] == [{"test": "t1", "train": "r2", "similarity": 1.0}]
