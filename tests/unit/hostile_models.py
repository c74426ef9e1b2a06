"""Encoder folders that try to run code, or lie, and what loading each of them came to.

Run as a script it loads each folder it is given in one process; a payload that runs leaves a canary.
"""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CODE = """
from pathlib import Path
Path({canary!r}).touch()
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
class EvilConfig(BertConfig):
    model_type = "evil"
class EvilModel(BertModel):
    config_class = EvilConfig
class EvilTokenizer(PreTrainedTokenizerFast):
    pass
"""


class Payload:
    """Touches a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.canary,)


def change(folder: Path, name: str, **entries: object) -> None:
    """Change entries of a JSON file of a folder."""
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def own_code(folder: Path, canary: Path, *, kind: str | None = "evil", at: str = "evil_code") -> None:
    """Let the configuration name Python code; without ``kind`` the type stays one that the library knows."""
    (folder / "evil_code.py").write_text(CODE.format(canary=str(canary)))
    own = {"AutoConfig": f"{at}.EvilConfig", "AutoModel": f"{at}.EvilModel"}
    change(folder, "config.json", auto_map=own, **({"model_type": kind} if kind else {}))


def tokenizer_code(folder: Path, canary: Path, *, only: bool = False) -> None:
    (folder / "evil_code.py").write_text(CODE.format(canary=str(canary)))
    own = {"AutoTokenizer": ["evil_code.EvilTokenizer", "evil_code.EvilTokenizer"]}
    change(folder, "tokenizer_config.json", auto_map=own, tokenizer_class="EvilTokenizer")
    if only:
        (folder / "tokenizer.json").unlink()


def pickled(folder: Path, canary: Path, *, name: str = "pytorch_model.bin", instead: bool = True) -> None:
    """Write a payload as a plain pickle; ``torch.save`` would wrap the same."""
    (folder / name).write_bytes(pickle.dumps(Payload(canary)))
    if instead:
        (folder / "model.safetensors").unlink()


def torch_saved(folder: Path, canary: Path) -> None:
    import torch

    torch.save({"embeddings.weight": Payload(canary)}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def pickles_beside(folder: Path, canary: Path) -> None:
    for name in ("training_args.bin", "scheduler.pt", "optimizer.pt", "rng_state.pth", "model.pkl", "model.ckpt"):
        pickled(folder, canary, name=name, instead=False)
    (folder / "evil_code.py").write_text(CODE.format(canary=str(canary)))
    (folder / "conftest.py").write_text(CODE.format(canary=str(canary)))


def header(folder: Path, length: int | None = None, text: bytes | None = None, **first: object) -> None:
    """Rewrite the header of the weights: its length, its text, or fields of its first tensor."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    told = json.loads(data[8 : 8 + size])
    name = min(key for key in told if key != "__metadata__")
    told[name] |= first
    new = json.dumps(told).encode() if text is None else text
    path.write_bytes(struct.pack("<Q", len(new) if length is None else length) + new + data[8 + size :])


def index_to(folder: Path, target: str) -> None:
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 8}, "weight_map": {"a": target}})
    )
    (folder / "model.safetensors").unlink()


Maker = Callable[[Path, Path], None]
REFUSED: dict[str, tuple[Maker, str]] = {
    "code for an unknown type": (own_code, "code of its own; that code is not run"),
    "code of another repository": (
        lambda folder, canary: own_code(folder, canary, at="other/repo--evil_code"),
        "code of another repository",
    ),
    "a kernel": (lambda folder, _: change(folder, "config.json", _attn_implementation="evil/kernel"), "a kernel"),
    "a kernel, further in": (
        lambda folder, _: change(folder, "config.json", text_config={"attn_implementation": "evil/kernel:f"}),
        "a kernel",
    ),
    "other weights": (
        lambda folder, _: change(folder, "config.json", transformers_weights="../x.safetensors"),
        "other weights",
    ),
    "config nested without end": (
        lambda folder, _: (folder / "config.json").write_text('{"a":' + "[" * 100_000) and None,
        "nested without end",
    ),
    "tokenizer without end": (
        lambda folder, _: (folder / "tokenizer.json").write_text("[" * 100_000) and None,
        "the tokenizer cannot be loaded",
    ),
    "tokenizer code alone": (
        lambda folder, canary: tokenizer_code(folder, canary, only=True),
        "the tokenizer cannot be loaded",
    ),
    "a pickle": (pickled, "nothing in it was run"),
    "a torch pickle": (torch_saved, "nothing in it was run"),
    "header longer than the file": (lambda folder, _: header(folder, 2**40), "the model cannot be loaded"),
    "header of 2^63 bytes": (lambda folder, _: header(folder, 2**63 - 1), "the model cannot be loaded"),
    "header of no bytes": (lambda folder, _: header(folder, 0), "the model cannot be loaded"),
    "header nested without end": (lambda folder, _: header(folder, text=b"[" * 50_000), "the model cannot be loaded"),
    "offsets beyond the file": (
        lambda folder, _: header(folder, data_offsets=[0, 2**40]),
        "the model cannot be loaded",
    ),
    "offsets that overlap": (lambda folder, _: header(folder, data_offsets=[0, 8]), "the model cannot be loaded"),
    "offsets that run backwards": (lambda folder, _: header(folder, data_offsets=[8, 0]), "the model cannot be loaded"),
    "a shape beyond all bounds": (
        lambda folder, _: header(folder, shape=[2**40, 2**40]),
        "the model cannot be loaded",
    ),
    "an unknown number format": (lambda folder, _: header(folder, dtype="OBJECT"), "the model cannot be loaded"),
    "a shard that climbs": (lambda folder, _: index_to(folder, "../../etc/passwd"), ""),
    "a shard that is a pickle": (lambda folder, _: index_to(folder, "training_args.bin"), ""),
    "another size than the weights": (
        lambda folder, _: change(folder, "config.json", vocab_size=10**6),
        "of another shape than config.json says",
    ),
    "a vocabulary beyond all bounds": (lambda folder, _: change(folder, "config.json", vocab_size=2**50), ""),
    "a width beyond all bounds": (
        lambda folder, _: change(folder, "config.json", hidden_size=2**40, num_attention_heads=2),
        "",
    ),
    "a width that is a text": (lambda folder, _: change(folder, "config.json", hidden_size="8; rm -rf /"), ""),
}
"""How a folder is spoilt, and what the refusal says."""
HARMLESS: dict[str, Maker] = {
    "code for a known type": lambda folder, canary: own_code(folder, canary, kind=None),
    "tokenizer code": tokenizer_code,
    "a Python name as tokenizer": lambda folder, _: change(
        folder, "tokenizer_config.json", tokenizer_class="os.system"
    ),
    "pickles beside": pickles_beside,
}
"""Loads all the same, by the library's own code."""
TRUSTED = "code that is trusted"
"""Runs: without this case the canary might never sing."""


def spoil(original: Path, folder: Path, make: Maker, canary: Path) -> None:
    shutil.copytree(original, folder)
    make(folder, canary)


def main() -> None:
    """Load the folders of a JSON list of (folder, whether its code is trusted); print what each came to."""
    from nerprobe.errors import NerprobeError
    from nerprobe.frozen import FrozenEncoder

    told = {}
    for folder, trusted in json.loads(sys.argv[1]):
        try:
            encoder = FrozenEncoder(Path(folder), device="cpu", trust_remote_code=trusted)
            told[folder] = {"class": f"{type(encoder.model).__module__}.{type(encoder.model).__name__}"}
        except NerprobeError as error:
            told[folder] = {"error": type(error).__name__, "text": str(error)}
        except Exception as error:
            told[folder] = {"error": "unforeseen", "text": f"{type(error).__name__}: {error}"}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
