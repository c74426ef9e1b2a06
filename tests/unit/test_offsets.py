"""Sub-words against the characters they point at; counts worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from zoo import FAMILIES, build

from nerprobe.frozen import FrozenEncoder, Tokens
from nerprobe.hard_texts import HARD_TEXTS, hard_items
from nerprobe.offsets import OffsetCheck, OffsetCount
from nerprobe.random_bert import build_random_bert

torch.set_num_threads(1)
HARD = list(HARD_TEXTS)


class Speller:
    """Only the tokenizer of an encoder folder, asked as the encoder would."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    tokenize = FrozenEncoder.tokenize


def tokens(ids, spans, prefix=0):
    return Tokens(
        ids=np.array(ids), starts=np.array([s for s, _ in spans]), ends=np.array([e for _, e in spans]), prefix=prefix
    )


def wrapped(model, *, normalizer=None, pre_tokenizer=None, decoder=None, **names):
    backend = Tokenizer(model)
    if normalizer is not None:
        backend.normalizer = normalizer
    if pre_tokenizer is not None:
        backend.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        backend.decoder = decoder
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


@pytest.fixture(scope="module")
def byte_speller(tmp_path_factory):
    """One token a byte: a character of three bytes is three sub-words with one span."""
    folder = tmp_path_factory.mktemp("bytes")
    build_random_bert(folder, seed=1, layers=1, width=4, heads=1, intermediate=4, max_tokens=16)
    return Speller(AutoTokenizer.from_pretrained(folder))


@pytest.mark.parametrize("family", FAMILIES)
def test_true_offsets_of_every_family_match_and_shifted_ones_do_not(family, tmp_path):
    speller = Speller(AutoTokenizer.from_pretrained(build(family, tmp_path)))
    right = speller.tokenize(HARD)
    count = OffsetCheck(speller.tokenizer).count(HARD, right)
    assert count.mismatched == 0, count.example
    assert count.compared > 1000
    shifted = [replace(own, starts=own.starts + 1, ends=own.ends + 1) for own in right]
    assert OffsetCheck(speller.tokenizer).count(HARD, shifted).share > 0.5


def test_each_byte_of_a_character_points_at_all_of_it(byte_speller):
    text = "aé…"
    own = byte_speller.tokenize([text])
    assert own[0].starts.tolist() == [0, 1, 1, 2, 2, 2]
    check = OffsetCheck(byte_speller.tokenizer)
    assert check.count([text], own) == OffsetCount(compared=6, mismatched=0, example="")
    # One character further right: a at é, the bytes of é at …, those of … past the end.
    assert check.count([text], [replace(own[0], starts=own[0].starts + 1, ends=own[0].ends + 1)]).mismatched == 6
    # One character too wide: a at aé, the bytes of é at é…, those of … rightly at … (nothing follows it).
    wide = check.count([text], [replace(own[0], ends=own[0].ends + 1)])
    assert (wide.compared, wide.mismatched, wide.example) == (6, 3, "'a' points at 'aé'")


def test_wrong_ones_are_counted_each_time_and_the_first_is_shown(byte_speller):
    vocabulary = byte_speller.tokenizer.get_vocab()
    letters = [vocabulary[letter] for letter in "abc"]
    own = tokens(letters, [(0, 1), (2, 3), (2, 3)])
    count = OffsetCheck(byte_speller.tokenizer).count(["abc"] * 3, [own] * 3)
    assert count == OffsetCount(compared=9, mismatched=3, example="'b' points at 'c'")
    assert count.share == pytest.approx(1 / 3)


def test_prefix_and_unknown_tokens_are_left_out(byte_speller):
    vocabulary = byte_speller.tokenizer.get_vocab()
    ids = [vocabulary["x"], byte_speller.tokenizer.unk_token_id, vocabulary["b"]]
    count = OffsetCheck(byte_speller.tokenizer).count(["ab"], [tokens(ids, [(0, 0), (0, 1), (1, 2)], prefix=1)])
    assert (count.compared, count.mismatched) == (1, 0)


def test_a_sub_word_that_points_nowhere_is_wrong(byte_speller):
    ids = [byte_speller.tokenizer.get_vocab()["a"]]
    assert OffsetCheck(byte_speller.tokenizer).count(["ab"], [tokens(ids, [(1, 1)])]).mismatched == 1


def test_nothing_to_compare_is_no_mismatch(byte_speller):
    count = OffsetCheck(byte_speller.tokenizer).count([""], [tokens([], [])])
    assert (count.compared, count.share) == (0, 0.0)


def test_a_rewritten_ellipsis_with_true_offsets_is_right_and_with_offsets_of_the_rewritten_text_wrong():
    words = {"[UNK]": 0, "fin": 1, ".": 2, "paro": 3, "en": 4}
    dots = normalizers.Replace("…", "...")
    tokenizer = wrapped(
        models.WordPiece(words, unk_token="[UNK]"),
        normalizer=dots,
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
        unk_token="[UNK]",
    )
    text = "fin… en paro"
    check = OffsetCheck(tokenizer)
    own = Speller(tokenizer).tokenize([text])
    assert own[0].ids.tolist() == [1, 2, 2, 2, 4, 3]
    assert own[0].starts.tolist() == [0, 3, 3, 3, 5, 8]
    assert check.count([text], own) == OffsetCount(compared=6, mismatched=0, example="")
    # As if it had counted in "fin... en paro": all but fin and the first dot are off.
    counted = tokens([1, 2, 2, 2, 4, 3], [(0, 3), (3, 4), (4, 5), (5, 6), (7, 9), (10, 14)])
    assert check.count([text], [counted]) == OffsetCount(compared=6, mismatched=4, example="'.' points at ' '")


def test_accents_case_and_compatibility_forms_are_the_same_characters():
    words = {"[UNK]": 0, "medico": 1, "fin": 2, "##ss": 3, "1": 4}
    tokenizer = wrapped(
        models.WordPiece(words, unk_token="[UNK]"), pre_tokenizer=pre_tokenizers.BertPreTokenizer(), unk_token="[UNK]"
    )
    text = "ME\u0301DICO ﬁn ß ① fan"
    own = tokens([1, 2, 3, 4, 2], [(0, 7), (8, 10), (11, 12), (13, 14), (15, 18)])
    count = OffsetCheck(tokenizer).count([text], [own])
    assert (count.mismatched, count.example) == (1, "'fin' points at 'fan'")


def test_composed_bytes_of_a_decomposed_character_are_right():
    table = pre_tokenizers.ByteLevel.alphabet()
    tokenizer = wrapped(
        models.BPE({char: index for index, char in enumerate(sorted(table))}, []),
        normalizer=normalizers.NFC(),
        pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoder=decoders.ByteLevel(),
    )
    text = "e\u0301l"
    own = Speller(tokenizer).tokenize([text])
    assert len(own[0].ids) == 3  # two bytes of é, and l
    assert own[0].ends.tolist() == [1, 1, 3]  # the mark itself is in no span
    assert OffsetCheck(tokenizer).count([text], own).mismatched == 0
    moved = replace(own[0], starts=own[0].starts[[2, 2, 0]], ends=own[0].ends[[2, 2, 0]])
    assert OffsetCheck(tokenizer).count([text], [moved]).mismatched == 3


def test_bytes_behind_a_metaspace_vocabulary_are_compared_too():
    vocabulary = {"<unk>": 0, "▁la": 1, "<0xE2>": 2, "<0x80>": 3, "<0xA6>": 4, "▁": 5}
    tokenizer = wrapped(models.WordLevel(vocabulary, unk_token="<unk>"), unk_token="<unk>")
    check = OffsetCheck(tokenizer)
    right = tokens([1, 5, 2, 3, 4], [(0, 2), (2, 3), (3, 4), (3, 4), (3, 4)])
    assert check.count(["la …"], [right]) == OffsetCount(compared=4, mismatched=0, example="")
    wrong = tokens([1, 5, 2, 3, 4], [(0, 2), (2, 3), (0, 1), (3, 4), (3, 4)])
    assert check.count(["la …"], [wrong]).mismatched == 1


def test_a_pair_is_judged_once(byte_speller, monkeypatch):
    check = OffsetCheck(byte_speller.tokenizer)
    asked = []
    judge = check._is_right
    monkeypatch.setattr(
        check, "_is_right", lambda index, pointed: asked.append((index, pointed)) or judge(index, pointed)
    )
    for _ in range(3):
        check.count(["abab"] * 5, byte_speller.tokenize(["abab"] * 5))
    assert sorted(pointed for _, pointed in asked) == ["a", "b"]


def test_hard_texts_are_items_whose_words_lie_where_they_say():
    items = hard_items()
    assert len(items) == len(set(HARD)) >= 60
    for item in items:
        assert [item.text[s:e] for s, e in zip(item.starts, item.ends, strict=True)] == list(item.words)
        assert all(item.words)
    everything = "".join(HARD)
    for needed in "…¿¡#@\u0301\u200d\ufe0f\u200b\u00ad\ufeff\u00a0عש":
        assert needed in everything, ascii(needed)
