"""The embed stage on corpora of 1,000, 10,000 and 100,000 generated tweets; and a run that is killed and resumed.

    python benchmarks/scale.py
    python benchmarks/scale.py --sizes 1000 10000       # a try

The encoder is tiny (one layer, 16 wide, a token a byte), so what is seen is the cost of everything around it. Every
stage is the real command in a process of its own; its peak memory is what the kernel says when it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import PROJECT, machine, table

KEY = "scale0000000"
SETTINGS = {"dtype": "float32", "storage": "float32", "layer": "last", "pooling": "mean", "prefix": ""}
SHAPE = {"seed": 1, "layers": 1, "width": 16, "heads": 2, "intermediate": 32, "max_tokens": 512}
KILL_AFTER = 3
"""Finished blocks after which the resumed run is killed."""


@dataclass(frozen=True)
class Done:
    """What a command took: seconds, CPU seconds and MiB at its peak."""

    seconds: float
    cpu: float
    peak: float


def start(arguments: list[Any]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "OMP_NUM_THREADS": "2"}
    return subprocess.Popen([sys.executable, "-m", "nerprobe", *map(str, arguments)], env=environment)


def finish(process: subprocess.Popen[bytes], begun: float) -> Done:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"ended with code {process.returncode}: {process.args}")
    unit = 1024 if sys.platform == "darwin" else 1
    return Done(time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / unit / 1024)


def run(arguments: list[Any]) -> Done:
    begun = time.perf_counter()
    return finish(start(arguments), begun)


def prepare(folder: Path, size: int) -> dict[str, Done]:
    """Generate a corpus of ``size`` tweets, all of them taken, by the stages themselves."""
    from nerprobe.config import load_task
    from nerprobe.plan import make_run

    task = load_task(PROJECT / "config" / "tasks" / "sample.yaml")
    subset = {"seed": 1, "test": "all", "train": "all"}
    planned = make_run(task, {"data_dir": None, "subset": subset, "probe": {}}, base=folder)
    planned.corpus["pools"]["test"]["items"], planned.corpus["pools"]["train"]["items"] = 100, size - 100
    corpus, info, chosen = folder / "corpus.parquet", folder / "corpus.json", folder / "subset.json"
    corpus_spec, subset_spec = json.dumps(planned.corpus), json.dumps(planned.subset)
    inputs = ["--corpus", corpus, "--corpus-info", info]
    return {
        "corpus": run(["corpus", "--spec", corpus_spec, "--table", corpus, "--info", info]),
        "subset": run(
            ["subset", "--spec", subset_spec, *inputs, "--output", chosen, "--leakage", folder / "leakage.json"]
        ),
        "fetch": run(["fetch", "--spec", json.dumps({"kind": "random", **SHAPE}), "--output", folder / "tiny.json"]),
    }


def embed_arguments(folder: Path, name: str) -> list[Any]:
    settings = {**SETTINGS, "max_length": None, "window": "half-overlap"}
    spec = {"model": "tiny", "key": KEY, "source": {"kind": "random", **SHAPE}, "settings": settings}
    inputs = ["--corpus", folder / "corpus.parquet", "--subset", folder / "subset.json"]
    inputs += ["--encoder", folder / "tiny.json", "--store", folder / name / "store", "--threads", 2]
    outputs = ["--output", folder / name / "vectors.parquet", "--manifest", folder / name / "vectors.json"]
    return ["embed", "--spec", json.dumps(spec), "--device", "cpu", *inputs, *outputs]


def mib(path: Path) -> float:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 2**20


def scale(folder: Path, size: int) -> list[str]:
    """Run all stages on one size and return its row."""
    before = prepare(folder, size)
    done = run(embed_arguments(folder, "whole"))
    again = run(embed_arguments(folder, "whole"))
    manifest = json.loads((folder / "whole" / "vectors.json").read_text())
    return [
        f"{size:,}",
        f"{manifest['rows']:,}",
        *(f"{own.seconds:.1f} / {own.cpu:.1f} / {own.peak:,.0f}" for own in (before["corpus"], before["subset"], done)),
        f"{1e3 * done.cpu / size:.2f}",
        f"{again.seconds:.1f} / {again.cpu:.1f} / {again.peak:,.0f}",
        f"{mib(folder / 'corpus.parquet'):.1f}",
        f"{mib(folder / 'subset.json'):.1f}",
        f"{mib(folder / 'whole' / 'store'):.1f}",
        f"{mib(folder / 'whole' / 'vectors.parquet'):.1f}",
    ]


def resume(folder: Path, size: int) -> str:
    """Kill a run after some blocks, start it again, and compare with the undisturbed one in the same folder."""
    from nerprobe.files import sha256_file

    store = folder / "killed" / "store"
    process = start(embed_arguments(folder, "killed"))
    while process.poll() is None and len(list(store.glob("*.safetensors"))) < KILL_AFTER:
        time.sleep(0.01)
    process.kill()
    process.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in store.glob("*.safetensors")}
    done = run(embed_arguments(folder, "killed"))
    rewritten = sum(store.joinpath(name).stat().st_mtime_ns != time_ns for name, time_ns in kept.items())
    same = sha256_file(folder / "killed" / "vectors.parquet") == sha256_file(folder / "whole" / "vectors.parquet")
    blocks = sorted(path.name for path in store.glob("*.safetensors"))
    same_blocks = blocks == sorted(path.name for path in (folder / "whole" / "store").glob("*.safetensors"))
    computed = json.loads((folder / "killed" / "vectors.json").read_text())["health"]["items_embedded"]
    return (
        f"Killed (SIGKILL) after {len(kept)} blocks of {size:,} tweets: the second run computed {computed:,} tweets in "
        f"{done.seconds:.1f} s, rewrote {rewritten} of the finished blocks; vectors file "
        f"{'has the same bytes' if same else 'DIFFERS'}, blocks {'too' if same_blocks else 'DIFFER'}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--resume-size", type=int, default=10_000, help="one of the sizes")
    args = parser.parse_args()
    print(machine(), "\n")
    print("Seconds / CPU seconds / MiB at the peak of each stage's process.\n")
    head = ["tweets", "words", "corpus", "subset", "embed", "embed CPU ms a tweet", "embed again, all stored"]
    head += ["corpus.parquet MiB", "subset.json MiB", "store MiB", "vectors MiB"]
    print(table(head, []))
    resumed = ""
    for size in args.sizes:
        with tempfile.TemporaryDirectory() as place:
            print(f"| {' | '.join(scale(Path(place), size))} |", flush=True)
            if size == args.resume_size:
                resumed = resume(Path(place), size)
        print(f"{size:,} done, load average {os.getloadavg()[0]:.2f}", file=sys.stderr)
    print(f"\n{resumed}")


if __name__ == "__main__":
    main()
