"""Each family of encoders against a plain reference: one text at a time, words pooled in a loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, T5EncoderModel
from zoo import FAMILIES, build, nasty_items

from nerprobe.frozen import FrozenEncoder
from nerprobe.pooling import prepare, word_vectors

torch.set_num_threads(1)  # tiny networks: more threads only get in each other's way
LIMITS = {"t5": 512}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory):
    return request.param, build(request.param, tmp_path_factory.mktemp(request.param))


class Reference:
    """Word vectors by the documented rule, as plainly as can be."""

    def __init__(self, name, folder, prefix=""):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        loader = T5EncoderModel if name == "t5" else AutoModel
        self.model = loader.from_pretrained(folder, dtype=torch.float32).eval()
        self.limit = LIMITS.get(name, 160)
        self.prefix = prefix

    def states(self, ids):
        if not ids:
            return np.zeros((0, 32), np.float32)
        with torch.inference_mode():
            inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
            return self.model(**inputs).last_hidden_state[0].numpy()

    def tokens(self, text):
        """Leading specials, prefix, body and trailing specials, each as (id, start, end)."""
        full = self.tokenizer(
            self.prefix + text,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            truncation=False,
            verbose=False,
        )
        shift = len(self.prefix)
        rows = [
            (i, s - shift, e - shift, special)
            for i, (s, e), special in zip(
                full["input_ids"], full["offset_mapping"], full["special_tokens_mask"], strict=True
            )
        ]
        lead, trail = [], []
        added = self.tokenizer.num_special_tokens_to_add()
        while rows and rows[0][3] and len(lead) < added and rows[0][1] == rows[0][2]:
            lead.append(rows.pop(0))
        while rows and rows[-1][3] and len(lead) + len(trail) < added:
            trail.insert(0, rows.pop())
        prefix = []
        while self.prefix and rows and rows[0][2] <= 0:
            prefix.append(rows.pop(0))
        return lead, prefix, rows, trail

    def vectors(self, item):
        lead, prefix, body, trail = self.tokens(item.text)
        room = self.limit - len(lead) - len(prefix) - len(trail)
        starts = [0]
        while starts[-1] + room < len(body):
            starts.append(min(starts[-1] + room // 2, len(body) - room))
        hidden = []
        for start in starts:
            part = body[start : start + room]
            ids = [token[0] for token in [*lead, *prefix, *part, *trail]]
            inner = self.states(ids)[len(lead) + len(prefix) :][: len(part)]
            hidden.append((start, start + len(part), inner))
        rows, counts = [], []
        for ws, we in zip(item.starts, item.ends, strict=True):
            own = [t for t, (_, s, e, _) in enumerate(body) if e > s and s < we and e > ws]
            counts.append(len(own))
            rows.append(self.word(own, hidden, len(body)))
        return np.array(rows, np.float32), np.array(counts)

    def word(self, own, hidden, length):
        if not own:
            return np.zeros(32, np.float32)
        whole = self.best(own[0], own[-1] + 1, hidden, length)
        places = [whole] * len(own) if whole is not None else [self.best(t, t + 1, hidden, length) for t in own]
        return np.mean([hidden[w][2][t - hidden[w][0]] for w, t in zip(places, own, strict=True)], axis=0)

    @staticmethod
    def best(first, stop, hidden, length):
        found = None
        for index, (begin, end, _) in enumerate(hidden):
            if first < begin or stop > end:
                continue
            left = float("inf") if begin == 0 else first - begin
            right = float("inf") if end == length else end - stop
            if found is None or min(left, right) > found[1]:
                found = (index, min(left, right))
        return None if found is None else found[0]


def ours(encoder, items, *, prefix="", budget=1024):
    block = prepare(items, encoder, prefix=prefix, pooling="mean")
    vectors = word_vectors(block, encoder, pooling="mean", budget=budget)
    cuts = np.cumsum([len(item.words) for item in items])[:-1]
    return np.split(vectors, cuts), np.split(block.n_subwords, cuts)


def test_vectors_equal_the_reference(family):
    name, folder = family
    items = nasty_items(500)
    encoder, reference = FrozenEncoder(folder, device="cpu"), Reference(name, folder)
    vectors, counts = ours(encoder, items)
    for item, got, number in zip(items, vectors, counts, strict=True):
        expected, expected_number = reference.vectors(item)
        assert number.tolist() == expected_number.tolist(), item.item_id
        assert got.shape == (len(item.words), 32)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=item.item_id)


def test_limit_is_what_the_position_table_takes(family):
    name, folder = family
    encoder = FrozenEncoder(folder, device="cpu")
    assert encoder.limit == LIMITS.get(name, 160)
    full = torch.full((1, encoder.limit), 5)
    assert encoder.hidden(full, torch.ones_like(full)).shape == (1, encoder.limit, 32)


def test_any_batch_size_and_order_gives_the_same(family):
    _, folder = family
    items = nasty_items(60, seed=3)
    encoder = FrozenEncoder(folder, device="cpu")
    one_by_one, _ = ours(encoder, items, budget=1)
    batched, _ = ours(encoder, items[::-1], budget=4000)
    encoder.tokenizer.padding_side = "left"
    left, _ = ours(encoder, items, budget=4000)
    for single, many, other in zip(one_by_one, batched[::-1], left, strict=True):
        np.testing.assert_allclose(single, many, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(single, other, rtol=1e-5, atol=1e-5)


def test_prefix_is_seen_but_not_pooled(family):
    name, folder = family
    items = nasty_items(60, seed=5)
    encoder, reference = FrozenEncoder(folder, device="cpu"), Reference(name, folder, prefix="query: ")
    vectors, counts = ours(encoder, items, prefix="query: ")
    for item, got, number in zip(items, vectors, counts, strict=True):
        expected, expected_number = reference.vectors(item)
        assert number.tolist() == expected_number.tolist()
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=item.item_id)
