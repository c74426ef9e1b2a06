"""What the benchmark scripts share: the machine in words, how busy others keep it, environments of other tools."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = {
    # torch is pinned to what nerprobe's lock has: all tools then run the same kernels.
    "st": ("torch==2.13.0", "sentence-transformers==6.2.0"),
    "flair": ("torch==2.13.0", "flair==0.15.1", "transformers>=4.57,<5"),
    "scores": ("seqeval==1.2.2", "nervaluate==1.2.1"),
}
"""Other tools, each in an environment of its own: flair needs transformers 4, and none is a dependency."""


def environment(name: str) -> Path:
    """Return the Python of another tool's environment, which is made the first time (minutes, some GB)."""
    from nerprobe.files import cache_dir

    folder = cache_dir() / "bench" / name
    python, wanted, done = folder / "bin" / "python", "\n".join(ENVIRONMENTS[name]), folder / "requirements.txt"
    if not done.is_file() or done.read_text() != wanted:
        print(f"installing {', '.join(ENVIRONMENTS[name])} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *ENVIRONMENTS[name]], check=True, timeout=1800)
        done.write_text(wanted)
    return python


def cpu_flags() -> set[str]:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    return {flag for line in lines if line.startswith("flags") for flag in line.split(":")[1].split()}


def has_bfloat16() -> bool:
    """Say whether this CPU multiplies bfloat16 itself; others only convert it, which is slower than float32."""
    return bool({"avx512_bf16", "amx_bf16"} & cpu_flags())


def machine() -> str:
    """Return the machine in one line."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    names = {line.split(":")[1].strip() for line in lines if line.startswith("model name")}
    widest = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in cpu_flags()]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{', '.join(names) or platform.processor()} ({', '.join(widest)}), {os.cpu_count()} cores, {memory:.0f} GiB; "
        f"{platform.system()}, Python {platform.python_version()}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; "
        f"load average at the start {os.getloadavg()[0]:.2f}"
    )


def _busy_seconds() -> float:
    path = Path("/proc/stat")
    if not path.is_file():
        return 0.0
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, path.read_text().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


class Others:
    """How much of the machine others used since this was made: 0 on a quiet one, 1 if they had all of it."""

    def __init__(self) -> None:
        self.wall, self.busy = time.perf_counter(), _busy_seconds()

    def share(self, own: float) -> float:
        """Return the share, given the CPU seconds that the measured work took itself."""
        wall = (time.perf_counter() - self.wall) * (os.cpu_count() or 1)
        return max(0.0, (_busy_seconds() - self.busy - own) / wall)


def peak_mib() -> float:
    """Return this process's peak memory.

    ``ru_maxrss`` starts at the size of the process that this one was forked from, so Linux's own mark is read.
    """
    import resource

    path = Path("/proc/self/status")
    for line in path.read_text().splitlines() if path.is_file() else ():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
