"""The sample generator: its format by a parser of its own, its make-up by counts, its bytes by hash."""

import hashlib
import re
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest

from nerprobe import sample_clauses, sample_words
from nerprobe.errors import TaskFileError
from nerprobe.sample import SAMPLE_VERSION, generate

SEED = 20261006
SIZES = {"train": 2000, "test": 500}
GOLDEN = {
    1: {
        "train": "36d9ab6c9e8c5125e6bb32461122542f6fba7525e84b2abbcacc3a02e2d5be04",
        "test": "743fcceff811c84ca8a2c682b0b1cc6f64a3b1ef2d6a7c23c235a0575b273c84",
    }
}
SCORED = ("PROFESION", "SITUACION_LABORAL")


@dataclass(frozen=True)
class Tweet:
    words: list[str]
    starts: list[int]
    ends: list[int]
    tags: list[str]

    @property
    def text(self):
        out, end = "", 0
        for word, start, stop in zip(self.words, self.starts, self.ends, strict=True):
            out += (" " if start > end else "") + word
            end = stop
        return out

    @property
    def mentions(self):
        """Scored mentions as (type, first, last + 1) by conlleval's rule, an orphaned I- beginning one."""
        found, type_ = [], ""
        for i, tag in enumerate([*self.tags, "O"] if self.tags else []):
            kind = tag[2:] if tag[2:] in SCORED else ""
            if type_ and (kind != type_ or tag[0] == "B"):
                found[-1] += (i,)
            if kind and (kind != type_ or tag[0] == "B"):
                found.append((kind, i))
            type_ = kind
        return found

    @property
    def surfaces(self):
        return [(kind, " ".join(self.words[i:j]).casefold()) for kind, i, j in self.mentions]


def read(text):
    tweets = {}
    for line in text.split("\n"):
        if line:
            word, tweet_id, start, end, tag = line.split(" ")
            tweets.setdefault(tweet_id, []).append((word, int(start), int(end), tag))
    return {key: Tweet(*map(list, zip(*rows, strict=True))) for key, rows in tweets.items()}


@pytest.fixture(scope="module")
def files():
    return {pool: generate(pool=pool, items=items, seed=SEED) for pool, items in SIZES.items()}


@pytest.fixture(scope="module")
def pools(files):
    return {pool: read(text) for pool, text in files.items()}


def words_of(tweets):
    return [word for tweet in tweets.values() for word in tweet.words]


@pytest.mark.parametrize("pool", SIZES)
def test_lines_have_the_format(files, pool):
    assert files[pool].endswith(" O\n\n")
    assert "\r" not in files[pool]
    assert "\n\n\n" not in files[pool]
    tags = "O|[BI]-(PROFESION|SITUACION_LABORAL|ACTIVIDAD|FIGURATIVA)"
    for line in files[pool].split("\n"):
        assert line == "" or re.fullmatch(rf"[^ \n]+ [0-9]{{19}} [0-9]+ [0-9]+ ({tags})", line)


@pytest.mark.parametrize("pool", SIZES)
def test_offsets_fit_the_words(pools, pool):
    gaps = Counter()
    for tweet in pools[pool].values():
        assert tweet.starts[0] == 0
        assert all(
            end - start == len(word) for word, start, end in zip(tweet.words, tweet.starts, tweet.ends, strict=True)
        )
        gaps.update(start - end for end, start in zip(tweet.ends, tweet.starts[1:], strict=False))
    assert set(gaps) == {0, 1, 2, 3}
    assert gaps[1] > 4 * gaps[0] > 4 * (gaps[2] + gaps[3])


@pytest.mark.parametrize("pool", SIZES)
def test_tweets_are_whole_and_breaks_fall_inside_them_too(files, pools, pool):
    lines = files[pool].split("\n")
    ids = [line.split(" ")[1] for line in lines if line]
    runs = 1 + sum(a != b for a, b in pairwise(ids))
    assert runs == len(pools[pool]) == SIZES[pool]
    inside = sum(
        not blank and before.split(" ")[1] == after.split(" ")[1]
        for before, blank, after in zip(lines, lines[1:], lines[2:], strict=False)
        if before and after
    )
    assert inside > SIZES[pool]


def test_ids_are_disjoint():
    for items in (3, 60):
        a, b = (set(read(generate(pool=pool, items=items, seed=5))) for pool in SIZES)
        assert len(a) == len(b) == items
        assert {int(i) % 2 for i in a} == {0}
        assert {int(i) % 2 for i in b} == {1}


def test_same_arguments_same_bytes(files):
    assert generate(pool="test", items=SIZES["test"], seed=SEED) == files["test"]
    texts = {generate(pool=pool, items=20, seed=seed) for pool in SIZES for seed in (SEED, SEED + 1)}
    assert len(texts) == 4


@pytest.mark.parametrize("pool", SIZES)
def test_golden_bytes(files, pool):
    """A changed byte asks for a new SAMPLE_VERSION and a new hash here."""
    assert hashlib.sha256(files[pool].encode()).hexdigest() == GOLDEN[SAMPLE_VERSION][pool]


def test_generation_is_quick():
    start = time.perf_counter()
    generate(pool="train", items=250, seed=1)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("pool", SIZES)
def test_share_of_tweets_with_mentions_and_of_statuses(pools, pool):
    tweets = pools[pool].values()
    assert 0.21 <= sum(bool(tweet.mentions) for tweet in tweets) / len(tweets) <= 0.25
    kinds = Counter(kind for tweet in tweets for kind, *_ in tweet.mentions)
    assert 1 / 9 <= kinds["SITUACION_LABORAL"] / kinds.total() <= 1 / 5.5
    per_tweet = Counter(len(tweet.mentions) for tweet in tweets)
    assert per_tweet[1] > per_tweet[2] > 0
    assert sum(n for k, n in per_tweet.items() if k >= 3) >= 3


@pytest.mark.parametrize("pool", SIZES)
def test_lengths_are_those_of_real_tweets(pools, pool):
    lengths = sorted(len(tweet.words) for tweet in pools[pool].values())
    n = len(lengths)
    assert 30 <= sum(lengths) / n <= 35
    assert lengths[n // 20] <= 10
    assert lengths[n // 2] in range(30, 40)
    assert lengths[-n // 50] >= 60
    assert lengths[-1] <= 100


@pytest.mark.parametrize("pool", SIZES)
def test_texts_rarely_repeat(pools, pool):
    texts = [re.sub(r"https://\S+|[0-9]+", "", tweet.text) for tweet in pools[pool].values()]
    assert len(set(texts)) / len(texts) >= 0.97


def test_some_test_professions_never_occur_in_train(pools):
    train = {surface for tweet in pools["train"].values() for _, surface in tweet.surfaces}
    test = [surface for tweet in pools["test"].values() for _, surface in tweet.surfaces]
    assert 0.25 <= sum(surface not in train for surface in test) / len(test) <= 0.35
    held_out = {form for noun in sample_clauses._nouns(sample_words.TEST_PROFESSIONS) for form in noun.forms}
    assert not held_out & {word.casefold() for word in words_of(pools["train"])}
    assert len(held_out & {word.casefold() for word in words_of(pools["test"])}) >= 12


def test_noun_lists():
    nouns = sample_clauses._nouns("doctor+ h / policía^ s / juez jueza jueces juezas p / joven jóvenes / niñ@")
    assert [noun.forms for noun in nouns] == [
        ("doctor", "doctora", "doctores", "doctoras"),
        ("policía", "policía", "policías", "policías"),
        ("juez", "jueza", "jueces", "juezas"),
        ("joven", "joven", "jóvenes", "jóvenes"),
        ("niño", "niña", "niños", "niñas"),
    ]
    assert [noun.trade for noun in nouns] == ["h", "s", "p", "", ""]
    assert len(sample_clauses._nouns(sample_words.PROFESSIONS)) >= 60
    assert len(sample_clauses._nouns(sample_words.STATUSES)) >= 15


def test_every_template_expands():
    clauses = sample_clauses.Clauses(sample_clauses.Draws("t"), "test")
    lists = [value for name, value in vars(sample_words).items() if name.isupper() and isinstance(value, str)]
    for text in lists:
        for template in sample_clauses._entries(text):
            for role in "NPS":
                joined = "".join(span.text for span in sample_clauses.parse(clauses.expand(template, role)))
                assert not set("{}[]") & set(joined)


def test_mentions_of_several_words(pools):
    surfaces = {surface for pool in pools.values() for tweet in pool.values() for _, surface in tweet.surfaces}
    for wanted in ("directora de colegio", "trabajadores de la limpieza", "en paro"):
        assert wanted in surfaces
    assert "trabajadores por cuenta propia" in surfaces
    assert sum(" de " in surface for surface in surfaces) >= 15


def test_hashtags_and_handles_as_mentions(pools):
    tweets = [tweet for pool in pools.values() for tweet in pool.values()]
    first = [(tweet.words[i:j], j - i) for tweet in tweets for _, i, j in tweet.mentions]
    assert sum(words[0] == "#" and n == 2 for words, n in first) >= 10
    assert sum(words[0].startswith("@") and n == 1 for words, n in first) >= 3
    after_hash = [tweet.words[i - 1] for tweet in tweets for _, i, _ in tweet.mentions if i]
    assert after_hash.count("#") >= 2
    plain = [w for tweet in tweets for w, tag in zip(tweet.words, tweet.tags, strict=True) if tag == "O"]
    assert sum(w.startswith("@") for w in plain) >= 100
    assert plain.count("#") >= 500


def test_ignored_types_and_orphans(pools):
    tweets = pools["train"].values()
    tags = Counter(tag for tweet in tweets for tag in tweet.tags)
    assert 5 <= tags["B-ACTIVIDAD"] <= 80
    assert 3 <= tags["B-FIGURATIVA"] <= 60
    pairs = Counter(pair for tweet in tweets for pair in pairwise(tweet.tags))
    assert pairs["B-ACTIVIDAD", "I-PROFESION"] >= 2
    orphans = sum(n for (a, b), n in pairs.items() if b[0] == "I" and a[2:] != b[2:])
    assert orphans == sum(
        n for (a, b), n in pairs.items() if a[2:] in ("ACTIVIDAD", "FIGURATIVA") and b[0] == "I" and b[2:] in SCORED
    )


@pytest.mark.parametrize(
    ("what", "pattern", "least"),
    [
        ("URL", r"https://t\.co/[A-Za-z0-9]{10}", 800),
        ("variation selector alone", "\ufe0f", 50),
        ("variation selector before a word", "\ufe0f[A-Za-zÁÉÍÓÚáéíóú]+", 3),
        ("joiner alone", "\u200d", 50),
        ("skin tone with joiner", "[\U0001f3fb-\U0001f3ff]\u200d", 30),
        ("skin tone", "[\U0001f3fb-\U0001f3ff]", 30),
        ("half a flag", "[\U0001f1e6-\U0001f1ff]", 100),
        ("combining accent in a word", ".*\\w[\u0301\u0303].*", 30),
        ("combining accent alone", "\u0301", 10),
        ("ellipsis", "…", 200),
        ("three stops", r"\.\.\.", 100),
        ("inverted marks", "[¿¡]", 200),
        ("quotes", '["“«]', 50),
        ("capitals", "[A-ZÁÉÍÓÚÑ]{5,}", 200),
        ("missing accent", "(?i)policia|medicos?|tambien|dias|gestion|informes medicos", 10),
        ("stretched vowel", r"\w*([aeo])\1{2,}\w*", 50),
    ],
)
def test_oddities_of_tweets_occur(pools, what, pattern, least):
    assert sum(bool(re.fullmatch(pattern, word)) for word in words_of(pools["train"])) >= least, what


@pytest.mark.parametrize(
    "word",
    [
        "cura",
        "guía",
        "policía",
        "guardia",
        "presidente",
        "médico",
        "médicos",
        "sanitaria",
        "sanitarios",
        "sanitario",
        "rey",
        "piloto",
        "monitor",
        "cajero",
        "científica",
        "asistente",
        "canguro",
        "interna",
        "autónomo",
    ],
)
def test_words_are_mentions_by_their_context(pools, word):
    used = Counter(
        tag != "O"
        for tweets in pools.values()
        for tweet in tweets.values()
        for w, tag in zip(tweet.words, tweet.tags, strict=True)
        if w.casefold() == word
    )
    assert used[True] >= 1
    assert used[False] >= 2


@pytest.mark.parametrize(("pool", "items"), [("dev", 3), ("test", 0)])
def test_bad_arguments_are_refused(pool, items):
    with pytest.raises(TaskFileError, match="expected"):
        generate(pool=pool, items=items, seed=1)


def test_hundred_tweets_hold_enough_mentions(pools):
    ranked = sorted(pools["test"], key=lambda i: hashlib.sha256(f"{SEED}|sample-{i}".encode()).hexdigest())
    kinds = Counter(kind for key in ranked[:100] for kind, *_ in pools["test"][key].mentions)
    assert 15 <= kinds.total() <= 35
    assert kinds["SITUACION_LABORAL"] >= 1
