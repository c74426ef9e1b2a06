"""Stage ``curve``: the probe on growing and on other parts of the train pool, on the same test items, for one encoder.

Two things move a score: which items it was tested on, which the board's interval tells, and which it was trained on.
Here the second one is looked at: parts of the train pool from rank 0 on give a learning curve, and parts of the run's
size side by side (ranks 0 to 499, 500 to 999, …) the spread over train subsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from nerprobe.files import read_json, write_json
from nerprobe.items import Item, load_items
from nerprobe.log import progress_bar
from nerprobe.probe import check_manifest, probe_lookup, probe_vectors
from nerprobe.score import evaluate, rates
from nerprobe.subset import load_subset
from nerprobe.vector_files import read_vectors

Part = tuple[int, int]
"""First rank and number of train items."""


def curve_sizes(available: int, sizes: Sequence[int | str]) -> list[int]:
    """Return the numbers of train items of the curve, ascending.

    Args:
        available: Train items there are.
        sizes: Wanted numbers; those beyond ``available`` are left out. ``all`` goes on from the largest of them by
            doubling, up to all there are.
    """
    numbers = sorted(int(size) for size in sizes if size != "all" and int(size) <= available)
    if "all" in sizes:
        step = numbers[-1] if numbers else available
        while (step := 2 * step) < available:
            numbers.append(step)
        numbers.append(available)
    return sorted(set(numbers))


def repeat_parts(available: int, *, size: int | str, repeats: int) -> list[Part]:
    """Return parts of one size side by side, at most ``repeats``; none where not even two fit."""
    if size == "all":
        return []
    count = min(repeats, available // int(size))
    return [(index * int(size), int(size)) for index in range(count)] if count > 1 else []


def fit_part(
    vectors: Mapping[str, Any] | None,
    train: Sequence[Item],
    test: Sequence[Item],
    *,
    settings: Mapping[str, Any],
    types: Sequence[str],
) -> dict[str, Any]:
    """Fit the probe on some train items and count the test items' mentions.

    Args:
        vectors: Word vectors by item id; None for the lookup baseline.
        train: What to fit on.
        test: What to tag.
        settings: ``C``, ``tol`` and ``max_iter``.
        types: Declared types.

    Returns:
        ``f1``, ``iterations``, ``converged``, and ``tp``, ``predicted`` and ``gold`` of each test item.
    """
    fitted = probe_lookup(train, test) if vectors is None else probe_vectors(vectors, train, test, settings)
    (tags, _), facts, _ = fitted
    rows, first = [], 0
    for item in test:
        rows.append((item.item_id, item.tags, tags[first : first + len(item.words)]))
        first += len(item.words)
    result = evaluate(rows, types)
    by_item = {name: [item[name] for item in result["per_item"]] for name in ("tp", "predicted", "gold")}
    fit = {name: facts[name] for name in ("iterations", "converged")}
    return {"f1": rates(result["counts"])["f1"], **fit, **by_item}


def write_curve(
    spec: Mapping[str, Any],
    *,
    corpus: Path,
    corpus_info: Path,
    subset: Path,
    vectors: Path | None,
    manifest: Path | None,
    output: Path,
    threads: int,
) -> None:
    """Run the stage: write ``curves/<model>.json``.

    Args:
        spec: ``model``, ``evaluation``, the probe's settings, and ``sizes``, ``repeats`` and ``train`` (the run's own
            number of train items).
        corpus: ``corpus.parquet`` of the run that embeds the train pool, as all that follows.
        corpus_info: Its ``corpus.json``.
        subset: Its ``subset.json``.
        vectors: The encoder's Parquet file; None for the lookup baseline.
        manifest: Its manifest.
        output: JSON file to write.
        threads: Threads of the linear algebra.
    """
    evaluation, of_pool, about = spec["evaluation"], load_subset(subset), read_json(corpus_info)
    chosen = of_pool["items"]
    known = load_items(corpus, [item_id for pool in chosen.values() for item_id in pool])
    train = [known[item_id] for item_id in chosen[evaluation["train_pool"]]]
    test = [known[item_id] for item_id in chosen[evaluation["test_pool"]]]
    repeats = repeat_parts(len(train), size=spec["train"], repeats=spec["repeats"])
    parts = sorted({*((0, size) for size in curve_sizes(len(train), spec["sizes"])), *repeats})
    rows = None
    if vectors is not None and manifest is not None:
        embedded = read_json(manifest)
        check_manifest(embedded, manifest, model=spec["model"], key=spec["encoder"]["key"], subset=of_pool["id"])
        rows = read_vectors(vectors, embedded, [*train, *test])
    fits = []
    with threadpool_limits(limits=threads), progress_bar("fits", len(parts)) as bar:
        for first, size in parts:
            part = train[first : first + size]
            fit = fit_part(rows, part, test, settings=spec, types=about["types"])
            fits.append({"first_rank": first, "train_items": size, "repeat": (first, size) in repeats, **fit})
            bar.advance()
    record = {"schema": 1, "task": about["task"], "model": spec["model"], "run": output.resolve().parents[1].name}
    write_json(output, {**record, "test_items": len(test), "fits": fits})
