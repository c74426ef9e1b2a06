"""Runs that are broken off: a few cases of the kill matrix, and orphans that write when all is done."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kill_matrix
import pytest
from helpers import Place

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> kill_matrix.Undisturbed:
    return kill_matrix.prepare(tmp_path_factory.mktemp("kills"))


def test_every_kind_of_break_is_survived_once(base: kill_matrix.Undisturbed) -> None:
    """At six stages; .ci/run tries every kind at every stage."""
    root = base.folder.parent
    kinds = [kind for kind in kill_matrix.KINDS if kind not in kill_matrix.MOUNTED or kill_matrix.can_mount(root)]
    moments = (0.2, 0.6, 0.4, 0.3, 0.1, 0.5)
    for number, kind in enumerate(kinds):
        case = kill_matrix.Case(kind, kill_matrix.STAGES[number + 1], moments[number])
        _, wrong = kill_matrix.run_case(case, base, root)
        assert wrong == [], case


@pytest.mark.parametrize("stage", ["embed", "probe"])
def test_an_orphan_that_writes_last_harms_nothing(base: kill_matrix.Undisturbed, stage: str) -> None:
    """Its Snakemake is killed while it stands still; it goes on once the next run has finished."""
    root = base.folder.parent
    with kill_matrix.place_for(kill_matrix.Case("kill snakemake", stage, 0.0), base, root) as place:
        work = place.folder or place.typed
        with kill_matrix.started(place, root / "orphan.out") as running:
            orphan = kill_matrix.wait_for_job(stage, running)
            os.kill(orphan, signal.SIGSTOP)
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
            assert kill_matrix.go_on(place).code == 0
            assert kill_matrix.metrics_of(work) == base.metrics
            before = written(place, stage)
            os.kill(orphan, signal.SIGCONT)
            wait_for_end(orphan)
            assert written(place, stage) != before, "the orphan has not written"
        assert kill_matrix.metrics_of(work) == base.metrics
        assert kill_matrix.damaged(work) == []
        assert list(work.rglob(".*.tmp")) == []
        again = kill_matrix.go_on(place)
        assert again.code == 0, again.out
        assert kill_matrix.metrics_of(work) == base.metrics


def written(place: Place, stage: str) -> dict[Path, int]:
    """Return when each file of a stage was written, in nanoseconds."""
    work = place.folder or place.typed
    return {path: path.stat().st_mtime_ns for pattern in kill_matrix.MADE[stage] for path in work.glob(pattern)}


def wait_for_end(process: int) -> None:
    deadline = time.monotonic() + kill_matrix.PATIENCE
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{process}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise TimeoutError(f"process {process} does not end")


@contextmanager
def standing_still() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that does nothing and does not end, in a session of its own, as Snakemake is started."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_run_that_stands_still_after_sigterm_is_killed_and_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kill_matrix, "GRACE", 0.3)
    with standing_still() as process:
        said = kill_matrix.wait_for_end(kill_matrix.Case("SIGTERM", "score", 0.9), process)
        assert said.startswith("Snakemake stood still")
        assert process.poll() == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["kill job", "SIGINT", "full disk"])
def test_any_other_run_that_does_not_end_is_a_fault(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(kill_matrix, "GRACE", 0.1)
    monkeypatch.setattr(kill_matrix, "PATIENCE", 0.5)
    with standing_still() as process, pytest.raises(TimeoutError, match="has not ended"):
        kill_matrix.wait_for_end(kill_matrix.Case(kind, "score", 0.9), process)
