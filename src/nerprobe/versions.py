"""Names and numbers of the rules that results depend on. Bump one by hand whenever what it names changes."""

from __future__ import annotations

SUBSET_RULE = "sha256-rank/1"
"""Rank by ``sha256(f"{seed}|{item_id}")`` in hex, ascending; take the first n (``nerprobe.subset``)."""

TAG_RULE = "conlleval/1"
"""Mentions from tags (``nerprobe.spans``)."""

CORPUS_VERSION = 1
"""Texts, words and tags of an unchanged file (``nerprobe.corpus``); guarded by a test on a golden corpus."""

VECTORS_VERSION = 1
"""Word vectors of an unchanged encoder and text (``nerprobe.embed``); guarded by a test on golden vectors."""
