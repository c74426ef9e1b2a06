"""What a run would take with one encoder: seconds, memory and disk, estimated from a short timed batch."""

from __future__ import annotations

import itertools
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nerprobe.fill import BLOCK_ITEMS
from nerprobe.items import Item, load_items
from nerprobe.plan import Run
from nerprobe.subset import count_chosen, ids_by_pool, select

if TYPE_CHECKING:
    from nerprobe.frozen import FrozenEncoder

WORDS_A_TEXT = 35
"""Words of a text where no corpus has been read yet."""
MEASURED_TEXTS = 200
"""Texts of a corpus that sub-words are counted on, at most."""
ACTIVATIONS = 12
"""Numbers of a layer's width that a token of a batch needs at once: its states, queries, keys, values and
the feed-forward layer, four widths wide, before and after its activation."""
MIB = 2**20
STAGE_MEMORY = 250 * MIB
"""What the embed stage was seen to need beside all that is counted here: tokenised blocks, Parquet's buffers."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How much text a configured task has.

    Attributes:
        task: Name of the task.
        items: Texts of its subset.
        words: Words in them, counted or assumed.
        basis: Where the numbers come from, in words.
        sample: Some of the texts, to count sub-words on; empty if no corpus is there.
    """

    task: str
    items: int
    words: int
    basis: str
    sample: tuple[Item, ...] = ()


def workload_of(run: Run, *, base: Path) -> Workload | None:
    """Return how much text a run has; None if its pools are taken whole and their size is not known.

    Args:
        run: The run.
        base: Folder that ``results/`` lies in.
    """
    corpus = base / run.folder / "corpus.parquet"
    if corpus.is_file():
        chosen = select(ids_by_pool(corpus), spec=run.subset)
        ids = [item_id for pool in sorted(chosen) for item_id in chosen[pool]]
        known = load_items(corpus, ids[:: max(1, len(ids) // MEASURED_TEXTS)][:MEASURED_TEXTS])
        return Workload(
            task=run.task.name,
            items=len(ids),
            words=sum(counts["words"] for counts in count_chosen(corpus, chosen, run.task.types).values()),
            basis="counted in corpus.parquet",
            sample=tuple(known.values()),
        )
    sizes = {name: run.task.pools[name].items if size == "all" else size for name, size in run.subset["sizes"].items()}
    if None in sizes.values():
        return None
    count = sum(int(size) for size in sizes.values() if size is not None)
    basis = f"no corpus.parquet yet: {WORDS_A_TEXT} words a text assumed"
    return Workload(task=run.task.name, items=count, words=count * WORDS_A_TEXT, basis=basis)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one task would take.

    Attributes:
        subwords: Sub-words in all texts, without special and prefix tokens.
        seconds: Time of tokenising, forward passes and pooling; loading comes on top.
        memory: Bytes of main memory.
        device_memory: Bytes of the accelerator's memory; 0 without one.
        vectors: Bytes of the run's vectors file before compression; the store takes as much again.
    """

    subwords: int
    seconds: float
    memory: float
    device_memory: float
    vectors: int


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was measured of an encoder.

    Attributes:
        tokens_a_second: Special and prefix tokens included.
        memory: Peak of this process, in bytes.
        device_memory: Peak on the accelerator, in bytes; 0 without one.
        where: Device and, on the CPU, threads, in words.
    """

    tokens_a_second: float
    memory: float
    device_memory: float
    where: str


def measure(
    encoder: FrozenEncoder,
    items: Sequence[Item],
    *,
    settings: Mapping[str, Any],
    batch_tokens: int | None,
    seconds: float = 1.5,
) -> Measured:
    """Time an encoder for a while and take its fastest round, as other work on the machine only slows it down.

    Rounds grow, as larger batches are faster, as long as the next one fits into the time left.

    Args:
        encoder: The encoder, warmed up.
        items: Texts to repeat.
        settings: ``prefix`` and ``pooling``.
        batch_tokens: Most tokens of a padded batch; None fits the device.
        seconds: What all rounds together take, unless a single text takes longer.
    """
    import torch

    from nerprobe.pooling import Work, prepare, word_vectors

    begun, number, best = time.monotonic(), 4, 0.0
    while True:
        start, work = time.monotonic(), Work()
        round_items = list(itertools.islice(itertools.cycle(items), number))
        block = prepare(round_items, encoder, prefix=settings["prefix"], pooling=settings["pooling"])
        word_vectors(block, encoder, pooling=settings["pooling"], budget=batch_tokens, work=work)
        end = time.monotonic()
        best = max(best, work.tokens / (end - start))
        left = begun + seconds - end
        if left < end - start:
            break
        number = min(2 * number, BLOCK_ITEMS) if left > 2 * (end - start) else number
    return Measured(
        tokens_a_second=best,
        memory=_peak_bytes(),
        device_memory=_device_peak(encoder),
        where=encoder.device.type if encoder.device.type != "cpu" else f"cpu, {torch.get_num_threads()} threads",
    )


def _peak_bytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _device_peak(encoder: FrozenEncoder) -> float:
    import torch

    return float(torch.cuda.max_memory_allocated(encoder.device)) if encoder.device.type == "cuda" else 0.0


def estimate(
    workload: Workload,
    *,
    measured: Measured,
    encoder: FrozenEncoder,
    settings: Mapping[str, Any],
    batch_tokens: int | None,
    fertility: float,
) -> Estimate:
    """Estimate what a task takes.

    Args:
        workload: The task's texts.
        measured: As from ``measure``.
        encoder: The encoder.
        settings: ``prefix`` and ``storage``.
        batch_tokens: Most tokens of a padded batch; None fits the device.
        fertility: Sub-words a word, for tasks without texts to count them on.
    """
    if workload.sample:
        tokens = encoder.tokenize([item.text for item in workload.sample])
        fertility = sum(len(own.ids) for own in tokens) / max(1, sum(len(item.words) for item in workload.sample))
    subwords = round(workload.words * fertility)
    around = encoder.template.size + len(encoder.tokenize([""], settings["prefix"])[0].ids)
    number = 4 if encoder.dtype == "float32" else 2
    batch = ACTIVATIONS * (batch_tokens or encoder.batch_tokens) * encoder.width * number
    block = min(workload.items, BLOCK_ITEMS) * workload.words / max(1, workload.items) * encoder.width * 4
    on_device = encoder.device.type == "cuda"
    return Estimate(
        subwords=subwords,
        seconds=(subwords + workload.items * around) / measured.tokens_a_second,
        # A block's vectors are held as an array and as the bytes that are written.
        memory=measured.memory + STAGE_MEMORY + 2 * block + (0 if on_device else batch),
        device_memory=measured.device_memory + batch if on_device else 0.0,
        vectors=workload.words * encoder.width * (2 if settings["storage"] == "float16" else 4),
    )


def estimate_text(workload: Workload, found: Estimate, measured: Measured) -> str:
    """Return an estimate for people to read."""
    size = f"{workload.items:,} texts, {workload.words:,} words ({workload.basis}), about {found.subwords:,} sub-words"
    size += "" if workload.sample else " (as on the built-in texts)"
    memory = f"about {found.memory / MIB:,.0f} MiB of memory"
    if found.device_memory:
        memory += f" and {found.device_memory / MIB:,.0f} MiB on the device"
    return (
        f"estimate for {size}: {duration(found.seconds)} and loading, at {measured.tokens_a_second:,.0f} tokens/s "
        f"as measured here ({measured.where}); {memory}; vectors file and store up to "
        f"{found.vectors / MIB:,.0f} MiB each"
    )


def duration(seconds: float) -> str:
    """Return a duration such as ``45 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
