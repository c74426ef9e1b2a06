"""Stage ``leaderboard``: ranks, rows that are joined or failed, and the files of the board."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boards import BOOTSTRAP, GOLD, NOTHING, RUN, P, S, board_of, metrics_of, put_failure, put_metrics, run_folder

from nerprobe.errors import ArtefactError
from nerprobe.files import read_json, write_json
from nerprobe.leaderboard import board_frame, ranked, write_board
from nerprobe.render import headline, notes
from nerprobe.rows import command_of

HALF = {"t1": "O O O", "t2": "O O"}  # 2 of 4 found: F1 2/3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return run_folder(tmp_path)


def rows(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in board["rows"]}


def read_csv(folder: Path) -> tuple[list[str], list[dict[str, str]]]:
    with (folder / "leaderboard.csv").open(newline="", encoding="utf-8") as handle:
        reader = csv.DictReader(handle)
        found = list(reader)
    return list(reader.fieldnames or []), found


# --- ranks ---------------------------------------------------------------------------------------


def test_rows_are_ordered_by_f1_and_equal_scores_share_the_better_rank() -> None:
    scores = {"d": 0.5, "a": 0.5, "c": 0.75, "b": 0.25}
    made = ranked(
        [{"model": model, "status": "ok", "f1": f1} for model, f1 in scores.items()],
        np.tile(list(scores.values()), (9, 1)),
        level=0.95,
    )
    assert [(row["rank"], row["model"]) for row in made] == [(1, "c"), (2, "a"), (2, "d"), (4, "b")]


def test_failed_rows_come_last_without_a_rank() -> None:
    made = ranked(
        [{"model": "m", "status": "ok", "f1": 0.0}, {"model": "z", "status": "failed"}], np.zeros((9, 1)), level=0.95
    )
    assert [(row["rank"], row["model"]) for row in made] == [(1, "m"), (None, "z")]


def test_the_board_ranks_its_encoders(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    put_metrics(folder, "best")
    put_metrics(folder, "nothing", NOTHING)
    board = board_of(folder, ["half", "best", "nothing"])
    assert [(row["rank"], row["model"]) for row in board["rows"]] == [(1, "best"), (2, "half"), (3, "nothing")]
    half = rows(board)["half"]
    assert half["f1"] == pytest.approx(2 / 3, abs=1e-15)
    assert (half["precision"], half["recall"], half["macro_f1"]) == (1.0, 0.5, pytest.approx(2 / 3, abs=1e-15))
    assert (half["tp"], half["predicted"], half["gold"]) == (2, 2, 4)


# --- intervals -----------------------------------------------------------------------------------


def test_intervals_are_those_of_a_plain_loop_over_items_in_rank_order(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    row = board_of(folder, ["half"])["rows"][0]
    drawn = np.random.default_rng(7).integers(0, 4, (200, 4))  # the seed of the subset
    tp, gold = np.array([0, 0, 0, 2]), np.array([1, 1, 0, 2])
    values = [
        2 * tp[one].sum() / (tp[one].sum() + gold[one].sum()) if tp[one].sum() + gold[one].sum() else 0.0
        for one in drawn
    ]
    expected = np.quantile(values, [0.025, 0.975])
    assert (row["f1_ci_low"], row["f1_ci_high"]) == (pytest.approx(expected[0]), pytest.approx(expected[1]))


def test_the_seed_is_the_subset_s_unless_one_is_given(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    assert board_of(folder, ["half"])["bootstrap"] == {
        "resamples": 200,
        "level": 0.95,
        "seed": 7,
        "comparisons": 10_000,
    }
    assert board_of(folder, ["half"], seed=0)["bootstrap"]["seed"] == 0


def test_every_metric_lies_inside_its_interval_where_items_agree(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    row = board_of(folder, ["half"])["rows"][0]
    for name in ("f1", "precision", "recall", "macro_f1"):
        assert 0.0 <= row[f"{name}_ci_low"] <= row[name] <= row[f"{name}_ci_high"] <= 1.0


# --- which rows ----------------------------------------------------------------------------------


def test_encoders_already_evaluated_in_this_run_stay_on_the_board(folder: Path) -> None:
    put_metrics(folder, "earlier", HALF)
    put_metrics(folder, "asked")
    assert set(rows(board_of(folder, ["asked"]))) == {"asked", "earlier"}


def test_a_failed_encoder_is_a_row_with_its_reason(folder: Path) -> None:
    put_metrics(folder, "good")
    put_failure(folder, "bad", "no fast tokenizer")
    row = rows(board_of(folder, ["good", "bad"]))["bad"]
    assert (row["rank"], row["status"], row["reason"]) == (None, "failed", "no fast tokenizer")


def test_a_failed_fetch_is_a_row_too_and_its_reason_is_kept_with_the_run(folder: Path, tmp_path: Path) -> None:
    record = tmp_path / "resources" / "encoders" / "failures" / "bad.json"
    write_json(record, {"schema": 1, "stage": "fetch", "model": "bad", "reason": "401"})
    assert rows(board_of(folder, ["bad"]))["bad"]["reason"] == "401"
    assert json.loads((folder / "failures" / "bad.json").read_text())["reason"] == "401"


def test_an_encoder_that_was_never_evaluated_says_so(folder: Path) -> None:
    put_metrics(folder, "good")
    row = rows(board_of(folder, ["good", "late"]))["late"]
    assert row["status"] == "failed"
    assert "not evaluated" in row["reason"]


def test_a_board_of_failures_only_can_be_written(folder: Path) -> None:
    put_failure(folder, "bad", "no")
    write_board(folder, requested=["bad"], bootstrap=BOOTSTRAP)
    _, found = read_csv(folder)
    assert [(row["rank"], row["model"], row["status"]) for row in found] == [("", "bad", "failed")]


@pytest.mark.parametrize(
    "changes", [{"run": "test9-train9-ffffffff"}, {"task": "other"}, {"schema": 2}, {"model": "x"}]
)
def test_metrics_of_another_run_are_refused(folder: Path, changes: dict[str, Any]) -> None:
    write_json(folder / "metrics" / "m.json", metrics_of("m") | changes)
    with pytest.raises(
        ArtefactError, match=r"m\.json: th(ese metrics are of another run|is file is of another version)"
    ):
        board_of(folder, ["m"])


def test_a_damaged_file_that_nobody_asked_for_is_a_failed_row(folder: Path) -> None:
    put_metrics(folder, "good")
    (folder / "metrics" / "old.json").write_text("{")
    assert rows(board_of(folder, ["good"]))["old"]["status"] == "failed"
    with pytest.raises(ArtefactError, match="this file is damaged"):
        board_of(folder, ["good", "old"])


def test_rows_scored_on_other_gold_mentions_are_refused(folder: Path) -> None:
    put_metrics(folder, "one")
    other = metrics_of("two")
    other["evaluations"][0]["per_item"][0]["gold"] += 1
    write_json(folder / "metrics" / "two.json", other)
    with pytest.raises(ArtefactError, match="different items or gold mentions"):
        board_of(folder, ["one", "two"])


# --- flags ---------------------------------------------------------------------------------------


def test_a_score_of_one_or_nothing_has_a_degenerate_interval(folder: Path) -> None:
    put_metrics(folder, "best")
    put_metrics(folder, "half", HALF)
    put_metrics(folder, "nothing", NOTHING)
    flags = {name: row["flags"] for name, row in rows(board_of(folder, ["best", "half", "nothing"])).items()}
    assert "degenerate interval" in flags["best"]
    assert "degenerate interval" in flags["nothing"]
    # It finds half and says nothing wrong: its precision is 1 in every resample.
    assert flags["half"].startswith("degenerate interval of precision; only")


def test_a_fit_that_did_not_converge_is_flagged(folder: Path) -> None:
    probe = {**metrics_of("m")["probe"], "converged": False}
    put_metrics(folder, "m", HALF, probe=probe)
    row = board_of(folder, ["m"])["rows"][0]
    assert "fit not converged" in row["flags"]
    assert row["converged"] is False


def test_rare_types_are_flagged_with_their_number(folder: Path) -> None:
    put_metrics(folder, "m", HALF)
    flags = board_of(folder, ["m"])["rows"][0]["flags"].split("; ")
    assert any(S in flag and "2 gold" in flag for flag in flags)


# --- files ---------------------------------------------------------------------------------------


def test_the_csv_has_the_columns_of_the_contract(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    put_failure(folder, "bad", "no")
    write_board(folder, requested=["half", "bad"], bootstrap=BOOTSTRAP)
    columns, found = read_csv(folder)
    head = [name for name in columns if name not in ("rank_low", "rank_high", "tier", "p_best")]
    assert head[:3] == ["rank", "model", "status"]
    assert "revision" in head[:5]
    first = head.index("f1")
    scores = [
        f"{name}{part}" for name in ("f1", "precision", "recall", "macro_f1") for part in ("", "_ci_low", "_ci_high")
    ]
    assert head[first : first + 12] == scores
    assert {"family", "parameters", "width", "layers", "max_tokens", "licence", "seconds", "health"} <= set(columns)
    assert [row["model"] for row in found] == ["half", "bad"]
    assert found[0]["rank"] == "1"
    assert found[0]["parameters"] == "22700000"
    assert float(found[0]["f1"]) == 2 / 3
    assert (found[1]["rank"], found[1]["f1"], found[1]["reason"]) == ("", "", "no")


def test_the_json_carries_the_same_rows_and_a_command_for_each(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    write_board(folder, requested=["half"], bootstrap=BOOTSTRAP)
    board = json.loads((folder / "leaderboard.json").read_text())
    _, found = read_csv(folder)
    (row,) = board["rows"]
    assert row["command"].startswith("snakemake ")
    for name in ("f1", "f1_ci_low", "f1_ci_high", "macro_f1"):
        assert float(found[0][name]) == row[name]
    assert (board["task"], board["run"], board["types"]) == ("tiny", RUN, [P, S])


def test_all_four_files_are_written_and_again_the_same(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    names = [f"leaderboard.{suffix}" for suffix in ("csv", "md", "json", "html")]
    write_board(folder, requested=["half"], bootstrap=BOOTSTRAP)
    first = [(folder / name).read_bytes() for name in names]
    write_board(folder, requested=["half"], bootstrap=BOOTSTRAP)
    assert [(folder / name).read_bytes() for name in names] == first


def test_a_board_made_after_a_failure_is_older_than_anything(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    write_board(folder, requested=["half"], bootstrap=BOOTSTRAP, stale=True)
    oldest = (folder / "metrics" / "half.json").stat().st_mtime
    assert all(path.stat().st_mtime < oldest for path in folder.glob("leaderboard.*"))


# --- commands ------------------------------------------------------------------------------------


def test_a_command_names_everything_that_makes_the_row() -> None:
    command = command_of(metrics_of("roberta-base"))
    for part in ("tasks=[tiny]", "models=[roberta-base]", "seed: 7, test: 4, train: 2", "C: 1.0", "data_dir=DIR"):
        assert part in command


def test_a_command_names_a_hub_model_with_its_revision() -> None:
    assert f"'models=[org/name@{'f' * 40}]'" in command_of(metrics_of("org--name--ffffffff"))


def test_a_command_repeats_the_dtype_that_the_vectors_were_made_with() -> None:
    encoder = metrics_of("m")["encoder"] | {"settings": {"dtype": "bfloat16", "storage": "float32"}}
    assert "bfloat16" in command_of(metrics_of("m", encoder=encoder))


def test_the_gold_of_the_tests_is_what_they_say() -> None:
    assert sum(tag.startswith("B-") for tags in GOLD.values() for tag in tags.split()) == 4


# --- what stands beside the scores -----------------------------------------------------------------------


def test_the_board_carries_breakdown_exploratory_score_and_leakage(folder: Path) -> None:
    beside = {"C": 10.0, "grid": [1.0, 10.0], "folds": 3, "cv_f1": {"1": 0.1, "10": 0.2}, "converged": True}
    beside["metrics"] = {"f1": 0.625, "precision": 0.5, "recall": 0.5, "macro_f1": 0.5}
    put_metrics(folder, "half", HALF, exploratory=beside)
    put_metrics(folder, "old")  # written before there was one
    found = {"schema": 1, "exact": 1, "near": 2, "threshold": 0.7, "test_items": 4, "pairs": []}
    write_json(folder / "leakage.json", found)
    board = board_of(folder, ["half", "old"])
    assert board["leakage"] == found
    assert rows(board)["half"]["exploratory"] == beside
    assert (rows(board)["old"]["exploratory"], rows(board)["old"]["breakdown"]) == (None, [])
    frame = board_frame(board).set_index("model")
    assert list(frame.columns)[-2:] == ["exploratory_f1", "exploratory_C"]
    assert frame.loc["half", ["exploratory_f1", "exploratory_C"]].tolist() == [0.625, 10.0]
    assert frame["exploratory_f1"].isna()["old"]
    told = notes(board)
    assert "1 test item with the text of a train item and 2 with nearly one (of 4; leakage.json)." in told[-2]
    assert told[-1].endswith("on the train items: half .625 with C = 10.")


def test_the_smallest_gap_is_in_the_headline(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    put_metrics(folder, "best")
    board = board_of(folder, ["half", "best"])
    gap = board["smallest_gap"]
    # One pair: 2.8016 standard deviations of its resampled difference, by a plain loop over the same resamples.
    drawn = np.random.default_rng(7).integers(0, 4, (10_000, 4))
    golds = np.array([1, 1, 0, 2])
    halves = np.array(
        [item["tp"] for item in read_json(folder / "metrics" / "half.json")["evaluations"][0]["per_item"]]
    )
    differences = []
    for row in drawn:
        gold, tp = golds[row].sum(), halves[row].sum()
        differences.append((1.0 if gold else 0.0) - (2 * tp / (tp + gold) if gold else 0.0))
    assert gap["visible"] == pytest.approx(2.801585 * np.std(differences, ddof=1), rel=1e-5)
    assert (gap["power"], gap["items"]) == (0.8, 4)
    told = f"Two rows that truly differ by {gap['visible']:.3f} F1 are separated in 80 of 100 boards".replace(
        " 0.", " ."
    )
    assert any(line.startswith(told) for line in headline(board))


def test_a_board_of_one_row_has_no_smallest_gap(folder: Path) -> None:
    put_metrics(folder, "best")
    board = board_of(folder, ["best"])
    assert board["smallest_gap"]["visible"] is None
    assert not any("truly differ" in line for line in headline(board))


def test_a_long_list_of_exploratory_scores_is_cut(folder: Path) -> None:
    for number in range(10):
        scores = {"f1": number / 10, "precision": 0.0, "recall": 0.0, "macro_f1": 0.0}
        put_metrics(folder, f"m{number}", exploratory={"C": 1.0, "metrics": scores, "converged": number != 7})
    last = notes(board_of(folder, [f"m{number}" for number in range(10)]))[-1]
    assert last.endswith("m6 .600 with C = 1, m7 .700 with C = 1 (fit not converged), 2 more in leaderboard.csv.")
    assert "items: m0 .000 with C = 1, m1" in last
