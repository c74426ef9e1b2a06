"""The probe's head: multinomial logistic regression over tags, on raw word vectors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

Floats = npt.NDArray[np.floating[Any]]
SPARSE = 0.1
"""Share of values that are not 0 below which the solver gets a sparse matrix: the same steps in a tenth of the time."""


@dataclass(frozen=True, kw_only=True)
class LogisticHead:
    """A fitted head.

    Attributes:
        classes: Tags in the order of the rows.
        weights: Shape (classes, width).
        bias: Shape (classes,).
        iterations: What the solver took.
        converged: Whether it stopped by its tolerance rather than at the limit.
    """

    classes: tuple[str, ...]
    weights: Floats
    bias: Floats
    iterations: int
    converged: bool

    def predict(self, vectors: Floats) -> tuple[list[str], Floats]:
        """Tag words, each on its own.

        Args:
            vectors: Word vectors, shape (words, width).

        Returns:
            The most probable tag of each word (the first of equals), and its probability, shape (words,).
        """
        scores = np.asarray(vectors @ self.weights.T + self.bias, dtype=np.float64)
        scores -= scores.max(axis=1, keepdims=True, initial=-np.inf)
        shares = np.exp(scores)
        shares /= shares.sum(axis=1, keepdims=True)
        best = shares.argmax(axis=1)
        return [self.classes[index] for index in best], shares[np.arange(len(best)), best]


def fit_logistic(
    vectors: Floats,
    tags: Sequence[str],
    *,
    C: float,
    tol: float,
    max_iter: int,
    model: LogisticRegression | None = None,
) -> LogisticHead:
    """Fit the head (scikit-learn ``LogisticRegression``, lbfgs, L2 penalty, no scaling).

    Args:
        vectors: Word vectors of the train items, float32, shape (words, width).
        tags: One tag a word.
        C: Inverse strength of the penalty.
        tol: Tolerance of the solver.
        max_iter: Most iterations.
        model: Estimator to go on with where it stands, from ``warm_model``; None starts from zero.
    """
    classes = sorted(set(tags))
    width = vectors.shape[1]
    if len(classes) == 1:  # nothing to tell apart: the solver would refuse
        zeros = np.zeros((1, width), dtype=vectors.dtype)
        return LogisticHead(classes=tuple(classes), weights=zeros, bias=zeros[:, 0], iterations=0, converged=True)
    model = model or LogisticRegression(solver="lbfgs")
    model.set_params(C=C, tol=tol, max_iter=max_iter)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        few = np.count_nonzero(vectors) < SPARSE * vectors.size
        model.fit(csr_array(vectors) if few else vectors, np.asarray(tags))
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    weights, bias = model.coef_, model.intercept_
    if len(classes) == 2:  # one row for the second class; the first one's is zero
        weights = np.concatenate([np.zeros_like(weights), weights])
        bias = np.concatenate([np.zeros_like(bias), bias])
    return LogisticHead(
        classes=tuple(str(name) for name in model.classes_),
        weights=weights,
        bias=bias,
        iterations=int(np.max(model.n_iter_)),
        converged=not any(issubclass(warning.category, ConvergenceWarning) for warning in caught),
    )


def warm_model() -> LogisticRegression:
    """Return an estimator that starts each fit where its last one ended: for several C on the same words."""
    return LogisticRegression(solver="lbfgs", warm_start=True)
