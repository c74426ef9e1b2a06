"""Who gets errors.html: tasks whose texts may be shared, others on request; and that none is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from error_runs import page_json
from helpers import SHARED, Place, jobs_of, plain_mentions, read, rows_of, tags_of

pytestmark = pytest.mark.workflow

LOOKUP = "train-lookup"


@pytest.fixture(scope="module")
def work(base: Place) -> Place:
    return base.at("errors work")


@pytest.fixture(scope="module")
def run_folder(work: Place) -> Path:
    """A task whose texts are not to be shared, under the default configuration."""
    ran = work.run(*work.config(baselines=LOOKUP))
    assert ran.code == 0, ran.out
    assert ran.jobs == sorted([*jobs_of(lookup=True), *SHARED])
    return work.run_folder()


def test_none_by_default_where_texts_are_not_to_be_shared(run_folder: Path) -> None:
    assert read(run_folder / "corpus.json")["texts_shareable"] is False
    assert not (run_folder / "errors.html").exists()


def test_on_request_it_is_there_and_without_it_gone_again(work: Place, run_folder: Path) -> None:
    ran = work.run(*work.config(baselines=LOOKUP), "errors_page=true")
    assert ran.code == 0, ran.out
    assert ran.jobs == [("errors_page", ""), ("leaderboard", "")]
    page = run_folder / "errors.html"
    assert "For your eyes" in page.read_text(encoding="utf-8")
    again = work.run(*work.config(baselines=LOOKUP), "errors_page=true")
    assert again.nothing, again.out
    ran = work.run(*work.config(baselines=LOOKUP))
    assert ran.code == 0, ran.out
    assert ran.jobs == [("leaderboard", "")]
    assert not page.exists()


def test_no_text_reaches_the_board(run_folder: Path) -> None:
    for path in run_folder.glob("leaderboard.*"):
        assert "Mi hermana" not in path.read_text(encoding="utf-8")


def test_the_sample_task_has_one_and_its_errors_are_those_of_a_plain_loop(work: Place) -> None:
    sample = ["tasks=[sample]", "models=[]", f"baselines=[{LOOKUP}]", "subset={seed: 1, test: 40, train: 60}"]
    ran = work.run(*sample)
    assert ran.code == 0, ran.out
    assert ("errors_page", "") in ran.jobs
    folder = work.run_folder("test40-train60-", task="sample")
    data = page_json((folder / "errors.html").read_text(encoding="utf-8"))
    lost = made = 0
    for gold, predicted in tags_of(folder / "predictions" / f"{LOOKUP}.parquet").values():
        lost += len(plain_mentions(gold) - plain_mentions(predicted))
        made += len(plain_mentions(predicted) - plain_mentions(gold))
    (model,) = data["models"]
    assert sum(gold >= 0 for _, gold, _ in model["wrong"]) == lost > 0
    assert sum(said >= 0 for _, _, said in model["wrong"]) == made
    assert model["f1"] == float(rows_of(folder)[0]["f1"])
    assert work.run(*sample).nothing
    (folder / "errors.html").unlink()
    assert work.run(*sample).jobs == [("errors_page", "")]
    ran = work.run(*sample, "errors_page=false")
    assert ran.jobs == [("leaderboard", "")]
    assert not (folder / "errors.html").exists()


def test_a_failed_encoder_leaves_the_page_of_the_others(base: Place) -> None:
    (base.typed / "broken").mkdir()
    (base.typed / "broken" / "config.json").write_text("{}")
    work = base.at("broken work")
    sample = ["tasks=[sample]", f"baselines=[{LOOKUP}]", "subset={seed: 1, test: 40, train: 60}"]
    ran = work.run(*sample, "models=[./broken]")
    assert ran.code != 0
    text = (work.run_folder("test40-train60-", task="sample") / "errors.html").read_text(encoding="utf-8")
    assert "not here: broken." in text
    assert [model["name"] for model in page_json(text)["models"]] == [LOOKUP]
