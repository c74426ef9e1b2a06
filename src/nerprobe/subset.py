"""Stage ``subset``: the first items of each pool in the order of a seeded hash, so that subsets are nested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nerprobe.corpus import Item, count_pool, load_items
from nerprobe.errors import ArtefactError, SubsetSizeError
from nerprobe.files import canonical_json, read_json, sha256_text, write_json
from nerprobe.versions import SUBSET_RULE


def rank(item_ids: Iterable[str], seed: int) -> list[str]:
    """Return item ids in rank order (DESIGN section 3, the subset rule)."""
    return sorted(item_ids, key=lambda item_id: hashlib.sha256(f"{seed}|{item_id}".encode()).hexdigest())


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


def select(items: Mapping[str, Item], *, spec: Mapping[str, Any], types: list[str]) -> dict[str, Any]:
    """Return ``subset.json`` (DESIGN section 2).

    Args:
        items: The corpus.
        spec: ``task``, ``seed`` and ``sizes`` by pool.
        types: Declared types.

    Raises:
        SubsetSizeError: If a pool has fewer items than asked for.
    """
    chosen: dict[str, list[str]] = {}
    counts: dict[str, Any] = {}
    for pool, size in sorted(spec["sizes"].items()):
        of_pool = [item.item_id for item in items.values() if item.pool == pool]
        chosen[pool] = take(of_pool, seed=spec["seed"], size=size, pool=pool, where=f"task {spec['task']}")
        counts[pool] = count_pool([items[item_id].tags for item_id in chosen[pool]], types)
    identity = {"rule": SUBSET_RULE, "seed": spec["seed"], "items": chosen}
    return {
        "id": sha256_text(canonical_json(identity))[:16],
        "seed": spec["seed"],
        "rule": SUBSET_RULE,
        "counts": counts,
        "items": chosen,
    }


def write_subset(spec: Mapping[str, Any], *, corpus: Path, corpus_info: Path, output: Path) -> None:
    """Run the stage: write ``subset.json``."""
    write_json(output, select(load_items(corpus), spec=spec, types=read_json(corpus_info)["types"]))


def load_subset(path: Path) -> dict[str, Any]:
    """Read ``subset.json`` back.

    Raises:
        ArtefactError: If it lacks what the stage writes.
    """
    subset = read_json(path)
    if not isinstance(subset, dict) or not {"id", "seed", "counts", "items"} <= set(subset):
        raise ArtefactError("this is no subset file", where=str(path), todo=f"remove it: rm {path}")
    return subset
