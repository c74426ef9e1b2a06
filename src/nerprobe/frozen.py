"""A frozen encoder: loaded from a local folder, with its limits, its tokenizer and one forward pass."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nerprobe.align import Ints
from nerprobe.detours import not_loaded, refuse_detours
from nerprobe.errors import AlignmentError, EncoderFolderError

if TYPE_CHECKING:
    import torch

UNBOUNDED = 512
"""Tokens taken where neither tokenizer, config nor position table states a limit (relative positions)."""
TEXTS = 64
"""Texts tokenised at a time: what the tokenizer gives takes ten times the memory of what is kept of it."""


@dataclass(frozen=True)
class Tokens:
    """The sub-words of one text, without special tokens.

    Attributes:
        ids: Vocabulary ids, shape (sub-words,).
        starts: Start of each in the text, in code points (negative or zero in the prefix).
        ends: End of each, half-open.
        prefix: How many of them, from the first, are the prefix's.
    """

    ids: Ints
    starts: Ints
    ends: Ints
    prefix: int


@dataclass(frozen=True)
class Template:
    """Special tokens that this tokenizer puts before and after a text, as asked from it."""

    lead: tuple[int, ...]
    trail: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return how many there are."""
        return len(self.lead) + len(self.trail)


class FrozenEncoder:
    """One encoder in evaluation mode.

    Args:
        folder: Local folder; nothing is ever downloaded.
        dtype: ``float32``, ``float16`` or ``bfloat16``.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:<n>`` or ``mps``.
        layer: ``last``, a hidden-state index, or ``[first, last]`` for the mean of a range (inclusive).
        max_length: Lower limit than the encoder's own, in tokens, or None.
        trust_remote_code: Whether the folder's own Python code may run.

    Raises:
        EncoderFolderError: If the folder holds no complete encoder with a fast tokenizer.
    """

    def __init__(
        self,
        folder: Path,
        *,
        dtype: str = "float32",
        device: str = "auto",
        layer: str | int | Sequence[int] = "last",
        max_length: int | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"  # or .bin weights start a request in the background
        import torch

        refuse_detours(folder)
        self.device = torch.device(_pick_device(device))
        self.dtype = dtype
        self.layer = layer
        self.tokenizer = _load_tokenizer(folder, trust_remote_code)
        model = _load_model(folder, getattr(torch, dtype), trust_remote_code)
        if getattr(model.config, "is_encoder_decoder", False):
            model = model.get_encoder()
        self.model: Any = model.eval().to(self.device)
        self.width = int(getattr(model.config, "hidden_size", 0) or model.config.d_model)
        self.layers = int(getattr(model.config, "num_hidden_layers", 0) or 0)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self._check_layer()
        self.template = _template(self.tokenizer)
        own = token_limit(self.tokenizer, model)
        self.limit = min(own, max_length) if max_length else own
        pad = getattr(model.config, "pad_token_id", None)
        self.pad_id = int(pad if pad is not None else self.tokenizer.pad_token_id or 0)

    @property
    def batch_tokens(self) -> int:
        """Return a good size of a padded batch: a CPU is quicker with what fits its caches."""
        return 1024 if self.device.type == "cpu" else 16384

    def _check_layer(self) -> None:
        """Refuse a layer that this encoder does not have, or a range that runs backwards."""
        states = self.layers + 1  # the first one is the embedding layer
        wanted: list[int | str] = (
            [] if self.layer == "last" else [self.layer] if isinstance(self.layer, int) else [*self.layer]
        )
        numbers = [int(index) for index in wanted]
        places = [number + states if number < 0 else number for number in numbers]
        if any(not 0 <= place < states for place in places) or places != sorted(places):
            raise EncoderFolderError(
                "no such layer",
                where="layer",
                expected=f"last, {-states} to {states - 1}, or a range of these from low to high",
                got=str(self.layer),
                todo="mend the entry in config/models.yaml",
            )

    def about(self) -> dict[str, Any]:
        """Return what the manifest says of this encoder."""
        return {
            "class": type(self.model).__name__,
            "width": self.width,
            "layers": self.layers,
            "parameters": self.parameters,
            "max_tokens": self.limit,
            "dtype_used": self.dtype,
            "device": self.device.type,
        }

    def tokenize(self, texts: Sequence[str], prefix: str = "") -> list[Tokens]:
        """Split texts into sub-words with character offsets.

        Raises:
            AlignmentError: If offsets point outside of a text.
        """
        found = []
        for first in range(0, len(texts), TEXTS):
            part = texts[first : first + TEXTS]
            batch = self.tokenizer(
                [prefix + text for text in part],
                add_special_tokens=False,
                return_offsets_mapping=True,
                truncation=False,
                padding=False,
                verbose=False,
            )
            rows = zip(batch["input_ids"], batch["offset_mapping"], part, strict=True)
            found += [_tokens(ids, offsets, text, prefix) for ids, offsets, text in rows]
        return found

    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the states of the chosen layer.

        Args:
            ids: Token ids on this encoder's device, shape (batch, tokens).
            mask: 1 for tokens, 0 for padding, same shape.

        Returns:
            States in the encoder's dtype, shape (batch, tokens, width).
        """
        last_only = self.layer == "last"
        output = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=not last_only)
        if last_only:
            return output.last_hidden_state  # type: ignore[no-any-return]
        if isinstance(self.layer, int):
            return output.hidden_states[self.layer]  # type: ignore[no-any-return]
        import torch

        first, last = (int(index) % len(output.hidden_states) for index in self.layer)
        return torch.stack(output.hidden_states[first : last + 1]).mean(dim=0)


def _pick_device(device: str) -> str:
    import torch

    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def _load_tokenizer(folder: Path, trust_remote_code: bool) -> Any:  # noqa: ANN401
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(folder), use_fast=True, local_files_only=True, trust_remote_code=trust_remote_code
        )
    except Exception as error:
        raise not_loaded("the tokenizer", folder, error) from error
    if not getattr(tokenizer, "is_fast", False):
        raise EncoderFolderError(
            "this encoder has only a slow tokenizer, without character offsets",
            where=folder.name,
            expected="a fast tokenizer (tokenizer.json, or files that one can be built from)",
            got=type(tokenizer).__name__,
            todo="words cannot be aligned; choose another encoder",
        )
    return tokenizer


def _load_model(folder: Path, dtype: torch.dtype, trust_remote_code: bool) -> Any:  # noqa: ANN401
    from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, AutoConfig, AutoModel, AutoModelForTextEncoding
    from transformers.utils import logging as hf_logging

    hf_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=trust_remote_code)
        # Of T5 and its kin only the encoder is read; checkpoints of it alone have no decoder to load.
        loader = AutoModelForTextEncoding if type(config) in MODEL_FOR_TEXT_ENCODING_MAPPING else AutoModel
        model, report = loader.from_pretrained(
            str(folder),
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
            weights_only=True,
        )
    except Exception as error:
        raise not_loaded("the model", folder, error) from error
    # Pooler and decoder are never read, so they may be missing; anything else would be random numbers.
    unread = ("pooler", "decoder.") if getattr(config, "is_encoder_decoder", False) else ("pooler",)
    missing = sorted(name for name in report["missing_keys"] if not any(part in name for part in unread))
    shapes = [str(key) for key in report.get("mismatched_keys", [])]
    if missing or shapes:
        raise EncoderFolderError(
            "weights are missing from the checkpoint and would be random",
            where=folder.name,
            expected="every weight of " + type(model).__name__,
            got=f"{len(missing)} missing, {len(shapes)} of another shape: " + ", ".join((missing + shapes)[:3]),
        )
    return model


def _template(tokenizer: Any) -> Template:  # noqa: ANN401
    """Ask the tokenizer which special tokens it adds; nothing is assumed."""
    plain = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    full = list(tokenizer("a", add_special_tokens=True)["input_ids"])
    for lead in range(len(full) - len(plain) + 1):
        if full[lead : lead + len(plain)] == plain:
            return Template(lead=tuple(full[:lead]), trail=tuple(full[lead + len(plain) :]))
    raise AlignmentError("special tokens are not around the text", where=type(tokenizer).__name__, got=str(full))


def token_limit(tokenizer: Any, model: Any) -> int:  # noqa: ANN401
    """Return how many tokens one window may hold, special tokens included.

    The least of the tokenizer's limit, the config's, and the size of the position table less its padding
    offset (RoBERTa's table of 514 rows takes 512 tokens).
    """
    import torch

    limits = []
    for name in ("max_position_embeddings", "n_positions"):
        stated = getattr(model.config, name, None)
        if isinstance(stated, int) and stated > 0:
            limits.append(stated)
    for name, module in model.named_modules():
        last = name.rpartition(".")[2]
        if isinstance(module, torch.nn.Embedding) and last in (
            "position_embeddings",
            "wpe",
            "embed_positions",
        ):
            offset = module.padding_idx + 1 if module.padding_idx is not None else getattr(module, "offset", 0)
            limits.append(module.num_embeddings - int(offset))
    own = tokenizer.model_max_length
    if isinstance(own, int) and 0 < own < 10**9:
        limits.append(own)
    return min(limits) if limits else UNBOUNDED


def _tokens(ids: Sequence[int], offsets: Sequence[tuple[int, int]], text: str, prefix: str) -> Tokens:
    spans = np.asarray(offsets, dtype=np.int64).reshape(-1, 2) - len(prefix)
    starts, ends = spans[:, 0], spans[:, 1]
    if len(spans) and (ends.max() > len(text) or starts.min() < -len(prefix)):
        raise AlignmentError(
            "the tokenizer's offsets point outside of the text",
            where=repr(text[:40]),
            expected=f"0 to {len(text)}",
            got=f"{starts.min()} to {ends.max()}",
        )
    in_text = np.flatnonzero(ends > 0) if prefix else np.arange(len(spans))
    count = int(in_text[0]) if len(in_text) else len(spans)
    return Tokens(ids=np.asarray(ids, dtype=np.int64), starts=np.maximum(starts, 0), ends=ends, prefix=count)
