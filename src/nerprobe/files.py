"""Reading and writing of files: hashes, canonical JSON, and writes that are whole or not there at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nerprobe.errors import ArtefactError


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


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its place when the block ends well.

    The bytes reach the disk before the name does, so a reader never sees part of a file, and a
    writer that was orphaned and ends late cannot mix its bytes with another's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:80]}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Write bytes atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically, with LF line ends."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON that people can read, with sorted keys; NaN is refused."""
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    # Control characters beyond ASCII would act where the file is printed; half characters (the name of a
    # folder that is no UTF-8) cannot be encoded at all.
    text = re.sub("[\x7f-\x9f\ud800-\udfff]", lambda char: f"\\u{ord(char[0]):04x}", text)
    write_text(path, text + "\n")


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Read a JSON file of an earlier stage.

    Raises:
        ArtefactError: If the file is missing, cut off or no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtefactError("cannot read this file", where=str(path), got=error.strerror or "") from error
    except (ValueError, RecursionError) as error:
        raise ArtefactError(
            "this file is damaged",
            where=str(path),
            expected="whole JSON",
            got=str(error),
            todo=f"remove it and run snakemake again: rm {path}",
        ) from error


def cache_dir() -> Path:
    """Return the folder for downloads that survive: ``$NERPROBE_CACHE`` or ``~/.cache/nerprobe``."""
    return Path(os.environ.get("NERPROBE_CACHE") or Path.home() / ".cache" / "nerprobe")
