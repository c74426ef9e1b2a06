"""What a configuration asks for: runs and their labels, encoders and their keys."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from makers import ROOT

import nerprobe.encoders
import nerprobe.plan
from nerprobe.encoders import Encoder, resolve, resolve_all
from nerprobe.errors import (
    ConfigError,
    CorpusFileError,
    EncoderFolderError,
    SlugClashError,
    SubsetSizeError,
    TaskFileError,
    UnknownModelError,
    UnpinnedModelError,
)
from nerprobe.plan import Plan, make_plan

SHA = "0123456789abcdef0123456789abcdef01234567"
OTHER_SHA = "01234567" + "f" * 32

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NERPROBE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with the real configuration files, to be changed, and a short registry that is quick to read."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "config", folder / "config", ignore=shutil.ignore_patterns("models*.yaml"))
    (folder / "config" / "models.yaml").write_text(short_registry())
    return folder


@functools.cache
def short_registry() -> str:
    entries = yaml.safe_load((ROOT / "config" / "models.yaml").read_text())
    names = ("minilm-l6", "roberta-base", "train-lookup", "char-ngrams", "random-bert")
    return yaml.safe_dump({name: entries[name] for name in names})


def plan(project: Path, task: str = "sample", *, base: Path | None = None, **changes: Any) -> Plan:
    """Plan the default configuration with changes; a mapping changes a part of its section."""
    config = yaml.safe_load((project / "config" / "config.yaml").read_text())
    config |= {"tasks": [task], "models": ["minilm-l6"]}
    for key, value in changes.items():
        config[key] = {**config[key], **value} if isinstance(value, dict) and key in config else value
    return make_plan(config, base=base or project, project=project)


def edit(project: Path, file: str, change: Change) -> None:
    path = project / "config" / file
    data = yaml.safe_load(path.read_text())
    change(data)
    path.write_text(yaml.safe_dump(data))


def label(project: Path, task: str = "sample", **changes: Any) -> str:
    return plan(project, task, **changes).runs[task].label


def put(*path: str | int, value: object) -> Change:
    """Return a change that sets one value deep inside."""

    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return change


# --- the run's label -----------------------------------------------------------------------------


def test_a_label_reads_sizes_and_eight_hex(project: Path) -> None:
    assert re.fullmatch(r"test100-train500-[0-9a-f]{8}", label(project))
    assert re.fullmatch(r"test7-trainall-[0-9a-f]{8}", label(project, subset={"test": 7, "train": "all"}))


def test_the_same_configuration_has_the_same_label(project: Path) -> None:
    assert label(project) == label(project)


def test_a_run_lies_under_its_task(project: Path) -> None:
    run = plan(project).runs["sample"]
    assert run.folder == f"results/sample/{run.label}"


@pytest.mark.parametrize(
    "changes",
    [
        {"subset": {"seed": 1}},
        {"subset": {"test": 99}},
        {"subset": {"train": 499}},
        {"subset": {"test": "all"}},
        {"probe": {"C": 0.5}},
        {"probe": {"tol": 1e-4}},
        {"probe": {"max_iter": 999}},
    ],
    ids=str,
)
def test_the_label_changes_with_subset_and_probe(project: Path, changes: dict[str, Any]) -> None:
    assert label(project, **changes)[-8:] != label(project)[-8:]


@pytest.mark.parametrize(
    "changes",
    [
        {"bootstrap": {"resamples": 10_000}},
        {"bootstrap": {"level": 0.9}},
        {"bootstrap": {"seed": 5}},
        {"embed": {"batch_tokens": 64}},
        {"embed": {"device": "cpu"}},
        {"embed": {"dtype": "bfloat16"}},
        {"models": ["roberta-base"]},
        {"models": []},
        {"baselines": []},
        {"probe": {"C": 1}},
        {"probe": {"cross_validate": False}},
        {"probe": {"C": "1.0", "tol": "1e-6"}},
        {"subset": {"test": "100"}},
    ],
    ids=str,
)
def test_the_label_does_not_change_with_what_a_board_may_mix(project: Path, changes: dict[str, Any]) -> None:
    assert label(project, **changes) == label(project)


@pytest.mark.parametrize(
    ("task", "change"),
    [
        ("profner", put("source", "revision", value=SHA)),
        ("profner", put("source", "repo", value="other/repo")),
        ("profner", put("pools", "test", "file", value="BIO/other.txt")),
        ("profner", put("text", value="spaces")),
        ("profner", put("item_prefix", value="p-")),
        ("profner", put("types", value=["PROFESION"])),
        ("profner", put("ignored_types", value=["ACTIVIDAD"])),
        ("profner", put("format", "separator", value="\t")),
        ("profner", put("evaluations", 0, "regime", value="other")),
        ("sample", put("source", "seed", value=1)),
        ("sample", put("pools", "test", "items", value=501)),
    ],
)
def test_the_label_changes_with_the_data_and_the_rules_of_a_task(project: Path, task: str, change: Change) -> None:
    before = label(project, task)
    edit(project, f"tasks/{task}.yaml", change)
    assert label(project, task) != before


@pytest.mark.parametrize(
    "change",
    [
        put("title", value="Another title"),
        put("description", value="Other words"),
        put("licence", value="other"),
        put("texts_shareable", value=True),
        put("labels", value={}),
        put("pools", "test", "items", value=1999),
        put("pools", "test", "sha256", value="0" * 64),
    ],
)
def test_the_label_does_not_change_with_what_a_task_says_of_itself(project: Path, change: Change) -> None:
    before = label(project, "profner")
    edit(project, "tasks/profner.yaml", change)
    assert label(project, "profner") == before


@pytest.mark.parametrize(
    ("name", "value"), [("SUBSET_RULE", "other/2"), ("TAG_RULE", "other/2"), ("CORPUS_VERSION", 99)]
)
def test_the_label_changes_with_the_version_of_a_rule(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    before = label(project)
    monkeypatch.setattr(nerprobe.plan, name, value)
    assert label(project) != before


def local(folder: Path, test: str = "a 1 0 1 O\n", train: str = "b 2 0 1 O\n") -> Path:
    """Write a local ProfNER as data_dir has it."""
    (folder / "profner" / "BIO").mkdir(parents=True)
    (folder / "profner" / "BIO" / "valid_spacy.txt").write_text(test)
    (folder / "profner" / "BIO" / "train_spacy.txt").write_text(train)
    return folder


ONE = {"test": 1, "train": 1}


def test_local_files_are_known_by_content_and_not_by_path(project: Path, tmp_path: Path) -> None:
    here, there = local(tmp_path / "here"), local(tmp_path / "there")
    other = local(tmp_path / "other", test="a 1 0 1 B-PROFESION\n")
    labels = [label(project, "profner", data_dir=str(folder), subset=ONE) for folder in (here, there, other)]
    assert labels[0] == labels[1] != labels[2]
    assert label(project, "profner", subset=ONE) != labels[0]


def test_a_relative_data_dir_starts_where_the_command_was_typed(project: Path, tmp_path: Path) -> None:
    local(tmp_path / "typed" / "data")
    run = plan(project, "profner", base=tmp_path / "typed", data_dir="data", subset=ONE).runs["profner"]
    assert run.corpus["source"]["kind"] == "path"
    assert run.corpus["source"]["folder"] == str(tmp_path / "typed" / "data" / "profner")


def test_a_missing_local_file_is_named(project: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusFileError, match=r"task profner: no such corpus file; expected .*valid_spacy\.txt"):
        plan(project, "profner", data_dir=str(tmp_path), subset=ONE)


def test_data_dir_does_not_touch_a_task_that_is_not_of_the_hub(project: Path, tmp_path: Path) -> None:
    assert label(project, data_dir=str(tmp_path)) == label(project)


def test_more_items_than_a_pool_states_are_refused_when_the_workflow_is_read(project: Path) -> None:
    with pytest.raises(SubsetSizeError, match=r"task sample, config: subset\.test: .* at most 500, or all; got 501"):
        plan(project, subset={"test": 501})
    assert plan(project, subset={"test": 500})


def test_a_local_pool_larger_than_stated_may_be_used_in_full(project: Path, tmp_path: Path) -> None:
    lines = "".join(f"a {number} 0 1 O\n" for number in range(3))
    folder = local(tmp_path / "d", test=lines)
    edit(project, "tasks/profner.yaml", put("pools", "test", "items", value=2))
    assert plan(project, "profner", data_dir=str(folder), subset={"test": 3, "train": 1})
    with pytest.raises(SubsetSizeError, match="at most 3, or all; got 4"):
        plan(project, "profner", data_dir=str(folder), subset={"test": 4, "train": 1})


def test_a_sample_without_a_number_of_items_is_refused_in_one_line(project: Path) -> None:
    edit(project, "tasks/sample.yaml", put("pools", "test", value={"role": "test", "file": "t.txt"}))
    with pytest.raises((TaskFileError, ConfigError), match="items"):
        plan(project)


# --- names ---------------------------------------------------------------------------------------


def test_models_and_baselines_make_the_rows_in_the_order_asked_for(project: Path) -> None:
    made = plan(project, models=["roberta-base", "minilm-l6"], baselines=["train-lookup"])
    assert list(made.encoders) == ["roberta-base", "minilm-l6", "train-lookup"]
    assert list(made.board["models"]) == ["minilm-l6", "roberta-base", "train-lookup"]


def test_a_repeated_name_is_one_row(project: Path) -> None:
    assert list(plan(project, models=["minilm-l6", "minilm-l6"], baselines=[]).encoders) == ["minilm-l6"]


def test_a_misspelt_model_gets_the_nearest_name(project: Path) -> None:
    with pytest.raises(UnknownModelError, match=r"'minilm-16': .*did you mean minilm-l6\?"):
        plan(project, models=["minilm-16"])


def test_a_list_typed_without_quotes_is_explained(project: Path) -> None:
    with pytest.raises(UnknownModelError, match=r"--config 'models=\[a,b\]'"):
        plan(project, models="minilm-l6,roberta-base")


def test_a_misspelt_task_and_baseline_get_the_nearest_name(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean profner\?"):
        plan(project, "profnr")
    with pytest.raises(ConfigError, match=r"did you mean char-ngrams\?"):
        plan(project, baselines=["char-ngram"])


def test_nothing_to_evaluate_is_refused(project: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to evaluate"):
        plan(project, models=[], baselines=[])


@pytest.mark.parametrize("reference", ["org/name", "org/name@main", "org/name@0123456", f"org/name@{SHA.upper()}"])
def test_a_hub_id_without_a_full_revision_says_how_to_pin_it(project: Path, reference: str) -> None:
    with pytest.raises(UnpinnedModelError, match=r"expected org/name@<40 hex>; pin it: nerprobe lock org/name"):
        plan(project, models=[reference])


def test_an_unpinned_hub_id_of_the_registry_names_its_entry(project: Path) -> None:
    with pytest.raises(UnpinnedModelError, match="use its registry name roberta-base"):
        plan(project, models=["FacebookAI/roberta-base"])


def test_a_pinned_hub_id_is_a_row_of_its_own(project: Path) -> None:
    (encoder,) = plan(project, models=[f"org/name@{SHA}"], baselines=[]).encoders.values()
    assert encoder.slug == "org--name--01234567"
    assert encoder.source == {"kind": "hub", "repo": "org/name", "revision": SHA}
    assert (encoder.baseline, encoder.fetched, encoder.embedded) == (False, True, True)


def test_a_locked_hub_id_takes_its_revision_from_the_lock(project: Path) -> None:
    (project / "config" / "models.lock.yaml").write_text(f"org/name: {SHA}\n")
    (encoder,) = plan(project, models=["org/name"], baselines=[]).encoders.values()
    assert encoder.slug == "org--name--01234567"


def test_two_revisions_with_one_short_form_clash(project: Path) -> None:
    with pytest.raises(SlugClashError, match="org--name--01234567"):
        plan(project, models=[f"org/name@{SHA}", f"org/name@{OTHER_SHA}"])


def folder_encoder(path: Path, weights: bytes = b"w") -> Path:
    path.mkdir(parents=True)
    for name, data in (("config.json", b"{}"), ("tokenizer.json", b"{}"), ("model.safetensors", weights)):
        (path / name).write_bytes(data)
    return path


def test_two_folders_of_one_name_clash(project: Path, tmp_path: Path) -> None:
    folder_encoder(tmp_path / "a" / "mine")
    folder_encoder(tmp_path / "b" / "mine")
    with pytest.raises(SlugClashError, match="two encoders would write the same files"):
        plan(project, base=tmp_path, models=["./a/mine", "./b/mine"])


def test_a_folder_named_like_a_registry_entry_clashes(project: Path, tmp_path: Path) -> None:
    folder_encoder(tmp_path / "minilm-l6")
    with pytest.raises(SlugClashError):
        plan(project, base=tmp_path, models=["minilm-l6", "./minilm-l6"])


def test_a_folder_whose_rows_would_take_another_model_s_record_of_failure_clashes_or_is_renamed(
    project: Path, tmp_path: Path
) -> None:
    # Once, resources/encoders/mine.failure.json was both the record of one and the failure of the other.
    folder_encoder(tmp_path / "mine")
    folder_encoder(tmp_path / "mine.failure")
    try:
        made = plan(project, base=tmp_path, models=["./mine", "./mine.failure"])
    except (SlugClashError, UnknownModelError):
        return
    records = [f"{slug}.json" for slug in made.encoders] + [f"failures/{slug}.json" for slug in made.encoders]
    assert len(set(records)) == len(records)


def test_a_missing_folder_is_named(project: Path, tmp_path: Path) -> None:
    with pytest.raises(EncoderFolderError, match=r"none: this is no folder"):
        plan(project, base=tmp_path, models=["./none"])


# --- the key of an encoder's vectors -------------------------------------------------------------

EMBED = {"dtype": "float32", "storage": "float32", "batch_tokens": 4096, "device": "auto"}
HUB = {"source": {"kind": "hub", "repo": "org/name", "revision": SHA}, "family": "x"}


def encoder_of(entry: dict[str, Any], *, base: Path = ROOT, **embed: Any) -> Encoder:
    return resolve("mine", registry={"mine": entry}, lock={}, embed=EMBED | embed, base=base)


def test_a_key_is_twelve_hex() -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", encoder_of(HUB).key)


@pytest.mark.parametrize(
    "entry",
    [
        {**HUB, "source": {**HUB["source"], "revision": OTHER_SHA}},
        {**HUB, "source": {**HUB["source"], "repo": "org/other"}},
        {**HUB, "dtype": "bfloat16"},
        {**HUB, "layer": 3},
        {**HUB, "layer": [1, 3]},
        {**HUB, "pooling": "first"},
        {**HUB, "prefix": "query: "},
        {**HUB, "max_length": 128},
    ],
    ids=["revision", "repo", "dtype", "layer", "layers", "pooling", "prefix", "max_length"],
)
def test_the_key_changes_with_whatever_changes_the_vectors(entry: dict[str, Any]) -> None:
    assert encoder_of(entry).key != encoder_of(HUB).key


@pytest.mark.parametrize("embed", [{"dtype": "float16"}, {"storage": "float16"}], ids=str)
def test_the_key_changes_with_the_types_of_numbers(embed: dict[str, Any]) -> None:
    assert encoder_of(HUB, **embed).key != encoder_of(HUB).key


def test_the_key_changes_with_the_version_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    before = encoder_of(HUB).key
    monkeypatch.setattr(nerprobe.encoders, "VECTORS_VERSION", 999)
    assert encoder_of(HUB).key != before


@pytest.mark.parametrize("embed", [{"batch_tokens": 64}, {"device": "cuda:1"}], ids=str)
def test_the_key_does_not_change_with_how_vectors_are_computed(embed: dict[str, Any]) -> None:
    assert encoder_of(HUB, **embed).key == encoder_of(HUB).key


@pytest.mark.parametrize("facts", [{"family": "y"}, {"licence": "mit"}, {"parameters": 5}, {"note": "n"}], ids=str)
def test_the_key_does_not_change_with_facts_for_reading(facts: dict[str, Any]) -> None:
    assert encoder_of(HUB | facts).key == encoder_of(HUB).key


def test_the_key_does_not_change_with_the_name_of_the_row() -> None:
    by_name = encoder_of(HUB)
    by_id = resolve(f"org/name@{SHA}", registry={}, lock={}, embed=EMBED, base=ROOT)
    assert by_id.key == by_name.key
    assert by_id.slug != by_name.slug


def test_a_folder_is_keyed_by_content_and_not_by_path(tmp_path: Path) -> None:
    here = folder_encoder(tmp_path / "here" / "mine")
    there = folder_encoder(tmp_path / "there" / "mine")
    other = folder_encoder(tmp_path / "other" / "mine", weights=b"W")
    keys = [resolve(str(path), registry={}, lock={}, embed=EMBED, base=tmp_path).key for path in (here, there, other)]
    assert keys[0] == keys[1] != keys[2]


def test_a_changed_file_in_a_folder_changes_its_key(tmp_path: Path) -> None:
    path = folder_encoder(tmp_path / "mine")
    before = resolve("./mine", registry={}, lock={}, embed=EMBED, base=tmp_path).key
    (path / "model.safetensors").write_bytes(b"other weights")
    assert resolve("./mine", registry={}, lock={}, embed=EMBED, base=tmp_path).key != before


def test_char_ngrams_are_keyed_by_their_own_settings_only() -> None:
    entry = {"source": {"kind": "char-ngrams", "ngrams": [2, 4], "features": 64, "scale": 10.0}, "family": "b"}
    wider = {**entry, "source": {**entry["source"], "features": 128}}
    assert encoder_of(entry, dtype="float16").key == encoder_of(entry).key
    assert encoder_of(wider).key != encoder_of(entry).key


def test_no_two_entries_of_the_registry_share_a_key() -> None:
    registry = yaml.safe_load((ROOT / "config" / "models.yaml").read_text())
    found = resolve_all(list(registry), registry=registry, lock={}, embed=EMBED, base=ROOT)
    assert len({encoder.key for encoder in found.values()}) == len(registry)
