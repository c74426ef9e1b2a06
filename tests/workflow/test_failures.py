"""Encoders that cannot be used: the others finish, the board says why, and a mended one is tried again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from helpers import SHARED, Place, Ran, jobs_of, read, rows_of, spoil_with_nan

pytestmark = pytest.mark.workflow

BROKEN = ("cut", "cut.failure", "nan")
"""Weights cut off; no tokenizer, and a name that looks like a record of the first; a weight that is NaN."""
LIST = ("./cut", "./cut.failure", "./nan")


def rows_by_model(board: Path) -> dict[str, dict[str, str]]:
    return {row["model"]: row for row in rows_of(board)}


@pytest.fixture(scope="module")
def place(base: Place) -> Place:  # another one than the first run's
    """Three broken encoders beside the good ones."""
    for name in BROKEN:
        shutil.copytree(base.typed / "beta", base.typed / name)
    os.truncate(base.typed / "cut" / "model.safetensors", 3000)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (base.typed / "cut.failure" / file).unlink()
    spoil_with_nan(base.typed / "nan" / "model.safetensors")
    return base.at("failing")


@pytest.fixture(scope="module")
def failed(place: Place) -> Ran:
    return place.run(*place.config(*LIST, baselines="train-lookup,char-ngrams"))


def test_failed_encoders_end_the_run_with_an_error_but_not_the_others(place: Place, failed: Ran) -> None:
    assert failed.code != 0
    board = place.run_folder()
    done = jobs_of("char-ngrams", lookup=True) + [job for job in SHARED if job[0] != "leaderboard"]
    tried = [("fetch_encoder", name) for name in BROKEN] + [("embed", "cut"), ("embed", "nan")]
    assert failed.jobs == sorted(done + tried)
    assert sorted(path.stem for path in (board / "metrics").iterdir()) == ["char-ngrams", "train-lookup"]
    assert "Traceback" not in failed.out


def test_board_names_failed_rows_with_their_reasons(place: Place, failed: Ran) -> None:
    board = place.run_folder()
    rows = rows_by_model(board)
    assert sorted(rows) == sorted([*BROKEN, "char-ngrams", "train-lookup"])
    expected = {"cut": "cannot be loaded", "cut.failure": "tokenizer", "nan": "finite"}
    for model, words in expected.items():
        reason = read(board / "failures" / f"{model}.json")
        assert rows[model]["status"] == "failed"
        assert rows[model]["rank"] == rows[model]["f1"] == ""
        assert rows[model]["reason"] == reason["reason"]
        assert reason["model"] == model
        assert words in rows[model]["reason"].lower()
        assert f"{model} failed" in failed.out
    for model in ("char-ngrams", "train-lookup"):
        assert rows[model]["status"] == "ok"
        assert not (board / "failures" / f"{model}.json").exists()
    for suffix in ("md", "html"):
        assert "failed" in (board / f"leaderboard.{suffix}").read_text(encoding="utf-8")


def test_nothing_of_a_failed_encoder_is_left(place: Place, failed: Ran) -> None:
    board = place.run_folder()
    left = [path for path in board.rglob("*") if path.is_file() and path.name.startswith(BROKEN)]
    assert {path.relative_to(board).as_posix() for path in left} == {f"failures/{name}.json" for name in BROKEN}
    hidden = list((place.folder or place.typed).rglob(".*.tmp"))
    assert hidden == []


def test_next_run_tries_the_failed_ones_again(place: Place, failed: Ran) -> None:
    ran = place.dry(*place.config(*LIST, baselines="train-lookup,char-ngrams"))
    again = jobs_of(*BROKEN, fetched=["cut.failure"])
    assert ran.jobs == sorted([*again, ("leaderboard", "")])


@pytest.fixture(scope="module")
def mended(place: Place, failed: Ran) -> Ran:
    """Two folders are mended; the third encoder is taken off the list."""
    for name in ("cut", "cut.failure"):
        for file in (place.typed / "beta").iterdir():
            shutil.copy(file, place.typed / name / file.name)
    return place.run(*place.config("./cut", "./cut.failure", baselines="train-lookup,char-ngrams"))


def test_mended_encoders_have_rows_and_no_failures(place: Place, mended: Ran) -> None:
    assert mended.code == 0, mended.out
    board = place.run_folder()
    rows = rows_by_model(board)
    for model in ("cut", "cut.failure"):
        assert rows[model]["status"] == "ok"
        assert rows[model]["reason"] == ""
        assert not (board / "failures" / f"{model}.json").exists()
    assert rows["cut"]["f1"] == rows["cut.failure"]["f1"]


def test_failed_encoder_off_the_list_is_off_the_board(place: Place, mended: Ran) -> None:
    assert "nan" not in rows_by_model(place.run_folder())
    assert "nan failed" not in mended.out


def test_after_mending_nothing_is_left_to_do(place: Place, mended: Ran) -> None:
    ran = place.dry(*place.config("./cut", "./cut.failure", baselines="train-lookup,char-ngrams"))
    assert ran.nothing, ran.out


def test_encoder_mended_for_another_run_loses_its_failed_row(place: Place, mended: Ran) -> None:
    """It was fetched anew for something else, so here no job of it is left that could remove the old failure."""
    config = place.config("./cut", baselines="train-lookup,char-ngrams")
    tokenizer = place.typed / "cut" / "tokenizer.json"
    text = tokenizer.read_bytes()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (place.typed / "cut" / file).unlink()
    assert place.run(*config).code != 0
    assert rows_by_model(place.run_folder())["cut"]["status"] == "failed"
    tokenizer.write_bytes(text)
    shutil.copy(place.typed / "beta" / "tokenizer_config.json", place.typed / "cut")
    assert place.run(*config, flags=["--until", "fetch_encoder"]).code == 0
    assert place.run(*config).code == 0
    assert rows_by_model(place.run_folder())["cut"]["status"] == "ok"
    assert not (place.run_folder() / "failures" / "cut.json").exists()


@pytest.fixture
def broken_corpus(base: Place) -> Place:
    """A corpus whose line 7 has lost its tag."""
    folder = base.typed / "broken data"
    shutil.copytree(base.typed / "data", folder)
    file = folder / "profner" / "BIO" / "valid_spacy.txt"
    lines = file.read_text(encoding="utf-8").split("\n")
    lines[6] = lines[6].rpartition(" ")[0]
    file.write_text("\n".join(lines), encoding="utf-8")
    return base.at("broken corpus")


def test_broken_corpus_line_ends_with_file_and_line(broken_corpus: Place) -> None:
    config = [part for part in broken_corpus.config(baselines="train-lookup") if not part.startswith("data_dir")]
    ran = broken_corpus.run(*config, "data_dir=broken data")
    assert ran.code != 0
    assert ran.jobs == [("corpus", "")]
    file = broken_corpus.typed / "broken data" / "profner" / "BIO" / "valid_spacy.txt"
    assert f"{file}:7: " in ran.out
    assert "Traceback" not in ran.out
    left = [path for path in (broken_corpus.typed / "broken corpus" / "results").rglob("*") if path.is_file()]
    assert left == []


def test_more_items_than_the_local_pool_has(base: Place) -> None:
    """The task file states 2000 items, so only reading the local file can tell."""
    place = base.at("too many")
    ran = place.run(*place.config(baselines="train-lookup", subset="subset={seed: 1, test: 31, train: 60}"))
    assert ran.code != 0
    assert "at most 30, or all" in ran.out
    assert "Traceback" not in ran.out
    assert not list((base.typed / "too many").rglob("leaderboard.*"))
