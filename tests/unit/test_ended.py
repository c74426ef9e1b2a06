"""The reason on the board of a model whose job was killed, so that it could leave none itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from nerprobe.leaderboard import read_metrics

KEY = "0123456789ab"
LOGS = {"embed": f"embed/m.{KEY}.log", "probe": "probe/m.log", "score": "score/m.log"}
OUTPUTS = {"embed": f"embeddings/m.{KEY}.json", "probe": "heads/m.json"}


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")


@pytest.mark.parametrize("stage", LOGS)
def test_the_stage_that_has_a_log_and_no_output_was_killed(tmp_path: Path, stage: str) -> None:
    folder = tmp_path / "results" / "t" / "r"
    for before in list(LOGS)[: list(LOGS).index(stage) + 1]:
        touch(tmp_path / "logs" / "t" / "r" / LOGS[before])
        if before != stage:
            touch(folder / OUTPUTS[before])
    _, failed = read_metrics(folder, ["m"], {"m": KEY})
    assert failed["m"].startswith(f"{stage} was ended from outside")
    assert failed["m"].endswith(str(tmp_path / "logs" / "t" / "r" / LOGS[stage]))


def test_the_log_of_another_key_says_nothing(tmp_path: Path) -> None:
    touch(tmp_path / "logs" / "t" / "r" / "embed" / "m.ba9876543210.log")
    _, failed = read_metrics(tmp_path / "results" / "t" / "r", ["m"], {"m": KEY})
    assert failed["m"] == "not evaluated; the log under logs/ says why"


def test_a_job_that_never_began_is_not_called_killed(tmp_path: Path) -> None:
    (tmp_path / "results" / "t" / "r").mkdir(parents=True)
    _, failed = read_metrics(tmp_path / "results" / "t" / "r", ["m"], {"m": KEY})
    assert failed["m"] == "not evaluated; the log under logs/ says why"
