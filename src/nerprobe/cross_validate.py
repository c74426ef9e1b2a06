"""Exploratory scores: the probe with a C chosen by cross-validation over the train items, beside the benchmark's.

How much of a score is the encoder's and how much the probe's penalty shows only when the penalty may fit the
vectors. Test items have no part in the choice. Items are never cut: all words of one are in one fold, or words of
one text would be on both sides (Hastie, Tibshirani and Friedman 2009, section 7.10).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nerprobe.items import Item
from nerprobe.log import logger, progress_bar
from nerprobe.logistic import Floats, fit_logistic, warm_model
from nerprobe.spans import mentions

GRID = (0.1, 1.0, 10.0, 100.0)
FOLDS = 3
FOLD_TOL = 3e-6
"""Tolerance of the fits that only choose C: looser than the probe's 1e-6, as their scores are only compared.

Much looser would compare nothing: the gradient of the penalty is w / (C n), so with n = 10,000 words a fit that
starts at the one for a smaller C stands within 1e-4 already, and does not move.
"""


def _by_item(tags: Sequence[str], items: Iterable[Item]) -> list[Sequence[str]]:
    """Cut the tags of words, item after item, into those of each item."""
    parts, first = [], 0
    for item in items:
        parts.append(tags[first : first + len(item.words)])
        first += len(item.words)
    return parts


def pooled_f1(items: Sequence[Item], tags: Sequence[Sequence[str]]) -> float:
    """Return strict micro F1 over some items (as ``nerprobe.score``); 0 where undefined."""
    right = [set(mentions(item.tags)) for item in items]
    found = [set(mentions(own)) for own in tags]
    total = sum(map(len, right)) + sum(map(len, found))
    return 2 * sum(len(gold & said) for gold, said in zip(right, found, strict=True)) / total if total else 0.0


def cross_validated(vectors: Floats, items: Sequence[Item], *, max_iter: int) -> dict[float, float]:
    """Return the F1 of each C of the grid over train items, each tagged by a head that has not seen it.

    The item of rank r (0 and up) is in fold r modulo 3. F1 is pooled over the folds: counts are summed, not rates.

    Args:
        vectors: Of the items' words, shape (words, width).
        items: Train items in rank order, at least ``FOLDS``.
        max_iter: Most iterations of each fit.
    """
    fold_of_word = np.repeat(np.arange(len(items)) % FOLDS, [len(item.words) for item in items])
    tags = np.asarray([tag for item in items for tag in item.tags])
    found = {C: [""] * len(tags) for C in GRID}
    with progress_bar("cross-validation", FOLDS * len(GRID)) as bar:
        for fold in range(FOLDS):
            held = np.flatnonzero(fold_of_word == fold)
            rest = np.flatnonzero(fold_of_word != fold)
            words, own, model = vectors[rest], tags[rest].tolist(), warm_model()
            for C in GRID:  # from the strongest penalty on: each fit starts at the one before
                head = fit_logistic(words, own, C=C, tol=FOLD_TOL, max_iter=max_iter, model=model)
                for index, tag in zip(held, head.predict(vectors[held])[0], strict=True):
                    found[C][index] = tag
                bar.advance()
    return {C: pooled_f1(items, _by_item(own, items)) for C, own in found.items()}


def exploratory_fit(
    vectors: Mapping[str, Floats], train: Sequence[Item], test: Sequence[Item], settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Choose C on the train items, fit all of them with it, and tag the test items.

    Args:
        vectors: Of each item's words by item id, shape (words, width).
        train: Train items in rank order.
        test: Test items.
        settings: ``tol`` and ``max_iter`` of the benchmark's fit, which the last fit shares.

    Returns:
        ``C`` (the smallest of equals), ``grid``, ``folds``, ``cv_f1`` by C, ``converged``, and ``tags``: by item id
        and word, where they are not O. None where there are fewer items than folds.
    """
    if len(train) < FOLDS:
        logger.warning("no cross-validation: %d train items are fewer than %d folds", len(train), FOLDS)
        return None
    stacked = np.concatenate([vectors[item.item_id] for item in train])
    scores = cross_validated(stacked, train, max_iter=settings["max_iter"])
    chosen = max(GRID, key=lambda C: (scores[C], -C))
    tags = [tag for item in train for tag in item.tags]
    head = fit_logistic(stacked, tags, C=chosen, tol=settings["tol"], max_iter=settings["max_iter"])
    new = np.concatenate([vectors[item.item_id] for item in test])
    said = zip(test, _by_item(head.predict(new)[0], test), strict=True)
    marked = {item.item_id: {str(word): tag for word, tag in enumerate(own) if tag != "O"} for item, own in said}
    return {
        "C": chosen,
        "grid": list(GRID),
        "folds": FOLDS,
        "cv_f1": {f"{C:g}": score for C, score in scores.items()},
        "converged": head.converged,
        "tags": {item_id: own for item_id, own in marked.items() if own},
    }
