"""Reading and writing of files: hashes, canonical JSON, and writes that are whole or not there at all."""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nerprobe.errors import ArtefactError, StorageError

SEAL = "seal"
"""Field of every JSON artefact: the SHA-256 of the canonical JSON of its other fields."""
SCHEMA = 1
"""Version of the layout of JSON artefacts and of the store's blocks."""
AGAIN = "run nerprobe verify --remove, then the same snakemake command again"
"""What to do about a damaged artefact."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_RIGHT = (errno.EROFS, errno.EACCES, errno.EPERM)


def canonical_json(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256_text(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def hashes(paths: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 of files by their names, as the field ``files`` of a record holds them."""
    return {path.name: sha256_file(path) for path in paths}


def check_sha256(path: Path, digest: object, *, record: Path) -> None:
    """Refuse a file that is not the one its record tells of.

    Raises:
        ArtefactError: If it cannot be read, or its SHA-256 is another one.
    """
    try:
        found = sha256_file(path)
    except OSError as error:
        raise ArtefactError("cannot read this file", where=str(path), got=error.strerror or "") from error
    if found != digest:
        raise ArtefactError(f"this file differs from its record in {record.name}", where=str(path), todo=AGAIN)


def storage_error(error: OSError, path: Path | str) -> StorageError | None:
    """Return the clear error for a file that cannot be written; None if the cause is another one."""
    if error.errno in NO_ROOM:
        todo = "free some space there, then run the same command again"
    elif error.errno in NO_RIGHT:
        todo = "make its folder writable, or work in another one (snakemake --directory DIR)"
    else:
        return None
    return StorageError("this cannot be written", where=str(path), got=os.strerror(error.errno), todo=todo)


def read_only(folder: Path) -> StorageError | None:
    """Return the error for a folder that cannot be written."""
    return storage_error(OSError(errno.EROFS, ""), f"{folder}/")


def is_abandoned(temporary: Path, *, remove: bool = False) -> bool:
    """Say whether the writer of a temporary file is gone: its lock goes with it, however it ended.

    Args:
        temporary: The file.
        remove: Whether to remove it then, before another writer can take it for its own.
    """
    try:
        with temporary.open("r+b") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if remove:
                temporary.unlink()
    except OSError:
        return False
    return True


def temporaries(folder: Path, name: str = "") -> list[Path]:
    """Return the temporary files in a folder, those of one target if its name is given."""
    pattern = f".{glob.escape(name[:80])}.{'?' * 8}.tmp" if name else ".*.tmp"
    return sorted(folder.glob(pattern))


def _locked_temporary(path: Path) -> tuple[int, Path]:
    """Return a new temporary file beside a path, open and locked for as long as its writer lives."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:80]}.", suffix=".tmp", dir=path.parent)
        with suppress(OSError):  # a file system without locks: nobody will clean up, nothing else changes
            fcntl.flock(handle, fcntl.LOCK_EX)
        if Path(name).exists():
            return handle, Path(name)
        os.close(handle)  # another writer took it for abandoned before it was locked


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its place when the block ends well.

    The bytes reach the disk before the name does, so a reader never sees part of a file, and a
    writer that was orphaned and ends late cannot mix its bytes with another's. What earlier writers of the
    same file left when they were killed is removed.

    Raises:
        StorageError: If the disk is full or the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in temporaries(path.parent, path.name):
            is_abandoned(old, remove=True)
        handle, temporary = _locked_temporary(path)
        try:
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            os.close(handle)
    except OSError as error:
        clear = storage_error(error, path)
        if clear is None:
            raise
        raise clear from error


def write_bytes(path: Path, data: bytes) -> None:
    """Write bytes atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically, with LF line ends."""
    write_bytes(path, text.encode())


def seal_of(record: dict[str, Any]) -> str:
    """Return the seal of a record: a hash of all its other fields."""
    return sha256_text(canonical_json({name: value for name, value in record.items() if name != SEAL}))


def write_json(path: Path, value: object, *, sealed: bool = True) -> None:
    """Write a value as JSON that people can read, with sorted keys; NaN is refused.

    Args:
        path: The file.
        value: What it holds.
        sealed: Whether an object gets its ``seal``, by which ``read_json`` notices any damage.
    """
    if sealed and isinstance(value, dict):
        value = {**value, SEAL: seal_of(value)}
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    # Control characters beyond ASCII would act where the file is printed; half characters (the name of a
    # folder that is no UTF-8) cannot be encoded at all.
    text = re.sub("[\x7f-\x9f\ud800-\udfff]", lambda char: f"\\u{ord(char[0]):04x}", text)
    write_text(path, text + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON artefact: an object that ``write_json`` wrote; its seal is checked and left out.

    Raises:
        ArtefactError: If the file is missing, cut off, changed since, foreign, or of another version.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        seal = seal_of(value) if isinstance(value, dict) else ""
    except OSError as error:
        raise ArtefactError("cannot read this file", where=str(path), got=error.strerror or "") from error
    except (ValueError, RecursionError) as error:
        got = " ".join(str(error).split())[:200]
        raise ArtefactError(
            "this file is damaged", where=str(path), expected="whole JSON", got=got, todo=AGAIN
        ) from error
    if not isinstance(value, dict) or SEAL not in value:
        raise ArtefactError("this file is foreign or of another version", where=str(path), got="no seal", todo=AGAIN)
    if value.pop(SEAL) != seal:
        raise ArtefactError(
            "this file is damaged", where=str(path), got="content that differs from its seal", todo=AGAIN
        )
    if value.get("schema", SCHEMA) != SCHEMA:
        raise ArtefactError(
            "this file is of another version",
            where=str(path),
            expected=f"schema {SCHEMA}",
            got=str(value["schema"])[:40],
            todo=AGAIN,
        )
    return value


def cache_dir() -> Path:
    """Return the folder for downloads that survive: ``$NERPROBE_CACHE`` or ``~/.cache/nerprobe``."""
    return Path(os.environ.get("NERPROBE_CACHE") or Path.home() / ".cache" / "nerprobe")
