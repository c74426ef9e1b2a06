"""What a folder can do to whoever loads it, and what loading refuses."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from loopback_hub import LoopbackHub
from safetensors.torch import load_file, save_file
from zoo import build

from nerprobe.errors import EncoderFolderError
from nerprobe.frozen import FrozenEncoder

LOAD = "import sys; from pathlib import Path; from nerprobe.frozen import FrozenEncoder; FrozenEncoder(Path(sys.argv[1]), device='cpu')"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return build("bert-cased", tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "encoder"))


def as_bin(folder: Path) -> None:
    """Replace safetensors weights by a torch file."""
    weights = folder / "model.safetensors"
    torch.save(load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_loading_asks_the_hub_for_nothing(folder, tmp_path, kind):
    if kind == "bin":
        as_bin(folder)
    with LoopbackHub() as hub:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
        environment.pop("DISABLE_SAFETENSORS_CONVERSION", None)
        done = subprocess.run(
            [sys.executable, "-c", LOAD, str(folder)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert hub.log == []


def test_bin_weights_give_the_same_states_as_safetensors(whole, folder):
    as_bin(folder)
    ids = torch.tensor([[2, 7, 9, 3]])
    states = [FrozenEncoder(place, device="cpu").hidden(ids, torch.ones_like(ids)) for place in (whole, folder)]
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)


class Payload:
    def __reduce__(self):
        return (os.mkdir, (os.environ["NERPROBE_TEST_PAYLOAD"],))


def test_code_in_a_weight_file_is_never_run(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NERPROBE_TEST_PAYLOAD", str(tmp_path / "ran"))
    (folder / "model.safetensors").unlink()
    torch.save({"embeddings.word_embeddings.weight": Payload()}, folder / "pytorch_model.bin")
    with pytest.raises(EncoderFolderError, match="cannot be loaded"):
        FrozenEncoder(folder, device="cpu")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(EncoderFolderError, match="cannot be loaded"):
        FrozenEncoder(folder, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_code_of_a_repository_is_refused_without_consent(folder, tmp_path):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "homemade", "auto_map": {"AutoConfig": "code.HomeConfig", "AutoModel": "code.HomeModel"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    with pytest.raises(EncoderFolderError, match="cannot be loaded"):
        FrozenEncoder(folder, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_missing_weights_are_refused_and_not_drawn_at_random(folder):
    weights = load_file(folder / "model.safetensors")
    weights.pop("encoder.layer.1.attention.self.query.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderFolderError, match=r"1 missing.*encoder\.layer\.1\.attention\.self\.query\.weight"):
        FrozenEncoder(folder, device="cpu")


def test_a_missing_pooler_is_no_fault_since_it_is_never_read(folder):
    weights = {name: part for name, part in load_file(folder / "model.safetensors").items() if "pooler" not in name}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert FrozenEncoder(folder, device="cpu").width == 32


def test_a_slow_tokenizer_ends_in_one_line(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertweetTokenizer"}))
    (folder / "vocab.txt").write_text("a 1\nb@@ 1\n")
    (folder / "bpe.codes").write_text("a b</w> 1\n")
    with pytest.raises(EncoderFolderError, match=r"slow tokenizer.*BertweetTokenizer"):
        FrozenEncoder(folder, device="cpu")


def test_the_checkpoint_s_dtype_does_not_decide(folder):
    weights = {name: part.to(torch.float16) for name, part in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text()) | {"dtype": "float16"}
    (folder / "config.json").write_text(json.dumps(config))
    encoder = FrozenEncoder(folder, device="cpu")
    assert next(encoder.model.parameters()).dtype == torch.float32
