"""Checks of ``nerprobe doctor`` on word vectors: number formats, batches, and what a run would take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nerprobe.checkup import Finding, Setup, short
from nerprobe.errors import AlignmentError, NonFiniteError
from nerprobe.estimate import Workload, estimate, estimate_text, measure
from nerprobe.hard_texts import hard_items

if TYPE_CHECKING:
    from nerprobe.frozen import FrozenEncoder
    from nerprobe.vector_files import Vectors

DTYPES = ("float32", "bfloat16", "float16")
SAME_BATCH = 1e-5
"""Largest relative difference between padded batches and texts one by one, in float32."""
LARGE_DIFFERENCE = 0.10
"""Relative difference from float32 that is worth a warning."""
EVERY = 8
"""Number formats are compared on one in so many of the built-in texts."""
LARGEST_FLOAT16 = 65504.0


def relative_difference(vectors: Vectors, reference: Vectors) -> float:
    """Return the largest distance between two vectors of a word, as a share of the reference's length.

    Args:
        vectors: Word vectors, shape (words, width).
        reference: Of the same words; zero vectors (words without sub-words) are left out.
    """
    lengths = np.linalg.norm(reference, axis=1)
    distances = np.linalg.norm(vectors - reference, axis=1)
    return float(np.max(distances[lengths > 0] / lengths[lengths > 0], initial=0.0))


def number_findings(setup: Setup, encoder: FrozenEncoder, workloads: Sequence[Workload]) -> list[Finding]:
    """Say whether vectors are finite in each number format, alike in any batch, and what runs would take.

    Args:
        setup: The encoder and how it would be used.
        encoder: The encoder in the configured number format.
        workloads: What to estimate.
    """
    configured = setup.settings["dtype"]
    items = hard_items()[::EVERY]
    vectors: dict[str, Vectors] = {}
    failed: dict[str, Finding] = {}
    more: list[Finding] = []
    # The configured format comes first: its peak memory is measured before others are loaded.
    for dtype in (configured, *(name for name in DTYPES if name != configured)):
        try:
            own = encoder if dtype == configured else setup.load(dtype)
            vectors[dtype] = setup.vectors(own, items, setup.batch_tokens)
            if dtype == "float32":
                more.append(batch_finding(vectors[dtype], setup.vectors(own, items, 1)))
        except Exception as error:  # foreign code in a format it may not know: the finding says what happened
            failed[dtype] = failed_finding(dtype, error, configured=configured)
            continue
        if dtype == configured:
            more += time_findings(setup, own, workloads)
    found = {dtype: finite_finding(dtype, vectors, setup.settings) for dtype in vectors if dtype not in failed}
    more.sort(key=lambda finding: finding.name)
    return [*(failed.get(dtype) or found[dtype] for dtype in DTYPES), *more]


def failed_finding(dtype: str, error: Exception, *, configured: str) -> Finding:
    """Say that a number format cannot be used; a fault if it is the configured one."""
    what = (
        "NaN or infinite word vectors" if isinstance(error, NonFiniteError) else f"cannot be run here: {short(error)}"
    )
    if dtype != configured:
        return Finding(dtype, "warning", f"{what}; do not configure it for this encoder")
    todo = "choose another encoder" if dtype == "float32" else "set dtype: float32 for it in the registry"
    return Finding(dtype, "fault", f"{what}; {todo}")


def finite_finding(dtype: str, vectors: Mapping[str, Vectors], settings: Mapping[str, Any]) -> Finding:
    """Say what finite vectors in a number format are like.

    Args:
        dtype: The number format.
        vectors: Word vectors of the same words by number format, shape (words, width) each.
        settings: ``dtype`` and ``storage`` as configured.
    """
    own, reference = vectors[dtype], vectors.get("float32")
    configured = dtype == settings["dtype"]
    text = "finite word vectors" + (", as configured" if configured else "")
    largest = float(np.abs(own).max(initial=0.0))
    if configured and settings["storage"] == "float16" and largest > LARGEST_FLOAT16:
        return Finding(dtype, "fault", f"{text}, up to {largest:.3g}: too large to store; use embed.storage: float32")
    if dtype == "float32" or reference is None:
        return Finding(dtype, "ok", text)
    difference = relative_difference(own, reference)
    text += f"; they differ from float32 by up to {difference:.2%} of a vector's length"
    if difference > LARGE_DIFFERENCE:
        return Finding(dtype, "warning", f"{text}: scores will differ from float32's")
    return Finding(dtype, "ok", text)


def batch_finding(batched: Vectors, single: Vectors) -> Finding:
    """Say whether a padded batch gives what texts give one by one.

    Args:
        batched: Word vectors from padded batches, shape (words, width).
        single: Of the same words, from batches of one text.
    """
    difference = relative_difference(batched, single)
    text = f"padded batches and texts one by one differ by up to {difference:.0e} of a vector's length"
    if not difference <= SAME_BATCH:
        return Finding("batches", "warning", f"{text}, more than {SAME_BATCH:.0e}: embed.batch_tokens changes scores")
    return Finding("batches", "ok", text)


def time_findings(setup: Setup, encoder: FrozenEncoder, workloads: Sequence[Workload]) -> Iterator[Finding]:
    """Give an estimate of time, memory and disk for each task.

    Args:
        setup: How the encoder would be used.
        encoder: The encoder in the configured number format, warmed up.
        workloads: The tasks.
    """
    items = hard_items()
    tokens = encoder.tokenize([item.text for item in items])
    fertility = sum(len(own.ids) for own in tokens) / sum(len(item.words) for item in items)
    how: dict[str, Any] = {"settings": setup.settings, "batch_tokens": setup.batch_tokens}
    measured = measure(encoder, items, **how) if workloads else None
    for workload in workloads:
        assert measured is not None
        try:
            found = estimate(workload, measured=measured, encoder=encoder, fertility=fertility, **how)
        except AlignmentError as error:
            yield Finding(f"task {workload.task}", "fault", str(error))
            continue
        yield Finding(f"task {workload.task}", "ok", estimate_text(workload, found, measured))
