"""What people type around the pipeline: boards are found, configurations merged, and mistakes end in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from boards import BOOTSTRAP, put_failure, put_metrics, run_folder
from makers import run_nerprobe

from nerprobe.errors import NerprobeError
from nerprobe.leaderboard import write_board
from nerprobe.manage import board_files, check_task_file, files_of, run_folders

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


def test_a_folder_without_a_board_says_what_to_name(here: Path) -> None:
    done = run_nerprobe("show", "results/none", cwd=here)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no board here" in line
    with pytest.raises(NerprobeError, match="no board here yet"):
        board_files([])


def test_a_board_of_failures_only_is_found(here: Path) -> None:
    folder = run_folder(here)
    put_failure(folder, "bad", "no")
    write_board(folder, requested=["bad"], bootstrap=BOOTSTRAP)
    assert [file.resolve() for file in board_files([])] == [folder / "leaderboard.json"]


@pytest.mark.parametrize("text", ["{}", "[]", '{"rows": []}'])
def test_a_file_that_is_no_board_ends_in_one_line(here: Path, text: str) -> None:
    (here / "leaderboard.json").write_text(text)
    done = run_nerprobe("show", "leaderboard.json", cwd=here)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


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


def test_only_files_of_the_named_model_are_its_own(here: Path) -> None:
    for model, key in (("mine", "0" * 12), ("mine.2", "1" * 12), ("other", "0" * 12)):
        for path in (f"embeddings/{model}.{key}.parquet", f"metrics/{model}.json", f"heads/{model}.safetensors"):
            (here / "results/t/r" / path).parent.mkdir(parents=True, exist_ok=True)
            (here / "results/t/r" / path).touch()
        (here / "resources" / "vectors" / key).mkdir(parents=True, exist_ok=True)
    files, runs = files_of("mine", here)
    assert sorted(path.relative_to(here).as_posix() for path in files) == [
        "results/t/r/embeddings/mine." + "0" * 12 + ".parquet",
        "results/t/r/heads/mine.safetensors",
        "results/t/r/metrics/mine.json",
    ]
    assert runs == [here / "results/t/r"]


def test_a_store_goes_with_the_last_model_that_uses_it(here: Path) -> None:
    (here / "results/t/r/embeddings").mkdir(parents=True)
    (here / "results/t/r/embeddings" / f"mine.{'0' * 12}.json").touch()
    (here / "resources/vectors" / ("0" * 12)).mkdir(parents=True)
    assert here / "resources/vectors" / ("0" * 12) in files_of("mine", here)[0]


def test_a_sound_task_file_is_read_as_the_pipeline_would(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "d").mkdir()
    (here / "d" / "test.txt").write_text("Una 1 0 3 O\nmédica 1 4 10 B-PROFESION\n")
    (here / "d" / "train.txt").write_text("x 2 0 1 O\n")
    (here / "mine.yaml").write_text(
        "title: T\nlanguage: es\nlicence: cc0-1.0\ntexts_shareable: true\nsource: {kind: path, folder: ./d}\n"
        "format: {kind: columns, separator: ' ', columns: [word, item, start, end, tag]}\ntext: offsets\n"
        "item_prefix: m-\ntypes: [PROFESION]\nignored_types: []\n"
        "pools: {test: {role: test, file: test.txt}, train: {role: train, file: train.txt}}\n"
        "evaluations: [{protocol: probe, regime: train, train_pool: train, test_pool: test}]\n"
    )
    check_task_file(here / "mine.yaml", data_dir=None)
    shown = capsys.readouterr().out
    assert "m-1: médica/B-PROFESION" in shown
    assert shown.rstrip().endswith("ok")
