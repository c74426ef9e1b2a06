"""Checks of ``nerprobe doctor`` that need no vectors: files, code, limit, offsets and vocabulary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nerprobe.encoder_files import FileRecord, is_weights
from nerprobe.estimate import MIB
from nerprobe.offsets import OffsetCheck
from nerprobe.render import size

if TYPE_CHECKING:
    from nerprobe.frozen import FrozenEncoder
    from nerprobe.items import Item
    from nerprobe.vector_files import Vectors

MOST_MISMATCHED = 0.005
"""Share of sub-words that may point at other characters than they stand for without a warning."""
MOST_UNKNOWN = 0.10
"""Share of unknown sub-words without a warning; the built-in texts have more rare characters than most."""
LEAST_ROOM = 32
"""Sub-words that should fit into one window beside special tokens and prefix."""
WORK_AT_LIMIT = 2e11
"""Parameters times tokens up to which a window as long as the limit is tried on a CPU: a few seconds."""


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        name: What was looked at.
        status: ``fault`` if the encoder would end as a failed row, ``warning`` if its row may mislead.
        text: What was found, and what to do about it.
    """

    name: str
    status: Literal["ok", "warning", "fault"]
    text: str


@dataclass(frozen=True, kw_only=True)
class Setup:
    """An encoder and how a run would use it.

    Attributes:
        folder: Its files.
        files: As in the record of the fetch stage.
        source: Where it comes from.
        settings: dtype, storage, layer, pooling, prefix and max_length of its word vectors.
        device: As in the configuration.
        batch_tokens: Most tokens of a padded batch; None fits the device.
    """

    folder: Path
    files: Sequence[FileRecord]
    source: Mapping[str, Any]
    settings: Mapping[str, Any]
    device: str
    batch_tokens: int | None

    @property
    def trusted(self) -> bool:
        """Whether the folder's own Python code may run."""
        return self.source.get("trust_remote_code") is True

    def load(self, dtype: str) -> FrozenEncoder:
        """Load the encoder as the embed stage would, in another number format.

        Raises:
            NerprobeError, RuntimeError: If it cannot be loaded or does not fit on the device.
        """
        from nerprobe.frozen import FrozenEncoder

        return FrozenEncoder(
            self.folder,
            dtype=dtype,
            device=self.device,
            layer=self.settings["layer"],
            max_length=self.settings["max_length"],
            trust_remote_code=self.trusted,
        )

    def vectors(self, encoder: FrozenEncoder, items: Sequence[Item], budget: int | None) -> Vectors:
        """Return word vectors, shape (words, width).

        Raises:
            NonFiniteError: If any is NaN or infinite.
        """
        from nerprobe.pooling import prepare, word_vectors

        pooling = self.settings["pooling"]
        block = prepare(items, encoder, prefix=self.settings["prefix"], pooling=pooling)
        return word_vectors(block, encoder, pooling=pooling, budget=budget)


def weights_finding(files: Sequence[FileRecord]) -> Finding:
    """Say what the weights are stored in."""
    own = [file for file in files if is_weights(file["name"])]
    many = f"{len(own)} files" if len(own) > 1 else own[0]["name"]
    text = f"{many}, {sum(file['size'] for file in own) / MIB:,.1f} MiB"
    if own[0]["name"].endswith(".bin"):
        return Finding("weights", "ok", f"{text}; a pickle, loaded weights_only: no code in it is run")
    return Finding("weights", "ok", f"{text}, safetensors")


def code_finding(folder: Path, *, trusted: bool) -> Finding:
    """Say whether an encoder brings Python code of its own, and whether that would run."""
    places = []
    for name in ("config.json", "tokenizer_config.json"):
        try:
            if json.loads((folder / name).read_text(encoding="utf-8")).get("auto_map"):
                places.append(name)
        except (OSError, ValueError, AttributeError, RecursionError):
            continue  # the loader says what is wrong with a broken file
    if not places:
        return Finding("remote code", "ok", "none")
    where = f"{' and '.join(places)} name Python code (auto_map)"
    if trusted:
        return Finding("remote code", "warning", f"{where}; it may run, as trust_remote_code is set: read it first")
    todo = "refused; only a registry entry with a pinned revision and trust_remote_code: true lets it run"
    return Finding("remote code", "warning", f"{where}: {todo}")


def encoder_finding(encoder: FrozenEncoder) -> Finding:
    """Say what was loaded."""
    kind = getattr(encoder.model.config, "model_type", "")
    text = (
        f"{type(encoder.model).__name__} ({kind}), {encoder.width} wide, {encoder.layers} layers, "
        f"{size(encoder.parameters)} parameters, in {encoder.dtype} on {encoder.device.type}"
    )
    return Finding("load", "ok", text)


def _limited_by(encoder: FrozenEncoder, settings: Mapping[str, Any]) -> str:
    config = encoder.model.config
    stated = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    holders = {
        "the tokenizer": encoder.tokenizer.model_max_length == encoder.limit,
        "the model's configuration": encoder.limit in stated,
        "max_length of the registry": settings["max_length"] == encoder.limit,
    }
    held = [name for name, holds in holders.items() if holds]
    if held:
        return "limited by " + " and ".join(held)
    stated += [encoder.tokenizer.model_max_length]
    bounded = any(isinstance(value, int) and 0 < value < 10**9 for value in stated)
    return "limited by the position table" if bounded else "no limit is stated, so this many are taken"


def limit_finding(encoder: FrozenEncoder, settings: Mapping[str, Any]) -> Finding:
    """Say how long a text may be, what limits it, and whether that many tokens really go in."""
    prefix = len(encoder.tokenize([""], settings["prefix"])[0].ids)
    room = encoder.limit - encoder.template.size - prefix
    text = f"{encoder.limit} tokens ({_limited_by(encoder, settings)}), {encoder.template.size} of them special"
    text += f" and {prefix} the prefix's" if prefix else ""
    if room < 1:
        return Finding("limit", "fault", f"{text}: no room for any word; raise max_length")
    # An index out of range would break the device for all that follows, so this is tried on a CPU only.
    if encoder.device.type == "cpu" and encoder.parameters * encoder.limit <= WORK_AT_LIMIT:
        import torch

        ids = torch.full((1, encoder.limit), int(encoder.tokenizer("a", add_special_tokens=False)["input_ids"][0]))
        try:
            with torch.inference_mode():
                encoder.hidden(ids, torch.ones_like(ids))
        except Exception as error:
            return Finding("limit", "fault", f"{text}: so many fail ({short(error)}); set max_length in the registry")
        text += "; a window of that length goes through"
    if room < LEAST_ROOM:
        return Finding("limit", "warning", f"{text}: most texts are read in several windows")
    return Finding("limit", "ok", f"{text}; longer texts are read in windows")


def token_findings(encoder: FrozenEncoder, items: Sequence[Item]) -> list[Finding]:
    """Say whether sub-words point at their characters, and how the vocabulary copes.

    Raises:
        AlignmentError: If offsets point outside of a text.
    """
    texts = [item.text for item in items]
    tokens = encoder.tokenize(texts)
    count = OffsetCheck(encoder.tokenizer).count(texts, tokens)
    text = f"in {len(texts)} hard texts all spans lie inside the text, and {count.mismatched} of {count.compared} "
    text += "sub-words point at other characters than they stand for"
    if count.share > MOST_MISMATCHED:
        example = f"such as {count.example}; words may get their neighbours' vectors: compare its score with care"
        found = Finding("offsets", "warning", f"{text}, {example}")
    else:
        found = Finding("offsets", "ok", text + (f", such as {count.example}" if count.example else ""))
    return [found, _vocabulary_finding(encoder, items)]


def _vocabulary_finding(encoder: FrozenEncoder, items: Sequence[Item]) -> Finding:
    from nerprobe.pooling import prepare

    block = prepare(items, encoder, prefix="", pooling="mean")
    covered = block.n_subwords[block.n_subwords > 0]
    unknown = sum(own.unknown for own in block.stats) / max(1, sum(own.subwords for own in block.stats))
    text = (
        f"{covered.mean() if len(covered) else 0:.2f} sub-words a word, {unknown:.1%} unknown, "
        f"{len(block.n_subwords) - len(covered)} of {len(block.n_subwords)} words without any"
    )
    if unknown > MOST_UNKNOWN:
        return Finding("vocabulary", "warning", f"{text}: it cannot tell such sub-words apart")
    return Finding("vocabulary", "ok", text)


def short(error: BaseException) -> str:
    """Return an exception of another library in one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
