"""Mistakes in the configuration: one clear line when the workflow is read, no job, nothing written."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from helpers import PROJECT, SUBSET, Place, Ran

from nerprobe.errors import NerprobeError
from nerprobe.plan import make_plan

pytestmark = [pytest.mark.workflow, pytest.mark.hostile]

REVISION = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class Mistake:
    """What is typed after --config, and what the one line must say."""

    config: tuple[str, ...]
    says: tuple[str, ...]


def model(reference: str, *says: str) -> Mistake:
    """A mistake in one model's name; double quotes keep it whole in the list."""
    quoted = reference.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return Mistake((f'models=["{quoted}"]',), says)


MISTAKES = {
    "unknown key": Mistake(("subsets={test: 3}",), ("unknown key 'subsets'", "did you mean subset?")),
    "unknown inner key": Mistake(("probe={c: 2.0}",), ("probe", "unknown key 'c'", "did you mean C?")),
    "misspelt model": Mistake(("models=[minilm-16]",), ("'minilm-16'", "did you mean minilm-l6?")),
    "misspelt baseline": Mistake(("baselines=[char-ngram]",), ("char-ngram", "did you mean char-ngrams?")),
    "beyond the stated pool": Mistake(
        ("data_dir=null", "subset={test: 2500}"), ("subset.test", "at most 2000", "got 2500")
    ),
    "beyond the local pool": Mistake(("subset={test: 2500}",), ("subset.test", "at most 30", "got 2500")),
    "unpinned": Mistake(("models=[org/name]",), ("org/name@<40 hex>", "nerprobe lock org/name")),
    "unpinned, bare": Mistake(("models=org/name",), ("org/name@<40 hex>", "nerprobe lock org/name")),
    "short revision": Mistake(("models=[org/name@0123456]",), ("org/name@<40 hex>", "nerprobe lock")),
    "name clash": Mistake(("models=[./alpha,./other/alpha]",), ("./alpha", "./other/alpha", "rename")),
    "folder clash with a baseline": Mistake(
        ("models=[./other/char-ngrams]", "baselines=[char-ngrams]"), ("'char-ngrams'", "rename")
    ),
    "no such folder": Mistake(("models=[./nowhere]",), ("nowhere", "where the command was typed")),
    "missing corpus file": Mistake(("data_dir=half",), ("half/profner/BIO/train_spacy.txt", "no such corpus file")),
    "missing data_dir": Mistake(("data_dir=nowhere",), ("nowhere/profner/BIO", "no such corpus file")),
    "unknown task": Mistake(("tasks=[profner2]",), ("profner2", "did you mean profner?")),
    "task with a path": Mistake(("tasks=[../tasks/profner]",), ("tasks", "../tasks/profner")),
    "nothing to evaluate": Mistake(("models=[]", "baselines=[]"), ("nothing to evaluate",)),
    "word for a number": Mistake(("probe={C: nonsense}",), ("probe.C", "number", "'nonsense'")),
    "zero C": Mistake(("probe={C: 0}",), ("probe.C", "got 0")),
    "C is no finite number": Mistake(("probe={C: inf}",), ("probe.C", "inf")),
    "level is no number": Mistake(("bootstrap={level: nan}",), ("bootstrap.level", "nan")),
    "climbs out": model("../../x", "x", "no folder that can be read"),
    "shell words": model("a;rm -rf b", "'a;rm -rf b'", "no encoder of this name"),
    "shell substitution": model("a$(id)", "'a$(id)'", "no encoder of this name"),
    "long name": model("x" * 300, "x" * 100, "no encoder of this name"),
    "long folder": model("./other/" + "y" * 120, "cannot name a row", "1 to 100"),
    "line end": model("min\nilm", r"'min\nilm'", "no encoder of this name"),
    "not ASCII": model("niño", "'niño'", "no encoder of this name"),
    "hub id with shell words": model(f"org/na$(id)me@{REVISION}", "org/na$(id)me", "no encoder of this name"),
}

READ_ONLY = {
    "unknown inner key",
    "misspelt baseline",
    "unpinned",
    "short revision",
    "folder clash with a baseline",
    "missing data_dir",
    "task with a path",
    "zero C",
    "hub id with shell words",
    "climbs out",
    "long folder",
}
"""Read by the library here, without the seconds of a Snakemake start."""
TYPED = [name for name in MISTAKES if name not in READ_ONLY]


def typed(name: str) -> dict[str, str]:
    """Return all --config arguments of a mistake by key."""
    config = {"models": "models=[]", "baselines": "baselines=[train-lookup]", "data_dir": "data_dir=data"}
    config["subset"] = SUBSET
    return config | {part.partition("=")[0]: part for part in MISTAKES[name].config}


@pytest.fixture(scope="module")
def folders(base: Place) -> Place:
    """Folders that some of the mistakes name."""
    shutil.copytree(base.typed / "alpha", base.typed / "other" / "alpha")
    shutil.copytree(base.typed / "alpha", base.typed / "other" / "char-ngrams")
    shutil.copytree(base.typed / "alpha", base.typed / "other" / ("y" * 120))
    shutil.copytree(base.typed / "data", base.typed / "half")
    (base.typed / "half" / "profner" / "BIO" / "train_spacy.txt").unlink()
    return base


@pytest.fixture(scope="module")
def ran(folders: Place) -> dict[str, Ran]:
    """Call Snakemake for the mistakes, two at a time, each in a working folder of its own."""

    def call(name: str) -> Ran:
        return folders.at(f"mistakes/{name}").run(*typed(name).values())

    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(TYPED, pool.map(call, TYPED), strict=True))


def complaint(ran: Ran) -> list[str]:
    """Return what Snakemake printed as the error, without places in the workflow's own files."""
    lines = ran.out.split("\n")
    (first,) = (number for number, line in enumerate(lines) if re.match(r"\w*(Error|Exception) in ", line))
    return [line for line in lines[first + 1 :] if line and not line.startswith("  File ")]


@pytest.mark.parametrize("name", TYPED)
def test_mistake_ends_in_one_clear_line(base: Place, ran: dict[str, Ran], name: str) -> None:
    found = ran[name]
    assert found.code != 0
    (line,) = complaint(found)
    for words in MISTAKES[name].says:
        assert words in line
    assert "Traceback" not in found.out
    assert found.jobs == []
    written = [path for path in (base.typed / "mistakes" / name).rglob("*") if path.is_file()]
    assert [path for path in written if ".snakemake" not in path.parts] == []


@pytest.mark.parametrize("name", sorted(READ_ONLY))
def test_mistake_is_refused_when_the_plan_is_made(folders: Place, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NERPROBE_CACHE", str(folders.home / "cache"))
    config = yaml.safe_load((PROJECT / "config" / "config.yaml").read_text(encoding="utf-8"))
    for key, argument in typed(name).items():
        value = yaml.safe_load(argument.partition("=")[2])
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    with pytest.raises(NerprobeError) as caught:
        make_plan(config, base=folders.typed, project=PROJECT)
    for words in MISTAKES[name].says:
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.hostile(0)
def test_hostile_names_did_nothing_outside(base: Place, ran: dict[str, Ran]) -> None:
    made = {"data", "alpha", "beta", "other", "half", "mistakes"}
    assert {path.name for path in Path(base.typed).iterdir()} >= made
    for name in ("results", "logs", "resources"):
        assert not (base.typed / name).exists()
