"""The profiles: what each rule asks for, without running a job."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yte
from cluster_place import edited_profile
from helpers import PROJECT, Place

from nerprobe.config import load_registry
from nerprobe.encoders import BASELINE_KINDS

pytestmark = pytest.mark.workflow

SLURM = PROJECT / "profiles" / "slurm"
CONTROLS = "train-lookup,char-ngrams,random-bert"


needs_plugin = pytest.mark.skipif(
    importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="make slurm has not been called"
)


def asked(place: Place, profile: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the resources and threads of each job, by rule and model, as a dry run tells them."""
    ran = place.run(*place.config("./alpha", baselines=CONTROLS), flags=["-n", "--workflow-profile", str(profile)])
    assert ran.code == 0, ran.out
    found = {}
    for rule, body in re.findall(r"^rule (\w+):\n((?: {4}.*\n)+)", ran.out, re.MULTILINE):
        model = re.search(r"wildcards: .*\bmodel=([^,\n]+)", body)
        told = re.search(r"^    resources: (.*)$", body, re.MULTILINE)
        threads = re.search(r"^    threads: (.*)$", body, re.MULTILINE)
        pairs = dict(pair.partition("=")[::2] for pair in (told[1] if told else "").split(", "))
        found[rule, model[1] if model else ""] = {**pairs, "threads": threads[1] if threads else "1"}
    return found


def some(job: dict[str, str], *names: str) -> list[str | None]:
    return [job.get(name) for name in names]


@needs_plugin
def test_slurm_profile_as_shipped(base: Place) -> None:
    jobs = asked(base.at("profiles"), SLURM)
    names = ("slurm_partition", "gpu", "mem_mb", "runtime")
    assert some(jobs["embed", "alpha"], *names) == ["gpu", "1", "16000", "60"]
    for control in ("char-ngrams", "random-bert"):
        assert some(jobs["embed", control], *names) == ["cpu", "0", "16000", "60"]
    for model in ("alpha", "train-lookup"):
        assert some(jobs["probe", model], *names) == ["cpu", None, "4000", "30"]
    for job in jobs.values():
        assert some(job, "slurm_account", "qos", "gres", "gpu_model") == [None] * 4


@needs_plugin
def test_slurm_profile_as_edited_for_gres_account_and_qos(base: Place, tmp_path: Path) -> None:
    edits = {"CPU_PARTITION": "short", "GPU_PARTITION": "long", "GRES": "gpu:a100:1", "ACCOUNT": "me", "QOS": "low"}
    jobs = asked(base.at("profiles"), edited_profile(tmp_path / "slurm", **edits, EMBED_MB=9000, PROBE_MINUTES=5))
    names = ("slurm_partition", "gpu", "gres", "mem_mb", "slurm_account", "qos")
    assert some(jobs["embed", "alpha"], *names) == ["long", "0", "gpu:a100:1", "9000", "me", "low"]
    assert some(jobs["embed", "random-bert"], *names) == ["short", "0", "", "9000", "me", "low"]
    assert some(jobs["probe", "alpha"], "slurm_partition", "runtime", "qos") == ["short", "5", "low"]


@needs_plugin
def test_slurm_profile_as_edited_for_a_kind_of_gpu(base: Place, tmp_path: Path) -> None:
    jobs = asked(base.at("profiles"), edited_profile(tmp_path / "slurm", GPU_MODEL="a100"))
    assert some(jobs["embed", "alpha"], "gpu", "gpu_model", "gres") == ["1", "a100", None]
    assert some(jobs["embed", "char-ngrams"], "gpu", "gpu_model") == ["0", ""]


def read_profile(name: str) -> dict[str, Any]:
    text = (PROJECT / "profiles" / name / "config.yaml").read_text(encoding="utf-8")
    read: dict[str, Any] = yte.process_yaml(text, require_use_yte=True)
    return read


def test_slurm_profile_repeats_the_default_one_but_for_the_limit_of_gpus() -> None:
    default = read_profile("default")
    assert default.pop("resources") == {"gpu": 1, "download": 4}
    assert read_profile("slurm")["resources"] == {"download": 4}
    assert default.keys() == {"keep-going", "rerun-incomplete", "show-failed-logs", "scheduler"}
    assert {name: read_profile("slurm")[name] for name in default} == default


def test_slurm_profile_names_every_control_that_is_embedded() -> None:
    registry = load_registry(PROJECT / "config" / "models.yaml")
    controls = {name for name, entry in registry.items() if entry["source"]["kind"] in BASELINE_KINDS}
    expression = read_profile("slurm")["set-resources"]["embed"]["slurm_partition"]
    assert set(re.findall(r"'([\w-]+)'", expression.partition(" in ")[2].partition(")")[0])) == controls - {
        "train-lookup"
    }


def test_every_line_to_edit_is_used(tmp_path: Path) -> None:
    text = (SLURM / "config.yaml").read_text(encoding="utf-8")
    for name in re.findall(r"^  - (\w+) = ", text, re.MULTILINE):
        assert len(re.findall(rf"\b{name}\b", text)) >= 2, name


def test_plugin_is_pinned_alike_where_it_is_named() -> None:
    pyproject = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    (pin,) = re.findall(r'^slurm = \["(snakemake-executor-plugin-slurm==[\d.]+)"\]$', pyproject, re.MULTILINE)
    assert pin in (PROJECT / "envs" / "slurm.txt").read_text(encoding="utf-8").splitlines()
    assert pin not in (PROJECT / "requirements.lock").read_text(encoding="utf-8").splitlines()
