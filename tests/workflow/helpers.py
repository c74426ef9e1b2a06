"""What the workflow tests share: a small corpus, tiny encoders, the real Snakemake, and plain-loop oracles."""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

PROJECT = Path(__file__).resolve().parents[2]
WIDTH = 64
TYPES = ("PROFESION", "SITUACION_LABORAL")
SUBSET = "subset={seed: 1, test: 20, train: 60}"
MODELS = ("alpha", "char-ngrams", "random-bert", "train-lookup")
"""Rows of the first run's board."""
Jobs = list[tuple[str, str]]

# --- a small corpus in ProfNER's format --------------------------------------------------------------

_SLOTS = {
    "PROFESION": ("enfermera", "médicos", "auxiliar de limpieza", "taxista", "guardia civil", "cajeras", "profesor"),
    "SITUACION_LABORAL": ("en paro", "jubilado", "autónoma", "en ERTE"),
    "ACTIVIDAD": ("repartir comida", "cuidar niños"),
    "FIGURATIVA": ("payaso",),
    "O": ("vecino", "enfermera", "gracias a todos", "el profesor", "quien pueda"),
}
_FRAMES = (
    "Mi hermana es {PROFESION} y lleva {O} desde marzo.",
    "Aplausos para {PROFESION}, {PROFESION} y {O} ❤\ufe0f",
    "Me quedé {SITUACION_LABORAL}… ¿y ahora?",
    "Hoy toca {ACTIVIDAD} con {O}",
    "El {FIGURATIVA} {PROFESION} que habla de {O}!",
    "Nada que decir, {O}, sólo quédate en casa #covid19",
    "Quédate en casa, {O} y {O}",
)
_WORD = re.compile(r"\w+|[^\w\s]")


def _tweet(rng: random.Random, tweet_id: int, length: int) -> list[str]:
    text = f"{tweet_id}: "  # no two texts are equal
    marks = "O" * len(text)
    for _ in range(length):
        for part in re.split(r"(\{\w+\})", rng.choice(_FRAMES)):
            kind = part[1:-1] if part[:1] == "{" else "O"
            new = rng.choice(_SLOTS[kind]) if part[:1] == "{" else part
            text, marks = text + new, marks + kind[0] * len(new)
        text, marks = text + " ", marks + "O"
    names = {kind[0]: kind for kind in _SLOTS}
    lines, before = [], "O"
    for word in _WORD.finditer(text):
        mark = marks[word.start()]
        tag = "O" if mark == "O" else f"{'I' if mark == before else 'B'}-{names[mark]}"
        lines.append(f"{word[0]} {tweet_id} {word.start()} {word.end()} {tag}")
        before = mark
    return [*lines, ""]


def corpus_text(items: int, *, seed: int, first_id: int) -> str:
    """Return a file of tweets; the third has some 150 words, longer than the tiny encoders take at once."""
    rng = random.Random(seed)
    tweets = (_tweet(rng, first_id + number, 18 if number == 2 else rng.randint(1, 3)) for number in range(items))
    return "\n".join(line for tweet in tweets for line in tweet) + "\n"


def write_corpus(folder: Path) -> None:
    """Write DIR/profner/BIO/{valid,train}_spacy.txt with 30 test and 80 train tweets."""
    bio = folder / "profner" / "BIO"
    bio.mkdir(parents=True)
    (bio / "valid_spacy.txt").write_text(corpus_text(30, seed=1, first_id=1000), encoding="utf-8")
    (bio / "train_spacy.txt").write_text(corpus_text(80, seed=2, first_id=5000), encoding="utf-8")


# --- tiny encoders ------------------------------------------------------------------------------------


def write_encoder(folder: Path, *, texts: Sequence[str], seed: int) -> None:
    """Save a one-layer BERT of width ``WIDTH`` with a WordPiece tokenizer trained on some texts."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    )
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer: Any = PreTrainedTokenizerFast
    tokenizer(tokenizer_object=raw, **names).save_pretrained(str(folder))
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=raw.get_vocab_size(),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.05,
    )
    model = BertModel(config, add_pooling_layer=False)
    with torch.no_grad():  # what a word is outweighs all else, so that the probe finds something
        model.embeddings.word_embeddings.weight.mul_(20)
    model.save_pretrained(str(folder))


def spoil_with_nan(weights: Path) -> None:
    """Make one weight of a safetensors file NaN."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(weights)
    name = next(name for name in sorted(tensors) if name.endswith("LayerNorm.bias"))
    tensors[name] = np.full_like(tensors[name], np.nan)
    save_file(tensors, weights, metadata={"format": "pt"})


# --- Snakemake ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """What one call of Snakemake did."""

    code: int
    out: str

    @property
    def jobs(self) -> Jobs:
        """Return rule and model (empty where there is none) of every job, sorted; without the targets' rules."""
        found = []
        for block in re.finditer(r"^(?:local)?rule (\w+):\n((?: {4}.*\n)+)", self.out, re.MULTILINE):
            model = re.search(r"^ {4}wildcards: .*\bmodel=([^,\n]+)", block[2], re.MULTILINE)
            if block[1] not in ("all", "default"):
                found.append((block[1], model[1] if model else ""))
        return sorted(found)

    @property
    def nothing(self) -> bool:
        """Say whether Snakemake found nothing to do."""
        return self.code == 0 and "Nothing to be done" in self.out and not self.jobs


def jobs_of(*models: str, fetched: Sequence[str] = (), lookup: bool = False) -> Jobs:
    """Return the jobs that new models take, without those that all of a run share."""
    jobs = [(rule, model) for model in models for rule in ("embed", "probe", "score")]
    jobs += [("fetch_encoder", model) for model in fetched]
    if lookup:
        jobs += [("probe", "train-lookup"), ("score", "train-lookup")]
    return sorted(jobs)


SHARED: Jobs = [("corpus", ""), ("leaderboard", ""), ("subset", "")]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where and how Snakemake is called. Nothing is activated, and no network is asked for."""

    typed: Path
    folder: Path | None
    home: Path
    project: Path = PROJECT
    snakefile: str = "Snakefile"
    variables: Mapping[str, str] = field(default_factory=dict)

    def at(self, name: str, **changes: Any) -> Place:
        """Return the same place with another working folder, given relative to where the command is typed."""
        return replace(self, folder=self.typed / name, **changes)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "PWD": "/nowhere",  # what a program that changes folder without a shell leaves behind
            "HOME": str(self.home),
            "NERPROBE_CACHE": str(self.home / "cache"),
            "HF_HUB_OFFLINE": "1",
            "LANG": "C.UTF-8",
            **self.variables,
        }

    def command(self, config: Sequence[str], flags: Sequence[str]) -> list[str]:
        """Return the command line, with paths relative to where it is typed."""
        command = [str(Path(sys.executable).with_name("snakemake")), "--cores", "2", "--nocolor", *flags]
        if self.folder is not None:
            command += ["--snakefile", str(self.project / self.snakefile)]
            command += ["--directory", str(self.folder.relative_to(self.typed))]
        return [*command, *(["--config", *config] if config else [])]

    def run(self, *config: str, flags: Sequence[str] = (), timeout: float = 400) -> Ran:
        """Call Snakemake and wait for it."""
        done = subprocess.run(
            self.command(config, flags),
            cwd=self.typed,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
        return Ran(done.returncode, done.stdout)

    def dry(self, *config: str) -> Ran:
        """Ask Snakemake what it would do."""
        return self.run(*config, flags=["--dry-run"])

    def run_folder(self, prefix: str = "test20-train60-", task: str = "profner") -> Path:
        """Return the one run folder whose name begins so."""
        (found,) = ((self.folder or self.typed) / "results" / task).glob(f"{prefix}*")
        return found

    def config(self, *models: str, baselines: str = "", subset: str = SUBSET) -> list[str]:
        """Return the --config arguments that all runs share."""
        return [f"models=[{','.join(models)}]", f"baselines=[{baselines}]", "data_dir=data", subset]


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def rows_of(board: Path) -> list[dict[str, str]]:
    """Return the rows of leaderboard.csv."""
    with (board / "leaderboard.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


# --- oracles: plain loops -----------------------------------------------------------------------------


def plain_mentions(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Return (type, first, last) by conlleval's rule; O, another type and B- end a mention."""
    found: list[list[Any]] = []
    open_type = ""
    for position, tag in enumerate(tags):
        if tag == "O":
            open_type = ""
        elif tag[0] == "B" or tag[2:] != open_type:
            open_type = tag[2:]
            found.append([open_type, position, position])
        else:
            found[-1][2] = position
    return {(kind, first, last) for kind, first, last in found}


def tags_of(predictions: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Return gold and predicted tags by item."""
    items: dict[str, tuple[list[str], list[str]]] = {}
    for row in pq.read_table(predictions).to_pylist():
        gold, predicted = items.setdefault(row["item_id"], ([], []))
        assert row["word"] == len(gold), "words out of order"
        gold.append(row["gold"])
        predicted.append(row["predicted"])
    return items


def plain_counts(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, list[int]]:
    """Return tp, predicted and gold of one item by type."""
    right, said = plain_mentions(gold), plain_mentions(predicted)
    counts = {kind: [0, 0, 0] for kind in TYPES}
    for mention in said:
        counts[mention[0]][1] += 1
        counts[mention[0]][0] += mention in right
    for mention in right:
        counts[mention[0]][2] += 1
    return counts


def plain_metrics(items: Sequence[dict[str, list[int]]]) -> dict[str, float]:
    """Return the four metrics of some items' counts, 0 where undefined."""
    sums = {kind: [sum(item[kind][part] for item in items) for part in range(3)] for kind in TYPES}
    tp, predicted, gold = (sum(sums[kind][part] for kind in TYPES) for part in range(3))
    by_type = [2 * t / (p + g) if p + g else 0.0 for t, p, g in sums.values()]
    return {
        "f1": 2 * tp / (predicted + gold) if predicted + gold else 0.0,
        "precision": tp / predicted if predicted else 0.0,
        "recall": tp / gold if gold else 0.0,
        "macro_f1": sum(by_type) / len(by_type),
    }


def plain_intervals(
    items: Sequence[dict[str, list[int]]], *, seed: int, resamples: int, level: float
) -> dict[str, tuple[float, float]]:
    """Return the percentile intervals by a loop over resamples."""
    drawn = np.random.default_rng(seed).integers(0, len(items), (resamples, len(items)))
    values = [plain_metrics([items[index] for index in row]) for row in drawn]
    bounds = [50 * (1 - level), 50 * (1 + level)]
    found = {}
    for name in values[0]:
        low, high = np.percentile([value[name] for value in values], bounds)
        found[name] = (float(low), float(high))
    return found
