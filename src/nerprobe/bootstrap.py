"""Percentile bootstrap over test items, from counts and one weight matrix shared by all encoders.

Efron and Tibshirani 1993, chapter 13: items are drawn with replacement, the metric is computed on each draw,
and the interval lies between the percentiles. A draw of items is a vector of weights, so all draws of all
encoders are matrix products of counts; there is no loop over draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
METRICS = ("f1", "precision", "recall", "macro_f1")


def weight_matrix(items: int, *, resamples: int, seed: int) -> Floats:
    """Return how often each item is in each resample, shape (resamples, items).

    Indices are ``default_rng(seed).integers(0, items, (resamples, items))`` over items in rank order.
    """
    drawn = np.random.default_rng(seed).integers(0, items, (resamples, items))
    flat = drawn + np.arange(resamples)[:, None] * items
    return np.bincount(flat.ravel(), minlength=resamples * items).reshape(resamples, items).astype(np.float64)


def count_array(per_item: Sequence[Mapping[str, Any]], types: Sequence[str]) -> Floats:
    """Return the counts of one evaluation, shape (items, types, 3): tp, predicted, gold."""
    rows = [
        [[item["per_type"][kind][name] for name in ("tp", "predicted", "gold")] for kind in types] for item in per_item
    ]
    return np.asarray(rows, dtype=np.float64).reshape(len(per_item), len(types), 3)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide, giving 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def metric_values(sums: Floats) -> dict[str, Floats]:
    """Return the card's four metrics from summed counts.

    Args:
        sums: Shape (…, types, 3): tp, predicted, gold.

    Returns:
        ``f1``, ``precision``, ``recall`` (micro) and ``macro_f1``, each of shape (…); 0 where undefined.
    """
    total = sums.sum(axis=-2)
    by_type = _ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2])
    return {
        "f1": _ratio(2 * total[..., 0], total[..., 1] + total[..., 2]),
        "precision": _ratio(total[..., 0], total[..., 1]),
        "recall": _ratio(total[..., 0], total[..., 2]),
        "macro_f1": by_type.mean(axis=-1),
    }


def resampled(counts: Floats, weights: Floats) -> dict[str, Floats]:
    """Return each metric on each resample, shape (resamples,).

    Args:
        counts: Shape (items, types, 3).
        weights: Shape (resamples, items).
    """
    items, types, three = counts.shape
    sums = weights @ counts.reshape(items, types * three)
    return metric_values(sums.reshape(len(weights), types, three))


def interval(values: Floats, level: float) -> tuple[float, float]:
    """Return the percentile interval (linear quantiles) of resampled values."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
