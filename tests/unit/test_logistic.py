"""The probe's head against scikit-learn's own prediction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import LogisticRegression

from nerprobe.logistic import fit_logistic

TAGS = ["O", "B-P", "I-P", "B-S", "I-S"]


def data(classes: int, words: int = 120, width: int = 8) -> tuple[npt.NDArray[np.float32], list[str]]:
    rng = np.random.default_rng(classes)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, words - classes)])
    centres = rng.normal(0, 1, (classes, width))
    vectors = (centres[labels] + rng.normal(0, 1, (words, width))).astype(np.float32)
    return vectors, [TAGS[label] for label in labels]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_tags_and_probabilities_are_those_of_scikit_learn(classes: int) -> None:
    vectors, tags = data(classes)
    new = np.random.default_rng(99).normal(0, 2, (50, 8)).astype(np.float32)
    head = fit_logistic(vectors, tags, C=1.0, tol=1e-6, max_iter=1000)
    oracle = LogisticRegression(C=1.0, tol=1e-6, max_iter=1000).fit(vectors, tags)
    predicted, shares = head.predict(new)
    assert predicted == oracle.predict(new).tolist()
    np.testing.assert_allclose(shares, oracle.predict_proba(new).max(axis=1), atol=1e-5)
    assert head.classes == tuple(sorted(set(tags)))
    assert head.weights.shape == (classes, 8)
    assert head.bias.shape == (classes,)
    assert head.converged
    assert head.iterations == int(oracle.n_iter_.max())


def test_a_single_class_is_predicted_with_certainty() -> None:
    vectors, _ = data(2)
    head = fit_logistic(vectors, ["O"] * len(vectors), C=1.0, tol=1e-6, max_iter=1000)
    tags, shares = head.predict(vectors)
    assert tags == ["O"] * len(vectors)
    assert shares.tolist() == [1.0] * len(vectors)
    assert (head.iterations, head.converged) == (0, True)
    assert head.weights.shape == (1, 8)


def test_a_fit_that_is_cut_short_says_so_and_warns_nobody() -> None:
    head = fit_logistic(*data(5), C=1.0, tol=1e-6, max_iter=2)
    assert not head.converged
    assert head.iterations == 2


def test_the_penalty_is_the_inverse_of_c() -> None:
    weak, strong = (fit_logistic(*data(3), C=C, tol=1e-6, max_iter=1000) for C in (1.0, 1e-4))
    assert np.abs(strong.weights).max() < 0.05 < np.abs(weak.weights).max()


def test_each_word_is_tagged_on_its_own() -> None:
    head = fit_logistic(*data(5), C=1.0, tol=1e-6, max_iter=1000)
    new = np.random.default_rng(3).normal(0, 2, (20, 8)).astype(np.float32)
    tags, shares = head.predict(new)
    for index in range(20):
        one, share = head.predict(new[index : index + 1])
        assert one == [tags[index]]
        assert share[0] == pytest.approx(shares[index], abs=1e-6)


def test_scores_far_from_zero_do_not_overflow() -> None:
    head = fit_logistic(*data(5), C=1.0, tol=1e-6, max_iter=1000)
    _, shares = head.predict(np.full((2, 8), 1e6, dtype=np.float32))
    assert np.isfinite(shares).all()


def test_no_words_give_no_tags() -> None:
    head = fit_logistic(*data(3), C=1.0, tol=1e-6, max_iter=1000)
    tags, shares = head.predict(np.zeros((0, 8), dtype=np.float32))
    assert (tags, shares.shape) == ([], (0,))


def test_the_same_words_give_the_same_head() -> None:
    first, again = (fit_logistic(*data(5), C=1.0, tol=1e-6, max_iter=1000) for _ in range(2))
    assert first.weights.tobytes() == again.weights.tobytes()


def test_vectors_of_mostly_zeros_give_what_scikit_learn_gives_on_all_of_them() -> None:
    rng = np.random.default_rng(3)
    vectors = np.where(rng.random((300, 60)) < 0.05, rng.normal(size=(300, 60)), 0.0).astype(np.float32)
    tags = ["O" if row[:20].sum() < 0.5 else "B-X" for row in vectors]
    head = fit_logistic(vectors, tags, C=1.0, tol=1e-6, max_iter=1000)
    whole = LogisticRegression(C=1.0, tol=1e-6, max_iter=1000).fit(vectors, tags)
    assert head.predict(vectors)[0] == whole.predict(vectors).tolist()
    sure = whole.predict_proba(vectors).max(axis=1)
    np.testing.assert_allclose(head.predict(vectors)[1], sure, rtol=0, atol=1e-3)
