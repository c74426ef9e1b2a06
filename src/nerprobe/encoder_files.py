"""Which files of a repository or folder make a text encoder, and what bytes they hold."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypedDict

from nerprobe.errors import EncoderFolderError, NerprobeError
from nerprobe.files import canonical_json, read_json, sha256_file, sha256_text, write_json

# Weights in the order in which the model loader looks for them: one file, or an index with shards.
_WEIGHTS = (
    ("model.safetensors", "model.safetensors.index.json", re.compile(r"model-\d+-of-\d+\.safetensors")),
    ("pytorch_model.bin", "pytorch_model.bin.index.json", re.compile(r"pytorch_model-\d+-of-\d+\.bin")),
)
# JSON files that belong to other frameworks or to a training run.
_OTHER_JSON = re.compile(
    r".*\.index\.json|model_index\.json|trainer_state\.json|training_args\.json|(all|train|eval|test|predict)_results\.json"
)
_TOKENIZER_TEXTS = frozenset({"vocab.txt", "merges.txt", "dict.txt", "bpe.codes", "vocab.bpe"})
_TOKENIZER_SUFFIXES = (".model", ".tiktoken")
_TOKENIZER_JSONS = frozenset({"tokenizer.json", "tokenizer_config.json", "vocab.json"})

WHAT_A_FOLDER_HOLDS = (
    "config.json, weights (model.safetensors or pytorch_model.bin, or their index with all shards) "
    "and a tokenizer (tokenizer.json, or vocab.txt, vocab.json with merges.txt, or a *.model file)"
)


class FileRecord(TypedDict):
    """One file of an encoder: its name, size in bytes and SHA-256 in hex."""

    name: str
    size: int
    sha256: str


def _weight_names(names: Collection[str]) -> list[str]:
    for single, index, shard in _WEIGHTS:
        if single in names:
            return [single]
        if index in names:
            return [index, *sorted(name for name in names if shard.fullmatch(name))]
    return []


def _is_small_part(name: str, *, trust_remote_code: bool) -> bool:
    if name.startswith(".") or not name.isprintable():  # no loader can be told such a name
        return False
    if name.endswith(".json"):
        return _OTHER_JSON.fullmatch(name) is None
    if name.endswith(".py"):
        return trust_remote_code
    return name in _TOKENIZER_TEXTS or name.endswith(_TOKENIZER_SUFFIXES)


def encoder_file_names(names: Iterable[str], *, trust_remote_code: bool = False) -> list[str]:
    """Pick the files that a text encoder is loaded from; sub-folders, other frameworks and pickles stay out.

    Args:
        names: File names relative to the repository or folder, with ``/`` between parts.
        trust_remote_code: Whether Python files of the top folder are wanted too.

    Returns:
        Configuration and tokenizer files in name order, then the weights. Weights come last so that a
        fetch that was cut off never leaves weights without what belongs to them.
    """
    top = {name for name in names if "/" not in name}
    small = sorted(name for name in top if _is_small_part(name, trust_remote_code=trust_remote_code))
    return small + _weight_names(top)


def _missing_shards(folder: Path, names: Collection[str]) -> list[str]:
    for _, index, _shard in _WEIGHTS:
        if index in names:
            try:
                shards = set(json.loads((folder / index).read_text(encoding="utf-8"))["weight_map"].values())
            except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return [f"a readable {index}"]
            return sorted(str(shard) for shard in shards if shard not in names)
    return []


def missing_parts(folder: Path, names: Collection[str], *, tokenizer: bool = True) -> list[str]:
    """Return what a folder lacks to be a loadable encoder; an empty list means nothing.

    Args:
        folder: The folder, read for the index of sharded weights only.
        names: The encoder files in it, as of ``encoder_file_names``.
        tokenizer: Whether a tokenizer is asked for.
    """
    missing = [] if "config.json" in names else ["config.json"]
    has_tokenizer = any(
        name in _TOKENIZER_JSONS | _TOKENIZER_TEXTS or name.endswith(_TOKENIZER_SUFFIXES) for name in names
    )
    if tokenizer and not has_tokenizer:
        missing.append("a tokenizer (tokenizer.json, vocab.txt, vocab.json or *.model)")
    if not _weight_names(names):
        missing.append("weights (model.safetensors or pytorch_model.bin)")
    return missing + _missing_shards(folder, names)


def is_weights(name: str) -> bool:
    """Say whether a file of ``encoder_file_names`` holds weights."""
    return name.endswith((".safetensors", ".bin"))


def _names(path: Path, *, trust_remote_code: bool) -> list[str]:
    try:
        present = [child.name for child in path.iterdir() if child.is_file()]
    except OSError as error:
        raise EncoderFolderError(
            "this is no folder that can be read",
            where=str(path),
            expected=f"a folder with {WHAT_A_FOLDER_HOLDS}",
            got=error.strerror or "",
            todo="check the path; relative ones count from where the command was typed",
        ) from error
    return sorted(encoder_file_names(present, trust_remote_code=trust_remote_code))


def _records(path: Path, names: Iterable[str], hash_of: Callable[[Path], str]) -> list[FileRecord]:
    return [{"name": name, "size": (path / name).stat().st_size, "sha256": hash_of(path / name)} for name in names]


def folder_files(path: Path, *, trust_remote_code: bool = False, tokenizer: bool = False) -> list[FileRecord]:
    """List the loadable files of an encoder folder, in name order, with their hashes.

    Args:
        path: The folder; files may be symbolic links, sub-folders are not looked into.
        trust_remote_code: Whether Python files count.
        tokenizer: Whether a folder without a tokenizer is refused as well.

    Raises:
        EncoderFolderError: If configuration or weights are missing.
    """
    names = _names(path, trust_remote_code=trust_remote_code)
    missing = missing_parts(path, names, tokenizer=tokenizer)
    if missing:
        raise EncoderFolderError(
            f"this folder holds no encoder: it lacks {' and '.join(missing)}",
            where=str(path),
            expected=WHAT_A_FOLDER_HOLDS,
            got=", ".join(names) or "no such files",
            todo="save model and tokenizer into it with save_pretrained",
        )
    return _records(path, names, sha256_file)


def content_sha256(files: Iterable[FileRecord]) -> str:
    """Return one SHA-256 for a list of files: names, sizes and hashes, in name order."""
    return sha256_text(canonical_json(sorted(files, key=lambda record: record["name"])))


class _HashMemory:
    """SHA-256 of files by resolved path, trusted while size, time of change and inode stay the same."""

    def __init__(self, cache_file: Path) -> None:
        self._file = cache_file
        self._changed = False
        self._known: dict[str, object] = {}
        # A memory that cannot be read is no reason to stop: everything can be hashed again.
        with contextlib.suppress(NerprobeError):
            self._known = read_json(cache_file)

    def sha256(self, path: Path) -> str:
        """Return the hash of a file, from the memory where its facts are unchanged."""
        state = path.stat()
        key, facts = str(path.resolve()), [state.st_size, state.st_mtime_ns, state.st_ino]
        entry = self._known.get(key)
        if isinstance(entry, list) and len(entry) == 4 and entry[:3] == facts and isinstance(entry[3], str):
            return entry[3]
        digest = sha256_file(path)
        self._known[key] = [*facts, digest]
        self._changed = True
        return digest

    def save(self) -> None:
        """Write the memory if it grew; a place that cannot be written costs only time."""
        if self._changed:
            with contextlib.suppress(OSError, NerprobeError):
                write_json(self._file, self._known)


def cached_folder_files(path: Path, cache_file: Path) -> list[FileRecord]:
    """List the loadable files of a folder, hashing only those that changed since last time.

    A folder that is not a whole encoder is listed all the same: it fails when it is fetched, as one row of
    the board, and does not keep the other encoders from their results.

    Args:
        path: The folder.
        cache_file: JSON file with the hashes known so far; made if missing, replaced if damaged.

    Raises:
        EncoderFolderError: If there is no such folder.
    """
    memory = _HashMemory(cache_file)
    files = _records(path, _names(path, trust_remote_code=False), memory.sha256)
    memory.save()
    return files
