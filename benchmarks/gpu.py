"""Tokens a second of a base and a large encoder on one device, beside the matrix products it can do.

    python benchmarks/gpu.py --device cuda
    python benchmarks/gpu.py --device cpu --sizes tiny --seconds 2     # a try

Needs torch and transformers only: weights are random, texts are random ids with lengths like tweets', nothing is
downloaded. Where nerprobe can be imported its own batching and pooling are timed, elsewhere the same steps here.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))

SIZES = {"tiny": (2, 128, 2), "base": (12, 768, 12), "large": (24, 1024, 16)}
"""Layers, width, heads; the feed-forward layer is four widths wide."""
VOCABULARY = 30_000
FULL, WASTE = 512, 0.04
"""As in nerprobe.pooling: from so many tokens on a batch is closed rather than padded further."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def make_model(size: str, dtype: torch.dtype, device: torch.device) -> Any:
    layers, width, heads = SIZES[size]
    shape = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads}
    config = transformers.BertConfig(vocab_size=VOCABULARY, intermediate_size=4 * width, **shape)
    torch.manual_seed(0)
    return transformers.BertModel(config, add_pooling_layer=False).to(dtype).to(device).eval()


@dataclass
class Texts:
    """Random texts.

    Attributes:
        ids: Token ids of each, special tokens included.
        words: For each text the word of each of its sub-words, first and last token excluded.
    """

    ids: list[torch.Tensor]
    words: list[torch.Tensor]


def make_texts(count: int) -> Texts:
    """Draw texts of about 73 tokens and two sub-words a word, as an English encoder has on Spanish tweets."""
    rng = torch.Generator().manual_seed(0)
    lengths = (73 + 28 * torch.randn(count, generator=rng)).clamp(8, 160).long().tolist()
    ids = [torch.randint(999, VOCABULARY, (length,), generator=rng) for length in lengths]
    words = [(torch.rand(length - 2, generator=rng) < 0.5).long().cumsum(0) for length in lengths]
    return Texts(ids, [own - own[0] for own in words])


class OwnSteps:
    """Batching and pooling as nerprobe does them: token-budget batches, sums of sub-words on the device."""

    name = "the steps of this script"

    def __init__(self, texts: Texts, model: Any, budget: int, device: torch.device) -> None:
        self.texts, self.model, self.device, self.groups, real = texts, model, device, [], 0
        for index in sorted(range(len(texts.ids)), key=lambda index: -len(texts.ids[index])):
            length = len(texts.ids[index])
            padded = len(texts.ids[self.groups[-1][0]]) * (len(self.groups[-1]) + 1) if self.groups else budget + 1
            if padded > budget or (real >= FULL and real + length < (1 - WASTE) * padded):
                self.groups.append([])
                real = 0
            self.groups[-1].append(index)
            real += length

    def padded(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return ids and mask of each batch, on the host."""
        pad = torch.nn.utils.rnn.pad_sequence
        rows = [[self.texts.ids[index] for index in group] for group in self.groups]
        return [(pad(own, True, 0), pad([torch.ones_like(row) for row in own], True, 0)) for own in rows]

    def run(self) -> None:
        for group, (ids, mask) in zip(self.groups, self.padded(), strict=True):
            words = [self.texts.words[index] for index in group]
            counts = torch.cat([own.bincount() for own in words])
            flat = torch.cat([torch.arange(len(own)) + 1 + row * ids.shape[1] for row, own in enumerate(words)])
            states = self.model(input_ids=ids.to(self.device), attention_mask=mask.to(self.device)).last_hidden_state
            gathered = states.flatten(0, 1)[flat.to(self.device)].float()
            sums = torch.segment_reduce(gathered, "sum", lengths=counts.to(self.device), axis=0)
            (sums.cpu() / counts[:, None]).numpy()


class Nerprobe(OwnSteps):
    """Batching and pooling by nerprobe itself."""

    name = "nerprobe.pooling"

    def __init__(self, texts: Texts, model: Any, budget: int, device: torch.device) -> None:
        import numpy as np

        from nerprobe import pooling

        self.texts, self.model, self.device, self.budget, self.pooling = texts, model, device, budget, pooling
        self.width, self.dtype, self.pad_id, row, windows = model.config.hidden_size, "random", 0, 0, []
        for ids, words in zip(texts.ids, texts.words, strict=True):
            rows = words.numpy() + row
            windows.append(pooling.Window(ids=ids.numpy(), rows=rows, positions=np.arange(len(rows)) + 1))
            row = int(rows[-1]) + 1
        counts = np.bincount(np.concatenate([window.rows for window in windows])).astype(np.int32)
        self.block = pooling.Prepared(sequences=windows, n_subwords=counts, stats=[])
        places = {id(window): index for index, window in enumerate(windows)}
        self.groups = [[places[id(own)] for own in group] for group in pooling.batches(windows, budget)]

    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    def run(self) -> None:
        self.pooling.word_vectors(self.block, self, pooling="mean", budget=self.budget)


def timed(work: Callable[[], object], *, seconds: float, device: torch.device) -> float:
    """Return the median time of a call, over at least three and about so many seconds, after a first one."""
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    found: list[float] = []
    with torch.inference_mode():
        work()
        wait()
        while len(found) < 3 or sum(found) < seconds:
            begun = time.perf_counter()
            work()
            wait()
            found.append(time.perf_counter() - begun)
    return statistics.median(found)


def matmul_rate(dtype: torch.dtype, device: torch.device, seconds: float) -> float:
    """Return floating point operations a second of square matrix products."""
    size = 8192 if device.type == "cuda" else 2048
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    return 2 * size**3 / timed(lambda: left @ right, seconds=seconds, device=device)


def operations(size: str, lengths: list[int]) -> float:
    """Return the operations that texts need without padding: products with weights, and of attention."""
    layers, width, _ = SIZES[size]
    return sum(layers * (2 * 12 * width**2 * length + 4 * length**2 * width) for length in lengths)


def measure(size: str, name: str, args: argparse.Namespace) -> str:
    device, dtype = torch.device(args.device), DTYPES[name]
    model, texts = make_model(size, dtype, device), make_texts(args.texts)
    try:
        steps: OwnSteps = Nerprobe(texts, model, args.batch_tokens, device)
    except ImportError:
        steps = OwnSteps(texts, model, args.batch_tokens, device)
    lengths = [len(own) for own in texts.ids]
    ready = [(ids.to(device), mask.to(device)) for ids, mask in steps.padded()]

    def bare() -> None:
        for ids, mask in ready:
            model(input_ids=ids, attention_mask=mask)

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    rate = matmul_rate(dtype, device, args.seconds / 4)
    limit = timed(bare, seconds=args.seconds, device=device)
    ours = timed(steps.run, seconds=args.seconds, device=device)
    peak = torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else float("nan")
    padding = 1 - sum(lengths) / sum(ids.numel() for ids, _ in ready)
    cells = [
        f"{size}, {name}",
        f"{sum(lengths) / ours:,.0f}",
        f"{sum(lengths) / limit:,.0f}",
        f"{limit / ours:.2f}",
        f"{padding:.1%}",
        f"{rate / 1e12:,.2f}",
        f"{operations(size, lengths) / ours / rate:.0%}",
        f"{peak:,.0f}",
        steps.name,
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sizes", nargs="+", default=["base", "large"], choices=SIZES)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], choices=DTYPES)
    parser.add_argument("--texts", type=int, default=1024)
    parser.add_argument("--batch-tokens", type=int, default=16384)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement, about")
    args = parser.parse_args(arguments)
    where = (
        torch.cuda.get_device_name() if args.device.startswith("cuda") else f"cpu, {torch.get_num_threads()} threads"
    )
    print(f"{where}; torch {torch.__version__}, transformers {transformers.__version__}")
    print(f"{args.texts} random texts, batches of {args.batch_tokens} tokens; float32 products without TF32\n")
    torch.backends.cuda.matmul.allow_tf32 = False
    print(
        "| encoder | tokens/s | bare tokens/s | of bare | padding | matmul TFLOP/s | of matmul | peak MiB | pooled by |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for size in args.sizes:
        for name in args.dtypes:
            print(measure(size, name, args), flush=True)


if __name__ == "__main__":
    main()
