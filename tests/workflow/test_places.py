"""Runs from other folders, through the catalog's Snakefile, in the project's root; and twice with equal bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers import PROJECT, SHARED, Place, Ran, jobs_of, read

pytestmark = pytest.mark.workflow

MODELS = ("alpha", "char-ngrams")


@pytest.fixture(scope="module")
def second(base: Place) -> tuple[Place, Ran]:
    """The same through workflow/Snakefile, typed in another folder, with another order of the models."""
    elsewhere = base.typed / "else where"
    elsewhere.mkdir()
    place = Place(typed=elsewhere, folder=elsewhere / "deep" / "two", home=base.home, snakefile="workflow/Snakefile")
    config = ["models=[../alpha]", "baselines=[char-ngrams]", "data_dir=../data"]
    return place, place.run(*config, "subset={seed: 1, test: 20, train: 60}")


def test_catalog_snakefile_with_relative_paths_runs_everything(second: tuple[Place, Ran]) -> None:
    _, ran = second
    assert ran.code == 0, ran.out
    assert ran.jobs == sorted([*jobs_of(*MODELS, fetched=["alpha"]), *SHARED])


def test_two_runs_give_equal_bytes(board: Path, second: tuple[Place, Ran]) -> None:
    one, two = board, second[0].run_folder()
    assert one.name == two.name
    for model in MODELS:
        left, right = (read(folder / "metrics" / f"{model}.json") for folder in (one, two))
        assert left.pop("versions") == right.pop("versions")
        assert left == right
        texts = [(folder / "metrics" / f"{model}.json").read_bytes() for folder in (one, two)]
        assert texts[0] == texts[1]
    files = sorted(path.relative_to(two) for path in two.rglob("*") if path.suffix in (".parquet", ".safetensors"))
    assert len(files) == 1 + 2 + 2 + 2
    for file in [*files, Path("corpus.json"), Path("subset.json")]:
        assert (one / file).read_bytes() == (two / file).read_bytes(), file


def test_project_root_without_any_option(base: Place, tmp_path: Path) -> None:
    """`snakemake --cores 2` in the project's root; the default target and the default profile are found."""
    root = tmp_path / "project"
    root.mkdir()
    for part in ("Snakefile", "workflow", "config", "profiles", "envs", "src"):
        if (PROJECT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "models.lock.yaml")
            shutil.copytree(PROJECT / part, root / part, symlinks=True, ignore=ignored)
        else:
            shutil.copy(PROJECT / part, root / part)
    shutil.copytree(base.typed / "data", root / "data")
    place = Place(typed=root, folder=None, home=base.home)
    ran = place.run(*place.config(baselines="train-lookup"))
    assert ran.code == 0, ran.out
    assert ran.jobs == sorted([*jobs_of(lookup=True), *SHARED])
    assert "profiles/default" in ran.out
    assert (place.run_folder() / "leaderboard.csv").is_file()


def test_python_files_of_the_working_folder_are_not_run(base: Place) -> None:
    """A user's own random.py or nerprobe/ beside the results must not take the place of the real modules."""
    place = base.at("with python files")
    folder = base.typed / "with python files"
    (folder / "nerprobe").mkdir(parents=True)
    for name in ("random.py", "nerprobe/__init__.py", "nerprobe/__main__.py"):
        (folder / name).write_text("raise RuntimeError('a file of the working folder was run')\n")
    ran = place.run(*place.config(baselines="train-lookup"), flags=["--until", "corpus"])
    assert "of the working folder was run" not in ran.out
    assert ran.code == 0
    assert ran.jobs == [("corpus", "")]


def test_two_tasks_have_a_board_each(base: Place) -> None:
    ran = base.at("two tasks").dry(*base.config(baselines="train-lookup"), "tasks=[profner,sample]")
    assert ran.code == 0, ran.out
    assert ran.jobs == sorted([*[*jobs_of(lookup=True), *SHARED] * 2, ("errors_page", "")])
