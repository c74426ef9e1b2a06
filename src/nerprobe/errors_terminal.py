"""``nerprobe errors``: wrong mentions in context, in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nerprobe.errors import ConfigError
from nerprobe.items import Item
from nerprobe.mention_errors import LABELS, Side, differences, wrong_mentions
from nerprobe.redact import visible
from nerprobe.render import rank_text, score, wide_console
from nerprobe.run_predictions import RunPredictions, find_runs, load_predictions
from nerprobe.spans import Mention

CONTEXT = 15
"""Words shown on each side of a wrong mention."""
BRACKETS = (("[", "]", "bold green"), ("{", "}", "bold yellow"), ("<", ">", "bold magenta"))
"""Opening and closing mark of gold and of each model."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One thing to look at: its kind, its label, the mentions it tells of and the line that tells it."""

    kind: str
    label: str
    mentions: Sequence[Mention]
    line: str


def split_places(names: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Return model names and run folders among what was typed: a place has a slash, begins with a dot or ends in .json.

    Raises:
        ConfigError: If more than one further model is named.
    """
    places = [Path(name) for name in names if "/" in name or name.startswith(".") or name.endswith(".json")]
    others = [name for name in names if Path(name) not in places]
    if len(others) > 1:
        raise ConfigError("at most two models can be compared", where="nerprobe errors", got=", ".join(others)[:200])
    return others, places


def _words(item: Item, mention: Mention) -> str:
    text = item.text[item.starts[mention[1]] : item.ends[mention[2] - 1]]
    return f"“{visible(text)}” {mention[0]}"


def _against_gold(run: RunPredictions, models: Sequence[str], index: int) -> list[Entry]:
    item, entries = run.items[index], []
    for wrong in wrong_mentions(run.gold[index], run.predicted[models[0]][index]):
        mentions = [mention for mention in (wrong.gold, wrong.predicted) if mention is not None]
        seen = "seen in train" if run.is_seen(item, mentions[0]) else "not seen in train"
        line = ", predicted ".join(_words(item, mention) for mention in mentions) + f", {seen}"
        entries.append(Entry(kind=wrong.kind, label=LABELS[wrong.kind], mentions=mentions, line=line))
    return entries


def side_label(side: Side, models: Sequence[str]) -> str:
    """Return a side with the model's name, such as ``only alpha right``."""
    which, _, how = side.partition("-")
    return f"only {models[which == 'second']} {how}"


def _between(run: RunPredictions, models: Sequence[str], index: int) -> list[Entry]:
    item = run.items[index]
    first, second = (run.predicted[model][index] for model in models)
    return [
        Entry(
            kind=one.side,
            label=side_label(one.side, models),
            mentions=[one.mention],
            line=_words(item, one.mention)
            + (", seen in train" if run.is_seen(item, one.mention) else ", not seen in train"),
        )
        for one in differences(run.gold[index], first, second)
    ]


def marked(item: Item, layers: Sequence[Sequence[Mention]], around: Iterable[Mention]) -> Text:
    """Return an item's text with each layer's mentions in its brackets, cut to what lies around some mentions.

    Args:
        item: The item.
        layers: Mentions of gold and of each model.
        around: Mentions to show; ``CONTEXT`` words on each side of them are kept.
    """
    keep = {
        word for _, first, stop in around for word in range(first - CONTEXT, stop + CONTEXT) if word < len(item.words)
    }
    text, before, end = Text(), -1, 0
    for word, (start, stop) in enumerate(zip(item.starts, item.ends, strict=True)):
        if word in keep:
            skipped = " … " if before >= 0 else "… "
            text.append("" if word == 0 else skipped if word - 1 != before else visible(item.text[end:start]))
            for layer, (opening, _, style) in zip(layers, BRACKETS, strict=False):
                text.append(opening * sum(mention[1] == word for mention in layer), style)
            inside = any(first <= word < last for layer in layers for _, first, last in layer)
            text.append(visible(item.text[start:stop]), "bold" if inside else "")
            for layer, (_, closing, style) in reversed(list(zip(layers, BRACKETS, strict=False))):
                text.append(closing * sum(mention[2] == word + 1 for mention in layer), style)
            before = word
        end = stop
    return text.append(" …") if before + 1 < len(item.words) else text


def _count_table(entries: Iterable[Entry], labels: Mapping[str, str], types: Sequence[str]) -> Table:
    counts = Counter((entry.kind, entry.mentions[0][0]) for entry in entries)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("Kind", "", *map(visible, types), "all"):
        table.add_column(heading, justify="left" if heading in ("Kind", "") else "right")
    for kind, label in labels.items():
        numbers = [counts[kind, name] for name in types]
        table.add_row(label, f"--kind {kind}", *map(str, numbers), str(sum(numbers)))
    return table


def _print_run(console: Console, run: RunPredictions, models: Sequence[str], *, kind: str | None, limit: int) -> None:
    lines: Callable[[RunPredictions, Sequence[str], int], list[Entry]]
    if len(models) == 1:
        labels: dict[str, str] = {key.value: label for key, label in LABELS.items()}
        lines = _against_gold
    else:
        labels = {side.value: side_label(side, models) for side in Side}
        lines = _between
    if kind is not None and kind not in labels:
        raise ConfigError("no errors of this kind here", where="--kind", expected=", ".join(labels), got=kind)
    entries = {index: lines(run, models, index) for index in range(len(run.items))}
    console.print(Text(f"{visible(run.board['title'])}  {run.board['run']}", style="bold"))
    for model in models:
        row = run.row(model)
        said = f"{model}: F1 {score(row, 'f1')}, rank {rank_text(row)}, {row['tp']} right of {row['predicted']} "
        console.print(said + f"predicted and {row['gold']} gold mentions", markup=False, highlight=False)
        console.print(f"  {run.folder / row['metrics_file']}", markup=False, highlight=False)
    console.print(_count_table([e for found in entries.values() for e in found], labels, run.board["types"]))
    names = ["gold", *(models if len(models) > 1 else ["predicted"])]
    marks = [f"{opening}{name}{closing}" for (opening, closing, _), name in zip(BRACKETS, names, strict=False)]
    console.print(f"Marks: {', '.join(marks)}", markup=False, highlight=False)
    wanted = {index: fit for index, found in entries.items() if (fit := [e for e in found if kind in (None, e.kind)])}
    for index in list(wanted)[:limit]:
        layers = [run.gold[index], *(run.predicted[model][index] for model in models)]
        around = [mention for entry in wanted[index] for mention in entry.mentions]
        console.print(Text(f"\n{visible(run.items[index].item_id)}", style="dim"))
        console.print(marked(run.items[index], layers, around), soft_wrap=not console.is_terminal)
        for entry in wanted[index]:
            console.print(Text.assemble("  ", (entry.label, "bold"), ": ", entry.line))
    total = sum(map(len, wanted.values()))
    word = "error" if len(models) == 1 else "difference"
    rest = f"; --limit {len(wanted)} shows all" if len(wanted) > limit else ""
    said = f"\n{total} {word}{'' if total == 1 else 's'} in {len(wanted)} of {len(run.items)} test items{rest}"
    console.print(said, markup=False, highlight=False)


def print_errors(
    model: str, others: Sequence[str], boards: Sequence[Path], *, every: bool, kind: str | None, limit: int
) -> None:
    """Print the wrong mentions of a model, or the mentions in which two differ.

    Args:
        model: Name on the board.
        others: Nothing, or the other model.
        boards: leaderboard.json files, oldest first.
        every: Whether each board that has the models is meant, instead of the newest.
        kind: Only entries of this kind.
        limit: Most test items shown of a board.

    Raises:
        UnknownModelError: If no board has scores of the models.
        ConfigError: If the kind does not exist, or a model is compared with itself.
    """
    models = [model, *others]
    if len(set(models)) < len(models):
        raise ConfigError("a model does not differ from itself", where="nerprobe errors", got=model[:120])
    for folder in find_runs(models, boards, every=every):
        _print_run(wide_console(), load_predictions(folder, models), models, kind=kind, limit=limit)
