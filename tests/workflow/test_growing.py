"""One working folder through its life after the first run: no-ops, edited code, more encoders, other settings.

The steps are fixtures, each built on the one before it, so that a board grows as it would in use.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from helpers import MODELS, PROJECT, Place, Ran, jobs_of, plain_counts, plain_intervals, read, rows_of, tags_of

pytestmark = pytest.mark.workflow

BASELINES = "train-lookup,char-ngrams,random-bert"


# --- nothing to do -------------------------------------------------------------------------------------


def test_same_again_runs_nothing(place: Place, board: Path) -> None:
    again = place.run(*place.config("./alpha", baselines=BASELINES))
    assert again.nothing, again.out


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, to be edited."""
    target = tmp_path_factory.mktemp("copy") / "project"
    for part in ("Snakefile", "workflow", "config", "profiles", "envs", "src"):
        source = PROJECT / part
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "models.lock.yaml")
            shutil.copytree(source, target / part, symlinks=True, ignore=ignored)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / part)
    return target


def test_touched_code_vectors_and_encoders_run_nothing(base: Place, place: Place, board: Path, copy: Path) -> None:
    later = time.time() + 60
    touched = [*(copy / "src" / "nerprobe").rglob("*.*"), *(board / "embeddings").glob("*.parquet")]
    touched += [*(base.typed / "alpha").iterdir(), *(base.typed / "data").rglob("*.txt")]
    assert len(touched) > 40
    for path in touched:
        os.utime(path, (later, later))
    ran = place.at("growing work", project=copy).dry(*place.config("./alpha", baselines=BASELINES))
    assert ran.nothing, ran.out


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_edited_comments_of_the_vector_code_embed_nothing(place: Place, board: Path, copy: Path) -> None:
    for name in ("embed", "pooling", "frozen", "align", "store", "controls"):
        path = copy / "src" / "nerprobe" / f"{name}.py"
        path.write_text(path.read_text(encoding="utf-8") + "# a comment\n", encoding="utf-8")
    ran = place.at("growing work", project=copy).dry(*place.config("./alpha", baselines=BASELINES))
    assert ran.nothing, ran.out


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        ("bootstrap", ("leaderboard",)),
        ("score", ("score", "leaderboard")),
        ("logistic", ("probe", "score", "leaderboard")),
    ],
)
def test_edited_code_runs_its_stage_and_what_follows(
    place: Place, board: Path, copy: Path, module: str, stages: tuple[str, ...]
) -> None:
    path = copy / "src" / "nerprobe" / f"{module}.py"
    before = path.read_text(encoding="utf-8")
    path.write_text(before + "# another rule\n", encoding="utf-8")
    ran = place.at("growing work", project=copy).dry(*place.config("./alpha", baselines=BASELINES))
    path.write_text(before, encoding="utf-8")
    expected = [("leaderboard", "")] + [(rule, model) for rule in stages if rule != "leaderboard" for model in MODELS]
    assert ran.code == 0, ran.out
    assert ran.jobs == sorted(expected)


# --- more encoders, other settings ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def added(place: Place, board: Path) -> Ran:
    return place.run(*place.config("./alpha", "./beta", baselines=BASELINES))


def test_second_encoder_runs_its_own_jobs_and_the_board(added: Ran, board: Path) -> None:
    assert added.code == 0, added.out
    assert added.jobs == sorted([*jobs_of("beta", fetched=["beta"]), ("leaderboard", "")])
    assert sorted(row["model"] for row in rows_of(board)) == sorted([*MODELS, "beta"])


@pytest.fixture(scope="module")
def resampled(place: Place, added: Ran) -> Ran:
    config = place.config("./alpha", "./beta", baselines=BASELINES)
    return place.run(*config, "bootstrap={resamples: 250, level: 0.8, seed: 5}")


def test_other_bootstrap_runs_the_board_only(resampled: Ran, board: Path) -> None:
    assert resampled.code == 0, resampled.out
    assert resampled.jobs == [("leaderboard", "")]
    row = next(row for row in rows_of(board) if row["model"] == "alpha")
    tags = tags_of(board / "predictions" / "alpha.parquet")
    items = [plain_counts(*tags[item_id]) for item_id in read(board / "subset.json")["items"]["test"]]
    low, high = plain_intervals(items, seed=5, resamples=250, level=0.8)["f1"]
    assert (float(row["f1_ci_low"]), float(row["f1_ci_high"])) == pytest.approx((low, high), abs=1e-12)


@pytest.fixture(scope="module")
def dropped(place: Place, resampled: Ran) -> Ran:
    return place.run(*place.config("./beta", baselines="train-lookup"))


def test_model_off_the_list_keeps_its_row(dropped: Ran, board: Path) -> None:
    assert dropped.code == 0, dropped.out
    assert dropped.jobs == [("leaderboard", "")]
    rows = {row["model"]: row for row in rows_of(board)}
    assert sorted(rows) == sorted([*MODELS, "beta"])
    assert {row["status"] for row in rows.values()} == {"ok"}


def test_other_penalty_is_another_run_that_embeds_nothing(place: Place, board: Path, dropped: Ran) -> None:
    before = read(board / "heads" / "alpha.json")
    ran = place.run(*place.config("./alpha"), "probe={C: 0.5}")
    assert ran.code == 0, ran.out
    folders = sorted((place.folder or place.typed).glob("results/profner/test20-train60-*"))
    (other,) = (folder for folder in folders if folder != board)
    (manifest,) = (other / "embeddings").glob("alpha.*.json")
    (known,) = (board / "embeddings").glob("alpha.*.json")
    assert manifest.name == known.name
    assert read(manifest)["health"]["items_embedded"] == 0
    assert read(manifest)["sha256"] == read(known)["sha256"]
    assert ("fetch_encoder", "alpha") not in ran.jobs
    assert {("probe", "alpha"), ("score", "alpha"), ("leaderboard", "")} <= set(ran.jobs)
    assert read(other / "heads" / "alpha.json")["C"] == 0.5
    assert read(board / "heads" / "alpha.json") == before
    assert read(other / "subset.json") == read(board / "subset.json")


def test_larger_subset_embeds_the_new_items_only(place: Place, board: Path, dropped: Ran) -> None:
    ran = place.run(*place.config("./alpha", subset="subset={seed: 1, test: 25, train: 60}"))
    assert ran.code == 0, ran.out
    larger = place.run_folder("test25-train60-")
    (manifest,) = (larger / "embeddings").glob("alpha.*.json")
    assert read(manifest)["health"]["items_embedded"] == 5
    small, large = read(board / "subset.json"), read(larger / "subset.json")
    assert large["items"]["test"][:20] == small["items"]["test"]
    assert len(read(larger / "metrics" / "alpha.json")["evaluations"][0]["per_item"]) == 25
    assert len(read(board / "metrics" / "alpha.json")["evaluations"][0]["per_item"]) == 20


def test_all_embeddings_of_the_larger_run_come_from_the_same_vectors(place: Place, board: Path, dropped: Ran) -> None:
    larger = place.run_folder("test25-train60-")
    (old,), (new,) = ((folder / "embeddings").glob("alpha.*.parquet") for folder in (board, larger))
    vectors = {(row["item_id"], row["word"]): row["vector"] for row in pq.read_table(new).to_pylist()}
    for row in pq.read_table(old).to_pylist():
        assert vectors[row["item_id"], row["word"]] == row["vector"]
