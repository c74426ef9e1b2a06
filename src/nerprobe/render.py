"""The board as text: terminal table and Markdown (the page is ``nerprobe.page``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nerprobe.redact import visible

Row = Mapping[str, Any]
HEADINGS = {"f1": "F1", "precision": "Precision", "recall": "Recall", "macro_f1": "Macro F1"}


def score(row: Row, name: str) -> str:
    """Return a score with its interval, such as ``.512 [.401, .618]``; empty for a failed row."""
    if row["status"] != "ok":
        return ""
    value, low, high = (short(row[key]) for key in (name, f"{name}_ci_low", f"{name}_ci_high"))
    return f"{value} [{low}, {high}]"


def short(value: float) -> str:
    """Return a number between 0 and 1 such as ``.512``."""
    return f"{value:.3f}".removeprefix("0")


def size(parameters: int | None) -> str:
    """Return a number of parameters such as ``22.7M``."""
    return "" if not parameters else f"{parameters / 1e6:.1f}M"


def facts(row: Row) -> str:
    """Return family, width and layers of a row, as far as known."""
    parts = [row.get("family") if row["kind"] != "baseline" else None]
    parts += [f"{row[name]} {text}" for name, text in (("width", "wide"), ("layers", "layers")) if row.get(name)]
    return ", ".join(part for part in parts if part)


def mentions(counts: Mapping[str, Any]) -> str:
    """Return what a pool holds, such as ``100 items with 43 mentions (40 A, 3 B) in 24 of them``."""
    by_type = ", ".join(f"{number} {kind}" for kind, number in counts["mentions"].items())
    total = sum(counts["mentions"].values())
    items, held = _plural(counts["items"], "item"), _plural(total, "mention")
    return f"{items} with {held} ({by_type}) in {counts['items_with_mentions']} of them"


def _plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def headline(board: Mapping[str, Any]) -> list[str]:
    """Return the lines that say what a board was made from."""
    counts, evaluation, boot = board["subset"]["counts"], board["evaluation"], board["bootstrap"]
    data = board["dataset"]
    where = {
        "hub": f"{data['repo']} at revision {data['revision']}",
        "path": f"local files {', '.join(f'{name} (sha256 {sha[:12]}…)' for name, sha in data['sha256'].items())}",
        "sample": "generated sample",
    }[data["source"]]
    lines = [
        f"Test: {mentions(counts[evaluation['test_pool']])}.",
        f"Train: {mentions(counts[evaluation['train_pool']])}.",
        f"Data: {where}; subset {board['subset']['id']}, seed {board['subset']['seed']}.",
        f"Brackets: {100 * boot['level']:g} % percentile bootstrap over test items, {boot['resamples']:,} resamples.",
    ]
    lines.append(
        f"Rank: {100 * boot['level']:g} % interval over {boot['comparisons']:,} resamples. Tier: rows not separated "
        f"from its best one (paired bootstrap, Holm, {100 * (1 - boot['level']):.3g} %)."
    )
    gap = board.get("smallest_gap") or {}
    if gap.get("visible") is not None:
        lines.append(
            f"Two rows that truly differ by {short(gap['visible'])} F1 are separated in {100 * gap['power']:g} of 100 "
            "boards like this one (median over pairs, each looked at alone); smaller gaps mostly hide."
        )
    return [visible(line) for line in lines]


SHOWN = 8
"""Exploratory scores told in a note; the CSV has all."""


def _exploratory(rows: Sequence[Row]) -> list[str]:
    """Return the note on scores under a C chosen on the train items, the largest changes first."""
    found = [row for row in rows if row.get("exploratory")]
    found.sort(key=lambda row: (-abs(row["exploratory"]["metrics"]["f1"] - row["f1"]), row["model"]))
    told = [
        f"{row['model']} {short(row['exploratory']['metrics']['f1'])} with C = {row['exploratory']['C']:g}"
        + (" (fit not converged)" if row["exploratory"].get("converged") is False else "")
        for row in found[:SHOWN]
    ]
    told += [f"{len(found) - SHOWN} more in leaderboard.csv"] if len(found) > SHOWN else []
    lead = "Exploratory, no benchmark score: F1 with C chosen by cross-validation on the train items: "
    return [f"{lead}{', '.join(told)}."] if told else []


def _leakage(found: Mapping[str, Any] | None) -> list[str]:
    """Return the note on test texts that are in train too."""
    if not found or not found["exact"] + found["near"]:
        return []
    return [
        f"{_plural(found['exact'], 'test item')} with the text of a train item and {found['near']} with nearly one "
        f"(of {found['test_items']}; leakage.json). None was removed."
    ]


def notes(board: Mapping[str, Any]) -> list[str]:
    """Return the flags of the rows, those that all rows share said once."""
    good = [row for row in board["rows"] if row["status"] == "ok"]
    flags = {row["model"]: [flag for flag in row["flags"].split("; ") if flag] for row in good}
    shared = [flag for flag in next(iter(flags.values()), []) if all(flag in other for other in flags.values())]
    lines = [f"All rows: {', '.join(shared)}."] if shared else []
    for model, own in flags.items():
        rest = [flag for flag in own if flag not in shared]
        if rest:
            lines.append(f"{model}: {', '.join(rest)}.")
    lines += [f"{row['model']} failed: {row['reason']}" for row in board["rows"] if row["status"] != "ok"]
    return [visible(line) for line in [*lines, *_leakage(board.get("leakage")), *_exploratory(good)]]


def rank_text(row: Row) -> str:
    """Return a rank with its interval, such as ``1–4``."""
    if row["rank"] is None:
        return "failed"
    low, high = row["rank_low"], row["rank_high"]
    return str(low) if low == high else f"{low}–{high}"


def cells(row: Row) -> list[str]:
    """Return the cells of one row of the short table."""
    name = visible(row["model"]) + (" (baseline)" if row.get("kind") == "baseline" else "")
    tier = "" if row["rank"] is None else str(row["tier"])
    return [rank_text(row), name, tier, *(score(row, metric) for metric in HEADINGS), size(row.get("parameters"))]


WIDE = 115
"""Columns of a terminal from which every score is shown with its interval."""
COLUMNS = ("Rank", "Model", "Tier", *HEADINGS.values(), "Parameters")


def board_markdown(board: Mapping[str, Any]) -> str:
    """Return the board as a Markdown table that can be pasted anywhere."""
    lines = [f"# {escape_markdown(board['title'])}", "", *map(escape_markdown, headline(board)), ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---:|" + ":---|" + "---:|" * (len(COLUMNS) - 2)]
    lines += ["| " + " | ".join(escape_markdown(cell) for cell in cells(row)) + " |" for row in board["rows"]]
    lines += [""] + [f"- {escape_markdown(note)}" for note in notes(board)]
    return "\n".join(lines).rstrip() + "\n"


def escape_markdown(text: str) -> str:
    """Return a text as Markdown shows it as it is."""
    shown = visible(text)
    for char in ("\\", "|", "`", "<", ">", "*"):
        shown = shown.replace(char, f"\\{char}")
    return shown.replace("](", "]\\(")


def wide_console() -> Console:
    """Return a console as wide as the terminal; where there is none, wide enough for a table."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, 140))


def print_board(board: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the board as a table for the terminal; a narrow one gets only the F1's interval."""
    console = console or wide_console()
    console.print(Text(f"{visible(board['title'])}  {board['run']}", style="bold"))
    for line in headline(board):
        console.print(line, highlight=False, markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if index == 1 else "right", no_wrap=index != 1, overflow="fold")
    for row in board["rows"]:
        style = "red" if row["status"] != "ok" else "dim" if row.get("kind") == "baseline" else ""
        shown = cells(row)
        if console.width < WIDE:
            shown[4:7] = [cell.partition(" ")[0] for cell in shown[4:7]]
        table.add_row(*map(Text, shown), style=style)
    console.print(table)
    for note in notes(board):
        console.print(f"- {note}", highlight=False, markup=False)
