"""``leaderboard.html``: the board as one page that asks for nothing else, with its tables, plots and pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import itables
import jinja2
from itables.javascript import generate_init_offline_itables_html
from markupsafe import Markup

from nerprobe.charts import (
    VERDICTS,
    compiled,
    cost,
    forest,
    good_rows,
    link,
    pair_matrix,
    plot_library,
    tier_title,
    verdict,
)
from nerprobe.redact import visible
from nerprobe.render import HEADINGS, facts, headline, mentions, notes, rank_text, score, size
from nerprobe.rows import FEW_MENTIONS

Board = Mapping[str, Any]
Row = Mapping[str, Any]
DIMENSIONS = {
    "seen": "Seen in training or not",
    "words": "One word or more",
    "form": "Plain words, hashtags, handles",
    "emoji": "With or without emoji in the text",
    "length": "Length of the text",
}
"""Headings of the breakdown's dimensions; types have a table of their own."""
HEALTH = {
    "words": "Words",
    "subwords": "Sub-words",
    "fertility": "Sub-words a word",
    "unknown_rate": "Unknown sub-words",
    "words_without_subwords": "Words without sub-words",
    "items_windowed": "Texts read in windows",
    "offset_mismatches": "Sub-words at other characters",
}


NAMED = 8
"""Models of a tier that are named at once; the others can be unfolded."""


def short(value: float) -> str:
    """Return a score such as ``.512``."""
    return f"{value:.3f}".replace("0.", ".", 1)


def tiers(board: Board) -> list[dict[str, Any]]:
    """Return the tiers in order: number, title, what that means in words, and rows."""
    found: dict[int, list[Row]] = {}
    for row in good_rows(board):
        found.setdefault(row["tier"], []).append(row)
    told, before = [], ""
    for tier, rows in sorted(found.items()):
        best = rows[0]["model"]
        if len(found) == 1 and len(rows) == 1:
            words = "The only model with scores on this board."
        elif len(found) == 1:
            words = f"None is separated from the best, {best}: the whole order may be chance."
        elif not before and len(rows) == 1:
            words = "Leads alone: every other model is separated from it."
        elif not before:
            words = f"Tied for first: none is separated from {best}, so which one is best may be chance."
        elif len(rows) == 1:
            words = f"Behind {before}, ahead of the tiers below." if tier < len(found) else f"Behind {before}."
        else:
            words = f"Behind {before}; none is separated from {best}, so their order may be chance."
        told.append({"tier": tier, "title": tier_title(tier, len(rows)), "words": words, "rows": rows})
        before = best
    return told


def verdicts(board: Board) -> list[str]:
    """Return the first things to know: who leads, what the baselines say, what the board can see, what failed."""
    rows = good_rows(board)
    failed = [row["model"] for row in board["rows"] if row["status"] != "ok"]
    lines = []
    if rows:
        first = [row["model"] for row in rows if row["tier"] == 1]
        named = ", ".join(first[:4]) + (f" and {len(first) - 4} more" if len(first) > 4 else "")
        tied = f"{len(first)} of {len(rows)} models are tied for first: {named}."
        lines.append(tied if len(first) > 1 else f"{first[0]} leads alone among {_models(len(rows))}.")
        lines += [*_over_baselines(board, rows), _gap(board)]
    if failed:
        named = ", ".join(failed[:4]) + (f" and {len(failed) - 4} more" if len(failed) > 4 else "")
        lines.append(f"{_models(len(failed))} failed: {named}. The table says why.")
    return lines


def _models(number: int) -> str:
    return "1 model" if number == 1 else f"{number} models"


def _over_baselines(board: Board, rows: Sequence[Row]) -> list[str]:
    """Return how many encoders are separated above the best baseline (Benjamini-Hochberg over all pairs)."""
    baselines = [row["model"] for row in rows if row["kind"] == "baseline"]
    encoders = {row["model"] for row in rows if row["kind"] != "baseline"}
    if not baselines or not encoders:
        return []
    best, alpha = baselines[0], 1 - board["bootstrap"]["level"]
    above = sum(
        pair["first"] in encoders and pair["second"] == best and pair["difference"] > 0 and pair["p_bh"] < alpha
        for pair in board["pairs"]
    )
    known = "encoder is" if len(encoders) == 1 else "encoders are"
    return [f"{above} of {len(encoders)} {known} separated above the best baseline, {best} (adjusted for all pairs)."]


def _gap(board: Board) -> str:
    seen = board["smallest_gap"]
    gold = good_rows(board)[0]["gold"]
    basis = f"{seen['items']} test items and {gold} mentions"
    if seen["gap"] is None:
        return f"With {basis}, no two models are separated."
    return f"With {basis}, the smallest difference in F1 that is separated is {short(seen['gap'])} (not adjusted)."


def breakdown_tables(board: Board) -> list[dict[str, Any]]:
    """Return a table for each dimension of the breakdown: title, values, and each row's counts by value."""
    told = []
    for dimension, title in DIMENSIONS.items():
        by_row = [
            (row, {part["value"]: part for part in row["breakdown"] if part["dimension"] == dimension})
            for row in good_rows(board)
        ]
        values = list(dict.fromkeys(value for _, parts in by_row for value in parts))
        if values:
            told.append({"title": title, "values": values, "rows": by_row})
    return told


def rate(right: int, whole: int) -> str:
    """Return a rate with its counts; of few mentions only the counts, so that nobody reads them as a rate."""
    if whole == 0:
        return "none"
    return f"{right} of {whole}" if whole < FEW_MENTIONS else f"{short(right / whole)} ({right} of {whole})"


def pair_columns(board: Board) -> dict[str, list[Any]]:
    """Return all pairs by column, as they are shown; models and verdicts by their places, from the exact values."""
    place = {row["model"]: index for index, row in enumerate(good_rows(board))}
    alpha = 1 - board["bootstrap"]["level"]
    columns: dict[str, list[Any]] = {
        name: [round(pair[name], 4) for pair in board["pairs"]] for name in ("difference", "low", "high", "p", "p_bh")
    }
    columns["p_leader"] = [None if pair["p_leader"] is None else round(pair["p_leader"], 4) for pair in board["pairs"]]
    columns["verdict"] = [VERDICTS.index(verdict(pair, alpha=alpha)) for pair in board["pairs"]]
    for name in ("first", "second"):
        columns[name] = [place[pair[name]] for pair in board["pairs"]]
    return columns


def page_data(board: Board) -> dict[str, Any]:
    """Return what the page's script reads: models, pairs and plots."""
    return {
        "run": f"results/{board['task']}/{board['run']}",
        "level": board["bootstrap"]["level"],
        "verdicts": VERDICTS,
        "models": [
            {"name": visible(row["model"]), "href": link(row), "command": visible(row["command"]), "kind": row["kind"]}
            | {"f1": score(row, "f1"), "rank": rank_text(row), "tier": row["tier"]}
            for row in good_rows(board)
        ],
        "pairs": pair_columns(board),
        "charts": {
            "forest": compiled(forest(board)),
            "pairs": compiled(pair_matrix(board)),
            **{field: compiled(cost(board, field)) for field in ("parameters", "seconds")},
        },
    }


def _shown(value: object) -> object:
    """Make control characters of any text visible; text that a template or library made is left as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def environment() -> jinja2.Environment:
    """Return the templates' environment: everything is escaped, and a missing name is an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("nerprobe", "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    return made


def table_library() -> str:
    """Return the script element that holds the library of tables, without the words for notebooks behind it."""
    bundle = Path(itables.__file__).parent / "html" / "dt_bundle.js"
    return generate_init_offline_itables_html(bundle).partition("<div")[0]


def board_page(board: Board, *, errors_page: bool = False) -> str:
    """Return the board as one HTML page that asks for nothing else; all text of data is escaped.

    Args:
        board: As in ``leaderboard.json``.
        errors_page: Whether ``errors.html`` lies beside it, or will.
    """
    counts, evaluation = board["subset"]["counts"], board["evaluation"]
    return environment().get_template("leaderboard.html").render(
        board=board,
        errors_page=errors_page,
        rows=good_rows(board),
        verdicts=verdicts(board),
        tiers=tiers(board),
        pools={pool: mentions(counts[evaluation[f"{pool}_pool"]]) for pool in ("test", "train")},
        headline=headline(board)[2:],
        notes=notes(board),
        breakdowns=breakdown_tables(board),
        exploratory=any(row["exploratory"] for row in good_rows(board)),
        health=[(row, row["health_values"]) for row in good_rows(board) if row["health_values"]],
        data=page_data(board),
        plot_library=Markup(plot_library()),
        table_library=Markup(table_library()),
        **_names(),
    )  # fmt: skip


def _names() -> dict[str, Any]:
    """Return the functions and headings that the template uses."""
    functions = {each.__name__: each for each in (facts, link, rank_text, rate, score, short, size)}
    return {**functions, "headings": HEADINGS, "health_headings": HEALTH, "few": FEW_MENTIONS, "first_named": NAMED}
