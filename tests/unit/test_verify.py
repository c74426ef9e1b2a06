"""``nerprobe verify`` beside a run folder: records of encoders, blocks, sweeps, litter, and what is said and removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boards import put_metrics, run_folder
from makers import run_nerprobe

from nerprobe.array_files import whole_arrays, write_arrays
from nerprobe.files import read_json, sha256_file, write_json
from nerprobe.leaderboard import write_board
from nerprobe.store import ItemStats, VectorStore
from nerprobe.verify import verify, verify_artefacts


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found() -> dict[str, str]:
    return {str(fault.path): fault.what for fault in verify([]).faults}


def encoder(folder: Path, kind: str) -> tuple[Path, Path]:
    """Write an encoder of one file and its record."""
    folder.mkdir()
    weights = folder / "model.safetensors"
    weights.write_bytes(b"weights")
    files = [{"name": weights.name, "size": 7, "sha256": sha256_file(weights)}]
    record = Path("resources/encoders/m.json")
    write_json(record, {"schema": 1, "source": {"kind": kind}, "folder": str(folder), "files": files})
    return weights, record


def test_a_changed_file_of_a_fetched_encoder_sends_its_record_away(work: Path) -> None:
    weights, record = encoder(work / "cache", "hub")
    assert found() == {}
    weights.write_bytes(b"Weights")
    assert list(found()) == [str(weights)]
    assert verify_artefacts([], remove=True, yes=True)
    assert weights.exists(), "a cache that others use too is not ours to remove"
    assert not record.exists()


def test_a_folder_of_the_user_may_change_and_a_cache_may_go(work: Path) -> None:
    weights, _ = encoder(work / "cache", "folder")
    weights.write_bytes(b"Weights")
    assert found() == {}
    gone, _ = encoder(work / "other", "hub")
    gone.unlink()
    assert found() == {}


def add_block(folder: Path) -> Path:
    rows: dict[str, Any] = {"vectors": np.ones((1, 2), np.float32), "n_subwords": np.ones(1, np.int32)}
    stats = [ItemStats(words=1, subwords=1, unknown=0, windows=1)]
    VectorStore(folder).add(addresses=["aa"], stats=stats, encoder={"width": 2}, **rows)
    (block,) = folder.glob("*.safetensors")
    return block


def test_a_block_of_another_version_is_named_and_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("nerprobe.store.SCHEMA", 2)
        block = add_block(Path("resources/vectors/key"))
    assert "another version" in found()[str(block)]
    assert "aa" not in VectorStore(block.parent)
    assert not block.exists()


def test_layers_of_a_sweep_carry_a_seal() -> None:
    layer = Path("resources/sweeps/key/layer-00/b.safetensors")
    write_arrays(layer, {"mean": np.arange(6, dtype=np.float32).reshape(2, 3), "split": np.array([1])})
    assert found() == {}
    whole = layer.read_bytes()
    for place in range(len(whole)):
        layer.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not whole_arrays(layer) or b" " in whole[place : place + 1], place
    layer.write_bytes(whole[:-1])
    assert list(found()) == [str(layer)]


def test_a_sweep_whose_record_is_damaged_goes_with_all_its_layers() -> None:
    layer = Path("resources/sweeps/key/layer-00/b.safetensors")
    write_arrays(layer, {"split": np.array([1])})
    (layer.parents[1] / "encoder.json").write_text("{}")
    assert verify_artefacts([], remove=True, yes=True)
    assert list(layer.parents[1].iterdir()) == []


def board(work: Path) -> Path:
    folder = run_folder(work)
    for model in ("a", "b"):
        put_metrics(folder, model)
    write_board(folder, requested=["a", "b"], bootstrap={"resamples": 50, "level": 0.95, "seed": 1})
    return folder


def test_a_board_of_other_metrics_is_named(work: Path) -> None:
    folder = board(work)
    assert found() == {}
    put_metrics(folder, "b", versions={"numpy": "0"})
    ((path, what),) = found().items()
    assert path.endswith("leaderboard.json")
    assert "metrics/b.json" in what
    assert verify_artefacts([], remove=True, yes=True)
    assert list(folder.glob("leaderboard.*")) == []


def test_metrics_that_go_take_the_row_off_the_board(work: Path) -> None:
    folder = board(work)
    os.truncate(folder / "metrics" / "b.json", 10)
    assert verify_artefacts([], remove=True, yes=True)
    left = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert left == ["corpus.json", "metrics/a.json", "subset.json"]
    assert [path.name for path in (folder / "metrics").iterdir()] == ["a.json"]


def test_what_a_killed_job_left_is_no_damage_but_goes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = board(work)
    left = folder / ".corpus.parquet.abcd_efg.tmp"
    left.write_bytes(b"half")
    assert verify_artefacts([], remove=False, yes=False)
    assert "none is damaged" in capsys.readouterr().out
    assert left.exists()
    assert verify_artefacts([], remove=True, yes=True)
    assert not left.exists()


def test_the_command_names_the_file_and_the_next_step(work: Path) -> None:
    folder = board(work)
    assert run_nerprobe("verify", cwd=work).returncode == 0
    path = folder / "subset.json"
    path.write_text(path.read_text().replace("t1", "t9"))
    done = run_nerprobe("verify", cwd=work)
    assert done.returncode == 1
    assert f"{path.relative_to(work)}: this file is damaged; got content that differs from its seal" in done.stdout
    assert "nerprobe verify --remove" in done.stdout
    done = run_nerprobe("verify", "--remove", cwd=work)
    assert done.returncode == 1
    assert "say --yes" in done.stderr
    assert path.exists()
    done = run_nerprobe("verify", "--remove", "--yes", str(folder), cwd=work)
    assert done.returncode == 0
    assert not path.exists()


def test_a_folder_that_is_no_run_is_refused(work: Path) -> None:
    done = run_nerprobe("verify", "elsewhere", cwd=work)
    assert done.returncode == 1
    assert "name a run folder: results/<task>/<run>" in done.stderr


def test_a_link_that_leads_nowhere_is_no_file(work: Path) -> None:
    (board(work) / "metrics" / "c.json").symlink_to("nowhere")
    assert found() == {}


def test_nothing_here_is_nothing_damaged(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_artefacts([], remove=False, yes=False)
    assert "0 files checked" in capsys.readouterr().out


def test_records_are_read_without_their_seal(work: Path) -> None:
    assert "seal" not in read_json(board(work) / "leaderboard.json")
