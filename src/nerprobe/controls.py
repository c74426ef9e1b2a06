"""Vectors of the control ``char-ngrams``: how far the surface form of a word and its neighbours goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from nerprobe.items import Item
from nerprobe.vector_files import Counts, Vectors


class CharNgrams:
    """Hashed character n-grams of the previous, current and next word.

    ``HashingVectorizer`` (``char_wb``: n-grams inside word boundaries, lower case), a part of ``features``
    dimensions for each of the three words; each part has Euclidean norm ``scale``. Where there is no
    previous or next word its part is zero.

    Args:
        spec: ``ngrams`` (shortest and longest), ``features`` and ``scale``, as in the registry.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        shortest, longest = spec["ngrams"]
        self.features = int(spec["features"])
        self.scale = float(spec["scale"])
        self._hasher = HashingVectorizer(
            analyzer="char_wb",
            ngram_range=(int(shortest), int(longest)),
            n_features=self.features,
            norm="l2",
            lowercase=True,
            dtype=np.float32,
        )
        self._analyze = self._hasher.build_analyzer()

    @property
    def width(self) -> int:
        """Return the length of a word's vector."""
        return 3 * self.features

    def vectors(self, items: Sequence[Item]) -> tuple[Vectors, Counts]:
        """Return vectors, float32, shape (words, width), and n-grams of each word, shape (words,)."""
        words = [word for item in items for word in item.words]
        own = self._hasher.transform(words).toarray() * np.float32(self.scale)
        previous, following = np.zeros_like(own), np.zeros_like(own)
        previous[1:], following[:-1] = own[:-1], own[1:]
        stops = np.cumsum([len(item.words) for item in items])
        previous[np.concatenate([[0], stops[:-1]])] = 0.0
        following[stops - 1] = 0.0
        counts = np.array([len(self._analyze(word)) for word in words], dtype=np.int32)
        return np.concatenate([previous, own, following], axis=1), counts
