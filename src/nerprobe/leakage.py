"""Test items whose text is, or nearly is, that of a train item: told, never removed.

Texts are compared without case, links, handles and the kind of white space (a retweet often differs in these
alone). Two are exact duplicates if nothing differs then, and near-duplicates if the sets of their character
5-grams have a Jaccard index of ``THRESHOLD`` or more (the resemblance of Broder 1997).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from nerprobe.files import write_json
from nerprobe.items import chosen_batches, rows_of

Text = tuple[str, str]
"""Item id and text."""
THRESHOLD = 0.7
"""In a tweet of 100 characters a changed word of up to about 13 stays above it: (L - w - 4) / (L + w + 4)."""
GRAM = 5
EDGE = "\0\0"
"""Put around a text, so that it has as many 5-grams as characters, a short one too."""
CHUNK = 256
"""Train texts compared at a time."""
CELLS = 200_000
"""Pairs compared at a time, where the test pool is large."""
PAIRS = 100
"""Pairs kept in the file."""
DROPPED = re.compile(r"(?:https?://|www\.)\S*|@\w+", re.IGNORECASE)


def normalise(text: str) -> str:
    """Return what is compared of a text: case-folded, without links and @handles, single spaces."""
    return " ".join(DROPPED.sub(" ", text).casefold().split())


def _grams(texts: Sequence[str]) -> Any:  # noqa: ANN401 - a scipy sparse matrix
    """Return which character 5-grams each text has, hashed into 2 ** 20 columns, shape (texts, columns)."""
    vectoriser = HashingVectorizer(
        analyzer="char",
        ngram_range=(GRAM, GRAM),
        lowercase=False,  # case-folded already
        binary=True,
        norm=None,
        alternate_sign=False,
        dtype=np.float32,
    )
    return vectoriser.transform([f"{EDGE}{text}{EDGE}" for text in texts])


def similar_pairs(test: Sequence[Text], train: Iterable[Text]) -> Iterator[tuple[str, str, float]]:
    """Give test item, train item and similarity of each pair at or above the threshold; 1.0 for exact duplicates.

    Args:
        test: Ids and texts; they stay in memory.
        train: Ids and texts; they are read in chunks.
    """
    if not test:
        return
    names, texts = [name for name, _ in test], [normalise(text) for _, text in test]
    grams = _grams(texts)
    sizes, by_gram = np.diff(grams.indptr), grams.T.tocsr()
    rest = iter(train)
    while chunk := list(islice(rest, max(1, min(CHUNK, CELLS // len(test))))):
        other = [normalise(text) for _, text in chunk]
        theirs = _grams(other)
        shared = (theirs @ by_gram).tocoo()
        union = np.diff(theirs.indptr)[shared.row] + sizes[shared.col] - shared.data
        index = shared.data / union
        for place in np.flatnonzero(index >= THRESHOLD):
            row, column = int(shared.row[place]), int(shared.col[place])
            same = texts[column] == other[row]
            # Other texts can have the same 5-grams ("ja ja ja ja"): alike, but not exact.
            yield names[column], chunk[row][0], 1.0 if same else min(float(index[place]), 1 - 1e-6)


def find_leakage(test: Sequence[Text], train: Iterable[Text]) -> dict[str, Any]:
    """Return what ``leakage.json`` holds.

    Texts of which nothing is left to compare are never duplicates.

    Args:
        test: Ids and texts of the test items.
        train: Ids and texts of the train items.

    Returns:
        ``exact``: test items with an exact duplicate; ``near``: other test items with a near-duplicate;
        ``threshold``; ``test_items``; ``pairs``: the most similar 100, best first.
    """
    exact: set[str] = set()
    near: set[str] = set()

    def noted() -> Iterator[tuple[str, str, float]]:
        for pair in similar_pairs([one for one in test if normalise(one[1])], train):
            (exact if pair[2] == 1.0 else near).add(pair[0])
            yield pair

    best = heapq.nsmallest(PAIRS, noted(), key=lambda pair: (-pair[2], pair[0], pair[1]))
    return {
        "schema": 1,
        "exact": len(exact),
        "near": len(near - exact),
        "threshold": THRESHOLD,
        "test_items": len(test),
        "pairs": [{"test": one, "train": other, "similarity": similarity} for one, other, similarity in best],
    }


def read_texts(corpus: Path, wanted: Iterable[str]) -> Iterator[Text]:
    """Give ids and texts of some items of ``corpus.parquet``, in file order, reading batch by batch."""
    for batch in chosen_batches(corpus, rows_of(corpus, wanted), ["item_id", "text"]):
        yield from zip(batch.column("item_id").to_pylist(), batch.column("text").to_pylist(), strict=True)


def write_leakage(
    items: Mapping[str, Sequence[str]], *, evaluation: Mapping[str, str], corpus: Path, output: Path
) -> None:
    """Write ``leakage.json``.

    Args:
        items: Chosen item ids by pool.
        evaluation: ``test_pool`` and ``train_pool``.
        corpus: ``corpus.parquet``.
        output: File to write.
    """
    test = list(read_texts(corpus, items[evaluation["test_pool"]]))
    write_json(output, find_leakage(test, read_texts(corpus, items[evaluation["train_pool"]])))
