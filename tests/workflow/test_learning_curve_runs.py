"""``snakemake learning_curve`` on the sample task, after a run and beside it: what is computed, and what it says."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from helpers import Place, Ran, read

pytestmark = pytest.mark.workflow

CONFIG = ("tasks=[sample]", "models=[]", "baselines=[train-lookup,random-bert]", "subset={test: 20, train: 20}")
SIZES = "learning_curve={sizes: [10, 20, 40, 80], repeats: 3}"
RUN = "test20-train20-"


@pytest.fixture(scope="module")
def sample(base: Place) -> Place:
    return base.at("curve work")


@pytest.fixture(scope="module")
def main(sample: Place) -> Path:
    """The run itself, which makes no curve."""
    ran = sample.run(*CONFIG, SIZES)
    assert ran.code == 0, ran.out
    return sample.run_folder(RUN, task="sample")


@pytest.fixture(scope="module")
def curved(sample: Place, main: Path) -> Ran:
    return sample.run(*CONFIG, SIZES, flags=["learning_curve"])


def test_a_run_makes_no_curve_by_itself(main: Path) -> None:
    assert not list(main.glob("*curve*"))
    assert len(list(main.parent.iterdir())) == 1


def test_the_curve_takes_one_job_an_encoder_and_none_of_the_board(curved: Ran) -> None:
    assert curved.code == 0, curved.out
    expected = [("corpus", ""), ("subset", ""), ("embed", "random-bert"), ("draw_curves", ""), ("learning_curve", "")]
    expected += [("fit_curve", model) for model in ("random-bert", "train-lookup")]
    assert curved.jobs == sorted(expected)


def test_only_items_that_no_run_has_seen_are_embedded(sample: Place, main: Path, curved: Ran) -> None:
    wide = sample.run_folder("test20-train80-", task="sample")
    (manifest,) = (wide / "embeddings").glob("random-bert.*.json")
    texts = {row["item_id"]: row["text"] for row in pq.read_table(wide / "corpus.parquet").to_pylist()}
    old, all_of_them = (
        {texts[item_id] for pool in read(folder / "subset.json")["items"].values() for item_id in pool}
        for folder in (main, wide)
    )
    assert 50 < len(all_of_them - old) <= 60
    assert read(manifest)["health"]["items_embedded"] == len(all_of_them - old)


def test_the_point_of_the_run_s_own_size_is_the_board_s_score(main: Path, curved: Ran) -> None:
    found = {one["model"]: one for one in read(main / "learning_curve.json")["models"]}
    for model in ("random-bert", "train-lookup"):
        score = read(main / "metrics" / f"{model}.json")["evaluations"][0]["metrics"]["entity_f1_probe"]
        (point,) = (point for point in found[model]["curve"] if point["train_items"] == 20)
        assert point["f1"] == score
        row = next(row for row in read(main / "leaderboard.json")["rows"] if row["model"] == model)
        assert (point["low"], point["high"]) == (row["f1_ci_low"], row["f1_ci_high"])
        assert [point["train_items"] for point in found[model]["curve"]] == [10, 20, 40, 80]
        assert [repeat["first_rank"] for repeat in found[model]["repeats"]] == [0, 20, 40]
    for suffix in ("svg", "md", "csv"):
        assert (main / f"learning_curve.{suffix}").stat().st_size > 100


def test_again_there_is_nothing_to_do_and_other_sizes_only_fit(sample: Place, curved: Ran) -> None:
    again = sample.run(*CONFIG, SIZES, flags=["learning_curve", "--dry-run"])
    assert again.code == 0, again.out
    assert not again.jobs
    other = sample.run(*CONFIG, "learning_curve={sizes: [20, 80], repeats: 0}", flags=["learning_curve", "--dry-run"])
    assert {rule for rule, _ in other.jobs} == {"fit_curve", "draw_curves", "learning_curve"}
    assert sample.dry(*CONFIG, SIZES).nothing
