"""Layers and poolings of each family against the plain reference: one text at a time, words pooled in a loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_zoo import Reference
from zoo import FAMILIES, build, nasty_items

from nerprobe.frozen import FrozenEncoder
from nerprobe.pooling import prepare, word_vectors

torch.set_num_threads(1)  # tiny networks: more threads only get in each other's way


class LayerReference(Reference):
    """The plain reference for any layer, or range of layers, and any pooling."""

    layer: int | list[int] = -1
    pooling = "mean"

    def states(self, ids):
        if not ids:
            return np.zeros((0, 32), np.float32)
        with torch.inference_mode():
            inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
            hidden = [states[0].numpy() for states in self.model(**inputs, output_hidden_states=True).hidden_states]
        if isinstance(self.layer, int):
            return hidden[self.layer]
        first, last = self.layer
        return sum(hidden[number] for number in range(first, last + 1)) / (last + 1 - first)

    def word(self, own, hidden, length):
        if not own:
            return np.zeros(32, np.float32)
        whole = self.best(own[0], own[-1] + 1, hidden, length)
        places = [whole] * len(own) if whole is not None else [self.best(t, t + 1, hidden, length) for t in own]
        states = [hidden[w][2][t - hidden[w][0]] for w, t in zip(places, own, strict=True)]
        return {
            "mean": np.mean(states, axis=0),
            "max": np.max(states, axis=0),
            "first": states[0],
            "last": states[-1],
        }[self.pooling]


@pytest.mark.parametrize("name", FAMILIES)
def test_layers_and_poolings_are_those_of_the_reference(name, tmp_path):
    folder = build(name, tmp_path)
    items = nasty_items(9)
    del items[3]  # two long texts are left, one of them a single word in several windows
    reference, encoder = LayerReference(name, folder), FrozenEncoder(folder, device="cpu")
    for layer, pooling in [(0, "first"), (1, "last"), ([0, 1], "max")]:
        reference.layer = encoder.layer = layer
        reference.pooling = pooling
        found = word_vectors(prepare(items, encoder, prefix="", pooling=pooling), encoder, pooling=pooling, budget=1024)
        expected = np.concatenate([reference.vectors(item)[0] for item in items])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=f"{layer} {pooling}")
