"""What a model's own configuration may not ask for: weights, program code or kernels from somewhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from nerprobe.errors import EncoderFolderError

_KERNELS = frozenset({"attn_implementation", "_attn_implementation", "experts_implementation"})
_OPT_IN = (
    "its own Python code is not run: read that code first, then write an entry into config/models.yaml "
    "with a full revision and trust_remote_code: true"
)


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Give every text of a nested value with the key that it, or a list around it, stands under."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _texts(part, f"auto_map.{name}" if key == "auto_map" else str(name))
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, key)
    elif isinstance(value, str):
        yield key, value


def _detour(key: str, text: str) -> str:
    """Return what is wrong with one entry, or an empty text."""
    if key.startswith("auto_map") and "--" in text:
        return "names Python code of another repository, which no revision pins"
    if key in _KERNELS and "/" in text:
        return "names a kernel to download"
    if key == "transformers_weights":
        return "names other weights than those that were hashed"
    return ""


def refuse_detours(folder: Path) -> None:
    """Refuse a model whose configuration leads away from the files that were fetched and hashed.

    ``auto_map`` with ``other/repo--module.Class``, an attention implementation that is a kernel of the hub, and
    ``transformers_weights``: the loader follows all three.

    Args:
        folder: Where ``config.json`` and ``tokenizer_config.json`` lie.

    Raises:
        EncoderFolderError: On the first such entry.
    """
    for name in ("config.json", "tokenizer_config.json"):
        try:
            entries = list(_texts(json.loads((folder / name).read_text(encoding="utf-8"))))
        except (OSError, ValueError):
            continue  # the loader says what is wrong with a missing or broken file
        except RecursionError:
            raise EncoderFolderError("this file is nested without end", where=f"{folder.name}/{name}") from None
        for key, text in entries:
            wrong = _detour(key, text)
            if wrong:
                raise EncoderFolderError(
                    f"this configuration {wrong}",
                    where=f"{folder.name}/{name}",
                    got=f"{key}: {text[:120]}",
                    todo="take another encoder, or a copy of its folder without that entry",
                )


def opt_in_hint(error: BaseException) -> str:
    """Return what to do about a loader's refusal to run a model's own code; empty for other errors."""
    return _OPT_IN if "trust_remote_code" in str(error) else ""
