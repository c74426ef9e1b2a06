"""What a model's own configuration may not ask for: weights, program code or kernels from somewhere else."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path

from nerprobe.errors import EncoderFolderError

_KERNELS = frozenset({"attn_implementation", "_attn_implementation", "experts_implementation"})
_OPT_IN = (
    "that code is not run: read it first, then write an entry into config/models.yaml "
    "with a full revision and trust_remote_code: true"
)
_PICKLE = "take another encoder, or have its authors save it as model.safetensors"


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


def not_loaded(part: str, folder: Path, error: BaseException) -> EncoderFolderError:
    """Return the error for a part of an encoder that its library refuses to load, with what to do about it.

    The advice of the libraries is left out where following it would run the encoder's own code.
    """
    what, got, todo = f"{part} cannot be loaded", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", ""
    if "trust_remote_code" in str(error):
        got, todo = "it brings Python code of its own", _OPT_IN
    elif "ignore_mismatched_sizes" in str(error):
        got = "weights of another shape than config.json says"
    elif isinstance(error, pickle.UnpicklingError):
        got, todo = "a pickle that is damaged or holds more than tensors; nothing in it was run", _PICKLE
    return EncoderFolderError(what, where=folder.name, got=got, todo=todo)
