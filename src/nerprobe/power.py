"""How many test items would separate two encoders, and how small a gap a board can see.

The items at hand stand for all items like them (Efron and Tibshirani 1993, chapter 25): sets of other sizes are
drawn from them, and each is put to the board's own test, the two-sided paired bootstrap. The first guess, and the
uncertainty, come from the normal approximation ``n = ((z_alpha/2 + z_power) s / d)^2``, with d the difference and s its
spread by item from the delta method (the same book, section 21.9).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from nerprobe.bootstrap import Floats
from nerprobe.compare import Ints, p_values, quantiles
from nerprobe.errors import UnknownModelError
from nerprobe.files import read_json
from nerprobe.manage import board_files
from nerprobe.render import score

BOUND = 1_000_000
"""Test items beyond which nobody will go; no larger answer is given."""
SETS = 400
"""Sets of items drawn at each size: the share of them that is separated is known to about 2 points."""
DRAWS = 999
"""Resamples of the test on each set."""
STEPS = 12
"""Most numbers of items looked at on the way to the answer."""
OUTER = 2000
"""Resamples of the items at hand behind the answer's interval."""


@dataclass(frozen=True, kw_only=True)
class Power:
    """What it would take to separate two encoders.

    Attributes:
        difference: F1 of the first less F1 of the second, on the items at hand.
        items: Test items at which the wanted share of boards separates them; None: beyond ``BOUND``, or the
            difference is 0.
        low: Lower end of its interval over resamples of the items at hand.
        high: Upper end; None where the interval holds a difference of 0, or goes beyond ``BOUND``.
        curve: Power at some numbers of items.
    """

    difference: float
    items: int | None
    low: int | None
    high: int | None
    curve: dict[int, float]


def pair_cells(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]:
    """Return the different items of a pair and the share of each.

    Args:
        first: ``per_item`` of the first encoder's evaluation: tp, predicted and gold.
        second: The same of the second, on the same items.

    Returns:
        Counts, shape (cells, 4): twice tp, and predicted plus gold, of the first and then of the second (F1 is the
        sum of the one by the sum of the other); and shares, shape (cells,).
    """
    rows = [
        [number for one in pair for number in (2 * one["tp"], one["predicted"] + one["gold"])]
        for pair in zip(first, second, strict=True)
    ]
    cells, counts = np.unique(np.asarray(rows, dtype=np.float64), axis=0, return_counts=True)
    return cells, counts / counts.sum()


def differences(cells: Floats, draws: Ints | Floats) -> Floats:
    """Return F1 of the first less F1 of the second on drawn sets of items.

    Args:
        cells: Shape (cells, 4), from ``pair_cells``.
        draws: How often each cell is in each set, shape (…, cells).

    Returns:
        Shape (…).
    """
    sums = draws @ cells
    return _ratio(sums[..., 0], sums[..., 1]) - _ratio(sums[..., 2], sums[..., 3])


def _ratio(over: Floats, under: Floats) -> Floats:
    return np.divide(over, under, out=np.zeros_like(over), where=under > 0)


def effect(cells: Floats, shares: Floats) -> Floats:
    """Return the difference of F1 by its spread: mean by standard deviation of what each item adds to it.

    Args:
        cells: Shape (cells, 4).
        shares: Share of each cell in each set, shape (…, cells).

    Returns:
        Shape (…); 0 where there is no difference, infinite where all items say the same.
    """
    means = shares @ cells
    by_item = np.zeros_like(shares)
    for sign, at in ((1, 0), (-1, 2)):
        f1 = _ratio(means[..., at], means[..., at + 1])
        added = cells[:, at] - f1[..., None] * cells[:, at + 1]
        under = np.broadcast_to(means[..., [at + 1]], added.shape)
        by_item = by_item + sign * _ratio(added, under)
    spread = np.sqrt((shares * by_item**2).sum(axis=-1))
    found = differences(cells, shares)
    certain = np.where(found == 0, 0.0, np.copysign(np.inf, found))
    size: Floats = np.divide(found, spread, out=certain, where=spread > 0)
    return size


def simulated_power(cells: Floats, shares: Floats, *, items: int, alpha: float, rng: np.random.Generator) -> float:
    """Return how often sets of so many items are separated, the better one first, by the board's own test.

    Args:
        cells: Shape (cells, 4).
        shares: Shape (cells,).
        items: Size of each set.
        alpha: Level of the two-sided paired bootstrap.
        rng: Source of randomness.
    """
    sign = np.sign(differences(cells, shares))
    sets = rng.multinomial(items, shares, size=SETS)
    told = 0
    for part in np.array_split(sets, 10):  # keeps the draws within some megabytes
        draws = rng.multinomial(items, part[:, None, :] / items, size=(len(part), DRAWS))
        separated = p_values(differences(cells, draws).T) < alpha
        told += int((separated & (np.sign(differences(cells, part)) == sign)).sum())
    return told / SETS


def search_items(guess: float, power_of: Callable[[int], float], *, alpha: float, power: float) -> dict[int, float]:
    """Look for the number of items with some power; return the power at all that were looked at.

    In probits power grows with the root of the number of items, so one step from a good guess goes most of the way.
    Where it does not (few items, or scores near 0), the steps are kept between what was too few and too many.

    Args:
        guess: Where to begin.
        power_of: Power at a number of items, with some noise.
        alpha: Level of the test.
        power: What is wanted.
    """
    normal = NormalDist()
    wanted, few, many = quantiles(alpha=alpha, power=power), 1, 4 * BOUND
    seen: dict[int, float] = {}
    items = max(2, round(guess))
    for _ in range(STEPS):
        seen[items] = power_of(items)
        if abs(seen[items] - power) < 0.02 or many - few <= 1:
            break
        few, many = (items, many) if seen[items] < power else (few, items)
        reached = normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(min(0.98, max(0.05, seen[items])))
        step = items * (wanted / reached) ** 2
        items = round(step if few < step < many else (few * many) ** 0.5)
        items = min(max(items, few + 1), max(many - 1, 2))
    return seen


def needed_items(cells: Floats, shares: Floats, *, at_hand: int, alpha: float, power: float, seed: int) -> Power:
    """Return what it would take to separate two encoders.

    Args:
        cells: Shape (cells, 4), from ``pair_cells``.
        shares: Shape (cells,).
        at_hand: Test items behind them.
        alpha: Level of the test.
        power: Share of boards that should separate them.
        seed: Seed of all draws.
    """
    rng = np.random.default_rng(seed)
    wanted, size = quantiles(alpha=alpha, power=power), float(effect(cells, shares))
    if not size:
        return Power(difference=0.0, items=None, low=None, high=None, curve={})

    def power_of(items: int) -> float:
        return simulated_power(cells, shares, items=items, alpha=alpha, rng=rng)

    # Signed by the observed difference, so that resamples in which the other one wins count as such.
    drawn = effect(cells, rng.multinomial(at_hand, shares, size=OUTER) / at_hand) * np.sign(size)
    weak, strong = (float(end) for end in np.quantile(drawn, [0.025, 0.975], method="inverted_cdf"))
    guess = max(2.0, (wanted / size) ** 2)
    curve = search_items(guess, power_of, alpha=alpha, power=power) if guess < BOUND else {}
    items = min(curve, key=lambda n: abs(curve[n] - power)) if curve else BOUND + 1
    scale = items / guess if curve else 1.0
    told = {items, *(at_hand * 2**step for step in range(5))}
    return Power(
        difference=float(differences(cells, shares)),
        items=None if items > BOUND else items,
        low=_size(strong, wanted, scale),
        high=_size(weak, wanted, scale),
        curve={n: curve[n] if n in curve else power_of(n) for n in sorted(told) if n <= min(2 * items, BOUND)},
    )


def _size(strength: float, wanted: float, scale: float) -> int | None:
    """Return the number of items for an effect of this strength; None if there is none within the bound."""
    items = scale * (wanted / strength) ** 2 if strength > 0 else np.inf
    return max(2, round(items)) if items <= BOUND else None


def _count(items: int) -> str:
    """Return a number of items in two digits: more would be pretence."""
    return f"{int(float(f'{items:.2g}')):,}"


def _answer(found: Power, *, power: float, pool: int | None) -> str:
    share = f"{100 * power:g} %"
    if found.difference == 0:
        return "their scores are equal here: no number of items is known to separate them"
    if found.items is None:
        return f"more than {BOUND:,} test items would be needed to separate them with {share} power"
    low = _count(found.low) if found.low is not None else f"over {BOUND:,}"
    high = _count(found.high) if found.high is not None else "no upper end"
    line = f"about {_count(found.items)} test items would separate them with {share} power [{low}, {high}]"
    if pool is not None and found.items > pool:
        line += f"; the pool holds {pool:,}"
    return line if found.high is not None else f"{line}: the true difference may be 0"


def power_report(first: str, second: str, places: Sequence[Path], *, power: float) -> None:
    """Print, for each board that has both, how many items would separate two models.

    Raises:
        UnknownModelError: If no board has scores of both.
    """
    told = 0
    for file in board_files(places):
        board = read_json(file)
        rows = {row["model"]: row for row in board["rows"] if row["status"] == "ok"}
        if first == second or not {first, second} <= set(rows):
            continue
        told += 1
        counts = [
            read_json(file.parent / rows[name]["metrics_file"])["evaluations"][0]["per_item"]
            for name in (first, second)
        ]
        alpha, at_hand = 1 - board["bootstrap"]["level"], len(counts[0])
        cells, shares = pair_cells(*counts)
        found = needed_items(cells, shares, at_hand=at_hand, alpha=alpha, power=power, seed=board["bootstrap"]["seed"])
        info = read_json(file.parent / "corpus.json")["counts"].get(board["evaluation"]["test_pool"], {})
        print(f"{board['title']}, {board['run']}: {at_hand} test items at hand")
        for name in (first, second):
            print(f"  {name}: F1 {score(rows[name], 'f1')}")
        print(f"  {_answer(found, power=power, pool=info.get('items'))}")
        powers = ", ".join(f"{_count(items)} items {100 * share:.0f} %" for items, share in found.curve.items())
        print(f"  power (two-sided paired bootstrap, {100 * alpha:.3g} %, this pair alone): {powers}")
        gap = (board.get("smallest_gap") or {}).get("visible")
        if gap is not None:
            print(f"  a true gap of {gap:.3f} F1 is the smallest that this board finds with 80 % power")
    if not told:
        both = f"{first[:100]} and {second[:100]}"
        raise UnknownModelError("no board has scores of both", where=both, todo="nerprobe show lists the boards")
