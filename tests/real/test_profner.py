"""The real ProfNER files: every number of the benchmark card, and numbers of exactly these files.

The data folder is ``$NERPROBE_DATA_DIR``, or ``shared/data`` beside the project.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nerprobe.config import PROJECT, load_task
from nerprobe.corpus import read_items
from nerprobe.items import Item, count_pool
from nerprobe.lookup import Lookup
from nerprobe.plan import Run, make_run
from nerprobe.score import evaluate
from nerprobe.spans import mentions
from nerprobe.subset import select, subset_record

DATA = Path(os.environ.get("NERPROBE_DATA_DIR") or PROJECT.parent / "shared" / "data")
FILES = {"test": DATA / "profner" / "BIO" / "valid_spacy.txt", "train": DATA / "profner" / "BIO" / "train_spacy.txt"}

pytestmark = pytest.mark.real
if not all(path.is_file() for path in FILES.values()):
    pytest.skip(
        f"no ProfNER files in {DATA}: set NERPROBE_DATA_DIR to a folder that holds profner/BIO/",
        allow_module_level=True,
    )

P, S = TYPES = ("PROFESION", "SITUACION_LABORAL")
SHA256 = {
    "test": "a1ee753ac959af5c48f0810942694e40e59171d343e8f2b9cc8ce14e5f230a1e",
    "train": "fbd1137b19ed0411483b3dd3ebaca5543d9548d27bfb8a6838c1b30010c2f169",
}
CARD_EXAMPLES = {
    "profner-1243654656372494339": (
        "Primera demanda contra el Govern por el coronavirus. El Sindicato de Médicos denuncia a Salud por “poner en "
        "riesgo” a los profesionales https://t.co/KFPi9rT5OC",
        [(P, "Médicos"), (P, "profesionales")],
    ),
    "profner-1246759619873198080": (
        "¡INDIGNANTE! 📢 La policía nacional ha permitido que esto tuviera lugar esta mañana en #Madrid sin "
        "autorización de ningún tipo. Es evidente que la ley no es igual para todos. #Covid_19 "
        "#EsteVirusLoParamosUnidos #QuedateEnCasa #PoliciaNacional #CoronavirusARV @policia https://t.co/La8lq9crH5",
        [(P, "policía nacional"), (P, "PoliciaNacional"), (P, "@policia")],
    ),
}


@pytest.fixture(scope="module")
def run() -> Run:
    config: dict[str, Any] = {
        "data_dir": str(DATA),
        "subset": {"seed": 20261006, "test": 100, "train": 500},
        "probe": {"C": 1.0, "tol": 1e-6, "max_iter": 1000, "cross_validate": True},
    }
    return make_run(load_task(PROJECT / "config" / "tasks" / "profner.yaml"), config, base=PROJECT)


@pytest.fixture(scope="module")
def items(run: Run) -> dict[str, Item]:
    return {item.item_id: item for item in read_items(run.corpus)[0]}


@pytest.fixture(scope="module")
def subset(run: Run, items: Mapping[str, Item]) -> dict[str, Any]:
    pools = {pool: [item.item_id for item in items.values() if item.pool == pool] for pool in run.corpus["pools"]}
    chosen = select(pools, spec=run.subset)
    counts = {pool: count_pool([items[name].tags for name in ids], list(TYPES)) for pool, ids in chosen.items()}
    return subset_record(chosen, counts=counts, seed=run.subset["seed"])


@pytest.fixture(scope="module")
def chosen(items: Mapping[str, Item], subset: Mapping[str, Any]) -> dict[str, list[Item]]:
    return {pool: [items[item_id] for item_id in ids] for pool, ids in subset["items"].items()}


@pytest.fixture
def these_files() -> None:
    """Bind a test to the bytes that its numbers were counted in."""
    for pool, path in FILES.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[pool], f"{path} is another file"


# --- the card ------------------------------------------------------------------------------------


def test_the_100_test_tweets_hold_43_mentions_in_24_tweets(subset: Mapping[str, Any]) -> None:
    counts = subset["counts"]["test"]
    assert counts["items"] == 100
    assert counts["mentions"] == {P: 40, S: 3}
    assert counts["items_with_mentions"] == 24


def test_the_500_train_tweets_hold_166_mentions(subset: Mapping[str, Any]) -> None:
    counts = subset["counts"]["train"]
    assert counts["items"] == 500
    assert sum(counts["mentions"].values()) == 166


def test_23_percent_of_tweets_mention_a_profession_or_status(items: Mapping[str, Item]) -> None:
    assert len(items) == 8000
    assert sum(bool(mentions(item.tags)) for item in items.values()) / 8000 == pytest.approx(0.23, abs=0.005)


@pytest.mark.parametrize("item_id", CARD_EXAMPLES)
def test_an_example_of_the_card_is_among_the_train_tweets(
    item_id: str, items: Mapping[str, Item], subset: Mapping[str, Any]
) -> None:
    assert item_id in subset["items"]["train"]
    item = items[item_id]
    text, expected = CARD_EXAMPLES[item_id]
    assert item.text == text
    found = [(kind, item.text[item.starts[first] : item.ends[stop - 1]]) for kind, first, stop in mentions(item.tags)]
    assert [(kind, shown.lstrip("#")) for kind, shown in found] == expected


def test_the_nacional_of_the_card_is_the_second_word_of_a_mention(items: Mapping[str, Item]) -> None:
    item = items["profner-1246759619873198080"]
    position = item.words.index("policía")
    assert item.words[position + 1] == "nacional"
    assert item.tags[position : position + 2] == ("B-PROFESION", "I-PROFESION")


def test_the_tags_are_the_five_of_iob2(items: Mapping[str, Item]) -> None:
    tags = {tag for item in items.values() for tag in item.tags}
    assert tags == {"O", "B-PROFESION", "I-PROFESION", "B-SITUACION_LABORAL", "I-SITUACION_LABORAL"}


# --- these files ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("these_files")
def test_the_pools_have_the_words_and_mentions_counted_in_these_files(items: Mapping[str, Item]) -> None:
    for pool, tweets, words, expected in (
        ("test", 2000, 69_318, {P: 567, S: 85}),
        ("train", 6000, 209_610, {P: 1592, S: 264}),
    ):
        own = [item for item in items.values() if item.pool == pool]
        kinds = [kind for item in own for kind, _, _ in mentions(item.tags)]
        assert len(own) == tweets
        assert sum(len(item.words) for item in own) == words
        assert {kind: kinds.count(kind) for kind in TYPES} == expected


@pytest.mark.usefixtures("these_files")
def test_the_subset_has_the_words_and_mentions_counted_in_these_files(subset: Mapping[str, Any]) -> None:
    assert subset["counts"]["test"]["words"] == 3_563
    assert subset["counts"]["train"] == {
        "items": 500,
        "words": 17_553,
        "items_with_mentions": 124,
        "mentions": {P: 146, S: 20},
    }


@pytest.mark.usefixtures("these_files")
def test_words_of_marks_alone_are_kept(items: Mapping[str, Item]) -> None:
    words = [word for item in items.values() if item.pool == "test" for word in item.words]
    assert words.count("\ufe0f") == 96
    assert words.count("\u200d") == 20
    assert words.count("\u0304") == 2


# --- rules, apart from the code --------------------------------------------------------------------


def plain_tweets(path: Path) -> dict[str, list[tuple[str, int, int, str]]]:
    """Read a file the plain way: word, start, end and tag of each tweet."""
    tweets: dict[str, list[tuple[str, int, int, str]]] = {}
    for line in path.read_bytes().decode("utf-8").split("\n"):
        if line:
            word, tweet, start, end, tag = line.rsplit(" ", 4)
            tweets.setdefault(f"profner-{tweet}", []).append((word, int(start), int(end), tag))
    return tweets


@pytest.mark.parametrize("pool", ["test", "train"])
def test_every_text_is_its_words_joined_by_their_offsets(pool: str, items: Mapping[str, Item]) -> None:
    tweets = plain_tweets(FILES[pool])
    assert set(tweets) == {name for name, item in items.items() if item.pool == pool}
    for name, rows in tweets.items():
        text, before = "", rows[0][1]
        for word, start, end, _ in rows:
            text += (" " if start > before else "") + word
            before = end
        item = items[name]
        assert item.text == text
        assert item.words == tuple(word for word, _, _, _ in rows)
        assert tuple(item.text[a:b] for a, b in zip(item.starts, item.ends, strict=True)) == item.words


@pytest.mark.parametrize("pool", ["test", "train"])
def test_only_tags_of_ignored_types_and_what_they_orphan_differ_from_the_file(
    pool: str, items: Mapping[str, Item]
) -> None:
    for name, rows in plain_tweets(FILES[pool]).items():
        for ours, (_, _, _, theirs) in zip(items[name].tags, rows, strict=True):
            ignored = theirs.endswith(("-ACTIVIDAD", "-FIGURATIVA"))
            assert ours == ("O" if ignored else theirs) or (theirs[0] == "I" and ours == "B" + theirs[1:])


def test_the_subset_is_the_beginning_of_the_pool_by_hash(items: Mapping[str, Item], subset: Mapping[str, Any]) -> None:
    for pool, size in (("test", 100), ("train", 500)):
        ids = [name for name, item in items.items() if item.pool == pool]
        ids.sort(key=lambda name: hashlib.sha256(b"20261006|" + name.encode()).hexdigest())
        assert subset["items"][pool] == ids[:size]


def test_the_train_lookup_reaches_about_055(chosen: Mapping[str, list[Item]]) -> None:
    train, test = chosen["train"], chosen["test"]
    lookup = Lookup.fit([item.words for item in train], [item.tags for item in train])
    rows = [(item.item_id, item.tags, lookup.predict(item.words)[0]) for item in test]
    result = evaluate(rows, TYPES)
    assert result["counts"]["gold"] == 43
    assert 0.54 < result["metrics"]["entity_f1_probe"] < 0.56
