"""Time of ``snakemake -n`` for 10 and 100 encoders: what a person waits for before the first job starts.

python benchmarks/planning.py
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import PROJECT, machine, table


def plan(encoders: int, folder: Path) -> tuple[float, int]:
    """Return seconds and number of jobs of one dry run."""
    names = [f"bench/encoder-{number:03d}@{number:040x}" for number in range(encoders)]
    configfile = folder / f"{encoders}.yaml"
    configfile.write_text(f"tasks: [sample]\nmodels: [{', '.join(names)}]\n")
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "-n",
        "--quiet",
        "rules",
        "--cores",
        "1",
        "--snakefile",
        PROJECT / "Snakefile",
    ]
    command += ["--directory", folder, "--configfile", configfile]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=folder)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    totals = [line.split()[1] for line in (done.stdout + done.stderr).splitlines() if line.startswith("total")]
    return time.perf_counter() - begun, int(totals[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--encoders", nargs="+", type=int, default=[10, 100])
    args = parser.parse_args()
    print(machine(), "\n")
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for encoders in args.encoders:
            found = [plan(encoders, Path(place)) for _ in range(args.rounds)]
            seconds = [own for own, _ in found]
            spread = f"{min(seconds):.1f}–{max(seconds):.1f}"
            rows.append([str(encoders), str(found[0][1]), f"{statistics.median(seconds):.1f}", spread])
    print(table(["encoders", "jobs", "median s", "min–max s"], rows))
    print(f"load average at the end {os.getloadavg()[0]:.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
