"""Word vectors of a block of items: token-budget batches through the encoder, pooled on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nerprobe.align import Ints, Pairs, overlap_pairs, place
from nerprobe.corpus import Item
from nerprobe.errors import EncoderFolderError, NonFiniteError
from nerprobe.frozen import FrozenEncoder, Tokens
from nerprobe.log import logger
from nerprobe.offsets import OffsetCheck
from nerprobe.store import Counts, ItemStats, Vectors

if TYPE_CHECKING:
    import torch

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Window:
    """One window as the encoder gets it, with the words read from it.

    Attributes:
        ids: Token ids with special and prefix tokens, shape (tokens,).
        rows: Row of the block that each pair goes to, shape (pairs,), ascending.
        positions: Position in ``ids`` of each pair's sub-word, shape (pairs,).
    """

    ids: Ints
    rows: Ints
    positions: Ints


@dataclass
class Prepared:
    """A block of items, tokenised and aligned.

    Attributes:
        sequences: What the encoder has to see.
        n_subwords: Sub-words of each word, shape (words,).
        stats: What is kept of each item.
    """

    sequences: list[Window]
    n_subwords: Counts
    stats: list[ItemStats]


def _read(pairs: Pairs, pooling: str) -> Bools:
    """Mark the pairs that this pooling reads, shape (pairs,)."""
    read = np.ones(len(pairs.words), dtype=np.bool_)
    if pooling in ("first", "last"):
        _, first, counts = np.unique(pairs.words, return_index=True, return_counts=True)
        read[:] = False
        read[first if pooling == "first" else first + counts - 1] = True
    return read


def _windows(tokens: Tokens, pairs: Pairs, encoder: FrozenEncoder, *, read: Bools, first_row: int) -> Iterator[Window]:
    """Give the windows of one text that some word is read from."""
    lead, trail = encoder.template.lead, encoder.template.trail
    prefix, body = tokens.ids[: tokens.prefix], tokens.ids[tokens.prefix :]
    capacity = encoder.limit - encoder.template.size - len(prefix)
    if capacity < 1:
        raise EncoderFolderError(
            "no room for any word",
            where="max_length",
            expected=f"more than {encoder.template.size + len(prefix)} tokens (special tokens and prefix)",
            got=str(encoder.limit),
        )
    placed = place(pairs, len(body), capacity)
    for index, (begin, end) in enumerate(placed.windows):
        here = np.flatnonzero((placed.window == index) & read)
        if len(here):
            ids = np.concatenate([lead, prefix, body[begin:end], trail]).astype(np.int64)
            offset = len(lead) + len(prefix) - begin
            yield Window(ids=ids, rows=first_row + pairs.words[here], positions=pairs.tokens[here] + offset)


def prepare(
    items: Sequence[Item], encoder: FrozenEncoder, *, prefix: str, pooling: str, check: OffsetCheck | None = None
) -> Prepared:
    """Tokenise and align a block of items.

    Args:
        items: The block.
        encoder: Gives the tokens.
        prefix: Text put before each item, such as ``query: ``; never pooled.
        pooling: ``mean``, ``first``, ``last`` or ``max`` of a word's sub-words.
        check: Compares sub-words with the characters they point at, if given.
    """
    unknown_id = encoder.tokenizer.unk_token_id
    counts: list[Ints] = []
    block = Prepared(sequences=[], n_subwords=np.zeros(0, np.int32), stats=[])
    row = 0
    for item, tokens in zip(items, encoder.tokenize([item.text for item in items], prefix), strict=True):
        body = slice(tokens.prefix, None)
        pairs = overlap_pairs(np.asarray(item.starts), np.asarray(item.ends), tokens.starts[body], tokens.ends[body])
        windows = list(_windows(tokens, pairs, encoder, read=_read(pairs, pooling), first_row=row))
        block.sequences.extend(windows)
        counts.append(np.bincount(pairs.words, minlength=len(item.words)))
        stats = ItemStats(
            words=len(item.words),
            subwords=len(tokens.ids) - tokens.prefix,
            unknown=int((tokens.ids[body] == unknown_id).sum()) if unknown_id is not None else 0,
            windows=len(windows),
            mismatched=check.count([item.text], [tokens]).mismatched if check is not None else 0,
        )
        block.stats.append(stats)
        row += len(item.words)
    block.n_subwords = np.concatenate(counts).astype(np.int32) if counts else block.n_subwords
    return block


def batches(sequences: Sequence[Window], budget: int) -> list[list[Window]]:
    """Group windows of similar length so that a padded batch holds at most ``budget`` tokens."""
    ordered = sorted(sequences, key=lambda sequence: -len(sequence.ids))
    groups: list[list[Window]] = []
    for sequence in ordered:
        if groups and len(groups[-1][0].ids) * (len(groups[-1]) + 1) <= budget:
            groups[-1].append(sequence)
        else:
            groups.append([sequence])
    return groups


@dataclass
class Work:
    """What the forward passes took: real and padded tokens, and seconds."""

    tokens: int = 0
    padded: int = 0


def _forward(group: Sequence[Window], encoder: FrozenEncoder) -> torch.Tensor:
    """Return the states of a padded batch, flattened to shape (batch * tokens, width)."""
    import torch

    longest = len(group[0].ids)
    ids = np.full((len(group), longest), encoder.pad_id, dtype=np.int64)
    mask = np.zeros((len(group), longest), dtype=np.int64)
    for index, sequence in enumerate(group):
        ids[index, : len(sequence.ids)] = sequence.ids
        mask[index, : len(sequence.ids)] = 1
    states = encoder.hidden(torch.from_numpy(ids).to(encoder.device), torch.from_numpy(mask).to(encoder.device))
    return states.reshape(len(group) * longest, -1)


def _pool_batch(group: Sequence[Window], encoder: FrozenEncoder, pooling: str) -> tuple[Ints, Vectors]:
    """Return the rows of the block that a batch fills, and one vector for each.

    For ``mean`` these are sums; a word whose sub-words lie in several windows gets one from each.
    """
    import torch

    longest = len(group[0].ids)
    rows = np.concatenate([sequence.rows for sequence in group])
    flat = np.concatenate([sequence.positions + index * longest for index, sequence in enumerate(group)])
    order = np.argsort(rows, kind="stable")
    unique, counts = np.unique(rows[order], return_counts=True)
    states = _forward(group, encoder)
    gathered = states[torch.from_numpy(flat[order]).to(encoder.device)].float()
    pooled = torch.segment_reduce(
        gathered,
        "max" if pooling == "max" else "sum",
        lengths=torch.from_numpy(counts).to(encoder.device),
        axis=0,
    )
    return unique, pooled.cpu().numpy()


def _run(group: list[Window], encoder: FrozenEncoder, pooling: str) -> list[tuple[Ints, Vectors]]:
    """Run one batch; where the device has too little memory, in halves."""
    import torch

    try:
        return [_pool_batch(group, encoder, pooling)]
    except torch.OutOfMemoryError:
        if len(group) == 1:
            raise
        logger.warning("out of device memory with %d texts of %d tokens: halving", len(group), len(group[0].ids))
    if encoder.device.type == "cuda":
        torch.cuda.empty_cache()
    half = len(group) // 2
    return _run(group[:half], encoder, pooling) + _run(group[half:], encoder, pooling)


def word_vectors(
    block: Prepared, encoder: FrozenEncoder, *, pooling: str, budget: int, work: Work | None = None
) -> Vectors:
    """Return the word vectors of a block, float32, shape (words, width).

    A word that no sub-word covers has a zero vector.

    Args:
        block: As from ``prepare``.
        encoder: The encoder.
        pooling: As given to ``prepare``.
        budget: Most tokens of one padded batch.
        work: Counted up, if given.

    Raises:
        NonFiniteError: If any vector holds NaN or infinity.
    """
    import torch

    maximum = pooling == "max"
    vectors = np.full((len(block.n_subwords), encoder.width), -np.inf if maximum else 0.0, dtype=np.float32)
    with torch.inference_mode():
        for group in batches(block.sequences, budget):
            if work is not None:
                work.tokens += sum(len(sequence.ids) for sequence in group)
                work.padded += len(group[0].ids) * len(group)
            for rows, pooled in _run(group, encoder, pooling):
                vectors[rows] = np.maximum(vectors[rows], pooled) if maximum else vectors[rows] + pooled
    if pooling == "mean":
        vectors /= np.maximum(block.n_subwords, 1)[:, None].astype(np.float32)
    vectors[block.n_subwords == 0] = 0.0
    if not np.isfinite(vectors).all():
        bad = int((~np.isfinite(vectors).all(axis=1)).sum())
        raise NonFiniteError(
            "this encoder gives NaN or infinite vectors",
            where=f"dtype {encoder.dtype}",
            expected="finite numbers",
            got=f"{bad} of {len(vectors)} words in this block",
            todo="try embed.dtype: float32" if encoder.dtype != "float32" else "choose another encoder",
        )
    return vectors
