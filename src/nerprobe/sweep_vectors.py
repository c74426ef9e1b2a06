"""Word vectors of several layers under every pooling, from one forward pass, kept for later sweeps.

A file holds one layer of one block of items: ``resources/sweeps/<key>/layer-<n>/<block>.safetensors``. Its words
with a single sub-word are the same under every pooling and are kept once.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import safe_open

from nerprobe.array_files import whole_arrays, write_arrays
from nerprobe.encoders import Encoder
from nerprobe.errors import ConfigError, NonFiniteError
from nerprobe.files import read_json, write_json
from nerprobe.frozen import FrozenEncoder
from nerprobe.items import Item
from nerprobe.log import logger, progress_bar
from nerprobe.store import address
from nerprobe.vector_files import Vectors

if TYPE_CHECKING:
    import torch

POOLINGS = ("mean", "first", "last", "max")
BLOCK_WORDS = 2048
"""Words of a block, about: all its layers and poolings are in memory at once."""


class LayeredEncoder(FrozenEncoder):
    """A frozen encoder whose states are those of several layers side by side, so its width is a multiple."""

    chosen: tuple[int, ...] = (-1,)

    def choose(self, chosen: Sequence[int]) -> int:
        """Set the layers to give (0 is the embedding layer) and return the width of one."""
        own = self.width // len(self.chosen)
        self.chosen, self.width = tuple(chosen), own * len(chosen)
        return own

    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the states of the chosen layers, shape (batch, tokens, layers * width of one)."""
        import torch

        output = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        states = [*output.hidden_states[:-1], output.last_hidden_state]  # "last" means what it means to embed
        return torch.cat([states[layer] for layer in self.chosen], dim=-1)


def sweep_key(encoder: Encoder) -> str:
    """Return 12 hex that change whenever vectors of any layer may: the encoder's key but for layer and pooling."""
    every = {"layer": "every", "pooling": "every", "storage": "float32"}
    return replace(encoder, settings={**encoder.settings, **every}).key


def parse_layers(text: str, layers: int) -> list[int]:
    """Return the layers that ``--layers`` means, ascending; all hidden states if it is empty.

    Args:
        text: Hidden-state indices and ``last``, with commas; negative ones count from the end.
        layers: Layers of the encoder above its embedding layer, which is 0.

    Raises:
        ConfigError: If one is no number or no layer of this encoder.
    """
    states = layers + 1
    parts = text.split(",") if text else range(states)
    try:
        asked = [layers if str(part).strip() == "last" else int(part) for part in parts]
    except ValueError:
        asked = [states]
    if any(not -states <= number < states for number in asked):
        expected = f"last and numbers from {-states} to {layers}, with commas"
        raise ConfigError("no such layers in this encoder", where="--layers", expected=expected, got=text[:100])
    return sorted({number % states for number in asked})


def blocks_of(items: Sequence[Item]) -> list[list[Item]]:
    """Return the items in blocks of about ``BLOCK_WORDS`` words; more items leave the first blocks as they are."""
    blocks: list[list[Item]] = []
    words = BLOCK_WORDS
    for item in items:
        if words >= BLOCK_WORDS:
            blocks.append([])
            words = 0
        blocks[-1].append(item)
        words += len(item.words)
    return blocks


def layer_files(items: Sequence[Item], folder: Path, layer: int) -> list[Path]:
    """Return the files of one layer, a block each."""
    names = [hashlib.sha256("\n".join(map(address, block)).encode()).hexdigest()[:16] for block in blocks_of(items)]
    return [folder / f"layer-{layer:02d}" / f"{name}.safetensors" for name in names]


def _whole(path: Path) -> bool:
    """Say whether a file is there with all its bytes, unchanged."""
    return path.is_file() and whole_arrays(path)


def read_layer(files: Sequence[Path], pooling: str) -> Vectors:
    """Return the word vectors of one layer under one pooling, float32, shape (words, width)."""
    parts = []
    for path in files:
        with safe_open(str(path), framework="np") as opened:
            vectors = opened.get_tensor("mean")
            if pooling != "mean":
                vectors[opened.get_tensor("split")] = opened.get_tensor(pooling)
            parts.append(vectors)
    return np.concatenate(parts)


def fill_layers(
    encoder: Encoder, items: Sequence[Item], *, folder: Path, layers: str, device: str, budget: int | None
) -> tuple[dict[str, Any], list[int]]:
    """Compute what is not there yet; where nothing is lacking, the encoder is neither fetched nor loaded.

    Args:
        encoder: The encoder.
        items: Items whose vectors are wanted.
        folder: ``resources/sweeps/<key>``.
        layers: As for ``parse_layers``.
        device: As in the configuration.
        budget: Most tokens of a padded batch; None fits the device.

    Returns:
        What the encoder says of itself, and the layers.

    Raises:
        NerprobeError: If it cannot be had, loaded or used.
    """
    known = folder / "encoder.json"
    about: dict[str, Any] | None = read_json(known) if known.exists() else None
    if about is not None:
        wanted = parse_layers(layers, about["layers"])
        if all(_whole(path) for layer in wanted for path in layer_files(items, folder, layer)):
            return about, wanted
    from nerprobe.fetch import fetch_encoder

    record: Mapping[str, Any] = fetch_encoder(source=encoder.source)
    loaded = LayeredEncoder(
        Path(record["folder"]),
        dtype=about["dtype_used"] if about else encoder.settings["dtype"],
        device=device,
        max_length=encoder.settings["max_length"],
        trust_remote_code=encoder.source.get("trust_remote_code") is True,
    )
    wanted = parse_layers(layers, loaded.layers)
    about = about or loaded.about()
    write_json(known, about)
    try:
        _compute(items, loaded, layers=wanted, folder=folder, settings=encoder.settings, budget=budget)
    except NonFiniteError as error:
        if loaded.dtype == "float32":
            raise
        # As embed does: vectors of two precisions are never mixed, so all of it is computed anew in float32.
        logger.warning("%s; computing all of it again in float32", error)
        shutil.rmtree(folder)
        write_json(known, {**about, "dtype_used": "float32"})
        return fill_layers(encoder, items, folder=folder, layers=layers, device=device, budget=budget)
    return about, wanted


def _compute(
    items: Sequence[Item],
    encoder: LayeredEncoder,
    *,
    layers: Sequence[int],
    folder: Path,
    settings: Mapping[str, Any],
    budget: int | None,
) -> None:
    """Run the encoder once over each block that lacks a layer, and write the layers it lacks."""
    from nerprobe.pooling import pooled_vectors, prepare

    files = {layer: layer_files(items, folder, layer) for layer in layers}
    with progress_bar("forward passes", len(items)) as bar:
        for index, block in enumerate(blocks_of(items)):
            lacking = [layer for layer in layers if not _whole(files[layer][index])]
            if lacking:
                width = encoder.choose(lacking)
                prepared = prepare(block, encoder, prefix=settings["prefix"], pooling="mean")
                found = pooled_vectors(prepared, encoder, poolings=POOLINGS, budget=budget)
                split = np.flatnonzero(prepared.n_subwords > 1)
                for place, layer in enumerate(lacking):
                    own = {name: vectors[:, place * width : (place + 1) * width] for name, vectors in found.items()}
                    kept = {name: part if name == "mean" else part[split] for name, part in own.items()}
                    arrays = {name: np.ascontiguousarray(part) for name, part in kept.items()}
                    write_arrays(files[layer][index], {**arrays, "split": split})
            bar.advance(len(block))
