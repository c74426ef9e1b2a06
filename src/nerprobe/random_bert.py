"""The untrained control: a small BERT with random weights and a tokenizer with one token a byte.

It needs no download and no training text, so its score says how far token identity and position alone go.
Names of the tensors are those of the Hugging Face ``BertModel`` without its pooling layer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nerprobe.files import write_json

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_CLS, _SEP = SPECIAL_TOKENS.index("[CLS]"), SPECIAL_TOKENS.index("[SEP]")
_STANDARD_DEVIATION = 0.02


def byte_symbols() -> list[str]:
    """Return the printable character of each byte 0-255 in byte-level tokenizers.

    Printable Latin-1 characters stand for themselves, the other bytes for the characters from U+0100 on, in
    byte order: the table of GPT-2, which the ``ByteLevel`` pre-tokenizer applies.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(0x100 + others.index(byte)) for byte in range(256)]


def _vocabulary() -> dict[str, int]:
    return {token: index for index, token in enumerate([*SPECIAL_TOKENS, *byte_symbols()])}


def _config(*, layers: int, width: int, heads: int, intermediate: int, max_tokens: int) -> dict[str, Any]:
    return {
        "architectures": ["BertModel"],
        "attention_probs_dropout_prob": 0.0,
        "dtype": "float32",
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "hidden_size": width,
        "initializer_range": _STANDARD_DEVIATION,
        "intermediate_size": intermediate,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": max_tokens,
        "model_type": "bert",
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": len(SPECIAL_TOKENS) + 256,
    }


def _tokenizer() -> dict[str, Any]:
    """Return the tokenizer: byte-level, no merges, ``[CLS] text [SEP]``."""
    special = [
        {
            "id": index,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, token in enumerate(SPECIAL_TOKENS)
    ]
    begin = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    end = {"SpecialToken": {"id": "[SEP]", "type_id": 0}}
    first, second = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": False,
            "use_regex": True,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin, first, end],
            "pair": [begin, first, end, second, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [_CLS], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [_SEP], "tokens": ["[SEP]"]},
            },
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "[UNK]",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": _vocabulary(),
            "merges": [],
        },
    }


def _tokenizer_config(max_tokens: int) -> dict[str, Any]:
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return {
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_tokens,
        "tokenizer_class": "PreTrainedTokenizerFast",
        **dict(zip(names, SPECIAL_TOKENS, strict=True)),
    }


def _shapes(*, layers: int, width: int, intermediate: int, max_tokens: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor by name."""
    norm = {"weight": (width,), "bias": (width,)}
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(SPECIAL_TOKENS) + 256, width),
        "embeddings.position_embeddings.weight": (max_tokens, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    linear = {
        "attention.self.query": (width, width),
        "attention.self.key": (width, width),
        "attention.self.value": (width, width),
        "attention.output.dense": (width, width),
        "intermediate.dense": (intermediate, width),
        "output.dense": (width, intermediate),
    }
    norms = ["embeddings"]
    for layer in range(layers):
        prefix = f"encoder.layer.{layer}"
        for name, shape in linear.items():
            shapes[f"{prefix}.{name}.weight"] = shape
            shapes[f"{prefix}.{name}.bias"] = shape[:1]
        norms += [f"{prefix}.attention.output", f"{prefix}.output"]
    for prefix in norms:
        shapes |= {f"{prefix}.LayerNorm.{part}": shape for part, shape in norm.items()}
    return shapes


def build_random_bert(
    folder: Path, *, seed: int, layers: int, width: int, heads: int, intermediate: int, max_tokens: int
) -> None:
    """Write configuration, tokenizer and weights of an untrained BERT; same arguments, same bytes.

    Weight matrices and embeddings are drawn in name order from a normal distribution with mean 0 and standard
    deviation 0.02 (BERT's own start), biases are 0, layer norm weights 1.

    Args:
        folder: Folder to write into; made if missing.
        seed: Seed of the weights.
        layers: Number of layers.
        width: Width of the states; a multiple of ``heads``.
        heads: Attention heads.
        intermediate: Width of the feed-forward layer.
        max_tokens: Positions, special tokens included.

    Raises:
        ValueError: If width is no multiple of heads.
    """
    import numpy as np
    from safetensors.numpy import save_file

    if width % heads:
        raise ValueError(f"width {width} is no multiple of heads {heads}")
    rng = np.random.default_rng(seed)
    shapes = _shapes(layers=layers, width=width, intermediate=intermediate, max_tokens=max_tokens)
    tensors = {}
    for name in sorted(shapes):
        if name.endswith("LayerNorm.weight"):
            tensors[name] = np.ones(shapes[name], dtype=np.float32)
        elif name.endswith(".bias"):
            tensors[name] = np.zeros(shapes[name], dtype=np.float32)
        else:
            tensors[name] = rng.normal(0.0, _STANDARD_DEVIATION, shapes[name]).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {"layers": layers, "width": width, "heads": heads, "intermediate": intermediate}
    write_json(folder / "config.json", _config(**sizes, max_tokens=max_tokens), sealed=False)
    write_json(folder / "tokenizer.json", _tokenizer(), sealed=False)
    write_json(folder / "tokenizer_config.json", _tokenizer_config(max_tokens), sealed=False)
    # One metadata key only: the order of several is not fixed. The model loader wants this one.
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
