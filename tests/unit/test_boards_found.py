"""Which boards ``show`` finds, and that a file or configuration of the wrong shape ends in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from boards import BOOTSTRAP, put_failure, put_metrics, run_folder
from makers import run_nerprobe

from nerprobe.errors import NerprobeError
from nerprobe.leaderboard import write_board
from nerprobe.manage import board_files, compare_models, run_folders, show_boards

HALF = {"t1": "O O O", "t2": "O O"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NERPROBE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_show_prints_each_board_and_where_its_page_is(here: Path) -> None:
    folder = run_folder(here)
    put_metrics(folder, "half", HALF)
    write_board(folder, requested=["half"], bootstrap=BOOTSTRAP)
    done = run_nerprobe("show", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert "half" in done.stdout
    assert str(folder / "leaderboard.html") in done.stdout.replace("\n", "")


def test_a_board_of_failures_only_is_found(here: Path) -> None:
    folder = run_folder(here)
    put_failure(folder, "bad", "no")
    write_board(folder, requested=["bad"], bootstrap=BOOTSTRAP)
    assert [file.resolve() for file in board_files([])] == [folder / "leaderboard.json"]


@pytest.mark.parametrize("text", ["{}", "[]", '{"rows": []}'])
def test_a_file_that_is_no_board_ends_in_one_line(here: Path, text: str) -> None:
    (here / "leaderboard.json").write_text(text)
    with pytest.raises(NerprobeError, match=r"leaderboard\.json"):
        show_boards([here / "leaderboard.json"])


def test_a_configuration_is_merged_over_the_default_one(here: Path) -> None:
    (here / "c.yaml").write_text("tasks: [sample]\nmodels: []\nsubset: {test: 7}\n")
    (folder,) = run_folders(here / "c.yaml")
    assert folder.parent == Path("results/sample")
    assert folder.name.startswith("test7-train500-")


def test_an_empty_configuration_is_the_default_one(here: Path) -> None:
    (here / "c.yaml").write_text("# nothing\n")
    (folder,) = run_folders(here / "c.yaml")
    assert folder.name.startswith("test100-train500-")


@pytest.mark.parametrize("text", ["subset:\n", "- a\n", "5\n"])
def test_a_configuration_of_the_wrong_shape_ends_in_one_line(here: Path, text: str) -> None:
    (here / "c.yaml").write_text(text)
    with pytest.raises(NerprobeError):
        run_folders(here / "c.yaml")


def test_two_models_are_compared_on_the_same_items(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_folder(here)
    put_metrics(folder, "half", HALF)
    put_metrics(folder, "best")
    write_board(folder, requested=["half", "best"], bootstrap=BOOTSTRAP)
    compare_models("half", "best", [])
    said = capsys.readouterr().out
    assert "difference 0.333 [" in said  # 1 less 2/3, whichever is named first
    assert said.index("best: F1 1.000") < said.index("half: F1 .667")


def test_a_comparison_with_a_model_that_no_board_has_ends_in_one_line(here: Path) -> None:
    folder = run_folder(here)
    put_metrics(folder, "half", HALF)
    write_board(folder, requested=["half"], bootstrap=BOOTSTRAP)
    with pytest.raises(NerprobeError, match="no board has scores of both"):
        compare_models("half", "best", [])
