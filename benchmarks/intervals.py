"""Speed and coverage of the bootstrap intervals.

    python benchmarks/intervals.py

Time: 10,000 resamples of 100 tweets for 100 encoders, beside loops over resamples with seqeval and nervaluate, which
are run on a few and extrapolated. Coverage: how often the 95 % percentile interval holds the true F1.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import environment, machine, peak_mib, table

TYPES = ("PROFESION", "SITUACION_LABORAL")
ITEMS, LOOPS = 100, 10
"""Test tweets, and resamples that the slow tools do before extrapolation."""


def tagged(rng: Any, items: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return gold and predicted tags of made-up tweets of 35 words, about half of the mentions found."""
    gold, predicted = [], []
    for _ in range(items):
        tags, found = ["O"] * 35, ["O"] * 35
        for place in rng.choice(11, rng.binomial(3, 0.15), replace=False) * 3:
            kind = TYPES[int(rng.random() < 0.1)]
            tags[place : place + 2] = [f"B-{kind}", f"I-{kind}"]
            if rng.random() < 0.5:
                found[place : place + 2] = tags[place : place + 2]
        gold.append(tags)
        predicted.append(found)
    return gold, predicted


def board_seconds(encoders: int, resamples: int) -> dict[str, float]:
    """Return the seconds of all intervals, and of ranks, tiers and all pairs on top, with peak memory after each."""
    import numpy as np

    from nerprobe.bootstrap import METRICS, count_array, interval, resampled, weight_matrix
    from nerprobe.compare import pairs, standings
    from nerprobe.score import evaluate

    rng = np.random.default_rng(1)
    counts = []
    for _ in range(encoders):
        gold, predicted = tagged(rng, ITEMS)
        rows = [(str(index), *own) for index, own in enumerate(zip(gold, predicted, strict=True))]
        counts.append(count_array(evaluate(rows, TYPES)["per_item"], TYPES))
    began = time.perf_counter()
    weights = weight_matrix(ITEMS, resamples=resamples, seed=1)
    f1 = np.zeros((resamples, encoders))
    for index, own in enumerate(counts):
        values = resampled(own, weights)
        f1[:, index] = values["f1"]
        for name in METRICS:
            interval(values[name], 0.95)
    found = {"intervals": time.perf_counter() - began, "intervals MiB": peak_mib()}
    began = time.perf_counter()
    scores = np.array([2 * own[..., 0].sum() / own[..., 1:].sum() for own in counts])
    standings(scores, f1, level=0.95)
    pairs(scores, f1, level=0.95)
    return {**found, "ranks and pairs": time.perf_counter() - began, "all MiB": peak_mib()}


def loop(tool: str) -> None:
    """Time one resample's scores with another tool; runs in that tool's environment, tags come on standard input."""
    gold, predicted, drawn = json.load(sys.stdin)
    if tool == "seqeval":
        from seqeval.metrics.sequence_labeling import f1_score, precision_recall_fscore_support

        def score(golds: list[list[str]], found: list[list[str]]) -> None:
            precision_recall_fscore_support(golds, found, average="micro", zero_division=0)
            f1_score(golds, found, average="macro", zero_division=0)

    else:
        from nervaluate.evaluator import Evaluator

        def score(golds: list[list[str]], found: list[list[str]]) -> None:
            Evaluator(golds, found, tags=list(TYPES), loader="list").evaluate()

    score(gold, predicted)
    began = time.perf_counter()
    for rows in drawn:
        score([gold[row] for row in rows], [predicted[row] for row in rows])
    print(json.dumps((time.perf_counter() - began) / len(drawn)))


def loop_seconds(tool: str) -> float:
    import numpy as np

    rng = np.random.default_rng(1)
    given = json.dumps([*tagged(rng, ITEMS), rng.integers(0, ITEMS, (LOOPS, ITEMS)).tolist()])
    command = [environment("scores"), "-W", "ignore", Path(__file__).resolve(), "--loop", tool]
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return float(done.stdout.splitlines()[-1])


def coverage(truth: float, *, corpora: int, resamples: int) -> tuple[float, float, float]:
    """Return the coverage of the 95 % interval, the mean width, and the mean F1.

    A tweet has Binomial(3, 0.15) gold mentions, close to ProfNER's 0.43 a tweet; each is found with probability
    ``truth``, and as many others are predicted, Poisson distributed, that precision is ``truth`` as well. So the
    population's F1 is ``truth``.
    """
    import numpy as np

    from nerprobe.bootstrap import interval, resampled, weight_matrix

    rng = np.random.default_rng(round(1000 * truth))
    weights = weight_matrix(ITEMS, resamples=resamples, seed=1)
    gold = rng.binomial(3, 0.15, (corpora, ITEMS))
    right = rng.binomial(gold, truth)
    predicted = right + rng.poisson(0.45 * (1 - truth), (corpora, ITEMS))
    counts = np.stack([right, predicted, gold], axis=-1).astype(np.float64)
    ends = np.array([interval(resampled(own[:, None, :], weights)["f1"], 0.95) for own in counts])
    total = counts.sum(axis=1)
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    f1 = 2 * total[:, 0] / (total[:, 1] + total[:, 2])
    return float(held.mean()), float((ends[:, 1] - ends[:, 0]).mean()), float(f1.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--encoders", type=int, default=100)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--corpora", type=int, default=4000, help="simulated test sets for each true F1")
    parser.add_argument("--loop", choices=["seqeval", "nervaluate"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.loop:
        loop(args.loop)
        return
    print(machine(), "\n")
    own = board_seconds(args.encoders, args.resamples)
    rows = [
        ["nerprobe, all intervals", f"{own['intervals']:.2f}", "1", f"{own['intervals MiB']:,.0f}"],
        ["nerprobe, ranks, tiers and pairs on top", f"{own['ranks and pairs']:.2f}", "", f"{own['all MiB']:,.0f}"],
    ]
    for tool in ("seqeval", "nervaluate"):
        seconds = loop_seconds(tool) * args.encoders * args.resamples
        ratio = f"{seconds / own['intervals']:,.0f}"
        rows.append([f"{tool} in a loop, from {LOOPS} resamples", f"{seconds:,.0f} (extrapolated)", ratio, ""])
    print(f"{args.encoders} encoders, {args.resamples:,} resamples of {ITEMS} tweets\n")
    print(table(["", "s", "times as long", "peak MiB"], rows), "\n")
    rows = []
    for truth in (0.3, 0.6, 0.8):
        held, width, mean = coverage(truth, corpora=args.corpora, resamples=1000)
        error = 1.96 * math.sqrt(held * (1 - held) / args.corpora)
        rows.append([f"{truth:.1f}", f"{held:.1%} ± {error:.1%}", f"{width:.3f}", f"{mean:.3f}"])
    print(f"95 % percentile interval, 1,000 resamples, {args.corpora:,} simulated test sets of {ITEMS} tweets\n")
    print(table(["true F1", "coverage", "mean width", "mean F1"], rows))


if __name__ == "__main__":
    main()
