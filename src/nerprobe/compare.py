"""What a board knows of its ranks: paired differences, rank intervals and tiers, from shared resamples.

Every encoder is scored on the same resampled items (``nerprobe.bootstrap``), so differences are paired (Efron and
Tibshirani 1993, chapter 16; for NLP see Berg-Kirkpatrick et al. 2012). Holm (1979) guards comparisons with one
best encoder, Benjamini and Hochberg (1995) the many comparisons of all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from nerprobe.bootstrap import Floats

Ints = npt.NDArray[np.int64]
POWER = 0.8
"""Share of boards that should find a gap, by custom (Cohen 1988)."""
COMPARISONS = 10_000
"""Resamples behind differences, p values and ranks: the smallest p is 2 / (R + 1), before any adjustment."""


def p_values(differences: Floats) -> Floats:
    """Return two-sided paired bootstrap p values.

    ``min(1, 2 (1 + the smaller of #{d* <= 0} and #{d* >= 0}) / (R + 1))``.

    Args:
        differences: Resampled differences, shape (resamples, pairs).

    Returns:
        Shape (pairs,).
    """
    fewer = np.minimum((differences <= 0).sum(axis=0), (differences >= 0).sum(axis=0))
    p: Floats = np.minimum(1.0, 2.0 * (1 + fewer) / (len(differences) + 1))
    return p


def holm(p: Floats) -> Floats:
    """Return p values adjusted by Holm's step-down method, in the order given."""
    order = np.argsort(p, kind="stable")
    steps = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def benjamini_hochberg(p: Floats) -> Floats:
    """Return p values adjusted by the step-up method of Benjamini and Hochberg, in the order given."""
    order = np.argsort(p, kind="stable")[::-1]
    steps = p[order] * len(p) / np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(steps))
    return adjusted


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where one encoder stands.

    Attributes:
        rank: 1 and up by F1; equal scores share the better rank.
        rank_low: Lower end of the rank's interval over resamples.
        rank_high: Upper end.
        tier: 1 and up; the encoders of a tier are not separated from its best.
        p_best: Share of resamples in which it is best, ties split evenly.
        p_top3: Share of resamples in which it is among the best three, ties split evenly.
    """

    rank: int
    rank_low: int
    rank_high: int
    tier: int
    p_best: float
    p_top3: float


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One paired comparison.

    Attributes:
        first: Index of the encoder with the better score.
        second: Index of the other.
        difference: F1 of the first less F1 of the second.
        low: Lower end of the difference's interval.
        high: Upper end.
        p: Two-sided bootstrap p value, not adjusted.
        p_bh: The same, adjusted over all pairs (Benjamini-Hochberg).
        p_leader: The same, adjusted over all comparisons with the leader (Holm); None for other pairs.
    """

    first: int
    second: int
    difference: float
    low: float
    high: float
    p: float
    p_bh: float
    p_leader: float | None


def _shares(values: Floats) -> tuple[Ints, Floats, Floats]:
    """Return ranks, shares of the first place and of the first three, each of shape (resamples, encoders)."""
    better = np.stack([(values > values[:, [i]]).sum(axis=1) for i in range(values.shape[1])], axis=1)
    equal = np.stack([(values == values[:, [i]]).sum(axis=1) for i in range(values.shape[1])], axis=1)
    best = np.clip((1 - better) / equal, 0.0, 1.0)
    top3 = np.clip((3 - better) / equal, 0.0, 1.0)
    return better + 1, best, top3


def tiers(scores: Floats, values: Floats, *, alpha: float) -> list[int]:
    """Return the tier of each encoder.

    The first tier is the best encoder and all that Holm's method does not separate from it at ``alpha``; the
    next one is found in the same way among the rest.

    Args:
        scores: F1 of each encoder, shape (encoders,).
        values: Resampled F1, shape (resamples, encoders).
        alpha: Level of the tests.
    """
    found = [0] * len(scores)
    rest = sorted(range(len(scores)), key=lambda index: -scores[index])
    tier = 0
    while rest:
        tier += 1
        best, others = rest[0], rest[1:]
        adjusted = holm(p_values(values[:, [best]] - values[:, others])) if others else np.zeros(0)
        apart = {other for other, p in zip(others, adjusted, strict=True) if p < alpha}
        for index in rest:
            if index not in apart:
                found[index] = tier
        rest = [index for index in rest if index in apart]
    return found


def standings(scores: Floats, values: Floats, *, level: float) -> list[Standing]:
    """Return where each encoder stands.

    Args:
        scores: F1 of each encoder on the test items, shape (encoders,).
        values: F1 of each on each resample, shape (resamples, encoders).
        level: Level of the rank intervals; tiers are tested at ``1 - level``.
    """
    if not len(scores):
        return []
    ranks, best, top3 = _shares(values)
    tails = (1 - level) / 2, (1 + level) / 2
    low = np.quantile(ranks, tails[0], axis=0, method="inverted_cdf")
    high = np.quantile(ranks, tails[1], axis=0, method="inverted_cdf")
    tier = tiers(scores, values, alpha=1 - level)
    return [
        Standing(
            rank=1 + int((scores > score).sum()),
            rank_low=int(low[index]),
            rank_high=int(high[index]),
            tier=tier[index],
            p_best=float(best[:, index].mean()),
            p_top3=float(top3[:, index].mean()),
        )
        for index, score in enumerate(scores)
    ]


def pairs(scores: Floats, values: Floats, *, level: float) -> list[Pair]:
    """Compare every pair of encoders.

    Args:
        scores: F1 of each encoder, shape (encoders,).
        values: F1 of each on each resample, shape (resamples, encoders).
        level: Level of the differences' intervals.
    """
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    by_encoder = np.ascontiguousarray(values.T)  # quantiles along a row that lies together take a third less time
    rows: list[tuple[int, int, float, float, float]] = []
    for place, first in enumerate(order[:-1]):
        others = order[place + 1 :]
        differences = by_encoder[first] - by_encoder[others]
        low, high = np.quantile(differences, [(1 - level) / 2, (1 + level) / 2], axis=1)
        p = p_values(differences.T)
        rows += [(first, other, low[i], high[i], p[i]) for i, other in enumerate(others)]
    raw = np.array([row[4] for row in rows])
    adjusted = benjamini_hochberg(raw)
    leader = holm(raw[: max(0, len(order) - 1)])
    return [
        Pair(
            first=first,
            second=second,
            difference=float(scores[first] - scores[second]),
            low=float(low),
            high=float(high),
            p=float(p),
            p_bh=float(adjusted[index]),
            p_leader=float(leader[index]) if index < len(leader) else None,
        )
        for index, (first, second, low, high, p) in enumerate(rows)
    ]


def separable_gap(pair_list: Sequence[Pair], *, alpha: float) -> float | None:
    """Return the smallest difference that this board separates (unadjusted p below ``alpha``), if any."""
    seen = [pair.difference for pair in pair_list if pair.p < alpha]
    return min(seen) if seen else None


def quantiles(*, alpha: float, power: float) -> float:
    """Return the standard errors that a difference must have: ``z_alpha/2 + z_power``."""
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)


def visible_gap(values: Floats, *, alpha: float, power: float) -> float | None:
    """Return the smallest true difference of F1 that a board of this size would find with this power.

    ``z_alpha/2 + z_power`` standard errors of a paired difference. Pairs differ in how much they move together; the
    median over all pairs stands for the board. One pair alone, not adjusted for many.

    Args:
        values: Resampled F1, shape (resamples, encoders).
        alpha: Level of the test.
        power: Share of boards that should find it.

    Returns:
        None with fewer than two encoders, or where nothing moves.
    """
    if values.shape[1] < 2:
        return None
    together = np.cov(values.T)
    own = np.diag(together)
    spread = np.maximum(own[:, None] + own - 2 * together, 0.0)[np.triu_indices(len(own), 1)]
    moving = np.sqrt(spread[spread > 1e-18])
    return quantiles(alpha=alpha, power=power) * float(np.median(moving)) if len(moving) else None
