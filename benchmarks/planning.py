"""Time of ``snakemake -n``, and of a run with nothing to do: what a person waits for before the first job starts.

python benchmarks/planning.py

Tasks are copies of the sample task in a copy of the project. For the run with nothing to do every output is made as a
small file and marked as finished by Snakemake itself (``--touch``): no job runs, but all records are there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import PROJECT, Others, machine, table


def project_copy(folder: Path, tasks: int) -> Path:
    """Copy what a run needs, with as many tasks as asked for."""
    copy = folder / "project"
    for name in ("workflow", "config", "envs", "profiles", "src"):
        shutil.copytree(PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "Snakefile", copy)
    sample = (copy / "config" / "tasks" / "sample.yaml").read_text()
    for number in range(tasks):
        (copy / "config" / "tasks" / f"bench{number}.yaml").write_text(sample)
    return copy


class Workplace:
    """A folder with one configuration.

    Args:
        project: Copy of the project.
        folder: Where Snakemake runs.
        encoders: Hub encoders at made-up revisions; none is fetched.
        tasks: Tasks of the copy.
    """

    def __init__(self, project: Path, folder: Path, encoders: int, tasks: int) -> None:
        self.project, self.folder = project, folder
        folder.mkdir()
        names = [f"bench/encoder-{number:04d}@{number:040x}" for number in range(encoders)]
        wanted = ", ".join(f"bench{number}" for number in range(tasks))
        (folder / "config.yaml").write_text(f"tasks: [{wanted}]\nmodels: [{', '.join(names)}]\nbaselines: []\n")

    def call(self, *flags: str) -> tuple[float, float, float, str]:
        """Return seconds, CPU seconds, the share of the machine that others took, and what Snakemake said."""
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *flags, "--snakefile", self.project / "Snakefile"]
        command += ["--directory", self.folder, "--configfile", self.folder / "config.yaml"]
        others, before, begun = Others(), os.times(), time.perf_counter()
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            env={**os.environ, "NERPROBE_BOARD": "no"},
        )
        seconds, after = time.perf_counter() - begun, os.times()
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        own = after.children_user + after.children_system - before.children_user - before.children_system
        return seconds, own, others.share(own), done.stdout + done.stderr

    def finish(self) -> None:
        """Make every output and have it marked as finished."""
        *_, summary = self.call("--summary")
        for line in summary.splitlines():
            path = self.folder / line.partition("\t")[0]
            if line.partition("\t")[0].startswith(("results/", "resources/")):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("{}\n")
        self.call("--touch", "--quiet", "all")


def row(name: str, place: Workplace, flags: list[str], rounds: int) -> list[str]:
    found = [place.call(*flags) for _ in range(rounds)]
    seconds = [one[0] for one in found]
    said = found[-1][3]
    totals = [line.split()[1] for line in said.splitlines() if line.startswith("total")]
    if not totals and "Nothing to be done" not in said:
        raise SystemExit(f"neither jobs nor nothing to do:\n{said}")
    spread = f"{min(seconds):.1f}–{max(seconds):.1f}"
    cpu = f"{statistics.median(one[1] for one in found):.1f}"
    busy = f"{max(one[2] for one in found):.0%}"
    return [name, totals[0] if totals else "0", f"{statistics.median(seconds):.1f}", spread, cpu, busy]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--encoders", nargs="+", type=int, default=[10, 100, 1000])
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument(
        "--nothing", type=int, default=100, help="encoders of the run with nothing to do; 0 leaves it out"
    )
    args = parser.parse_args()
    print(machine(), "\n")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        project = project_copy(Path(name), args.tasks)
        for encoders in args.encoders:
            place = Workplace(project, Path(name) / f"dry{encoders}", encoders, args.tasks)
            label = f"snakemake -n, {encoders:,} encoders × {args.tasks} tasks"
            rows.append(row(label, place, ["-n", "--quiet", "rules"], args.rounds))
        if args.nothing:
            place = Workplace(project, Path(name) / "nothing", args.nothing, args.tasks)
            place.finish()
            label = f"nothing to do, {args.nothing:,} encoders × {args.tasks} tasks"
            rows.append(row(label, place, [], args.rounds))
    print(table(["call", "jobs", "median s", "min–max s", "CPU s", "others' use"], rows))
    print(f"load average at the end {os.getloadavg()[0]:.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
