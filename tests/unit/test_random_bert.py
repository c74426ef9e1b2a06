"""The untrained control, loaded by transformers as any other encoder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nerprobe.files import sha256_file
from nerprobe.random_bert import SPECIAL_TOKENS, build_random_bert, byte_symbols

SPEC: dict[str, int] = {
    "seed": 20261006,
    "layers": 2,
    "width": 128,
    "heads": 2,
    "intermediate": 512,
    "max_tokens": 512,
}
TEXT = "Médica 👩‍⚕️ e\u0301\u200b ok\n  日本 [x]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("random") / "bert"
    build_random_bert(path, **SPEC)
    return path


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


def test_byte_symbols_are_those_of_the_tokenizers_library() -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    assert sorted(byte_symbols()) == sorted(ByteLevel.alphabet())
    assert byte_symbols()[0x20] == "Ġ"
    assert byte_symbols()[ord("A")] == "A"


def test_the_same_arguments_give_the_same_bytes_and_another_seed_others(folder: Path, tmp_path: Path) -> None:
    build_random_bert(tmp_path / "again", **SPEC)
    build_random_bert(tmp_path / "other", **(SPEC | {"seed": 1}))
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    for name in names:
        assert sha256_file(folder / name) == sha256_file(tmp_path / "again" / name)
        same = sha256_file(folder / name) == sha256_file(tmp_path / "other" / name)
        assert same == (name != "model.safetensors")


def test_weights_are_drawn_in_name_order_and_norms_and_biases_fixed(folder: Path) -> None:
    import numpy as np
    from safetensors.numpy import load_file

    tensors = load_file(folder / "model.safetensors")
    # Alone among the embeddings' names, position_embeddings comes before token_type_ and word_embeddings.
    first = np.random.default_rng(SPEC["seed"]).normal(0.0, 0.02, (512, 128)).astype(np.float32)
    np.testing.assert_array_equal(tensors["embeddings.position_embeddings.weight"], first)
    assert abs(float(tensors["embeddings.word_embeddings.weight"].std()) - 0.02) < 5e-4
    for name, tensor in tensors.items():
        if name.endswith("LayerNorm.weight"):
            assert (tensor == 1).all()
        elif name.endswith(".bias"):
            assert (tensor == 0).all()
        else:
            assert tensor.std() > 0.015
    assert all(tensor.dtype == np.float32 for tensor in tensors.values())


def test_it_loads_as_a_model_with_no_key_missing_or_left_over(folder: Path) -> None:
    import torch
    from transformers import AutoModel

    model, info = AutoModel.from_pretrained(
        folder, add_pooling_layer=False, trust_remote_code=False, output_loading_info=True
    )
    assert {key: list(value) for key, value in info.items() if value} == {}
    ids = torch.arange(261).unsqueeze(0)
    with torch.no_grad():
        states = model.eval()(input_ids=ids).last_hidden_state
    assert states.shape == (1, 261, 128)
    assert bool(torch.isfinite(states).all())
    assert model.dtype == torch.float32


def test_every_byte_is_a_token_that_points_at_its_character(tokenizer: Any) -> None:
    encoded = tokenizer(TEXT, return_offsets_mapping=True)
    assert tokenizer.is_fast
    assert encoded["input_ids"][0] == tokenizer.cls_token_id == 2
    assert encoded["input_ids"][-1] == tokenizer.sep_token_id == 3
    expected = [(place, place + 1) for place, character in enumerate(TEXT) for _ in range(len(character.encode()))]
    assert [tuple(span) for span in encoded["offset_mapping"][1:-1]] == expected
    symbols = byte_symbols()
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"][1:-1])
    assert tokens == [symbols[byte] for byte in TEXT.encode()]


def test_the_tokenizer_pads_cuts_and_decodes(tokenizer: Any) -> None:
    assert tokenizer.model_max_length == 512
    assert [tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS] == [0, 1, 2, 3, 4]
    padded = tokenizer(["a", "abc"], padding=True)
    assert padded["attention_mask"] == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert padded["input_ids"][0][3:] == [0, 0]
    assert len(tokenizer("é" * 600, truncation=True)["input_ids"]) == 512
    assert tokenizer.decode(tokenizer(TEXT)["input_ids"], skip_special_tokens=True) == TEXT


def test_it_is_made_without_torch(tmp_path: Path) -> None:
    code = (
        "import json, sys; from pathlib import Path; from nerprobe.random_bert import build_random_bert;"
        "build_random_bert(Path(sys.argv[1]), **json.loads(sys.argv[2]));"
        "print(sorted({'torch', 'transformers', 'pandas'} & set(sys.modules)))"
    )
    small = json.dumps(SPEC | {"layers": 1})
    command = [sys.executable, "-c", code, str(tmp_path / "bert"), small]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_width_that_heads_do_not_divide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="width 128 is no multiple of heads 3"):
        build_random_bert(tmp_path / "bert", **(SPEC | {"heads": 3}))
    assert not (tmp_path / "bert").exists()
