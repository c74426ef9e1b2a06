"""``nerprobe sweep``: layers and poolings of one encoder compared on a split of the train items; exploratory.

The run's train items, which are in rank order, are split by item: the first 80 % fit the probe, the rest is scored.
Test items are neither encoded nor scored, so a layer chosen here goes onto a board without having seen its test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from nerprobe.bootstrap import Floats, count_array, interval, resampled, weight_matrix
from nerprobe.config import read_config
from nerprobe.corpus import read_items
from nerprobe.encoders import Encoder
from nerprobe.errors import SubsetSizeError, UnknownModelError
from nerprobe.files import write_json
from nerprobe.items import Item, count_pool, load_items
from nerprobe.log import progress_bar
from nerprobe.logistic import fit_logistic
from nerprobe.plan import Plan, Run, make_plan
from nerprobe.score import evaluate
from nerprobe.subset import take
from nerprobe.sweep_report import describe, exploratory, registry_entry
from nerprobe.sweep_vectors import POOLINGS, fill_layers, layer_files, read_layer, sweep_key


@dataclass(frozen=True, kw_only=True)
class Split:
    """The train items of a run, split by item.

    Attributes:
        items: In rank order.
        cut: How many of them, from the first, fit the probe; the others are scored.
        types: Declared types.
    """

    items: Sequence[Item]
    cut: int
    types: Sequence[str]

    def counts(self) -> dict[str, Any]:
        """Return what both parts hold."""
        parts = {"fit": self.items[: self.cut], "held_out": self.items[self.cut :]}
        return {name: count_pool([item.tags for item in part], self.types) for name, part in parts.items()}


def split_train(run: Run, *, base: Path) -> Split:
    """Return the split of a run's train items; items of other pools are left out.

    Raises:
        SubsetSizeError: If there are too few of them to score anything.
        NerprobeError: If the corpus cannot be had.
    """
    pool = run.probe["evaluation"]["train_pool"]
    corpus = base / run.folder / "corpus.parquet"
    spec = {**run.corpus, "pools": {pool: run.corpus["pools"][pool]}}
    whole = corpus.is_file() and corpus.with_suffix(".json").is_file()
    items = load_items(corpus).values() if whole else read_items(spec)[0]
    known = {item.item_id: item for item in items if item.pool == pool}
    where = f"task {run.task.name}"
    size, seed = run.subset["sizes"][pool], run.subset["seed"]
    ranked = [known[name] for name in take(known, seed=seed, size=size, pool=pool, where=where)]
    split = Split(items=ranked, cut=len(ranked) * 4 // 5, types=run.task.types)
    if not split.cut or not sum(split.counts()["held_out"]["mentions"].values()):
        raise SubsetSizeError(
            "too few train items for a sweep",
            where=where,
            expected="mentions among the last fifth of them",
            got=f"{len(ranked)} items",
            todo="raise subset.train in the configuration",
        )
    return split


def fit_cell(cell: tuple[int, str], *, split: Split, folder: Path, probe: Mapping[str, Any]) -> dict[str, Any]:
    """Fit the probe on one layer and pooling and score it on the held-out items, on one thread.

    Args:
        cell: Layer and pooling.
        split: The train items.
        folder: ``resources/sweeps/<key>``.
        probe: ``C``, ``tol`` and ``max_iter``.

    Returns:
        As ``nerprobe.score.evaluate``, with ``iterations`` and ``converged``.
    """
    layer, pooling = cell
    words = [len(item.words) for item in split.items]
    tags = [tag for item in split.items[: split.cut] for tag in item.tags]
    with threadpool_limits(limits=1):
        vectors = read_layer(layer_files(split.items, folder, layer), pooling)
        head = fit_logistic(vectors[: len(tags)], tags, C=probe["C"], tol=probe["tol"], max_iter=probe["max_iter"])
        predicted, _ = head.predict(vectors[len(tags) :])
    rows, first = [], 0
    for item, count in zip(split.items[split.cut :], words[split.cut :], strict=True):
        rows.append((item.item_id, item.tags, predicted[first : first + count]))
        first += count
    return {**evaluate(rows, split.types), "iterations": head.iterations, "converged": head.converged}


def _fit_all(
    layers: Sequence[int], *, split: Split, folder: Path, probe: Mapping[str, Any], jobs: int
) -> dict[tuple[int, str], dict[str, Any]]:
    cells = list(product(layers, POOLINGS))
    fit = partial(fit_cell, split=split, folder=folder, probe=probe)
    # Spawned, not forked: torch may have threads already.
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else None
    found = {}
    with progress_bar("fits", len(cells)) as bar, pool or nullcontext():
        for cell, result in zip(cells, pool.map(fit, cells) if pool else map(fit, cells), strict=True):
            found[cell] = result
            bar.advance()
    return found


def _compare(
    fits: Mapping[tuple[int, str], Mapping[str, Any]], *, last: int, types: Sequence[str], weights: Floats, level: float
) -> dict[str, Any]:
    """Return the cells with intervals, the best one, and its distance from the default one if that is among them."""
    draws = {cell: resampled(count_array(fit["per_item"], types), weights)["f1"] for cell, fit in fits.items()}
    rows = []
    for (layer, pooling), fit in fits.items():
        low, high = interval(draws[layer, pooling], level)
        row = {"layer": "last" if layer == last else layer, "pooling": pooling, "f1_ci_low": low, "f1_ci_high": high}
        row |= {name.removeprefix("entity_").removesuffix("_probe"): value for name, value in fit["metrics"].items()}
        rows.append({**row, **fit["counts"], "iterations": fit["iterations"], "converged": fit["converged"]})
    # Of equals the later layer, then mean: nothing speaks against what is the default anyway.
    cells = list(fits)
    best = max(range(len(rows)), key=lambda i: (rows[i]["f1"], cells[i][0], -POOLINGS.index(cells[i][1])))
    result = {"cells": rows, "best": rows[best], "over_default": None}
    if (last, "mean") in fits:
        low, high = interval(draws[cells[best]] - draws[last, "mean"], level)
        default = rows[cells.index((last, "mean"))]
        result["over_default"] = {"difference": rows[best]["f1"] - default["f1"], "low": low, "high": high}
    return result


def _configured(
    reference: str, *, task: str | None, configfile: Path | None, data_dir: Path | None, base: Path
) -> tuple[Plan, Run, Encoder]:
    """Return the plan of one encoder and one task, with both."""
    over = {} if data_dir is None else {"data_dir": str((base / data_dir).resolve())}
    config = read_config(configfile, models=[reference], baselines=[], **over)
    if task is not None or isinstance(config["tasks"], list):
        config["tasks"] = [task] if task is not None else config["tasks"][:1]
    plan = make_plan(config, base=base)
    run, encoder = next(iter(plan.runs.values())), next(iter(plan.encoders.values()))
    if not encoder.fetched:
        raise UnknownModelError("this control has no layers", where=repr(reference), expected="an encoder")
    return plan, run, encoder


def sweep(
    reference: str,
    *,
    task: str | None = None,
    layers: str = "",
    configfile: Path | None = None,
    data_dir: Path | None = None,
    jobs: int = 1,
    base: Path,
) -> tuple[dict[str, Any], Path]:
    """Score every layer and pooling of an encoder on a split of the train items of one task.

    Args:
        reference: As in ``models`` of the configuration.
        task: Name of the task; None takes the first one of the configuration.
        layers: As for ``nerprobe.sweep_vectors.parse_layers``.
        configfile: Configuration on top of the default one, or None.
        data_dir: As in the configuration, or None.
        jobs: Fits at a time.
        base: Folder that relative paths start from; ``results/`` and ``resources/`` lie in it.

    Returns:
        What was found, and the file it was written to: ``results/<task>/<run>/sweeps/<model>.json``.

    Raises:
        NerprobeError: If the configuration is wrong, or corpus or encoder cannot be used.
    """
    plan, run, encoder = _configured(reference, task=task, configfile=configfile, data_dir=data_dir, base=base)
    split = split_train(run, base=base)
    embed, probe, seed = plan.config["embed"], plan.config["probe"], run.subset["seed"]
    folder = base / "resources" / "sweeps" / sweep_key(encoder)
    how = {"device": embed["device"], "budget": embed["batch_tokens"]}
    about, chosen = fill_layers(encoder, split.items, folder=folder, layers=layers, **how)
    fits = _fit_all(chosen, split=split, folder=folder, probe=probe, jobs=jobs)
    boot = dict(plan.config["bootstrap"])
    boot["seed"] = seed if boot["seed"] is None else boot["seed"]
    weights = weight_matrix(len(split.items) - split.cut, resamples=boot["resamples"], seed=boot["seed"])
    result = {
        "schema": 1,
        "task": run.task.name,
        "run": run.label,
        "model": encoder.slug,
        "encoder": describe(encoder, about, key=folder.name),
        "split": {"rule": "fit on the first 80 % of the train items by rank", "seed": seed, "counts": split.counts()},
        "bootstrap": boot,
        "probe": probe,
        **_compare(fits, last=about["layers"], types=split.types, weights=weights, level=boot["level"]),
    }
    result["exploratory"] = exploratory(result)
    result["entry"] = registry_entry(reference, encoder, best=result["best"], family=about["class"])
    output = base / run.folder / "sweeps" / f"{encoder.slug}.json"
    write_json(output, result)
    return result, output
