"""Safetensors files that carry a seal: a hash of their arrays, by which damage is noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from nerprobe.files import SEAL, write_bytes


def _seal_of(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    return hashlib.sha256(save(dict(arrays))).hexdigest()


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays with their seal, atomically."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_bytes(path, save(whole, metadata={SEAL: _seal_of(whole)}))


def whole_arrays(path: Path) -> bool:
    """Say whether a file that ``write_arrays`` wrote can be read and is unchanged."""
    try:
        with safe_open(str(path), framework="np") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
            return (opened.metadata() or {}).get(SEAL) == _seal_of(arrays)
    except (OSError, SafetensorError, ValueError):
        return False
