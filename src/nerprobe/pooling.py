"""Word vectors of a block of items: token-budget batches through the encoder, pooled on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nerprobe.align import Ints, Pairs, overlap_pairs, place
from nerprobe.errors import EncoderFolderError, NonFiniteError
from nerprobe.frozen import FrozenEncoder, Tokens
from nerprobe.items import Item
from nerprobe.log import logger
from nerprobe.offsets import OffsetCheck
from nerprobe.store import ItemStats
from nerprobe.vector_files import Counts, Vectors

if TYPE_CHECKING:
    import torch

FULL = 512
"""Tokens from which a batch is large enough to be closed rather than padded further."""
WASTE = 0.04
"""Most padding of a batch that is large enough."""
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
    """Group windows of similar length.

    A padded batch holds at most ``budget`` tokens, and from ``FULL`` tokens on no more than ``WASTE`` padding.
    """
    groups: list[list[Window]] = []
    real = 0
    for sequence in sorted(sequences, key=lambda sequence: -len(sequence.ids)):
        padded = len(groups[-1][0].ids) * (len(groups[-1]) + 1) if groups else budget + 1
        if padded > budget or (real >= FULL and real + len(sequence.ids) < (1 - WASTE) * padded):
            groups.append([])
            real = 0
        groups[-1].append(sequence)
        real += len(sequence.ids)
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


def _pool_batch(
    group: Sequence[Window], encoder: FrozenEncoder, poolings: Sequence[str]
) -> tuple[Ints, dict[str, Vectors]]:
    """Return the rows of the block that a batch fills, and by pooling one vector for each.

    For ``mean`` these are sums; a word whose sub-words lie in several windows gets one from each.
    """
    import torch

    longest = len(group[0].ids)
    rows = np.concatenate([sequence.rows for sequence in group])
    flat = np.concatenate([sequence.positions + index * longest for index, sequence in enumerate(group)])
    order = np.argsort(rows, kind="stable")
    unique, counts = np.unique(rows[order], return_counts=True)
    stops = np.cumsum(counts)
    states = _forward(group, encoder)
    gathered = states[torch.from_numpy(flat[order]).to(encoder.device)].float()
    pooled = {}
    for name in poolings:
        if name in ("first", "last"):
            picked = stops - counts if name == "first" else stops - 1
            part = gathered[torch.from_numpy(picked).to(encoder.device)]
        else:
            lengths = torch.from_numpy(counts).to(encoder.device)
            part = torch.segment_reduce(gathered, "max" if name == "max" else "sum", lengths=lengths, axis=0)
        pooled[name] = part.cpu().numpy()
    return unique, pooled


def _run(group: list[Window], encoder: FrozenEncoder, poolings: Sequence[str]) -> list[tuple[Ints, dict[str, Vectors]]]:
    """Run one batch; where the device has too little memory, in halves."""
    import torch

    try:
        return [_pool_batch(group, encoder, poolings)]
    except torch.OutOfMemoryError:
        if len(group) == 1:
            raise
        logger.warning("out of device memory with %d texts of %d tokens: halving", len(group), len(group[0].ids))
    if encoder.device.type == "cuda":
        torch.cuda.empty_cache()
    half = len(group) // 2
    return _run(group[:half], encoder, poolings) + _run(group[half:], encoder, poolings)


def word_vectors(
    block: Prepared, encoder: FrozenEncoder, *, pooling: str, budget: int | None, work: Work | None = None
) -> Vectors:
    """Return the word vectors of a block, float32, shape (words, width).

    A word that no sub-word covers has a zero vector.

    Args:
        block: As from ``prepare``.
        encoder: The encoder.
        pooling: As given to ``prepare``.
        budget: Most tokens of one padded batch; None fits the device.
        work: Counted up, if given.

    Raises:
        NonFiniteError: If any vector holds NaN or infinity.
    """
    return pooled_vectors(block, encoder, poolings=(pooling,), budget=budget, work=work)[pooling]


def pooled_vectors(
    block: Prepared, encoder: FrozenEncoder, *, poolings: Sequence[str], budget: int | None, work: Work | None = None
) -> dict[str, Vectors]:
    """Return the word vectors of a block by pooling, all from one forward pass; else as ``word_vectors``.

    Args:
        block: As from ``prepare``, for ``mean`` if there are several poolings.
        encoder: The encoder.
        poolings: One or several of ``mean``, ``first``, ``last`` and ``max``.
        budget: Most tokens of one padded batch; None fits the device.
        work: Counted up, if given.

    Raises:
        NonFiniteError: If any vector holds NaN or infinity.
    """
    import torch

    shape = (len(block.n_subwords), encoder.width)
    found = {name: np.full(shape, -np.inf if name == "max" else 0.0, dtype=np.float32) for name in poolings}
    seen = np.zeros(len(block.n_subwords), dtype=np.bool_)
    with torch.inference_mode():
        for group in batches(block.sequences, budget or encoder.batch_tokens):
            if work is not None:
                work.tokens += sum(len(sequence.ids) for sequence in group)
                work.padded += len(group[0].ids) * len(group)
            for rows, pooled in _run(group, encoder, poolings):
                for name, part in pooled.items():
                    _add_part(found[name], rows, part, pooling=name, seen=seen)
                seen[rows] = True
    for name, vectors in found.items():
        if name == "mean":
            vectors /= np.maximum(block.n_subwords, 1)[:, None].astype(np.float32)
        vectors[block.n_subwords == 0] = 0.0
        _check_finite(vectors, encoder)
    return found


def _add_part(vectors: Vectors, rows: Ints, part: Vectors, *, pooling: str, seen: Bools) -> None:
    """Bring what one batch gives into a block's vectors, in place.

    The windows of one text are equally long, so batches keep their order: what comes first is read first.
    """
    if pooling == "first":
        fresh = ~seen[rows]
        vectors[rows[fresh]] = part[fresh]
    elif pooling == "last":
        vectors[rows] = part
    else:
        vectors[rows] = np.maximum(vectors[rows], part) if pooling == "max" else vectors[rows] + part


def _check_finite(vectors: Vectors, encoder: FrozenEncoder) -> None:
    if not np.isfinite(vectors).all():
        bad = int((~np.isfinite(vectors).all(axis=1)).sum())
        raise NonFiniteError(
            "this encoder gives NaN or infinite vectors",
            where=f"dtype {encoder.dtype}",
            expected="finite numbers",
            got=f"{bad} of {len(vectors)} words in this block",
            todo="try embed.dtype: float32" if encoder.dtype != "float32" else "choose another encoder",
        )
