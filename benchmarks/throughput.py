"""Words a second of the embed stage beside other tools and beside the bare network, in one table.

    python benchmarks/throughput.py                 # minutes; installs other tools' environments the first time
    python benchmarks/throughput.py --device cuda   # benchmarks/gpu.py: random weights, torch and transformers only

Every tool is one process that loads once; rounds alternate (A B C D A B C D …), so that all meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import PROJECT, Others, environment, has_bfloat16, machine, table

PLACES = {"sentence_transformers": "st", "flair": "flair"}
NAMES = {
    ("nerprobe", "float32"): "nerprobe",
    ("nerprobe", "bfloat16"): "nerprobe, bfloat16",
    ("forward", "float32"): "bare forward pass",
    ("forward", "bfloat16"): "bare forward pass, bfloat16",
    ("sentence_transformers", "float32"): "sentence-transformers",
    ("flair", "float32"): "flair",
    ("pipeline", "float32"): "transformers pipeline",
    ("pipeline_tensors", "float32"): "transformers pipeline, return_tensors=True",
}
AIMS = {
    ("forward", "float32"): ("float32", 0.90),
    ("sentence_transformers", "float32"): ("float32", 1.25),
    ("flair", "float32"): ("float32", 2.0),
    ("pipeline", "float32"): ("float32", 2.3),
    ("sentence_transformers", "bfloat16"): ("bfloat16", 2.0),
}
"""How many times as fast as each nerprobe should be: (tool, dtype of nerprobe) to ratio."""

HEAD = ["tool", "median s", "min–max s", "words/s", "tokens/s", "padding", "in forward", "peak MiB"]
HEAD += ["s / nerprobe s", "others' use"]


class Worker:
    """A process with one tool."""

    def __init__(self, tool: str, dtype: str, job: Path, threads: int) -> None:
        self.key, self.rounds = (tool, dtype), []
        python = environment(PLACES[tool]) if tool in PLACES else Path(sys.executable)
        limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), str(threads))
        paths = "" if tool in PLACES else str(PROJECT / "src")
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "PYTHONPATH": paths}
        offline |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TQDM_DISABLE": "1"}
        self.process = subprocess.Popen(
            [python, "-W", "ignore", PROJECT / "benchmarks" / "tools.py", tool, job, dtype],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits, **offline},
        )
        hello = self._reply()
        self.versions = ", ".join(f"{name} {version}" for name, version in hello["versions"].items())
        self.about = hello["about"]
        self.counts = self.ask("round")  # a warm-up, in which tokens are counted

    def _reply(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.key[0]} ended with code {self.process.wait()}; its message is above")
        return json.loads(line)

    def ask(self, command: str) -> dict[str, Any]:
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._reply()

    def round(self, wait: float) -> None:
        wait_for_quiet(wait)
        others = Others()
        reply = self.ask("round")
        self.rounds.append({**reply, "others": others.share(reply["cpu"]), "load": os.getloadavg()[0]})

    def median(self, name: str = "seconds") -> float:
        return statistics.median(own[name] for own in self.rounds)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=30)


def wait_for_quiet(limit: float) -> None:
    """Wait until others leave the machine alone for half a second, but no longer than ``limit`` seconds."""
    begun = time.perf_counter()
    while True:
        others = Others()
        time.sleep(0.5)
        if others.share(0.0) < 0.05 or time.perf_counter() - begun > limit:
            return


def corpus(items: int | None) -> tuple[list[Any], str, str]:
    """Return the 600 tweets of the benchmark (generated ones without a data folder), the train pool, and a word."""
    from nerprobe.config import load_task
    from nerprobe.corpus import read_items
    from nerprobe.plan import make_run
    from nerprobe.subset import select

    data = Path(os.environ.get("NERPROBE_DATA_DIR") or PROJECT.parent / "shared" / "data")
    real = (data / "profner" / "BIO" / "valid_spacy.txt").is_file()
    task = load_task(PROJECT / "config" / "tasks" / f"{'profner' if real else 'sample'}.yaml")
    subset = {"seed": 20261006, "test": 100, "train": 500}
    config = {"data_dir": str(data) if real else None, "subset": subset, "probe": {}}
    run = make_run(task, config, base=Path.cwd())
    known = {item.item_id: item for item in read_items(run.corpus)[0]}
    pools = {pool: [name for name, item in known.items() if item.pool == pool] for pool in task.pools}
    chosen = select(pools, spec=run.subset)
    found = [known[name] for pool in sorted(chosen) for name in chosen[pool]]
    return found[:items], task.evaluations[0]["train_pool"], "real tweets" if real else "generated tweets"


def write_job(folder: Path, args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from nerprobe.config import load_registry
    from nerprobe.fetch import fetch_encoder

    source = load_registry(PROJECT / "config" / "models.yaml")[args.model]["source"]
    items, train_pool, kind = corpus(args.items)
    job = {
        "folder": fetch_encoder(source=source)["folder"],
        "items": [asdict(item) for item in items],
        "texts": [item.text for item in items],
        "words": [list(item.words) for item in items],
        "train_pool": train_pool,
        "types": ["PROFESION", "SITUACION_LABORAL"],
        "threads": args.threads,
        "batch_tokens": args.batch_tokens,
        "pipeline_batch": args.pipeline_batch,
        "limit": 512,
        "work": str(folder),
    }
    (folder / "job.json").write_text(json.dumps(job))
    return job, kind


def rows_of(workers: list[Worker], words: int) -> list[list[str]]:
    ours = next(worker for worker in workers if worker.key == ("nerprobe", "float32"))
    tokens = ours.counts["tokens"]  # the same number for all: real sub-words and special tokens, as nerprobe has them
    rows = []
    for worker in workers:
        seconds, counts = worker.median(), worker.counts
        lowest, highest = (edge(own["seconds"] for own in worker.rounds) for edge in (min, max))
        rows.append(
            [
                NAMES[worker.key],
                f"{seconds:.2f}",
                f"{lowest:.2f}–{highest:.2f}",
                f"{words / seconds:,.0f}",
                f"{tokens / seconds:,.0f}",
                f"{1 - counts['tokens'] / counts['padded']:.1%}",
                f"{worker.median('forward') / seconds:.0%}",
                f"{worker.rounds[-1]['peak_mib']:,.0f}",
                f"{seconds / ours.median():.2f}",
                f"{max(own['others'] for own in worker.rounds):.0%}",
            ]
        )
    return rows


def verdicts(workers: list[Worker]) -> list[str]:
    by_key = {worker.key: worker for worker in workers}
    lines = []
    for (tool, dtype), (_, aim) in AIMS.items():
        other, ours = by_key.get((tool, "float32")), by_key.get(("nerprobe", dtype))
        if other is None or ours is None:
            continue
        # Paired by round, so that a slow spell of the machine meets both.
        ratios = [a["seconds"] / b["seconds"] for a, b in zip(other.rounds, ours.rounds, strict=True)]
        ratio = statistics.median(ratios)
        said = "met" if ratio >= aim else f"missed by {aim - ratio:.2f}"
        spread = f"{min(ratios):.2f}–{max(ratios):.2f}"
        lines.append(f"- {dtype}: {ratio:.2f} x {NAMES[other.key]} (rounds {spread}); aim {aim:.2f}: {said}")
    return lines


def measure(args: argparse.Namespace, folder: Path) -> tuple[list[Worker], dict[str, Any], str]:
    job, kind = write_job(folder, args)
    dtypes = ["float32", *(["bfloat16"] if args.bfloat16 or has_bfloat16() else [])]
    wanted = [key for key in NAMES if key[0] in args.tools and key[1] in dtypes]
    workers = [Worker(*key, folder / "job.json", args.threads) for key in wanted]
    begun = time.perf_counter()
    for number in range(args.rounds):
        for worker in workers:
            worker.round(args.wait)
        if args.output:
            rounds = {NAMES[worker.key]: worker.rounds for worker in workers}
            args.output.write_text(json.dumps({"machine": machine(), "rounds": rounds}, indent=1))
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        if time.perf_counter() - begun > args.limit:
            break
    return workers, job, kind


def report(workers: list[Worker], job: dict[str, Any], kind: str, args: argparse.Namespace) -> str:
    words = sum(map(len, job["words"]))
    tokens = next(worker.counts["tokens"] for worker in workers if worker.key[0] == "nerprobe")
    lines = [
        machine(),
        f"{args.model}: {len(job['texts'])} {kind}, {words:,} words, {tokens:,} tokens; {args.threads} threads, "
        f"{len(workers[0].rounds)} alternating rounds",
        "",
        table(HEAD, rows_of(workers, words)),
        "",
        *verdicts(workers),
    ]
    scores = {w.key[1]: w.ask("f1")["f1"] for w in workers if w.key[0] == "nerprobe" and args.items is None}
    lines += [f"- F1 of the probe, {dtype}: {score:.4f}" for dtype, score in scores.items()]
    if "bfloat16" in scores:
        lines.append(f"- change in F1 with bfloat16: {scores['bfloat16'] - scores['float32']:+.4f}")
    if not has_bfloat16():
        lines.append("- this CPU has no bfloat16 instructions; --bfloat16 times it all the same")
    for worker in workers:
        lines.append(f"- {NAMES[worker.key]}: {worker.about}; {worker.versions}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cpu", help="cuda: runs gpu.py instead")
    parser.add_argument("--model", default="minilm-l6", help="a name of config/models.yaml that can be fetched here")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--wait", type=float, default=20.0, help="seconds to wait for a quiet machine before a round")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds after which no further round is begun")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, help="default: what nerprobe takes for the device")
    parser.add_argument("--pipeline-batch", type=int, default=1)
    parser.add_argument("--items", type=int, help="only so many texts, for a try")
    parser.add_argument("--tools", nargs="+", default=sorted({tool for tool, _ in NAMES}))
    parser.add_argument("--bfloat16", action="store_true", help="also on a CPU without such instructions")
    parser.add_argument("--output", type=Path, help="JSON file with every round")
    args = parser.parse_args()
    if args.device != "cpu":
        import gpu

        gpu.main(["--device", args.device])
        return
    with tempfile.TemporaryDirectory() as folder:
        workers, job, kind = measure(args, Path(folder))
        print(report(workers, job, kind, args))
        for worker in workers:
            worker.close()


if __name__ == "__main__":
    main()
