"""Kill matrix: the pipeline is broken at random moments of every stage, and must come out as if nothing had been.

    python tests/workflow/kill_matrix.py            # all kinds at all stages
    python tests/workflow/kill_matrix.py --cases 7 --seed 3

Each case starts from a finished run without what the chosen stage and later ones made, is broken while a job of that
stage is at work, and goes on with the command that README names: the same one again, after ``snakemake --unlock``
where Snakemake says that its folder is locked. The metrics must then be those of the undisturbed run, byte for byte,
``nerprobe verify`` must find nothing damaged, and no unfinished file may be left. Nothing is removed by hand.

Snakemake may stand still for ever on SIGTERM: its handler takes a lock that its own main thread may hold at that moment
(``JobScheduler.exit_gracefully``, Snakemake 9). The run then gets SIGKILL after ``GRACE``, as from SLURM or systemd, and
the output says so.

A full disk is a small tmpfs that holds results, logs and Snakemake's own files; a read-only results folder is a bind
mount. Both need root: without it they are skipped, and said to be.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from helpers import Place, Ran, corpus_text

KINDS = ("kill job", "kill snakemake", "SIGTERM", "SIGINT", "full disk", "read-only results")
MOUNTED = ("full disk", "read-only results")
STAGES = ("fetch", "corpus", "subset", "embed", "probe", "score", "leaderboard")
MADE = {
    "fetch": ("resources/encoders/*", "cache/encoders/*"),
    "corpus": ("results/*/*/corpus.*",),
    "subset": ("results/*/*/subset.json", "results/*/*/leakage.json"),
    "embed": ("results/*/*/embeddings/*",),
    "probe": ("results/*/*/predictions/*", "results/*/*/heads/*", "results/*/*/exploratory/*"),
    "score": ("results/*/*/metrics/*",),
    "leaderboard": ("results/*/*/leaderboard.*",),
}
"""What each stage makes; the store of vectors is left, so that only the cases of embed load a network."""
CONFIG = (
    "models=[random-bert,char-ngrams]",
    "baselines=[]",
    "data_dir=data",
    "subset={seed: 1, test: 20, train: 100}",
    "probe={cross_validate: false}",  # twelve more fits tell nothing new here
)
SPACE = "96m"
PATIENCE = 240.0
GRACE = 20.0
"""Seconds without any job at work after which a Snakemake that got SIGTERM is taken to stand still."""


@dataclass(frozen=True)
class Case:
    """One way to break a run: what happens, during which stage, and how far into the job."""

    kind: str
    stage: str
    moment: float


@dataclass(frozen=True)
class Undisturbed:
    """The run to compare with: its folder, its metrics by path, and the seconds of a job of each stage."""

    folder: Path
    metrics: dict[str, bytes]
    seconds: dict[str, float]


class Quiet(Place):
    """A place where the board is not shown in the end."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "NERPROBE_BOARD": "no"}


# --- processes, as /proc tells of them ----------------------------------------------------------------


def jobs_at_work(session: int) -> dict[int, str]:
    """Return the stage of each job of a session by process id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            own = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):
            continue
        if own == session and words[1:3] == [b"-m", b"nerprobe"] and len(words) > 4:
            found[int(entry.name)] = words[3].decode()
    return found


def processes_of(session: int) -> list[int]:
    """Return the ids of every process of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "stat").read_text().rpartition(")")[2].split()[3] == str(session):
                found.append(int(entry.name))
        except (OSError, IndexError):
            continue
    return found


def send(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


@contextmanager
def started(place: Place, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start Snakemake in a session of its own; what is left of it in the end is ended."""
    with output.open("wb") as sink:
        running = subprocess.Popen(
            place.command(CONFIG, []),
            cwd=place.typed,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield running
    finally:
        deadline = time.monotonic() + 60
        while processes_of(running.pid) and time.monotonic() < deadline:
            running.poll()
            time.sleep(0.05)
        for process in processes_of(running.pid):
            send(process, signal.SIGKILL)
        running.wait()


def watch(running: subprocess.Popen[bytes]) -> dict[str, float]:
    """Wait for an undisturbed run; return the longest job of each stage, in seconds."""
    seen: dict[int, tuple[str, float]] = {}
    longest: dict[str, float] = {}
    while running.poll() is None:
        now = time.monotonic()
        at_work = jobs_at_work(running.pid)
        for process, stage in at_work.items():
            seen.setdefault(process, (stage, now))
        for process in [process for process in seen if process not in at_work]:
            stage, begun = seen.pop(process)
            longest[stage] = max(longest.get(stage, 0.0), now - begun)
        time.sleep(0.02)
    return longest


# --- places -------------------------------------------------------------------------------------------


def prepare(root: Path) -> Undisturbed:
    """Write a corpus, run the pipeline once without disturbing it, and time its stages."""
    bio = root / "data" / "profner" / "BIO"
    bio.mkdir(parents=True)
    for name, items, seed, first in (("valid", 20, 1, 1000), ("train", 100, 2, 5000)):
        text = corpus_text(items, seed=seed, first_id=first)
        (bio / f"{name}_spacy.txt").write_text(text, encoding="utf-8")
    folder = root / "undisturbed"
    folder.mkdir()
    place = Quiet(typed=root, folder=folder, home=folder)
    with started(place, root / "undisturbed.out") as running:
        seconds = watch(running)
    if running.returncode:
        sys.exit((root / "undisturbed.out").read_text())
    return Undisturbed(folder=folder, metrics=metrics_of(folder), seconds=seconds)


def metrics_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("results/*/*/metrics/*"))}


def can_mount(root: Path) -> bool:
    """Say whether a tmpfs can be mounted here."""
    point = root / "mount"
    point.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "none", point], capture_output=True, check=False).returncode:
        return False
    return subprocess.run(["umount", point], check=True).returncode == 0


@contextmanager
def place_for(case: Case, base: Undisturbed, root: Path) -> Iterator[Place]:
    """Give a working folder that has what the stages before the case's one made."""
    work = root / "work"
    work.mkdir()
    mounts: list[Path] = []
    try:
        if case.kind == "full disk":
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "none", work], check=True)
            mounts.append(work)
        shutil.copytree(base.folder, work, symlinks=True, dirs_exist_ok=True)
        first = STAGES.index(case.stage)
        patterns = [pattern for stage in STAGES[first:] for pattern in MADE[stage]]
        for pattern in [*patterns, *(["resources/vectors/*"] if case.stage == "embed" else [])]:
            for path in work.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if case.kind == "read-only results":
            results = work / "results"
            subprocess.run(["mount", "--bind", results, results], check=True)
            mounts.append(results)
        yield Quiet(typed=root, folder=work, home=work)
    finally:
        for point in reversed(mounts):
            subprocess.run(["umount", "--lazy", point], check=True)
        shutil.rmtree(work)


def fill(folder: Path) -> None:
    """Take all the space that is left on a disk."""
    with (folder / "filler").open("wb", buffering=0) as handle:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    handle.write(b"\0" * size)
            except OSError:
                continue


def remount(folder: Path, how: str) -> None:
    """Make a bind mount read-only or writable; it is busy while a file is open for writing."""
    deadline = time.monotonic() + 20
    command = ["mount", "-o", f"remount,bind,{how}", str(folder)]
    while subprocess.run(command, capture_output=True, check=False).returncode:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{folder} stays busy")
        time.sleep(0.01)


# --- a case -------------------------------------------------------------------------------------------


def break_it(case: Case, place: Place, running: subprocess.Popen[bytes], job: int) -> None:
    work = place.folder or place.typed
    if case.kind == "kill job":
        send(job, signal.SIGKILL)
    elif case.kind == "kill snakemake":
        # Alone, so that its jobs are orphans that write late; or with them all, as when the power fails.
        send(-running.pid if case.moment > 0.5 else running.pid, signal.SIGKILL)
    elif case.kind == "SIGTERM":
        send(running.pid, signal.SIGTERM)
    elif case.kind == "SIGINT":  # as a terminal does: to the whole group
        send(-running.pid, signal.SIGINT)
    elif case.kind == "full disk":
        fill(work)
    else:
        remount(work / "results", "ro")


def mend(case: Case, place: Place) -> None:
    work = place.folder or place.typed
    if case.kind == "full disk":
        (work / "filler").unlink()
    elif case.kind == "read-only results":
        remount(work / "results", "rw")


def go_on(place: Place) -> Ran:
    """Do what README says: the same command again, after --unlock if the folder is locked."""
    ran = place.run(*CONFIG)
    if ran.code and "--unlock" in ran.out:
        place.run(*CONFIG, flags=["--unlock"])
        ran = place.run(*CONFIG)
    return ran


def wait_for_end(case: Case, running: subprocess.Popen[bytes]) -> str:
    """Wait until a broken run has ended; return what to tell of it.

    Raises:
        TimeoutError: If it does not end.
    """
    begun = at_work = time.monotonic()
    while running.poll() is None:
        now = time.monotonic()
        if jobs_at_work(running.pid):
            at_work = now
        if case.kind == "SIGTERM" and now - at_work > GRACE:
            send(-running.pid, signal.SIGKILL)
            running.wait()
            return "Snakemake stood still and was killed; "
        if now - begun > PATIENCE:
            raise TimeoutError(f"the broken run has not ended after {PATIENCE:.0f} s")
        time.sleep(0.05)
    return ""


def wait_for_job(stage: str, running: subprocess.Popen[bytes]) -> int:
    """Return the process of the first job of a stage."""
    deadline = time.monotonic() + PATIENCE
    while running.poll() is None and time.monotonic() < deadline:
        for process, own in jobs_at_work(running.pid).items():
            if own == stage:
                return process
        time.sleep(0.02)
    raise TimeoutError(f"no job of stage {stage} was seen")


def damaged(folder: Path) -> list[str]:
    """Return what nerprobe verify finds in a working folder."""
    command = [sys.executable, "-m", "nerprobe", "verify"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()


def run_case(case: Case, base: Undisturbed, root: Path) -> tuple[str, list[str]]:
    """Break a run and go on.

    Returns:
        The stages that were at work when it broke, and what is wrong in the end: nothing, as a rule.
    """
    output = root / "broken.out"
    try:
        hit, wrong = break_and_go_on(case, base, root, output)
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        hit, wrong = "not in time", [str(error)]
    if wrong:
        wrong += ["the broken run said:", *output.read_text(errors="replace").splitlines()[-30:]]
    return hit, wrong


def break_and_go_on(case: Case, base: Undisturbed, root: Path, output: Path) -> tuple[str, list[str]]:
    with place_for(case, base, root) as place:
        work = place.folder or place.typed
        with started(place, output) as running:
            job = wait_for_job(case.stage, running)
            time.sleep(case.moment * base.seconds[case.stage])
            hit = "+".join(sorted(set(jobs_at_work(running.pid).values()))) or "between jobs"
            break_it(case, place, running, job)
            hit = wait_for_end(case, running) + hit
            mend(case, place)
            ran = go_on(place)
            wrong = [] if ran.code == 0 else ["the next command failed:", *ran.out.splitlines()[-30:]]
        # Whoever was left alone has ended by now, and may have written late.
        if metrics_of(work) != base.metrics:
            wrong.append("metrics differ from those of the undisturbed run")
        wrong += damaged(work)
        wrong += [f"left over: {path.relative_to(work)}" for path in work.rglob(".*.tmp")]
    return hit, wrong


def cases_of(number: int, seed: int, kinds: Sequence[str]) -> list[Case]:
    """Draw moments for every pair of a kind and a stage, in a seeded order; the first ``number`` of them."""
    rng = random.Random(seed)
    pairs = list(product(kinds, STAGES))
    rng.shuffle(pairs)
    return [Case(kind, stage, round(rng.random(), 3)) for kind, stage in pairs][:number]


def kill_matrix(root: Path, *, number: int, seed: int, say: Callable[[str], None] = print) -> list[str]:
    """Run the matrix; return what went wrong, case by case."""
    begun = time.monotonic()
    kinds = [kind for kind in KINDS if kind not in MOUNTED or can_mount(root)]
    for kind in KINDS:
        if kind not in kinds:
            say(f"skipped: {kind} (mounting needs root)")
    base = prepare(root)
    say(f"undisturbed run: {time.monotonic() - begun:.1f} s; longest job of a stage, in seconds: {base.seconds}")
    tried: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for case in cases_of(number, seed, kinds):
        first = time.monotonic()
        hit, faults = run_case(case, base, root)
        tried[case.kind, case.stage] += 1
        verdict = "LOST" if faults else "survived"
        say(f"{case.kind} at {case.moment:.3f} of {case.stage} ({hit}): {verdict}, {time.monotonic() - first:.1f} s")
        if faults:
            wrong += [f"{case}:", *faults]
    lost = sum(line.startswith("Case(") for line in wrong)
    total = sum(tried.values())
    for label, part in (("kind", 0), ("stage", 1)):
        counts: Counter[str] = Counter()
        for pair, count in tried.items():
            counts[pair[part]] += count
        say(f"by {label}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    say(f"kills tried {total}, survived {total - lost}, seed {seed}, {time.monotonic() - begun:.0f} s")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=len(KINDS) * len(STAGES), help="how many; default: all")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kill-matrix-") as root:
        wrong = kill_matrix(Path(root), number=asked.cases, seed=asked.seed, say=lambda text: print(text, flush=True))
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
