"""The control ``char-ngrams``: norms, neighbours, and hashed n-grams worked out apart."""

from __future__ import annotations

import numpy as np
import pytest
from makers import make_item
from sklearn.utils import murmurhash3_32

from nerprobe.controls import CharNgrams

SPEC = {"kind": "char-ngrams", "ngrams": [2, 4], "features": 64, "scale": 10.0}


def parts(*items: list[str], **changes: object) -> np.ndarray:
    """Return vectors as (words, 3, features): previous, current, next."""
    control = CharNgrams({**SPEC, **changes})
    made = [make_item(words, item_id=str(n)) for n, words in enumerate(items)]
    vectors, _ = control.vectors(made)
    assert vectors.dtype == np.float32
    return vectors.reshape(len(vectors), 3, control.features)


def test_the_width_is_three_parts() -> None:
    assert CharNgrams(SPEC).width == 192
    assert CharNgrams({**SPEC, "features": 1024}).width == 3072


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_each_part_has_the_norm_of_the_scale(scale: float) -> None:
    norms = np.linalg.norm(parts(["uno", "dos", "tres"], scale=scale), axis=2)
    np.testing.assert_allclose(norms, scale * np.array([[0, 1, 1], [1, 1, 1], [1, 1, 0]]), rtol=1e-5)


def test_neighbours_are_the_words_before_and_after() -> None:
    first, second, third = parts(["uno", "dos", "tres"])
    np.testing.assert_array_equal(second[0], first[1])
    np.testing.assert_array_equal(second[2], third[1])


def test_neighbours_do_not_cross_items() -> None:
    vectors = parts(["uno", "dos"], ["tres"], ["cuatro", "cinco"])
    assert not vectors[1, 2].any()  # after dos
    assert not vectors[2, 0].any()  # before tres
    assert not vectors[2, 2].any()
    assert not vectors[3, 0].any()
    assert vectors[3, 2].any()


def test_a_word_alone_in_its_item_has_no_neighbours() -> None:
    np.testing.assert_array_equal(parts(["uno"])[0, [0, 2]], np.zeros((2, 64)))


def test_the_same_words_in_another_order_of_items_give_the_same_vectors() -> None:
    together, alone = parts(["uno", "dos"], ["tres"]), parts(["tres"])
    np.testing.assert_array_equal(together[2], alone[0])


def test_case_is_folded_and_accents_are_kept() -> None:
    upper, lower, plain = (parts([word])[0, 1] for word in ("MÉDICO", "médico", "medico"))
    np.testing.assert_array_equal(upper, lower)
    assert (lower != plain).any()


def test_the_n_grams_of_a_short_word_by_hand() -> None:
    # "sí" between spaces: 2-grams " s", "sí", "í "; 3-grams " sí", "sí "; 4-gram " sí ".
    grams = [" s", "sí", "í ", " sí", "sí ", " sí "]
    expected = np.zeros(64)
    for gram in grams:
        hashed = murmurhash3_32(gram.encode(), seed=0)
        expected[abs(hashed) % 64] += 1.0 if hashed >= 0 else -1.0
    expected *= 10.0 / np.linalg.norm(expected)
    np.testing.assert_allclose(parts(["sí"])[0, 1], expected, rtol=1e-5)
    _, counts = CharNgrams(SPEC).vectors([make_item(["sí"])])
    assert counts.tolist() == [len(grams)]


def test_words_of_marks_alone_keep_their_rows() -> None:
    words = ["\ufe0f", "\u200d", "\u0304", "\u00a0", "\u2028"]
    vectors, counts = CharNgrams(SPEC).vectors([make_item(words)])
    assert vectors.shape == (5, 192)
    assert counts.shape == (5,)
    assert np.isfinite(vectors).all()
    assert ((counts == 0) == (vectors[:, 64:128] == 0).all(axis=1)).all()
