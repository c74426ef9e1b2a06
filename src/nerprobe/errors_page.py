"""Stage ``errors_page``: the tweets behind the scores as one local page. It holds corpus texts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from nerprobe.files import write_text
from nerprobe.items import Item
from nerprobe.mention_errors import LABELS, wrong_mentions
from nerprobe.redact import visible
from nerprobe.run_predictions import RunPredictions, load_predictions
from nerprobe.spans import Mention

JOINERS = "\u200c\u200d"
"""Join emoji and letters; shown as they are between two characters, escaped elsewhere."""


def shown_words(item: Item) -> tuple[list[str], list[str]]:
    """Return an item's words, and what stands before each of them, with escapes where a character could act."""
    text = item.text
    shown = [
        char
        if char in JOINERS and 0 < index < len(text) - 1 and not (text[index - 1] + text[index + 1]).count(" ")
        else visible(char)
        for index, char in enumerate(text)
    ]
    words = ["".join(shown[start:end]) for start, end in zip(item.starts, item.ends, strict=True)]
    gaps = ["".join(shown[end:start]) for end, start in zip((0, *item.ends), item.starts, strict=False)]
    return words, gaps


class _Mentions:
    """Numbers each mention of each item once, so that 200 models name it by its number."""

    def __init__(self, run: RunPredictions, types: Sequence[str]) -> None:
        self._run, self._types = run, {name: index for index, name in enumerate(types)}
        self._numbers: dict[tuple[int, Mention], int] = {}
        self._places: dict[int, int] = {}
        self.rows: list[list[int]] = []

    @property
    def items(self) -> list[int]:
        """Return the items that are used, in the order of their places."""
        return list(self._places)

    def number(self, item: int, mention: Mention | None) -> int:
        """Return a mention's number, -1 for none."""
        if mention is None:
            return -1
        if (item, mention) not in self._numbers:
            self._numbers[item, mention] = len(self.rows)
            place = self._places.setdefault(item, len(self._places))
            seen = self._run.is_seen(self._run.items[item], mention)
            self.rows.append([place, self._types[mention[0]], mention[1], mention[2], int(seen)])
        return self._numbers[item, mention]


def page_data(run: RunPredictions) -> dict[str, Any]:
    """Return what the page's script reads.

    Texts stand there once; a mention is ``[item, type, first word, stop, seen]``, an error of a model
    ``[kind, gold, predicted]`` with numbers of mentions (-1 for none). Items that no model gets wrong are left out.
    """
    types = sorted({kind for item in (*run.gold, *_all(run)) for kind, _, _ in item} | set(run.corpus["types"]))
    kinds, mentions = list(LABELS), _Mentions(run, types)
    wrong: dict[str, list[list[int]]] = {model: [] for model in run.predicted}
    gold: list[int] = []
    for item, golds in enumerate(run.gold):
        errors = {model: wrong_mentions(golds, found[item]) for model, found in run.predicted.items()}
        if not any(errors.values()):
            continue
        gold += [mentions.number(item, mention) for mention in golds]
        for model, found in errors.items():
            wrong[model] += [
                [kinds.index(one.kind), mentions.number(item, one.gold), mentions.number(item, one.predicted)]
                for one in found
            ]
    rows = {model: run.row(model) for model in run.predicted}
    return {
        "types": [visible(name) for name in types],
        "kinds": list(LABELS.values()),
        "items": [[visible(run.items[item].item_id), *shown_words(run.items[item])] for item in mentions.items],
        "mentions": mentions.rows,
        "gold": gold,
        "total": len(run.items),
        "run": "/".join(("results", run.board["task"], run.board["run"])),
        "models": [
            {
                "name": model,
                "baseline": row["kind"] == "baseline",
                "file": row["metrics_file"],
                **{name: row[name] for name in ("f1", "tp", "predicted", "gold")},
                "wrong": wrong[model],
            }
            for model, row in rows.items()
        ],
    }


def _all(run: RunPredictions) -> list[Sequence[Mention]]:
    return [item for found in run.predicted.values() for item in found]


def errors_html(run: RunPredictions) -> str:
    """Return the page: one file that asks for nothing, in which only its own script may run."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nerprobe", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = files("nerprobe").joinpath("templates", "errors.js").read_text(encoding="utf-8")
    return environment.get_template("errors.html").render(
        title=visible(run.board["title"]),
        task=run.board["task"],
        run=run.board["run"],
        licence=visible(run.corpus["licence"]),
        shareable=run.corpus["texts_shareable"],
        left_out=[row["model"] for row in run.board["rows"] if row["model"] not in run.predicted],
        data=page_data(run),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def write_errors_page(folder: Path) -> Path:
    """Run the stage: write ``errors.html`` of a run folder."""
    page = folder / "errors.html"
    write_text(page, errors_html(load_predictions(folder)))
    return page
