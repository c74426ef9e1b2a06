"""What a name in ``models`` means: registry entries, pinned hub ids, folders; and the key of an encoder's vectors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nerprobe.config import PROJECT, QUOTING, closest
from nerprobe.encoder_files import cached_folder_files, content_sha256
from nerprobe.errors import SlugClashError, UnknownModelError, UnpinnedModelError
from nerprobe.files import cache_dir, canonical_json, sha256_text
from nerprobe.versions import VECTORS_VERSION

HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
REVISION = re.compile(r"[0-9a-f]{40}")
BASELINE_KINDS = ("train-lookup", "char-ngrams", "random")
INFO_FIELDS = ("family", "licence", "languages", "parameters", "layers", "width", "max_tokens")


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """One row of a board.

    Attributes:
        slug: Name in paths and on the board.
        source: Where it comes from, as in the registry schema; folders also with ``content_sha256``.
        settings: dtype, storage, layer, pooling, prefix and max_length of its word vectors.
        info: Facts for reading (family, licence, …).
    """

    slug: str
    source: dict[str, Any]
    settings: dict[str, Any]
    info: dict[str, Any]

    @property
    def kind(self) -> str:
        """Return the kind of source."""
        return str(self.source["kind"])

    @property
    def baseline(self) -> bool:
        """Whether this is a control or baseline."""
        return self.kind in BASELINE_KINDS

    @property
    def fetched(self) -> bool:
        """Whether files have to be fetched for it."""
        return self.kind not in ("train-lookup", "char-ngrams")

    @property
    def embedded(self) -> bool:
        """Whether it has word vectors."""
        return self.kind != "train-lookup"

    @property
    def identity(self) -> dict[str, Any]:
        """Return the source without anything that depends on the machine, such as a path."""
        return {name: value for name, value in self.source.items() if name != "path"}

    @property
    def revision(self) -> str:
        """Return the commit, or the hash that stands for it, that the board shows."""
        for field in ("revision", "weights_sha256", "content_sha256"):
            if field in self.source:
                return str(self.source[field])
        return "built-in"

    @property
    def embed_spec(self) -> dict[str, Any]:
        """Return the specification of the embed stage: what vectors depend on, and nothing else."""
        return {"model": self.slug, "key": self.key, "source": self.identity, "settings": self.settings}

    @property
    def probe_spec(self) -> dict[str, Any]:
        """Return what the probe stage carries into the metrics."""
        encoder = {
            "source": self.identity,
            "revision": self.revision,
            "settings": self.settings if self.embedded else None,
            "info": self.info,
            "key": self.key,
            "baseline": self.baseline,
        }
        return {"model": self.slug, "encoder": encoder}

    @property
    def key(self) -> str:
        """Return 12 hex that change whenever the vectors may (DESIGN, the key of an encoder)."""
        payload = {"source": self.identity, "settings": self.settings, "vectors_version": VECTORS_VERSION}
        if self.kind == "char-ngrams":  # no network: only the type of the stored numbers applies
            payload["settings"] = {"storage": self.settings["storage"]}
        if self.kind == "wheel":  # the same weights from another wheel are the same encoder
            payload["source"] = {"kind": "wheel", "weights_sha256": self.source["weights_sha256"]}
        return sha256_text(canonical_json(payload))[:12]


def _settings(entry: Mapping[str, Any], embed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dtype": entry.get("dtype", embed["dtype"]),
        "storage": embed["storage"],
        "layer": entry.get("layer", "last"),
        "pooling": entry.get("pooling", "mean"),
        "prefix": entry.get("prefix", ""),
        "max_length": entry.get("max_length"),
        "window": "half-overlap",
    }


def _folder_source(path: Path) -> dict[str, Any]:
    files = cached_folder_files(path, cache_dir() / "hashes.json")
    return {"kind": "folder", "path": str(path), "content_sha256": content_sha256(files)}


def _slug_of_folder(path: Path) -> str:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name).strip("-.")
    if not slug or len(slug) > 100:
        raise UnknownModelError(
            "this folder's name cannot name a row",
            where=str(path)[:120],
            expected="1 to 100 letters, digits, dots, dashes or underscores",
            todo="rename it, or give it a name in config/models.yaml",
        )
    return slug


def resolve(
    reference: str,
    *,
    registry: Mapping[str, Mapping[str, Any]],
    lock: Mapping[str, str],
    embed: Mapping[str, Any],
    base: Path,
) -> Encoder:
    """Return the encoder that a reference in ``models`` or ``baselines`` means.

    Args:
        reference: Registry name, ``org/name@<40 hex>``, a locked ``org/name``, or a folder.
        registry: Entries of ``config/models.yaml``.
        lock: Revisions that ``nerprobe lock`` pinned.
        embed: The configuration's ``embed`` section.
        base: Folder that relative paths start from.

    Raises:
        UnknownModelError: If nothing is known by that name.
        UnpinnedModelError: If a hub id comes without its full revision.
        EncoderFolderError: If a folder holds no encoder.
    """
    if reference in registry:
        entry = registry[reference]
        source = dict(entry["source"])
        if source["kind"] == "folder":
            source = _folder_source((PROJECT / source["path"]).resolve())
        info = {name: entry[name] for name in INFO_FIELDS if name in entry}
        return Encoder(slug=reference, source=source, settings=_settings(entry, embed), info=info)
    if reference.startswith(("./", "../", "/")):
        path = (base / reference).resolve()
        return Encoder(slug=_slug_of_folder(path), source=_folder_source(path), settings=_settings({}, embed), info={})
    repo, _, revision = reference.partition("@")
    if HUB_ID.fullmatch(repo):
        revision = revision or lock.get(repo, "")
        if not REVISION.fullmatch(revision):
            raise _unpinned(reference, repo, registry)
        slug = f"{repo.replace('/', '--')}--{revision[:8]}"
        source = {"kind": "hub", "repo": repo, "revision": revision}
        return Encoder(slug=slug, source=source, settings=_settings({}, embed), info={})
    raise UnknownModelError(
        "no encoder of this name",
        where=repr(reference[:120]),
        expected="a name in config/models.yaml, org/name@<40 hex>, or a folder starting with ./, ../ or /",
        todo=f"{closest(reference[:120], registry)} ({QUOTING})",
    )


def _unpinned(reference: str, repo: str, registry: Mapping[str, Mapping[str, Any]]) -> UnpinnedModelError:
    named = [name for name, entry in registry.items() if entry["source"].get("repo") == repo]
    also = f", or use its registry name {named[0]}" if named else ""
    return UnpinnedModelError(
        "a hub id needs its full revision, so that a score can be repeated",
        where=repr(reference[:200]),
        expected=f"{repo}@<40 hex>",
        todo=f"pin it: nerprobe lock {repo}{also}",
    )


def resolve_all(
    references: Iterable[str],
    *,
    registry: Mapping[str, Mapping[str, Any]],
    lock: Mapping[str, str],
    embed: Mapping[str, Any],
    base: Path,
) -> dict[str, Encoder]:
    """Resolve several references; repeats fold into one.

    Returns:
        Encoders by slug, in the order asked for.

    Raises:
        SlugClashError: If two different encoders have one slug.
    """
    found: dict[str, Encoder] = {}
    names: dict[str, str] = {}
    for reference in references:
        encoder = resolve(reference, registry=registry, lock=lock, embed=embed, base=base)
        known = found.get(encoder.slug)
        if known is not None and known.source != encoder.source:
            raise SlugClashError(
                "two encoders would write the same files",
                where=f"models: {names[encoder.slug]!r} and {reference!r}",
                expected="different names",
                got=f"{encoder.slug!r} for both",
                todo="rename one folder, or give it a name of its own in config/models.yaml",
            )
        found[encoder.slug] = encoder
        names[encoder.slug] = reference
    return found
