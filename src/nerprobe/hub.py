"""Verified downloads from the Hugging Face hub: exactly the named files, and never wrong bytes.

The hub's client compares sizes only, so every file is hashed here: against a pinned SHA-256, against what the
hub lists for the revision, or against the ETag, after which the client names the file in its cache (64 hex:
SHA-256 of a large file; 40 hex: git blob SHA-1).
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from huggingface_hub import HfApi, constants, hf_hub_download
from huggingface_hub.file_download import repo_folder_name

from nerprobe.encoder_files import encoder_file_names, is_weights, missing_parts
from nerprobe.errors import (
    EncoderFolderError,
    HashMismatchError,
    HubError,
    HubOfflineError,
    UnpinnedModelError,
)
from nerprobe.files import sha256_file
from nerprobe.hub_session import DEFAULT_POLICY, RetryPolicy, Wanted, ask_hub
from nerprobe.log import logger
from nerprobe.redact import scrub

__all__ = [
    "HubFile",
    "RetryPolicy",
    "hub_encoder_files",
    "hub_encoder_folder",
    "hub_file",
    "resolve_revision",
    "scrub",
]

RepoType = Literal["model", "dataset"]
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class HubFile:
    """A file of a repository, as the hub lists it.

    Attributes:
        name: Path in the repository.
        size: Bytes, if listed.
        digest: SHA-256 (64 hex) of a large file, git blob SHA-1 (40 hex) of another, or "" if not listed.
    """

    name: str
    size: int | None
    digest: str


def _check_pinned(wanted: Wanted) -> None:
    if _COMMIT.fullmatch(wanted.revision) is None:
        raise UnpinnedModelError(
            "a download needs a full revision",
            where=f"{wanted.repo_type} {wanted.repo}",
            expected="40 lower-case hex digits",
            got=wanted.revision,
            todo="nerprobe lock finds the revision of a branch",
        )


def _git_sha1(path: Path) -> str:
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _digest_like(path: Path, expected: str) -> str:
    """Return the file's hash of the same kind as the expected one."""
    return _git_sha1(path) if _COMMIT.fullmatch(expected) else sha256_file(path)


def _etag(path: Path) -> str:
    """Return the name of the blob that a file of the cache links to, or "" if that is no hash."""
    name = path.readlink().name if path.is_symlink() else ""
    return name if _SHA256.fullmatch(name) or _COMMIT.fullmatch(name) else ""


def _mismatch(path: Path, digest: str) -> tuple[str, str] | None:
    """Return expected and found hash if the bytes of a file are wrong."""
    expected = digest or _etag(path)
    if not expected:
        logger.warning("%s: neither a pinned hash nor one from the hub: its bytes cannot be checked", path)
        return None
    found = _digest_like(path, expected)
    return None if found == expected else (expected, found)


def _forget(path: Path) -> None:
    """Remove a file and its blob from the cache, and nothing outside the cache."""
    cache = Path(constants.HF_HUB_CACHE).resolve()
    victims = [path]
    if path.is_symlink():
        blob = path.parent / path.readlink()
        victims = [path.resolve(), blob.parent.resolve() / blob.name, path]
    for victim in victims:
        if victim == path or victim.is_relative_to(cache):
            with suppress(OSError):  # a cache that cannot be written: the caller still sees wrong bytes
                victim.unlink(missing_ok=True)


def _download(wanted: Wanted, policy: RetryPolicy) -> Path:
    """Return the path of a file in the cache, downloaded if it is not there."""
    path = Path(
        ask_hub(
            lambda: hf_hub_download(
                repo_id=wanted.repo,
                filename=wanted.filename,
                repo_type=wanted.repo_type,
                revision=wanted.revision,
            ),
            wanted,
            policy=policy,
        )
    )
    commit = path.parents[len(Path(wanted.filename).parts) - 1].name
    if commit != wanted.revision:
        raise wanted.failure(HubError, "the hub answers with another revision", got=commit)
    return path


def _verified(wanted: Wanted, *, digest: str, policy: RetryPolicy) -> Path:
    """Download a file, check its bytes, and try once more if they are wrong."""
    problem: tuple[str, str] | None = None
    second = "the second try gave wrong bytes too"
    for _ in range(2):
        try:
            path = _download(wanted, policy)
        except HubError as error:
            if problem is None:
                raise
            second = f"the second try failed: {error.what}"
            break
        problem = _mismatch(path, digest)
        if problem is None:
            return path
        logger.warning("%s: wrong bytes, removed from the cache", wanted.name)
        _forget(path)
    expected, found = problem or ("", "")
    raise HashMismatchError(
        "the bytes are not those that were pinned or announced",
        where=wanted.name,
        expected=expected,
        got=f"{found} ({second})",
        todo=f"the damaged copy is removed; check the pinned hash or the mirror; {wanted.todo}",
    )


def hub_file(
    *,
    repo: str,
    repo_type: RepoType,
    revision: str,
    filename: str,
    sha256: str | None = None,
    ways_out: str = "",
    policy: RetryPolicy = DEFAULT_POLICY,
) -> Path:
    """Return one file of a repository, from the cache or the hub, with its bytes checked.

    Asks for exactly this file: nothing is listed. A file in the cache needs no network.

    Args:
        repo: Hub id, ``org/name``.
        repo_type: ``model`` or ``dataset``.
        revision: Full commit, 40 hex.
        filename: Path in the repository.
        sha256: Pinned hash; without it the ETag counts.
        ways_out: What else the user can do if the file cannot be had, for the message.
        policy: Number of tries and waits.

    Raises:
        HubAccessError: Access is refused (401, 403).
        HubMissingError: No such repository, revision or file.
        HubOfflineError: The hub cannot be reached, or must not be, and the file is not in the cache.
        HubError: The hub fails otherwise, after all tries.
        HashMismatchError: The bytes are wrong, twice.
    """
    wanted = Wanted(repo=repo, repo_type=repo_type, revision=revision, filename=filename, ways_out=ways_out)
    _check_pinned(wanted)
    return _verified(wanted, digest=(sha256 or "").lower(), policy=policy)


def hub_encoder_files(
    *,
    repo: str,
    revision: str,
    trust_remote_code: bool = False,
    policy: RetryPolicy = DEFAULT_POLICY,
) -> list[HubFile]:
    """Return the files of a model repository that its encoder is loaded from, with sizes and hashes.

    Args:
        repo: Hub id of a model.
        revision: Full commit, 40 hex.
        trust_remote_code: Whether Python files are wanted.
        policy: Number of tries and waits.

    Raises:
        HubError: Or one of its kinds, as for ``hub_file``.
        EncoderFolderError: The repository holds no encoder that can be loaded.
    """
    wanted = Wanted(repo=repo, repo_type="model", revision=revision)
    _check_pinned(wanted)
    # The client's default here is no timeout at all.
    timeout = float(constants.HF_HUB_ETAG_TIMEOUT)
    info = ask_hub(
        lambda: HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=timeout),
        wanted,
        policy=policy,
    )
    if info.sha != revision:
        raise wanted.failure(HubError, "the hub answers with another revision", got=str(info.sha))
    listed = {sibling.rfilename: sibling for sibling in info.siblings or []}
    files = []
    for name in encoder_file_names(listed, trust_remote_code=trust_remote_code):
        sibling = listed[name]
        digest = (sibling.lfs.sha256 if sibling.lfs else sibling.blob_id) or ""
        files.append(HubFile(name=name, size=sibling.size, digest=digest))
    if "config.json" not in listed or not any(is_weights(file.name) for file in files):
        raise EncoderFolderError(
            "this repository holds no encoder that can be loaded",
            where=f"model {repo} at revision {revision}",
            expected="config.json and weights as model.safetensors or pytorch_model.bin",
            got=", ".join(sorted(listed)[:12]) or "no files",
            todo="convert its weights, or take another revision",
        )
    return files


def _cached_folder(*, repo: str, revision: str, trust_remote_code: bool, error: HubError) -> Path:
    """Return the snapshot in the cache if it is whole; ``error`` is why the hub could not be asked."""
    cache = Path(constants.HF_HUB_CACHE).expanduser().resolve()
    folder = cache / repo_folder_name(repo_id=repo, repo_type="model") / "snapshots" / revision
    present = [child.name for child in folder.iterdir() if child.is_file()] if folder.is_dir() else []
    names = encoder_file_names(present, trust_remote_code=trust_remote_code)
    missing = missing_parts(folder, names)
    wanted = Wanted(repo=repo, repo_type="model", revision=revision, filename=", ".join(missing))
    if missing and isinstance(error, HubOfflineError):
        raise wanted.failure(HubOfflineError, f"not in the cache {cache}, and {error.what}", got=error.got)
    if missing:
        raise error
    for name in names:
        # Offline or not, a damaged file is removed and, where the hub answers, fetched again.
        _verified(replace(wanted, filename=name), digest="", policy=RetryPolicy(attempts=1))
    logger.info("%s at %s: taken from the cache (%s)", repo, revision, error.what)
    return folder


def hub_encoder_folder(
    *,
    repo: str,
    revision: str,
    trust_remote_code: bool = False,
    policy: RetryPolicy = DEFAULT_POLICY,
) -> Path:
    """Return a local folder with the files of a hub encoder, all checked.

    Without the hub, a snapshot in the cache that holds configuration, tokenizer and weights serves.

    Args:
        repo: Hub id of a model.
        revision: Full commit, 40 hex.
        trust_remote_code: Whether Python files are fetched; an explicit choice.
        policy: Number of tries and waits.

    Raises:
        HubError: Or one of its kinds, as for ``hub_file``.
        HashMismatchError: The bytes of a file are wrong, twice.
        EncoderFolderError: The repository holds no encoder that can be loaded.
    """
    try:
        files = hub_encoder_files(repo=repo, revision=revision, trust_remote_code=trust_remote_code, policy=policy)
    except HubError as error:
        return _cached_folder(repo=repo, revision=revision, trust_remote_code=trust_remote_code, error=error)
    paths = [
        _verified(
            Wanted(repo=repo, repo_type="model", revision=revision, filename=file.name),
            digest=file.digest,
            policy=policy,
        )
        for file in files
    ]
    return paths[0].parent


def resolve_revision(
    *,
    repo: str,
    revision: str = "main",
    repo_type: RepoType = "model",
    policy: RetryPolicy = DEFAULT_POLICY,
) -> str:
    """Return the full commit that a branch or tag stands for now.

    Args:
        repo: Hub id.
        revision: Branch, tag or commit.
        repo_type: ``model`` or ``dataset``.
        policy: Number of tries and waits.

    Raises:
        HubError: Or one of its kinds, as for ``hub_file``.
    """
    wanted = Wanted(repo=repo, repo_type=repo_type, revision=revision)
    timeout = float(constants.HF_HUB_ETAG_TIMEOUT)
    api = HfApi()
    # The commit alone is asked for: the file list of a data set can be tens of thousands long.
    commit = ask_hub(
        lambda: (
            api.model_info(repo, revision=revision, timeout=timeout, expand=["sha"]).sha
            if repo_type == "model"
            else api.dataset_info(repo, revision=revision, timeout=timeout, expand=["sha"]).sha
        ),
        wanted,
        policy=policy,
    )
    if commit is None or _COMMIT.fullmatch(commit) is None:
        raise wanted.failure(HubError, "the hub gives no full commit", got=str(commit))
    return commit
