"""Tiny encoders of each family with trained tokenizers, and tweets that are hard to align."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nerprobe.items import Item, join_words

NASTY = [
    "enfermera", "médico", "MÉDICOS", "policía", "Presidente", "desempleados", "autónomo", "de", "la", "en", "paro",
    "¡INDIGNANTE!", "¿", "?", "!", "…", "...", "“poner", "”", "#", "#Covid_19", "#EsteVirusLoParamosUnidos", "@policia",
    "https://t.co/KFPi9rT5OC", "📢", "👩🏽‍⚕️", "👨‍👩‍👧‍👦", "🇪🇸", "❤️", "\ufe0f", "\u200d", "\u200b", "\u00ad", "\ufeff", "\u2060",
    "\u0301", "e\u0301l", "n\u0303", "˜", "´", "ﬁn", "²", "½", "№", "Ⅷ", "㎏", "عربي", "العربية", "שלום", "中文字", "日本語", "한국어",
    "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "x", "A", "[MASK]", "<s>", "</s>", "[SEP]", "<unk>", "&amp;", "a\u00a0b", "a\u2028b",
    "1.234,56", "2020-04-01", "EE.UU.", "p.m.", "'", "''", "``", '"', "(", ")", "-", "—", "İstanbul", "ß", "ﬀ", "Å", "𝓭𝓸𝓬𝓽𝓸𝓻",
]  # fmt: skip

PLAIN = [
    "la enfermera del hospital está en paro desde marzo",
    "El Presidente dice que los médicos y la policía ayudan a los desempleados",
    "#Covid_19 #QuedateEnCasa gracias a los autónomos y a las cajeras de la tienda",
    "¡INDIGNANTE! no hay material para los médicos ... ni para la policía nacional @policia",
    "soy autónomo y no cobro , mi hermana es enfermera , mi padre está jubilado ❤️ 👩🏽‍⚕️",
] * 4


def nasty_items(count: int, *, seed: int = 7) -> list[Item]:
    """Items of 1 to 40 words, a few of 300, one of a single character and one of joiners only."""
    draw = random.Random(seed)
    bags = [
        ["a"],
        ["\u200d", "\ufe0f", "\u200d"],
        ["\u0301"],
        draw.choices(NASTY, k=300),
        ["palabra"] * 300,
        ["z" * 700],
    ]
    while len(bags) < count:
        bags.append(draw.choices(NASTY, k=1 + int(draw.random() ** 2 * 40)))
    items = []
    for index, words in enumerate(bags[:count]):
        touching = [draw.random() < 0.3 for _ in words]
        text, starts, ends = join_words(words, touching)
        tags = tuple("O" for _ in words)
        items.append(
            Item(item_id=f"n-{index}", pool="test", text=text, words=tuple(words), starts=starts, ends=ends, tags=tags)
        )
    return items


def _wordpiece(lowercase: bool) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.WordPiece({}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(PLAIN, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ids)
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    return tokenizer, names


def _byte_bpe(*, prefix_space: bool, trim: bool, template: bool) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if template else ["<|endoftext|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(PLAIN, trainer)
    if not template:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim)
        return tokenizer, {"eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=trim, add_prefix_space=prefix_space
    )
    return tokenizer, {
        "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>",
        "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>",
    }  # fmt: skip


def _unigram(style: str) -> Any:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    layouts = {
        "xlmr": (["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "<s> $A </s>", "<unk>", {"cls": "<s>", "sep": "</s>"}),
        "deberta": (
            ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"],
            "[CLS] $A [SEP]",
            "[UNK]",
            {"cls": "[CLS]", "sep": "[SEP]"},
        ),
        "t5": (["<pad>", "</s>", "<unk>"], "$A </s>", "<unk>", {"sep": "</s>"}),
    }
    special, single, unknown, roles = layouts[style]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex("[\u200b\u200d\ufe0f\u00ad\ufeff\u2060]"), ""),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=220, special_tokens=special, unk_token=unknown)
    tokenizer.train_from_iterator(PLAIN, trainer)
    used = sorted({name for name in single.split() if name != "$A"})
    ids = [(name, tokenizer.token_to_id(name)) for name in used]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)
    names = {"pad_token": special[0] if style != "xlmr" else "<pad>", "unk_token": unknown, "eos_token": roles["sep"]}
    names |= {f"{role}_token": token for role, token in roles.items()}
    return tokenizer, names


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def _config(family: str) -> tuple[Any, Any]:
    """Return tokenizer and its special names, and a function from vocabulary size and pad id to a model."""
    import transformers as tf

    def model(config_class: str, model_class: str, **more: Any) -> Callable[[int, int], Any]:
        def build(vocab: int, pad: int) -> Any:
            config = getattr(tf, config_class)(vocab_size=vocab, pad_token_id=pad, **more)
            return getattr(tf, model_class)(config)

        return build

    small = {**SIZES, "max_position_embeddings": 160}
    offset = {**SIZES, "max_position_embeddings": 162}
    families = {
        "bert-cased": (lambda: _wordpiece(False), model("BertConfig", "BertModel", **small)),
        "bert-uncased": (lambda: _wordpiece(True), model("BertConfig", "BertModel", **small)),
        "roberta": (lambda: _byte_bpe(prefix_space=False, trim=True, template=True), model("RobertaConfig", "RobertaModel", **offset)),
        "roberta-prefix-space": (
            lambda: _byte_bpe(prefix_space=True, trim=False, template=True),
            model("RobertaConfig", "RobertaModel", **offset),
        ),
        "xlm-roberta": (lambda: _unigram("xlmr"), model("XLMRobertaConfig", "XLMRobertaModel", **offset)),
        "deberta-v2": (
            lambda: _unigram("deberta"),
            model(
                "DebertaV2Config", "DebertaV2Model", **small, relative_attention=True, position_buckets=16,
                pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", share_att_key=True, position_biased_input=False,
            ),
        ),
        "electra": (lambda: _wordpiece(True), model("ElectraConfig", "ElectraModel", **small, embedding_size=16)),
        "distilbert": (
            lambda: _wordpiece(False),
            model("DistilBertConfig", "DistilBertModel", dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=160),
        ),
        "mpnet": (lambda: _wordpiece(True), model("MPNetConfig", "MPNetModel", **offset)),
        "albert": (lambda: _unigram("deberta"), model("AlbertConfig", "AlbertModel", **small, embedding_size=16)),
        "modernbert": (
            lambda: _byte_bpe(prefix_space=False, trim=False, template=True),
            model("ModernBertConfig", "ModernBertModel", **small, global_attn_every_n_layers=2, local_attention=16),
        ),
        "gpt2": (
            lambda: _byte_bpe(prefix_space=False, trim=True, template=False),
            model("GPT2Config", "GPT2Model", n_embd=32, n_layer=2, n_head=2, n_positions=160),
        ),
        "t5": (lambda: _unigram("t5"), model("T5Config", "T5EncoderModel", d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)),
        "longformer": (
            lambda: _byte_bpe(prefix_space=False, trim=True, template=True),
            model("LongformerConfig", "LongformerModel", **{**SIZES, "max_position_embeddings": 162}, attention_window=16),
        ),
    }  # fmt: skip
    tokenizer, make = families[family]
    return tokenizer(), make


FAMILIES = (
    "bert-cased", "bert-uncased", "roberta", "roberta-prefix-space", "xlm-roberta", "deberta-v2", "electra",
    "distilbert", "mpnet", "albert", "modernbert", "gpt2", "t5", "longformer",
)  # fmt: skip


def build(family: str, folder: Path) -> Path:
    """Write a tiny encoder of a family into a folder."""
    import torch
    from transformers import PreTrainedTokenizerFast

    (tokenizer, names), make = _config(family)
    torch.manual_seed(20261006)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    pad = wrapped.pad_token_id
    network = make(len(wrapped), pad if pad is not None else 0)
    if pad is None:
        network.config.pad_token_id = None
    network.eval().save_pretrained(folder)
    wrapped.save_pretrained(folder)
    return folder
