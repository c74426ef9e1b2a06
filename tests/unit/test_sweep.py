"""``nerprobe sweep``: one forward pass for all layers and poolings, an honest split, and what is written."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from makers import make_item
from rich.console import Console
from seqeval.metrics import f1_score, precision_score
from sklearn.linear_model import LogisticRegression
from zoo import build, nasty_items

from nerprobe import sweep_vectors
from nerprobe.array_files import write_arrays
from nerprobe.config import PROJECT, load_registry, load_task, validate
from nerprobe.corpus import read_items, write_corpus
from nerprobe.encoders import resolve
from nerprobe.errors import ConfigError, NonFiniteError, SubsetSizeError, UnknownModelError
from nerprobe.files import read_json, write_json
from nerprobe.frozen import FrozenEncoder
from nerprobe.plan import make_run
from nerprobe.pooling import pooled_vectors, prepare, word_vectors
from nerprobe.sample import generate, generate_lines
from nerprobe.sweep import sweep
from nerprobe.sweep_report import registry_entry, report
from nerprobe.sweep_vectors import (
    POOLINGS,
    LayeredEncoder,
    blocks_of,
    fill_layers,
    layer_files,
    parse_layers,
    read_layer,
    sweep_key,
)

torch.set_num_threads(1)  # tiny networks: more threads only get in each other's way
SAMPLE = PROJECT / "config" / "tasks" / "sample.yaml"
EMBED = {"dtype": "float32", "storage": "float32", "batch_tokens": 1024, "device": "cpu"}


def encoder_of(folder, registry=None):
    return resolve(str(folder), registry=registry or {}, lock={}, embed=EMBED, base=folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of tiny encoders by family, each built once."""
    built: dict[str, Path] = {}

    def folder(family):
        if family not in built:
            built[family] = build(family, tmp_path_factory.mktemp("zoo") / family)
        return built[family]

    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NERPROBE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def no_network(monkeypatch):
    """From here on any forward pass fails."""

    def forbid():
        monkeypatch.setattr(LayeredEncoder, "hidden", lambda *_: pytest.fail("a forward pass"))

    return forbid


def fill(folder, items, place, layers=""):
    return fill_layers(encoder_of(folder), items, folder=place, layers=layers, device="cpu", budget=1024)


# --- vectors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert-cased", "roberta", "gpt2", "t5"])
def test_every_layer_and_pooling_is_what_embed_gives_for_it(folders, tmp_path, family):
    """Items with words longer than a window, words without sub-words, and texts of several windows."""
    items = nasty_items(12)
    about, layers = fill(folders(family), items, tmp_path)
    assert (about["width"], about["layers"], layers) == (32, 2, [0, 1, 2])
    for layer in [0, 1, 2, "last"]:
        encoder = FrozenEncoder(folders(family), device="cpu", layer=layer)
        files = layer_files(items, tmp_path, 2 if layer == "last" else layer)
        for name in POOLINGS:
            expected = word_vectors(
                prepare(items, encoder, prefix="", pooling=name), encoder, pooling=name, budget=1024
            )
            found = read_layer(files, name)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=f"{layer} {name}")


def test_poolings_differ_where_a_word_has_several_sub_words(folders, tmp_path):
    """So that the test above does not compare four times the same."""
    items = nasty_items(30)
    _, layers = fill(folders("bert-cased"), items, tmp_path)
    counts = prepare(items, FrozenEncoder(folders("bert-cased"), device="cpu"), prefix="", pooling="mean").n_subwords
    found = {name: read_layer(layer_files(items, tmp_path, layers[-1]), name) for name in POOLINGS}
    for one, other in [("mean", "first"), ("first", "last"), ("last", "max"), ("max", "mean")]:
        same = (found[one] == found[other]).all(axis=1)
        assert same[counts < 2].all()
        assert not same[counts > 1].any()


def test_the_encoder_is_run_once_and_not_at_all_the_second_time(folders, tmp_path, monkeypatch, no_network):
    items = nasty_items(20)
    calls = []
    hidden = LayeredEncoder.hidden

    def counted(self, ids, mask):
        calls.append(int(mask.sum()))
        return hidden(self, ids, mask)

    monkeypatch.setattr(LayeredEncoder, "hidden", counted)
    fill(folders("roberta"), items, tmp_path)
    encoder = FrozenEncoder(folders("roberta"), device="cpu")
    windows = [w for block in blocks_of(items) for w in prepare(block, encoder, prefix="", pooling="mean").sequences]
    assert sum(calls) == sum(len(window.ids) for window in windows)
    no_network()
    monkeypatch.setattr("nerprobe.fetch.fetch_encoder", lambda **_: pytest.fail("fetched again"))
    assert fill(folders("roberta"), items, tmp_path)[1] == [0, 1, 2]
    assert fill(folders("roberta"), items, tmp_path, layers="-1,0")[1] == [0, 2]


def test_only_lacking_layers_and_blocks_are_computed(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_vectors, "BLOCK_WORDS", 200)
    items = nasty_items(20)
    assert fill(folders("gpt2"), items, tmp_path, layers="1")[1] == [1]
    files = layer_files(items, tmp_path, 1)
    assert len(files) > 2
    stamps = [file.stat().st_mtime_ns for file in files]
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[:-10])  # cut off: noticed and computed again
    chosen = []
    choose = LayeredEncoder.choose
    monkeypatch.setattr(LayeredEncoder, "choose", lambda self, some: (chosen.append(list(some)), choose(self, some))[1])
    fill(folders("gpt2"), items, tmp_path, layers="1,last")
    assert chosen == [[2], [1, 2], *[[2]] * (len(files) - 2)]
    assert files[1].read_bytes() == whole
    assert [file.stat().st_mtime_ns for file in files[2:]] == stamps[2:]
    fill(folders("gpt2"), [*items, make_item(["una", "más"])], tmp_path, layers="1,last")
    assert chosen[len(files) :] == [[1, 2]]  # more items: the first blocks are as they were


def test_blocks_hold_all_items_in_order_and_stay_as_they_were_when_items_are_added(monkeypatch):
    monkeypatch.setattr(sweep_vectors, "BLOCK_WORDS", 4)
    items = [make_item(["w"] * count, item_id=f"i{count}") for count in (3, 2, 9, 1, 1, 1, 1, 5)]
    assert [[item.item_id for item in block] for block in blocks_of(items)] == [
        ["i3", "i2"],
        ["i9"],
        ["i1", "i1", "i1", "i1"],
        ["i5"],
    ]
    assert blocks_of(items[:5])[:2] == blocks_of(items)[:2]


def test_numbers_that_are_none_are_computed_again_in_float32(folders, tmp_path, monkeypatch, caplog):
    encoder = resolve(
        str(folders("bert-cased")), registry={}, lock={}, embed={**EMBED, "dtype": "bfloat16"}, base=tmp_path
    )
    hidden = LayeredEncoder.hidden

    def overflowing(self, ids, mask):
        states = hidden(self, ids, mask)
        return torch.full_like(states, float("inf")) if self.dtype == "bfloat16" else states

    monkeypatch.setattr(LayeredEncoder, "hidden", overflowing)
    items = nasty_items(8)
    about, _ = fill_layers(encoder, items, folder=tmp_path / "a", layers="", device="cpu", budget=1024)
    assert about["dtype_used"] == "float32"
    assert "computing all of it again in float32" in caplog.text
    fill(folders("bert-cased"), items, tmp_path / "b")
    again = [layer_files(items, tmp_path / name, 2) for name in "ab"]
    assert read_layer(again[0], "max").tobytes() == read_layer(again[1], "max").tobytes()
    monkeypatch.setattr(LayeredEncoder, "hidden", lambda *given: torch.full_like(hidden(*given), float("nan")))
    with pytest.raises(NonFiniteError):
        fill(folders("bert-cased"), items, tmp_path / "c")


def test_too_little_memory_halves_the_batch_for_every_pooling(folders, tmp_path, monkeypatch):
    items = nasty_items(20)
    encoder = LayeredEncoder(folders("t5"), device="cpu")
    encoder.choose([0, 2])
    block = prepare(items, encoder, prefix="", pooling="mean")
    expected = pooled_vectors(block, encoder, poolings=POOLINGS, budget=1024)
    hidden = encoder.hidden

    def poor(ids, mask):
        if len(ids) > 2:
            raise torch.OutOfMemoryError("no memory")
        return hidden(ids, mask)

    monkeypatch.setattr(encoder, "hidden", poor)
    found = pooled_vectors(block, encoder, poolings=POOLINGS, budget=1024)
    for name in POOLINGS:
        assert found[name].shape == (len(block.n_subwords), 64)
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", [0, 1, 2, 3]), ("last", [3]), ("-1,3,last", [3]), ("2, 0", [0, 2]), ("-4", [0])],
)
def test_layers_are_indices_from_either_end(text, expected):
    assert parse_layers(text, 3) == expected


@pytest.mark.parametrize("text", ["4", "-5", "1-2", "first", "1,,2", "1.0", ","])
def test_a_layer_that_is_not_there_is_refused_in_one_line(text):
    with pytest.raises(ConfigError, match=r"no such layers.*last and numbers from -4 to 3"):
        parse_layers(text, 3)


# --- the split and the fits ----------------------------------------------------------------------

CONFIG = {
    "tasks": ["sample", "profner"],  # the second one has no files here and must not be needed
    "subset": {"seed": 34, "train": 60, "test": 10},
    "embed": {"batch_tokens": 1024, "device": "cpu"},
    "probe": {"C": 1000.0, "tol": 1e-4, "max_iter": 300},
    "bootstrap": {"resamples": 200},
}


@pytest.fixture
def base(tmp_path):
    """A folder where a command is typed, with a configuration."""
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(CONFIG))
    return tmp_path


@functools.cache
def made(pool):
    return generate(pool=pool, items=300, seed=20261006)


@pytest.fixture(autouse=True)
def quick_sample(monkeypatch):
    """Make fewer items than the sample has, and once only."""
    monkeypatch.setattr("nerprobe.corpus.generate_lines", lambda **how: made(how["pool"]).splitlines(keepends=True))


def run(base, reference, **options):
    return sweep(str(reference), **{"configfile": base / "own.yaml", "base": base, **options})


@functools.cache
def sample_train():
    """Ids and rows of the sample's train items in rank order, the plain way."""
    items: dict[str, list[list[str]]] = {}
    for line in filter(None, made("train").split("\n")):
        row = line.split(" ")
        items.setdefault(f"sample-{row[1]}", []).append(row)
    order = sorted(items, key=lambda name: hashlib.sha256(f"34|{name}".encode()).hexdigest())
    return [(name, items[name]) for name in order[:60]]


def sample_corpus():
    return make_run(load_task(SAMPLE), CONFIG | {"data_dir": None}, base=PROJECT).corpus


@functools.cache
def sample_items():
    """The same as items."""
    known = {item.item_id: item for item in read_items(sample_corpus())[0]}
    return [known[name] for name, _ in sample_train()]


def scored_tags(rows):
    """Tags with types that are not scored as O, and what they orphan as a beginning."""
    tags, before = [], "O"
    for row in rows:
        tag = "O" if row[4].endswith(("ACTIVIDAD", "FIGURATIVA")) else row[4]
        tags.append("B" + tag[1:] if tag[0] == "I" and before[2:] != tag[2:] else tag)
        before = tags[-1]
    return tags


def test_no_test_item_is_read_and_the_split_is_by_rank(base, folders, monkeypatch):
    encoded: list[str] = []
    pools: list[str] = []
    tokenize = FrozenEncoder.tokenize
    monkeypatch.setattr(
        FrozenEncoder, "tokenize", lambda self, texts, *more: (encoded.extend(texts), tokenize(self, texts, *more))[1]
    )
    lines = made("train").splitlines(keepends=True)
    monkeypatch.setattr("nerprobe.corpus.generate_lines", lambda **how: (pools.append(how["pool"]), lines)[1])
    found, file = run(base, folders("bert-cased"), layers="0")
    assert pools == ["train"]
    ranked = sample_train()
    assert len(encoded) == 60
    for text, (_, rows) in zip(encoded, ranked, strict=True):
        assert text.replace(" ", "") == "".join(row[0] for row in rows)
    assert file == base / "results" / "sample" / found["run"] / "sweeps" / "bert-cased.json"
    assert read_json(file) == json.loads(json.dumps(found))
    for name, part in (("fit", ranked[:48]), ("held_out", ranked[48:])):
        counts = found["split"]["counts"][name]
        tags = [tag for _, rows in part for tag in scored_tags(rows)]
        assert counts["items"] == len(part)
        assert counts["words"] == len(tags)
        assert sum(counts["mentions"].values()) == sum(tag[0] == "B" for tag in tags)


# --- a sweep whose vectors are known ----------------------------------------------------------------


def known_vectors(base, folder, monkeypatch, *, perfect, noise=0.0):
    """Put vectors where the cache looks: zeros, but one number for each tag under the perfect layers and poolings."""
    monkeypatch.setattr("nerprobe.fetch.fetch_encoder", lambda **_: pytest.fail("fetched"))
    items = sample_items()
    encoder = encoder_of(folder)
    place = base / "resources" / "sweeps" / sweep_key(encoder)
    write_json(place / "encoder.json", {"layers": 2, "width": 5, "dtype_used": "float32", "class": "BertModel"})
    names = ["O", "B-PROFESION", "I-PROFESION", "B-SITUACION_LABORAL", "I-SITUACION_LABORAL"]
    rng = np.random.default_rng(3)
    for layer in range(3):
        for path, block in zip(layer_files(items, place, layer), blocks_of(items), strict=True):
            tags = [tag for item in block for tag in item.tags]
            told = np.eye(5, dtype=np.float32)[[names.index(tag) for tag in tags]]
            told += noise * rng.standard_normal(told.shape, dtype=np.float32)
            arrays = {name: told if (layer, name) in perfect else np.zeros_like(told) for name in POOLINGS}
            write_arrays(path, {**arrays, "split": np.arange(len(tags))})
    return items


def test_a_cell_is_what_a_plain_fit_scores(base, folders, monkeypatch):
    """scikit-learn and seqeval on the same vectors, without anything of the sweep."""
    folder = folders("bert-cased")
    items = known_vectors(base, folder, monkeypatch, perfect={(1, "max"), (2, "first")}, noise=0.35)
    found, _ = run(base, folder)
    cells = {(cell["layer"], cell["pooling"]): cell for cell in found["cells"]}
    assert list(cells) == [(layer, name) for layer in (0, 1, "last") for name in POOLINGS]
    place = base / "resources" / "sweeps" / found["encoder"]["key"]
    tags = [list(item.tags) for item in items]
    words = sum(map(len, tags[:48]))
    for layer, name in [(1, "max"), ("last", "first")]:
        vectors = read_layer(layer_files(items, place, 2 if layer == "last" else layer), name)
        model = LogisticRegression(C=1000.0, tol=1e-4, max_iter=300)
        model.fit(vectors[:words], [tag for own in tags[:48] for tag in own])
        flat = iter(model.predict(vectors[words:]).tolist())
        predicted = [[next(flat) for _ in own] for own in tags[48:]]
        assert 0.1 < cells[layer, name]["f1"] < 0.9
        assert cells[layer, name]["f1"] == pytest.approx(f1_score(tags[48:], predicted), abs=1e-12)
        assert cells[layer, name]["precision"] == pytest.approx(precision_score(tags[48:], predicted), abs=1e-12)
        assert cells[layer, name]["iterations"] == model.n_iter_[0]


def test_the_best_cell_is_found_and_its_entry_fits_the_registry(base, folders, monkeypatch):
    folder = folders("bert-cased")
    items = known_vectors(base, folder, monkeypatch, perfect={(1, "first")})
    found, _ = run(base, folder)
    scores = {(cell["layer"], cell["pooling"]): cell["f1"] for cell in found["cells"]}
    assert scores == {(x, name): float((x, name) == (1, "first")) for x in (0, 1, "last") for name in POOLINGS}
    best = found["best"]
    assert (best["layer"], best["pooling"], best["f1_ci_low"], best["f1_ci_high"]) == (1, "first", 1.0, 1.0)
    assert found["over_default"] == {"difference": 1.0, "low": 1.0, "high": 1.0}
    total = sum(tag[0] == "B" for item in items[48:] for tag in item.tags)
    assert best["gold"] == best["tp"] == total
    assert found["exploratory"] == (
        f"exploratory: chosen on 12 train items with {total} mentions, not a benchmark score; "
        "the best of 12 cells is optimistic"
    )
    entry = validate(found["entry"], schema="models", where="entry")
    (name,) = entry
    assert name == "bert-cased-layer-1-first"
    again = encoder_of(name, registry=entry)
    assert again.source == encoder_of(folder).source
    assert again.settings == encoder_of(folder).settings | {"layer": 1, "pooling": "first"}


def test_of_equals_the_default_is_best_and_needs_no_entry(base, folders, monkeypatch):
    folder = folders("bert-cased")
    known_vectors(base, folder, monkeypatch, perfect={(0, "mean"), (2, "max"), (2, "mean"), (1, "first")})
    found, file = run(base, folder)
    assert (found["best"]["layer"], found["best"]["pooling"], found["entry"]) == ("last", "mean", None)
    screen = io.StringIO()
    report(found, file, Console(file=screen, width=140))
    assert "The best cell is what an entry without layer and pooling uses." in screen.getvalue()


def test_the_entry_of_a_registry_name_keeps_what_it_says(tmp_path):
    registry = load_registry(PROJECT / "config" / "models.yaml")
    encoder = resolve("multilingual-e5-base", registry=registry, lock={}, embed=EMBED, base=tmp_path)
    best = {"layer": 7, "pooling": "max"}
    entry = registry_entry("multilingual-e5-base", encoder, best=best, family="unused")
    expected = registry["multilingual-e5-base"] | best
    assert entry == {"multilingual-e5-base-layer-7-max": expected}
    assert expected["prefix"] == "query: "


def test_another_c_is_another_run_but_needs_no_forward_pass(base, folders, monkeypatch, no_network):
    first, _ = run(base, folders("bert-cased"), layers="1")
    no_network()
    monkeypatch.setattr("nerprobe.fetch.fetch_encoder", lambda **_: pytest.fail("fetched again"))
    (base / "other.yaml").write_text(yaml.safe_dump(CONFIG | {"probe": {"C": 1e-6}}))
    second, file = run(base, folders("bert-cased"), layers="1", configfile=base / "other.yaml")
    assert second["encoder"]["key"] == first["encoder"]["key"]
    assert second["run"] != first["run"]
    assert second["run"] in file.parts
    assert (first["probe"]["C"], second["probe"]["C"]) == (1000.0, 1e-6)
    assert [cell["predicted"] for cell in second["cells"]] == [0] * 4  # so strong a penalty leaves O everywhere
    assert first["over_default"] is None  # the last layer is not among these


def test_the_key_follows_what_vectors_depend_on(tmp_path):
    entry = {"source": {"kind": "hub", "repo": "o/n", "revision": "0" * 40}, "family": "x"}

    def key(embed=EMBED, **more):
        return sweep_key(resolve("n", registry={"n": entry | more}, lock={}, embed=embed, base=tmp_path))

    assert key(layer=3, pooling="max") == key() == key(embed={**EMBED, "storage": "float16"})
    other = [key(prefix="query: "), key(max_length=64), key(dtype="float16")]
    other.append(key(source={"kind": "hub", "repo": "o/n", "revision": "1" * 40}))
    assert len({key(), *other}) == 5


def test_a_corpus_that_the_run_has_read_is_used(base, folders, monkeypatch):
    folder = folders("bert-cased")
    known_vectors(base, folder, monkeypatch, perfect={(2, "last")})
    first, file = run(base, folder)
    write_corpus(
        sample_corpus(), table_path=file.parents[1] / "corpus.parquet", info_path=file.parents[1] / "corpus.json"
    )
    monkeypatch.setattr("nerprobe.sweep.read_items", lambda _: pytest.fail("read again"))
    assert run(base, folder)[0] == first


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", ["train-lookup", "char-ngrams"])
def test_a_control_without_a_network_is_refused(base, control):
    with pytest.raises(UnknownModelError, match="has no layers"):
        run(base, control)


@pytest.mark.parametrize("why", ["a single item", "no mention held out"])
def test_too_few_train_items_are_refused_before_anything_is_encoded(base, folders, no_network, why):
    no_network()
    ranked = [scored_tags(rows) for _, rows in sample_train()]
    bare = [n for n in range(2, 60) if all(tag == "O" for tags in ranked[n * 4 // 5 : n] for tag in tags)]
    size = 1 if why == "a single item" else bare[-1]
    (base / "few.yaml").write_text(yaml.safe_dump(CONFIG | {"subset": {"seed": 34, "train": size, "test": 1}}))
    with pytest.raises(SubsetSizeError, match=r"raise subset\.train"):
        run(base, folders("bert-cased"), configfile=base / "few.yaml")


def test_an_unknown_task_is_an_error_with_the_nearest_one(base, folders):
    with pytest.raises(ConfigError, match="did you mean sample"):
        run(base, folders("bert-cased"), task="sampel")


# --- what is printed ---------------------------------------------------------------------------------


def test_a_report_has_a_row_a_layer_and_says_what_it_is_not(base, folders, monkeypatch):
    folder = folders("bert-cased")
    known_vectors(base, folder, monkeypatch, perfect={(1, "first")})
    found, file = run(base, folder)
    found["cells"][0]["converged"] = False
    screen = io.StringIO()
    report(found, file, Console(file=screen, width=140))
    lines = screen.getvalue().splitlines()
    assert "\x1b" not in screen.getvalue()
    assert lines[1].startswith("Fit: 48 items with ")
    assert lines[2].startswith("Held out: 12 items with ")
    assert lines[4].split() == ["Layer", *POOLINGS]
    assert (
        lines[6].split()
        == ["1", ".000", "[.000,", ".000]", "1.000", "[1.000,", "1.000]*"] + [".000", "[.000,", ".000]"] * 2
    )
    assert lines[7].startswith("2 (last) ")
    assert lines[8] == "* best: layer 1, pooling first, F1 1.000 [1.000, 1.000]"
    assert "+1.000 [+1.000, +1.000]" in lines[9]
    assert lines[10] == "1 of 12 fits did not converge within 300 iterations"
    assert lines[11] == found["exploratory"]
    assert lines[12] == f"written to {file}"
    printed = yaml.safe_load("\n".join(lines[13:]).partition("\n\n")[2])
    assert printed == found["entry"]


def test_a_narrow_terminal_shows_scores_without_intervals(base, folders, monkeypatch):
    folder = folders("bert-cased")
    known_vectors(base, folder, monkeypatch, perfect={(1, "first")})
    screen = io.StringIO()
    report(*run(base, folder), Console(file=screen, width=60, force_terminal=True, color_system="standard"))
    (row,) = [line for line in screen.getvalue().splitlines() if line.startswith("1 ")]
    assert re.sub(r"\x1b\[[0-9;]*m", "", row).split() == ["1", ".000", "1.000*", ".000", ".000"]
    assert "\x1b[1;32m" in row


def test_the_command_with_two_fits_at_a_time(base, monkeypatch):
    monkeypatch.setattr("nerprobe.corpus.generate_lines", generate_lines)
    quick = {"subset": {"seed": 2, "train": 20, "test": 1}, "probe": {"max_iter": 20}, "embed": {"device": "cpu"}}
    (base / "own.yaml").write_text(yaml.safe_dump(CONFIG | quick))
    variables = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "OMP_NUM_THREADS": "1"}
    words = ["random-bert", "--configfile", "own.yaml", "--layers=-1", "--jobs", "2"]
    command = [sys.executable, "-m", "nerprobe", "sweep", *words]
    done = subprocess.run(command, cwd=base, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = base.glob("results/sample/*/sweeps/random-bert.json")
    assert f"written to {file}" in done.stdout
    alone, _ = run(base, "random-bert", layers="last")
    assert alone == read_json(file)
