"""One tool in one process, for throughput.py: loads once, then does a round whenever standard input asks for one.

It runs in environments without nerprobe, so each tool imports what it needs itself. Replies are JSON lines.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import peak_mib

BATCH = 32
"""Texts of a batch in tools that count texts: sentence-transformers' default, and flair's mini-batch."""
PACKAGES = ("torch", "transformers", "tokenizers", "sentence-transformers", "flair", "nerprobe")


@dataclass
class Tool:
    """A loaded tool.

    Attributes:
        model: The network that is timed inside.
        work: What is timed; takes what ``fresh`` gave.
        fresh: Makes a round's inputs, not timed.
        about: How its batches are made, in words.
        extra: Further commands.
    """

    model: Any
    work: Callable[[Any], object]
    about: str
    fresh: Callable[[], Any] = lambda: None
    extra: dict[str, Callable[[], Any]] = field(default_factory=dict)


class Meter:
    """Time and tokens of all forward passes, around ``forward`` itself: not every tool goes through hooks."""

    def __init__(self, model: Any) -> None:
        self.seconds, self.tokens, self.padded, self.counting = 0.0, 0, 0, True
        inner = model.forward

        @functools.wraps(inner)
        def outer(*args: Any, **kwargs: Any) -> Any:
            if self.counting:
                self._count(kwargs["input_ids"] if "input_ids" in kwargs else args[0], kwargs.get("attention_mask"))
            begun = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - begun

        model.forward = outer

    def _count(self, ids: Any, mask: Any) -> None:
        self.padded += ids.numel()
        self.tokens += ids.numel() if mask is None else int(mask.sum())


def nerprobe(job: dict[str, Any]) -> Tool:
    """The embed stage without loading: tokens, offsets check, alignment, forward, pooling, store, Parquet file."""
    from nerprobe import embed, fill
    from nerprobe.frozen import FrozenEncoder
    from nerprobe.store import VectorStore
    from nerprobe.vector_files import schema_of, write_vectors

    items, encoder = job["items"], FrozenEncoder(Path(job["folder"]), dtype=job["dtype"], device="cpu")
    place = Path(job["work"]) / f"nerprobe-{job['dtype']}"
    how = {"settings": {"prefix": "", "pooling": "mean", "storage": "float32"}, "budget": job["batch_tokens"]}

    def fresh() -> Path:
        shutil.rmtree(place, ignore_errors=True)
        return place

    def work(folder: Path) -> None:
        store = VectorStore(folder / "store")
        # fill_store would load the encoder every time
        fill.compute(items, total=len(items), encoder=encoder, store=store, **how)
        schema = schema_of(encoder.width, "float32", {})
        rows = embed.stored(lambda: items, store, embed.Health())
        write_vectors(rows, schema=schema, output=folder / "vectors.parquet")

    about = f"batches of at most {job['batch_tokens'] or encoder.batch_tokens} tokens, sorted by length"
    return Tool(encoder.model, work, about, fresh, {"f1": lambda: f1(job, place / "vectors.parquet")})


def f1(job: dict[str, Any], vectors: Path) -> dict[str, float]:
    """Return the F1 of the probe on the vectors of the last round."""
    from threadpoolctl import threadpool_limits

    from nerprobe.files import sha256_file
    from nerprobe.probe import probe_vectors, read_vectors
    from nerprobe.score import evaluate

    train = [item for item in job["items"] if item.pool == job["train_pool"]]
    test = [item for item in job["items"] if item.pool != job["train_pool"]]
    found = read_vectors(vectors, {"sha256": sha256_file(vectors)}, job["items"])
    with threadpool_limits(1):
        (tags, _), _, _ = probe_vectors(found, train, test, {"C": 1.0, "tol": 1e-6, "max_iter": 1000})
    rest = iter(tags)
    rows = [(item.item_id, item.tags, [next(rest) for _ in item.words]) for item in test]
    return {"f1": evaluate(rows, job["types"])["metrics"]["entity_f1_probe"]}


def forward(job: dict[str, Any]) -> Tool:
    """The limit: the bare network on nerprobe's own padded batches, made beforehand."""
    import torch

    from nerprobe import fill, pooling
    from nerprobe.frozen import FrozenEncoder

    encoder = FrozenEncoder(Path(job["folder"]), dtype=job["dtype"], device="cpu")
    made = []
    for block in fill.blocks_of(job["items"]):
        prepared = pooling.prepare(block, encoder, prefix="", pooling="mean")
        for group in pooling.batches(prepared.sequences, job["batch_tokens"] or encoder.batch_tokens):
            rows = [torch.from_numpy(window.ids) for window in group]
            pad = torch.nn.utils.rnn.pad_sequence
            ids = pad(rows, batch_first=True, padding_value=encoder.pad_id)
            made.append((ids, pad([torch.ones_like(row) for row in rows], batch_first=True)))

    def work(_: None) -> None:
        with torch.inference_mode():
            for ids, mask in made:
                encoder.model(input_ids=ids, attention_mask=mask)

    return Tool(encoder.model, work, f"{len(made)} batches, as nerprobe makes them")


def sentence_transformers(job: dict[str, Any]) -> Tool:
    """Token vectors; no words are pooled, nothing is written."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(job["folder"], device="cpu")
    model.max_seq_length = job["limit"]  # the folder says 256; none of the tweets is longer
    how = {"output_value": "token_embeddings", "batch_size": BATCH, "show_progress_bar": False}
    about = f"batches of {BATCH} texts, sorted by length"
    return Tool(model[0].auto_model, lambda _: model.encode(job["texts"], **how), about)


def flair(job: dict[str, Any]) -> Tool:
    """Word vectors, on words given as they are; nothing is written."""
    from flair.data import Sentence
    from flair.embeddings import TransformerWordEmbeddings

    words = TransformerWordEmbeddings(job["folder"], layers="-1", subtoken_pooling="mean", fine_tune=False)

    def work(sentences: list[Any]) -> None:
        for first in range(0, len(sentences), BATCH):
            words.embed(sentences[first : first + BATCH])

    about = f"batches of {BATCH} texts, as they come"
    return Tool(words.model, work, about, lambda: [Sentence(own) for own in job["words"]])


def pipeline(job: dict[str, Any], *, tensors: bool = False) -> Tool:
    """Token vectors as its manual has it: nested lists, text by text as is its default."""
    from transformers import pipeline as make

    pipe = make("feature-extraction", model=job["folder"], tokenizer=job["folder"], device="cpu")
    size = job["pipeline_batch"]
    about = f"batches of {size} text{'s' if size > 1 else ''}, as they come"
    return Tool(pipe.model, lambda _: pipe(job["texts"], return_tensors=tensors, batch_size=size), about)


def pipeline_tensors(job: dict[str, Any]) -> Tool:
    """The same, without making lists of the tensors."""
    return pipeline(job, tensors=True)


TOOLS = {tool.__name__: tool for tool in (nerprobe, forward, sentence_transformers, flair, pipeline, pipeline_tensors)}


def load(name: str, job: dict[str, Any]) -> Tool:
    import torch

    torch.set_num_threads(job["threads"])
    if name in ("nerprobe", "forward"):
        from nerprobe.items import Item

        job["items"] = [
            Item(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
            for row in job["items"]
        ]
    return TOOLS[name](job)


def versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def one_round(tool: Tool, meter: Meter) -> dict[str, Any]:
    given = tool.fresh()
    meter.seconds, meter.tokens, meter.padded = 0.0, 0, 0
    begun, cpu = time.perf_counter(), time.process_time()
    tool.work(given)
    seconds = time.perf_counter() - begun
    counts = {"tokens": meter.tokens, "padded": meter.padded} if meter.counting else {}
    meter.counting = False  # only the first round, which is not timed, counts
    own = time.process_time() - cpu
    return {"seconds": seconds, "forward": meter.seconds, "cpu": own, "peak_mib": peak_mib(), **counts}


def main() -> None:
    """Arguments: name of the tool, job file, dtype."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with replies
    name, file, dtype = sys.argv[1:]
    job = {**json.loads(Path(file).read_text()), "dtype": dtype}
    tool = load(name, job)
    meter = Meter(tool.model)
    print(json.dumps({"versions": versions(), "about": tool.about}), file=replies, flush=True)
    for line in sys.stdin:
        command = line.strip()
        reply = one_round(tool, meter) if command == "round" else tool.extra[command]()
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
