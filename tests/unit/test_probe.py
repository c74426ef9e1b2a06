"""Stage ``probe``: the head is fit on the train items' words and tags each test word; what it reads is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from makers import make_item
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression

import nerprobe.embed
import nerprobe.vector_files
from nerprobe.controls import CharNgrams
from nerprobe.embed import write_embeddings
from nerprobe.errors import ArtefactError
from nerprobe.files import read_json, sha256_file, write_json
from nerprobe.items import Item, corpus_table
from nerprobe.probe import write_probe

P, S = "PROFESION", "SITUACION_LABORAL"
ITEMS = [
    make_item(["la", "médica", "del", "centro"], ["O", f"B-{P}", "O", "O"], item_id="r1", pool="train"),
    make_item(["policía", "nacional", "en", "paro"], [f"B-{P}", f"I-{P}", "O", f"B-{S}"], item_id="r2", pool="train"),
    make_item(["en", "casa"], ["O", "O"], item_id="r3", pool="train"),
    make_item(["una", "médica", "en", "paro"], ["O", f"B-{P}", "O", f"B-{S}"], item_id="t1"),
    make_item(["nacional"], ["O"], item_id="t2"),
    make_item(["médica"], [f"B-{P}"], item_id="not chosen"),
]
SUBSET = {"test": ["t2", "t1"], "train": ["r3", "r1", "r2"]}
SOURCE = {"kind": "char-ngrams", "ngrams": [2, 4], "features": 64, "scale": 10.0}
EVALUATION = {"protocol": "probe", "regime": "train", "train_pool": "train", "test_pool": "test"}
FIT = {"C": 1.0, "tol": 1e-6, "max_iter": 1000}
NAMES = ("corpus", "subset", "vectors", "manifest", "predictions", "head", "facts", "exploratory")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Write a corpus, its subset and its vectors in several row groups."""
    monkeypatch.setattr(nerprobe.vector_files, "GROUP_WORDS", 3)
    made = {name: tmp_path / name for name in NAMES}
    pq.write_table(corpus_table(ITEMS, []), made["corpus"])
    write_json(made["subset"], {"id": "s", "seed": 1, "counts": {}, "items": SUBSET})
    write_embeddings(
        {"model": "m", "key": "k", "source": SOURCE, "settings": {"storage": "float32"}},
        corpus=made["corpus"],
        subset=made["subset"],
        encoder=None,
        store=tmp_path / "store",
        device="cpu",
        budget=64,
        output=made["vectors"],
        manifest=made["manifest"],
    )
    return made


def probe(files: dict[str, Path], **changes: Any) -> dict[str, Any]:
    """Run the stage and return what it wrote about the fit."""
    spec = {"model": "m", "encoder": {"key": "k"}, "evaluation": EVALUATION, "seed": 1, "cross_validate": True, **FIT}
    write_probe(spec | changes, threads=1, **files)
    facts: dict[str, Any] = json.loads(files["facts"].read_text())
    return facts


def chosen(pool: str) -> list[Item]:
    return [item for item_id in SUBSET[pool] for item in ITEMS if item.item_id == item_id]


def test_predictions_are_those_of_scikit_learn_on_the_chosen_items(files: dict[str, Path]) -> None:
    probe(files)
    control = CharNgrams(SOURCE)
    oracle = LogisticRegression(C=1.0, tol=1e-6, max_iter=1000)
    oracle.fit(control.vectors(chosen("train"))[0], [tag for item in chosen("train") for tag in item.tags])
    new = control.vectors(chosen("test"))[0]
    table = pq.read_table(files["predictions"])
    assert table.column_names == ["item_id", "word", "gold", "predicted", "probability"]
    assert table["item_id"].to_pylist() == ["t2", "t1", "t1", "t1", "t1"]
    assert table["word"].to_pylist() == [0, 0, 1, 2, 3]
    assert table["gold"].to_pylist() == ["O", "O", f"B-{P}", "O", f"B-{S}"]
    assert table["predicted"].to_pylist() == oracle.predict(new).tolist()
    np.testing.assert_allclose(table["probability"].to_numpy(), oracle.predict_proba(new).max(axis=1), atol=1e-5)


def test_settings_and_convergence_are_recorded(files: dict[str, Path]) -> None:
    facts = probe(files)
    assert {name: facts[name] for name in FIT} == FIT
    assert facts["converged"] is True
    assert facts["iterations"] > 0
    assert facts["classes"] == [f"B-{P}", f"B-{S}", f"I-{P}", "O"]
    assert facts["predictions_sha256"] == sha256_file(files["predictions"])


def test_a_fit_that_is_cut_short_is_recorded_as_such(files: dict[str, Path]) -> None:
    assert probe(files, max_iter=1)["converged"] is False


def test_the_head_is_arrays_and_gives_the_predictions_again(files: dict[str, Path]) -> None:
    facts = probe(files)
    head = load_file(files["head"])
    scores = CharNgrams(SOURCE).vectors(chosen("test"))[0] @ head["weights"].T + head["bias"]
    tags = [facts["classes"][index] for index in scores.argmax(axis=1)]
    assert tags == pq.read_table(files["predictions"])["predicted"].to_pylist()


def test_the_lookup_baseline_needs_no_vectors(files: dict[str, Path]) -> None:
    write_probe(
        {"model": "train-lookup", "encoder": {"key": "k"}, "evaluation": EVALUATION, "seed": 1, **FIT},
        threads=1,
        **(files | {"vectors": None, "manifest": None}),
    )
    table = pq.read_table(files["predictions"])
    assert table["predicted"].to_pylist() == ["O", "O", f"B-{P}", "O", f"B-{S}"]
    assert json.loads(files["facts"].read_text())["kind"] == "train-lookup"
    assert json.loads(files["exploratory"].read_text())["exploratory"] is None


def test_running_twice_gives_identical_files(files: dict[str, Path]) -> None:
    probe(files)
    first = [files[name].read_bytes() for name in ("predictions", "head", "facts", "exploratory")]
    probe(files)
    assert [files[name].read_bytes() for name in ("predictions", "head", "facts", "exploratory")] == first


def test_cross_validation_leaves_every_other_file_as_it_is(files: dict[str, Path]) -> None:
    written = ("predictions", "head", "facts")
    probe(files)
    assert read_json(files["exploratory"])["exploratory"]["grid"] == [0.1, 1.0, 10.0, 100.0]
    first = [files[name].read_bytes() for name in written]
    probe(files, cross_validate=False)
    assert [files[name].read_bytes() for name in written] == first
    assert read_json(files["exploratory"])["exploratory"] is None


def test_vectors_that_differ_from_their_manifest_are_refused(files: dict[str, Path]) -> None:
    files["vectors"].write_bytes(files["vectors"].read_bytes() + b"\0")
    with pytest.raises(ArtefactError, match=r"differs from its record in vectors\.json"):
        probe(files)
    assert not files["predictions"].exists()


@pytest.mark.parametrize(("field", "value"), [("model", "n"), ("key", "kk"), ("subset", "t")])
def test_vectors_of_another_encoder_or_subset_are_refused(files: dict[str, Path], field: str, value: str) -> None:
    write_json(files["manifest"], read_json(files["manifest"]) | {field: value})
    with pytest.raises(ArtefactError, match=f"of another {field}; expected .; got {value}"):
        probe(files)
    assert not files["predictions"].exists()


def test_vectors_of_other_items_are_refused(files: dict[str, Path]) -> None:
    write_json(files["subset"], {"id": "s", "seed": 1, "counts": {}, "items": SUBSET | {"test": ["t2", "not chosen"]}})
    with pytest.raises(ArtefactError, match=r"not chosen: vectors and words do not fit; expected 1 rows; got 0"):
        probe(files)
