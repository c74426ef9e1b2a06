"""Makers of small inputs for the tests: corpus files and their specification, items, and the real command."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nerprobe.items import Item
from nerprobe.readers import TagRule

ROOT = Path(__file__).resolve().parents[2]
TYPES = ("PROFESION", "SITUACION_LABORAL")
IGNORED = ("ACTIVIDAD", "FIGURATIVA")
RULE = TagRule(types=TYPES, ignored_types=IGNORED)
PROFNER = {"kind": "columns", "separator": " ", "columns": ["word", "item", "start", "end", "tag"]}
CONLL = {"kind": "columns", "separator": " ", "columns": ["word", "tag"]}
JSONL = {"kind": "jsonl", "words": "tokens", "tags": "tags", "item": "id"}
PARQUET = {**JSONL, "kind": "parquet"}


def corpus_spec(folder: Path, files: Mapping[str, bytes], **changes: Any) -> dict[str, Any]:
    """Write a file for each pool and return the specification of the corpus stage for them."""
    folder.mkdir(parents=True, exist_ok=True)
    for pool, data in files.items():
        (folder / f"{pool}.txt").write_bytes(data)
    spec = {
        "task": "tiny",
        "title": "Tiny",
        "language": "es",
        "licence": "cc0-1.0",
        "texts_shareable": True,
        "labels": {},
        "source": {
            "kind": "path",
            "folder": str(folder),
            "sha256": {f"{pool}.txt": hashlib.sha256(data).hexdigest() for pool, data in files.items()},
        },
        "repo": None,
        "format": PROFNER,
        "text": "offsets",
        "item_prefix": "tiny-",
        "types": list(TYPES),
        "ignored_types": list(IGNORED),
        "evaluations": [{"protocol": "probe", "regime": "train", "train_pool": "train", "test_pool": "test"}],
        "pools": {pool: {"file": f"{pool}.txt"} for pool in files},
    }
    return spec | changes


def make_item(
    words: Sequence[str], tags: Sequence[str] | None = None, *, item_id: str = "tiny-1", pool: str = "test"
) -> Item:
    """Return an item whose words are joined by single spaces."""
    starts, position = [], 0
    for word in words:
        starts.append(position)
        position += len(word) + 1
    return Item(
        item_id=item_id,
        pool=pool,
        text=" ".join(words),
        words=tuple(words),
        starts=tuple(starts),
        ends=tuple(start + len(word) for start, word in zip(starts, words, strict=True)),
        tags=tuple(tags if tags is not None else ["O"] * len(words)),
    )


def run_nerprobe(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``python -m nerprobe`` as a job does."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", "nerprobe", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def acts(text: str) -> list[str]:
    """Return the characters of a text that could act in a terminal."""
    return [char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs") and char != "\n"]
