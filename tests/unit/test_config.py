"""Configuration and task files: what is coerced, what is refused, and how the error helps."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from makers import ROOT

from nerprobe.config import closest, load_lock, load_registry, load_task, read_yaml, validate
from nerprobe.errors import ConfigError, NerprobeError, TaskFileError

CONFIG: dict[str, Any] = {
    "tasks": ["sample"],
    "models": ["minilm-l6"],
    "baselines": ["train-lookup"],
    "data_dir": None,
    "subset": {"seed": 1, "test": 10, "train": 20},
    "embed": {"dtype": "float32", "storage": "float32", "batch_tokens": 4096, "device": "auto"},
    "probe": {"C": 1.0, "tol": 1e-6, "max_iter": 1000, "cross_validate": True},
    "bootstrap": {"resamples": 1000, "level": 0.95, "seed": None},
    "learning_curve": {"sizes": [5, "all"], "repeats": 3},
}


def checked(section: str | None = None, **changes: Any) -> Any:
    """Validate the configuration with changes to it, or to one section of it."""
    config = CONFIG | changes if section is None else CONFIG | {section: CONFIG[section] | changes}
    return validate(config, schema="config", where="config")


# --- what is coerced -----------------------------------------------------------------------------


def test_a_bare_text_becomes_a_list_of_one() -> None:
    config = checked(models="org/name", tasks="sample", baselines="random-bert")
    assert (config["models"], config["tasks"], config["baselines"]) == (["org/name"], ["sample"], ["random-bert"])


@pytest.mark.parametrize(
    ("section", "given", "value"),
    [
        ("subset", {"test": "100"}, 100),
        ("subset", {"train": "all"}, "all"),
        ("subset", {"seed": "20261006"}, 20261006),
        ("embed", {"batch_tokens": "64"}, 64),
        ("probe", {"C": "0.5"}, 0.5),
        ("probe", {"C": 1}, 1.0),
        ("probe", {"tol": "1e-6"}, 1e-6),
        ("bootstrap", {"seed": "null"}, None),
        ("bootstrap", {"seed": "7"}, 7),
        ("bootstrap", {"level": "0.9"}, 0.9),
    ],
)
def test_texts_of_the_command_line_get_the_type_of_the_schema(section: str, given: dict[str, Any], value: Any) -> None:
    ((key, _),) = given.items()
    got = checked(section, **given)[section][key]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("section", "given", "value"),
    [
        ("subset", {"seed": 1.0}, 1),
        ("subset", {"test": 10.0}, 10),
        ("bootstrap", {"resamples": 1000.0}, 1000),
        ("probe", {"max_iter": 1000.0}, 1000),
        ("embed", {"batch_tokens": 64.0}, 64),
    ],
)
def test_a_whole_number_is_never_carried_on_as_a_fraction(section: str, given: dict[str, Any], value: int) -> None:
    # 1.0 and 1 would rank items differently, since the seed is part of a hashed text.
    ((key, _),) = given.items()
    try:
        got = checked(section, **given)[section][key]
    except ConfigError:
        return
    assert (got, type(got)) == (value, int)


def test_data_dir_may_be_null_in_words_or_a_folder() -> None:
    assert checked(data_dir="null")["data_dir"] is None
    assert checked(data_dir="../data")["data_dir"] == "../data"


def test_no_models_and_no_baselines_are_lists_too() -> None:
    assert checked(models=[], baselines=[])["models"] == []


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("section", "given", "expected"),
    [
        (None, {"modles": []}, "config: unknown key 'modles'"),
        (None, {"modles": []}, "did you mean models?"),
        ("subset", {"sede": 1}, "config: subset: unknown key 'sede'"),
        ("subset", {"sede": 1}, "did you mean seed?"),
        ("subset", {"test": 0}, "config: subset.test"),
        ("subset", {"test": "many"}, "integer or all"),
        ("subset", {"test": -5}, "config: subset.test"),
        ("subset", {"test": 1.5}, "config: subset.test"),
        ("subset", {"test": True}, "config: subset.test"),
        ("subset", {"seed": -1}, "config: subset.seed"),
        ("embed", {"dtype": "float64"}, "one of float32, float16, bfloat16"),
        ("embed", {"device": "gpu"}, "config: embed.device"),
        ("probe", {"C": 0}, "config: probe.C"),
        ("probe", {"C": "nan"}, "config: probe.C"),
        ("probe", {"C": float("nan")}, "config: probe.C"),
        ("probe", {"C": float("inf")}, "config: probe.C"),
        ("probe", {"tol": "inf"}, "config: probe.tol"),
        ("bootstrap", {"level": 1}, "config: bootstrap.level"),
        ("bootstrap", {"level": float("nan")}, "config: bootstrap.level"),
        ("bootstrap", {"resamples": 0}, "config: bootstrap.resamples"),
        (None, {"tasks": []}, "config: tasks"),
        (None, {"tasks": ["sample", "sample"]}, "config: tasks"),
        (None, {"tasks": ["../sample"]}, "config: tasks.0"),
        (None, {"models": [5]}, "config: models.0"),
        (None, {"models": None}, "config: models"),
        (None, {"models": {"a": 1}}, "--config 'models=[a,b]'"),
        (None, {"subset": 5}, "config: subset"),
        (None, {1: 2}, "unknown key '1'"),
    ],
)
def test_a_fault_is_named_with_its_place_and_a_way_out(
    section: str | None, given: dict[Any, Any], expected: str
) -> None:
    base = CONFIG if section is None else CONFIG[section]
    config = base | given if section is None else CONFIG | {section: base | given}
    with pytest.raises(ConfigError) as caught:
        validate(config, schema="config", where="config")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["tasks", "models", "subset", "bootstrap"])
def test_a_missing_key_is_named(key: str) -> None:
    config = {name: value for name, value in CONFIG.items() if name != key}
    with pytest.raises(ConfigError, match=f"missing key '{key}'"):
        validate(config, schema="config", where="config")


def test_the_default_configuration_fits_its_schema() -> None:
    default = read_yaml(ROOT / "config" / "config.yaml")
    assert validate(default, schema="config", where="config") == default


@pytest.mark.parametrize("name", ["minilm-16", "MiniLM-L6", "minlm-l6"])
def test_the_nearest_name_is_offered(name: str) -> None:
    assert closest(name, ["minilm-l6", "xlm-roberta-base"]) == "did you mean minilm-l6?"


def test_where_nothing_is_near_the_known_names_are_listed() -> None:
    assert closest("zzz", ["b", "a"]) == "known: a, b"


# --- YAML files ----------------------------------------------------------------------------------


@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    ["a: [1", "a: b: c", "\ta: 1", "date: 2020-13-45", "&a [*a, *b]", "a: \x00", "!!python/object:os.system {}"],
    ids=["open bracket", "two colons", "tab", "no such day", "no such anchor", "control character", "python tag"],
)
def test_a_broken_yaml_file_ends_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(NerprobeError, match=r"t\.yaml: this is no YAML") as caught:
        read_yaml(tmp_path / "t.yaml")
    assert "\n" not in str(caught.value)


def test_a_yaml_file_in_another_encoding_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_bytes("título: é".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"t\.yaml: this is no YAML"):
        read_yaml(tmp_path / "t.yaml")


def test_a_missing_yaml_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot read this file"):
        read_yaml(tmp_path / "none.yaml")


# --- task files ----------------------------------------------------------------------------------


def task_file(folder: Path, **changes: Any) -> Path:
    """Write the sample's task file with changes; a change to None takes the key away."""
    task = yaml.safe_load((ROOT / "config" / "tasks" / "sample.yaml").read_text()) | changes
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in task.items() if value is not None}))
    return path


EVALUATION = {"protocol": "probe", "regime": "train", "train_pool": "train", "test_pool": "test"}


def test_a_task_is_named_after_its_file(tmp_path: Path) -> None:
    task = load_task(task_file(tmp_path))
    assert task.name == "mine"
    assert task.types == ("PROFESION", "SITUACION_LABORAL")
    assert task.pools["test"].role == "test"


def test_the_benchmark_task_is_the_card_s() -> None:
    task = load_task(ROOT / "config" / "tasks" / "profner.yaml")
    assert task.source == {
        "kind": "hub",
        "repo": "Biomedical-TeMU/ProfNER_corpus_NER",
        "revision": "de9bf1404880f4b7225e1cc0e9268192e57fefca",
    }
    assert (task.types, task.ignored_types) == (("PROFESION", "SITUACION_LABORAL"), ("ACTIVIDAD", "FIGURATIVA"))
    assert {name: pool.file for name, pool in task.pools.items()} == {
        "test": "BIO/valid_spacy.txt",
        "train": "BIO/train_spacy.txt",
    }
    assert (task.item_prefix, task.text) == ("profner-", "offsets")
    assert task.labels["card_subset_id"] == "6a64cf58f0f13fda"


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"types": None}, "missing key 'types'"),
        ({"type": ["A"]}, "unknown key 'type'"),
        ({"types": []}, "mine.yaml: types"),
        ({"ignored_types": ["PROFESION"]}, "a type is both scored and ignored"),
        ({"text": "offset"}, "one of offsets, spaces"),
        ({"format": {"kind": "columns", "separator": " ", "columns": ["word", "tag"]}}, "columns start and end"),
        ({"format": {"kind": "columns", "separator": " ", "columns": ["word"]}}, "format"),
        ({"format": {"kind": "csv"}}, "format"),
        ({"format": {"kind": "jsonl", "words": "w", "tags": "t", "item": "i"}}, "start and end"),
        ({"source": {"kind": "hub", "repo": "a/b", "revision": "main"}}, "source.revision"),
        ({"source": {"kind": "path", "dir": "x"}}, "source"),
        ({"evaluations": [{**EVALUATION, "test_pool": "dev"}]}, "test_pool is no pool of that role"),
        ({"evaluations": [{**EVALUATION, "test_pool": "train"}]}, "test_pool is no pool of that role"),
        ({"pools": {"test": {"role": "test", "file": "../x"}}}, "pools.test.file"),
        ({"pools": {"test": {"role": "test", "file": "/x"}}}, "pools.test.file"),
        ({"pools": {"test": {"role": "dev", "file": "x"}}}, "one of test, train"),
        ({"pools": {"test": {"role": "test", "file": "a"}, "train": {"role": "train", "file": "b"}}}, "items"),
    ],
)
def test_a_task_file_that_contradicts_itself_is_refused(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(TaskFileError) as caught:
        load_task(task_file(tmp_path, **changes))
    assert "mine.yaml" in str(caught.value)
    assert expected in str(caught.value)


def test_pools_named_by_a_year_work_or_end_in_one_line(tmp_path: Path) -> None:
    pools = {2020: {"role": "test", "file": "a", "items": 5}, "train": {"role": "train", "file": "b", "items": 5}}
    path = task_file(tmp_path, pools=pools, evaluations=[{**EVALUATION, "test_pool": "2020"}])
    found: list[str] = []
    with contextlib.suppress(TaskFileError):
        found = list(load_task(path).pools)
    assert found in ([], ["2020", "train"])


@pytest.mark.parametrize("text", ["", "[]", "5"])
def test_a_task_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(TaskFileError, match=r"t\.yaml: "):
        load_task(tmp_path / "t.yaml")


# --- registry and lock ---------------------------------------------------------------------------


def test_every_hub_encoder_of_the_registry_is_pinned_to_a_full_commit() -> None:
    registry = load_registry(ROOT / "config" / "models.yaml")
    hub = [entry["source"] for entry in registry.values() if entry["source"]["kind"] == "hub"]
    assert len(hub) > 20
    assert all(len(source["revision"]) == 40 for source in hub)


def test_e5_encoders_take_their_prefix() -> None:
    registry = load_registry(ROOT / "config" / "models.yaml")
    prefixed = {name: entry["prefix"] for name, entry in registry.items() if "prefix" in entry}
    assert prefixed == {"multilingual-e5-small": "query: ", "multilingual-e5-base": "query: "}


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"source": {"kind": "hub", "repo": "a/b", "revision": "abc"}, "family": "x"}, "mine.source.revision"),
        ({"source": {"kind": "hub", "repo": "a/b"}, "family": "x"}, "missing key 'revision'"),
        ({"source": {"kind": "git"}, "family": "x"}, "mine.source"),
        ({"family": "x"}, "missing key 'source'"),
        ({"source": {"kind": "train-lookup"}, "family": "x", "poling": "mean"}, "did you mean pooling?"),
        ({"source": {"kind": "train-lookup"}, "family": "x", "pooling": "cls"}, "one of mean, first, last, max"),
    ],
)
def test_a_broken_registry_entry_is_named(tmp_path: Path, entry: dict[str, Any], expected: str) -> None:
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"mine": entry}))
    with pytest.raises(ConfigError) as caught:
        load_registry(tmp_path / "models.yaml")
    assert expected in str(caught.value)


@pytest.mark.parametrize("layer", ["last", 0, -1, [1, 2]])
def test_a_layer_may_be_the_last_a_number_or_a_range(tmp_path: Path, layer: object) -> None:
    entry = {"source": {"kind": "train-lookup"}, "family": "x", "layer": layer}
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"mine": entry}))
    assert load_registry(tmp_path / "models.yaml")["mine"]["layer"] == layer


def test_a_lock_file_holds_full_commits_and_may_be_missing(tmp_path: Path) -> None:
    assert load_lock(tmp_path / "none.yaml") == {}
    (tmp_path / "lock.yaml").write_text("org/name: main\n")
    with pytest.raises(ConfigError, match="org/name"):
        load_lock(tmp_path / "lock.yaml")
