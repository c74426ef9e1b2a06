"""Commands that people type around the pipeline, run as they would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loopback_hub import LoopbackHub

from nerprobe.files import write_json

PROJECT = Path(__file__).resolve().parents[2]
COMMIT = "89abcdef0123456789abcdef0123456789abcdef"


def nerprobe(*words: str, cwd: Path, project: Path = PROJECT, stdin: str = "", **environment: str):
    inherited = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    variables = {**inherited, "PYTHONPATH": str(project / "src"), **environment}
    command = [sys.executable, "-m", "nerprobe", *words]
    return subprocess.run(command, cwd=cwd, env=variables, input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path):
    """A copy of what the commands read and write."""
    copy = tmp_path / "project"
    for part in ("src", "config", "workflow/schemas"):
        shutil.copytree(PROJECT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.lock.yaml"))
    return copy


def test_lock_pins_a_hub_id_to_its_commit(project, tmp_path):
    with LoopbackHub() as hub:
        hub.add_repo("org/name", "model", COMMIT, {"config.json": b"{}"})
        done = nerprobe("lock", "org/name", cwd=tmp_path, project=project, HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"org/name@{COMMIT}" in done.stdout
    assert f"org/name: {COMMIT}" in (project / "config" / "models.lock.yaml").read_text()
    listed = nerprobe("models", "org/name", cwd=tmp_path, project=project)
    assert COMMIT[:8] in listed.stdout


def test_lock_of_an_unknown_repository_writes_nothing(project, tmp_path):
    with LoopbackHub() as hub:
        done = nerprobe("lock", "org/none", cwd=tmp_path, project=project, HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "org/none" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / "config" / "models.lock.yaml").exists()


def test_models_lists_every_encoder_of_the_registry(tmp_path):
    done = nerprobe("models", cwd=tmp_path, COLUMNS="200")
    for name in ("roberta-base-bne", "xlm-roberta-large", "minilm-l6", "bertweet-base", "arbert", "train-lookup"):
        assert name in done.stdout


def leave(folder: Path, model: str, key: str) -> list[Path]:
    """Write what a run of a model leaves."""
    run = folder / "results" / "task" / "run"
    files = [
        run / "embeddings" / f"{model}.{key}.parquet",
        run / "embeddings" / f"{model}.{key}.json",
        run / "predictions" / f"{model}.parquet",
        run / "heads" / f"{model}.safetensors",
        run / "heads" / f"{model}.json",
        run / "metrics" / f"{model}.json",
        folder / "resources" / "encoders" / f"{model}.json",
        folder / "resources" / "vectors" / key / "block.safetensors",
    ]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    return files


def test_forget_says_what_goes_and_removes_only_that(tmp_path):
    gone = leave(tmp_path, "alpha", "a" * 12)
    kept = leave(tmp_path, "alpha.b", "b" * 12) + leave(tmp_path, "alphabet", "c" * 12)
    asked = nerprobe("forget", "alpha", cwd=tmp_path)
    assert asked.returncode == 1
    assert all(file.exists() for file in gone)
    done = nerprobe("forget", "alpha", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for file in gone[:-1]:
        assert str(file.relative_to(tmp_path)) in done.stdout
    assert not any(file.exists() for file in gone)
    assert all(file.exists() for file in kept)


def test_forget_keeps_vectors_that_another_model_shares(tmp_path):
    leave(tmp_path, "alpha", "a" * 12)
    shared = leave(tmp_path, "twin", "a" * 12)[-1]
    assert nerprobe("forget", "alpha", "--yes", cwd=tmp_path).returncode == 0
    assert shared.exists()


def test_forget_removes_the_layers_of_a_sweep_unless_another_model_shares_them(tmp_path):
    def swept(model: str, key: str) -> Path:
        write_json(tmp_path / "results/task/run/sweeps" / f"{model}.json", {"model": model, "encoder": {"key": key}})
        layer = tmp_path / "resources" / "sweeps" / key / "layer-00" / "b.safetensors"
        layer.parent.mkdir(parents=True, exist_ok=True)
        layer.write_text("")
        return layer

    own, shared = swept("alpha", "a" * 12), swept("alpha2", "b" * 12)
    swept("twin", "b" * 12)
    for model in ("alpha", "alpha2"):
        assert nerprobe("forget", model, "--yes", cwd=tmp_path).returncode == 0
    assert not own.parents[1].exists()
    assert shared.exists()


def test_forget_of_an_unknown_model_names_the_known_ones(tmp_path):
    leave(tmp_path, "alpha", "a" * 12)
    done = nerprobe("forget", "alpah", "--yes", cwd=tmp_path)
    assert done.returncode == 1
    assert "alpha" in done.stderr


def test_forget_does_not_read_a_name_as_a_pattern(tmp_path):
    files = leave(tmp_path, "alpha", "a" * 12)
    assert nerprobe("forget", "*", "--yes", cwd=tmp_path).returncode == 1
    assert nerprobe("forget", "../../results/task/run/metrics/alpha", "--yes", cwd=tmp_path).returncode == 1
    assert all(file.exists() for file in files)


def test_show_without_any_board_says_what_to_do(tmp_path):
    done = nerprobe("show", cwd=tmp_path)
    assert done.returncode == 1
    assert "make demo" in done.stderr


TASK = """
title: Tiny
language: es
licence: cc-by-4.0
texts_shareable: false
source: {{kind: path, folder: {folder}}}
format: {{kind: columns, separator: " ", columns: [word, tag]}}
text: spaces
item_prefix: tiny-
types: [PER]
ignored_types: []
pools:
  test: {{role: test, file: test.txt}}
  train: {{role: train, file: train.txt}}
evaluations:
  - {{protocol: probe, regime: train, train_pool: train, test_pool: test}}
"""


def test_check_task_counts_what_each_pool_holds(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TASK.format(folder=json.dumps(str(tmp_path))))
    (tmp_path / "test.txt").write_text("Ana B-PER\nva O\n\nsí O\n")
    (tmp_path / "train.txt").write_text("Luz B-PER\nDía I-PER\n")
    done = nerprobe("check-task", "tiny.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pool test: 2 items with 1 mention (1 PER) in 1 of them" in done.stdout
    assert "Luz/B-PER, Día/I-PER" in done.stdout


def test_check_task_names_file_and_line_of_a_fault(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TASK.format(folder=json.dumps(str(tmp_path))))
    (tmp_path / "test.txt").write_text("Ana B-PER\nva O\n\nsí B-LOC\n")
    (tmp_path / "train.txt").write_text("Luz B-PER\n")
    done = nerprobe("check-task", "tiny.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "test.txt:4" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_task_names_a_misspelt_key(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TASK.format(folder="data") + "lisense: x\n")
    done = nerprobe("check-task", "tiny.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "lisense" in done.stderr
