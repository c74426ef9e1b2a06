"""Stage ``subset``: the first items of each pool in the order of a seeded hash, so that subsets are nested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nerprobe.errors import ArtefactError, SubsetSizeError
from nerprobe.files import AGAIN, canonical_json, read_json, sha256_text, write_json
from nerprobe.items import chosen_batches, count_pool, rows_of, stored_batches
from nerprobe.versions import SUBSET_RULE


def rank(item_ids: Iterable[str], seed: int) -> list[str]:
    """Return item ids in rank order (DESIGN section 3, the subset rule)."""
    # Digests sort as their hex does, in half the memory.
    return sorted(item_ids, key=lambda item_id: hashlib.sha256(f"{seed}|{item_id}".encode()).digest())


def take(item_ids: Iterable[str], *, seed: int, size: int | str, pool: str, where: str) -> list[str]:
    """Return the subset of one pool in rank order.

    Args:
        item_ids: All items of the pool.
        seed: The subset's seed.
        size: Number of items, or ``all``.
        pool: The pool's name, for errors.
        where: The task, for errors.

    Raises:
        SubsetSizeError: If the pool has fewer items.
    """
    ranked = rank(item_ids, seed)
    if size == "all":
        return ranked
    count = int(size)
    if count > len(ranked):
        raise SubsetSizeError(
            f"pool {pool} has fewer items than asked for",
            where=where,
            expected=f"at most {len(ranked)}, or all",
            got=str(count),
            todo="lower it in the configuration (subset)",
        )
    return ranked[:count]


def select(pools: Mapping[str, Iterable[str]], *, spec: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the chosen item ids of each pool in rank order.

    Args:
        pools: Item ids of each pool.
        spec: ``task``, ``seed`` and ``sizes`` by pool.

    Raises:
        SubsetSizeError: If a pool has fewer items than asked for.
    """
    return {
        pool: take(pools.get(pool, ()), seed=spec["seed"], size=size, pool=pool, where=f"task {spec['task']}")
        for pool, size in sorted(spec["sizes"].items())
    }


def subset_record(chosen: Mapping[str, Sequence[str]], *, counts: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return ``subset.json`` (DESIGN section 2)."""
    identity = {"rule": SUBSET_RULE, "seed": seed, "items": chosen}
    return {
        "id": sha256_text(canonical_json(identity))[:16],
        "seed": seed,
        "rule": SUBSET_RULE,
        "counts": counts,
        "items": chosen,
    }


def ids_by_pool(corpus: Path) -> dict[str, list[str]]:
    """Return the item ids of each pool of ``corpus.parquet``, in file order."""
    found: dict[str, list[str]] = {}
    for batch in stored_batches(corpus, ["item_id", "pool"]):
        for item_id, pool in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            found.setdefault(pool, []).append(item_id)
    return found


def count_chosen(corpus: Path, chosen: Mapping[str, Sequence[str]], types: Sequence[str]) -> dict[str, Any]:
    """Return the counts of each pool's chosen items, as ``nerprobe.items.count_pool``."""
    counts = {}
    for pool, item_ids in chosen.items():
        batches = chosen_batches(corpus, rows_of(corpus, item_ids), ["tags"])
        counts[pool] = count_pool((tags for batch in batches for tags in batch.column(0).to_pylist()), types)
    return counts


def write_subset(spec: Mapping[str, Any], *, corpus: Path, corpus_info: Path, output: Path, leakage: Path) -> None:
    """Run the stage: write ``subset.json`` and ``leakage.json``."""
    from nerprobe.leakage import write_leakage  # scikit-learn takes a second to import

    about = read_json(corpus_info)
    chosen = select(ids_by_pool(corpus), spec=spec)
    counts = count_chosen(corpus, chosen, about["types"])
    write_leakage(chosen, evaluation=about["evaluations"][0], corpus=corpus, output=leakage)
    write_json(output, subset_record(chosen, counts=counts, seed=spec["seed"]))


def load_subset(path: Path) -> dict[str, Any]:
    """Read ``subset.json`` back.

    Raises:
        ArtefactError: If it lacks what the stage writes.
    """
    subset = read_json(path)
    if not {"id", "seed", "counts", "items"} <= set(subset):
        raise ArtefactError("this is no subset file", where=str(path), todo=AGAIN)
    return subset
