"""Leases of GPUs, with devices that are only names: who may choose, never two on one, free again after a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nerprobe.errors import LeaseError
from nerprobe.lease import devices_to_share, lease, leased_device

pytestmark = pytest.mark.timeout(120)  # a lock that is never freed would be waited for

HOLD = """
import logging, sys
from nerprobe.lease import leased_device
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
with leased_device("auto") as device:
    sys.stdin.read()
"""
"""Says what it waits for and what it gets, and holds it until its input ends."""

WORK = """
import os, sys, time
from pathlib import Path
from nerprobe.lease import leased_device
with leased_device("auto") as device:
    mark = Path(sys.argv[1], device)
    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    time.sleep(0.05)
    mark.unlink()
"""
"""Fails if anyone else is on its device."""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NERPROBE_LEASES", str(tmp_path / "leases"))
    monkeypatch.setenv("NERPROBE_DEVICES", "fake0,fake1")
    return monkeypatch


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> int:
    process.communicate()
    return process.returncode


def test_two_holders_have_two_devices_and_the_third_waits_for_the_first_that_ends(environment) -> None:
    first = start(HOLD)
    assert said(first) == "device fake0"
    second = start(HOLD)
    assert said(second) == "device fake1"
    third = start(HOLD)
    assert said(third) == "waiting for a device: fake0, fake1 taken by other jobs"
    assert end(second) == 0
    assert said(third) == "device fake1"
    assert [end(first), end(third)] == [0, 0]


def test_a_killed_holder_frees_its_device(environment) -> None:
    environment.setenv("NERPROBE_DEVICES", "fake0")
    holder = start(HOLD)
    assert said(holder) == "device fake0"
    waiting = start(HOLD)
    assert said(waiting) == "waiting for a device: fake0 taken by other jobs"
    holder.kill()
    assert end(holder) == -9
    assert said(waiting) == "device fake0"
    assert end(waiting) == 0


def test_many_jobs_on_few_devices_never_meet(environment, tmp_path: Path) -> None:
    environment.setenv("NERPROBE_DEVICES", "fake0,fake1,fake2")
    marks = tmp_path / "marks"
    marks.mkdir()
    jobs = [start(WORK, str(marks)) for _ in range(8)]
    assert [end(job) for job in jobs] == [0] * 8


def test_a_device_is_free_again_after_an_error_in_its_holder(environment) -> None:
    with pytest.raises(ZeroDivisionError), lease(["fake0"]):
        raise ZeroDivisionError
    with lease(["fake0"]) as device:
        assert device == "fake0"


def test_a_child_of_the_holder_does_not_keep_the_device(environment) -> None:
    with lease(["fake0"]):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with lease(["fake0"]) as device:
        assert device == "fake0"
    child.communicate()


@pytest.mark.parametrize(
    ("device", "variables", "expected"),
    [
        ("auto", {"NERPROBE_DEVICES": "cuda:1, cuda:3,,cuda:1"}, ["cuda:1", "cuda:3"]),
        ("cuda", {"NERPROBE_DEVICES": "cuda:1", "SLURM_JOB_ID": "7"}, ["cuda:1"]),
        ("cpu", {"NERPROBE_DEVICES": "cuda:1"}, []),
        ("mps", {"NERPROBE_DEVICES": "cuda:1"}, []),
        ("cuda:2", {"NERPROBE_DEVICES": "cuda:1"}, []),
        ("auto", {"NERPROBE_DEVICES": " , "}, []),
    ],
)
def test_who_may_choose(environment, device: str, variables: dict[str, str], expected: list[str]) -> None:
    """The last case asks torch, which may see no device."""
    import torch

    if device == "auto" and not expected:
        expected = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    for name, value in variables.items():
        environment.setenv(name, value)
    assert devices_to_share(device) == expected


def test_a_device_that_is_not_there_is_named(environment) -> None:
    with pytest.raises(LeaseError, match=r"NERPROBE_DEVICES.*no such device.*cuda:99"), lease(["cuda:99"]):
        pass


def test_without_a_choice_the_configured_device_is_used_and_nothing_is_locked(environment, tmp_path: Path) -> None:
    with leased_device("cpu") as device:
        assert device == "cpu"
    assert not (tmp_path / "leases").exists()


def test_the_folder_of_the_locks_is_of_this_user_alone(environment, tmp_path: Path) -> None:
    with lease(["fake0"]):
        found = (tmp_path / "leases").stat()
    assert (found.st_uid, found.st_mode & 0o777) == (os.getuid(), 0o700)


def test_a_folder_of_another_user_is_refused(environment, tmp_path: Path) -> None:
    folder = Path("/")
    if os.getuid() == 0:
        folder = tmp_path / "theirs"
        folder.mkdir()
        os.chown(folder, 12345, -1)
    environment.setenv("NERPROBE_LEASES", str(folder))
    with pytest.raises(LeaseError, match="of another user"), lease(["fake0"]):
        pass


def test_a_folder_that_cannot_be_made_is_named(environment, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment.setenv("NERPROBE_LEASES", str(tmp_path / "file" / "leases"))
    with pytest.raises(LeaseError, match=r"file/leases.*NERPROBE_LEASES"), lease(["fake0"]):
        pass
