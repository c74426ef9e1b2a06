"""Plots of a board: Vega-Lite specifications for the page, and the same as SVG files."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import altair as alt
import vl_convert

from nerprobe.redact import visible
from nerprobe.render import rank_text, size

Row = Mapping[str, Any]
Spec = dict[str, Any]
Colours = Mapping[str, str]

NAMES = ("ink", "soft", "line", "mark", "base", "back")
PAGE: Colours = {name: f"var(--{name})" for name in NAMES}
"""Colours of the page's style sheet, so that a plot follows light, dark and print."""
FILE: Colours = dict(zip(NAMES, ("#1b1f24", "#59636e", "#d1d9e0", "#0b62c4", "#8a6100", "#ffffff"), strict=True))
KINDS = ("encoder", "baseline")
PLOTTED = 60
"""Most models whose pairs are drawn in the SVG file; the page takes any number."""
WORDY = 15
"""Up to this many models each pair's difference is written out."""
FIRST_DIGIT = "datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9))"
"""Vega expression of a number's first digit."""
VERDICTS = (
    "separated, adjusted for all pairs",
    "separated only if this is the one pair looked at",
    "not separated: the order may be chance",
)


def verdict(pair: Row, *, alpha: float) -> str:
    """Return in words what is known of a pair's order at level ``alpha`` (Benjamini-Hochberg over all pairs)."""
    return VERDICTS[0 if pair["p_bh"] < alpha else 1 if pair["p"] < alpha else 2]


def tier_title(tier: int, number: int) -> str:
    """Return a tier's heading, such as ``Tier 1: 3 models tied``."""
    return f"Tier {tier}: {number} models tied" if number > 1 else f"Tier {tier}: one model alone"


def good_rows(board: Mapping[str, Any]) -> list[Row]:
    """Return the rows that have scores, best first."""
    return [row for row in board["rows"] if row["status"] == "ok"]


def link(row: Row) -> str:
    """Return the address of a row's metrics file beside the page."""
    return quote(row["metrics_file"])


def _values(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what every plot of models knows of each of them."""
    sizes: dict[int, int] = {}
    for row in rows:
        sizes[row["tier"]] = sizes.get(row["tier"], 0) + 1
    return [
        {
            "model": visible(row["model"]),
            "kind": row["kind"],
            "tier": tier_title(row["tier"], sizes[row["tier"]]),
            "rank": rank_text(row),
            "f1": row["f1"],
            "low": row["f1_ci_low"],
            "high": row["f1_ci_high"],
            "shown": f"{row['f1']:.3f}".removeprefix("0"),
            "parameters": row["parameters"],
            "seconds": row["seconds"],
            "size": size(row["parameters"]),
            "href": link(row),
            "command": visible(row["command"]),
        }
        for row in rows
    ]


def _tooltip(*more: alt.Tooltip) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("model:N", title="model"),
        alt.Tooltip("f1:Q", title="F1", format=".4f"),
        alt.Tooltip("low:Q", title="interval from", format=".4f"),
        alt.Tooltip("high:Q", title="to", format=".4f"),
        alt.Tooltip("rank:N", title="rank"),
        alt.Tooltip("tier:N", title="tier"),
        *more,
        alt.Tooltip("command:N", title="made by"),
    ]


def _plain_kind(colours: Colours) -> Any:  # noqa: ANN401
    """Return the colour of a kind for marks that need no legend."""
    return alt.condition(alt.datum.kind == "baseline", alt.value(colours["base"]), alt.value(colours["mark"]))


def _kind(colours: Colours) -> dict[str, Any]:
    """Return the encodings that tell encoders from baselines, by colour and by shape."""
    legend = alt.Legend(title=None, orient="top", symbolSize=80)
    kinds = list(KINDS)
    return {
        "color": alt.Color(
            "kind:N", legend=legend, scale=alt.Scale(domain=kinds, range=[colours["mark"], colours["base"]])
        ),
        "shape": alt.Shape("kind:N", legend=legend, scale=alt.Scale(domain=kinds, range=["circle", "square"])),
        "href": "href:N",
    }


def _finished(chart: Any, colours: Colours, *, description: str) -> Spec:  # noqa: ANN401 - any chart of altair
    """Return a chart's specification with the style that all plots share."""
    spec: Spec = chart.to_dict()
    ink, soft, line = colours["ink"], colours["soft"], colours["line"]
    axis = {"labelColor": ink, "titleColor": soft, "gridColor": line, "domainColor": line, "tickColor": line}
    text = {"labelColor": ink, "titleColor": soft, "labelLimit": 300, "labelFontSize": 12, "titleFontSize": 12}
    spec["config"] = {
        "background": None if colours is PAGE else colours["back"],
        "font": "system-ui, sans-serif" if colours is PAGE else "sans-serif",
        "view": {"stroke": None},
        "axis": {**axis, **text, "titleFontWeight": "normal"},
        "header": text,
        "legend": text,
        "text": {"color": ink, "fontSize": 12},
    }
    spec["description"] = description
    return spec


def forest(board: Mapping[str, Any], colours: Colours = PAGE, *, width: int = 420) -> Spec:
    """Return F1 with intervals, the tiers in panels of their own."""
    values = _values(good_rows(board))
    base = alt.Chart().encode(
        y=alt.Y(
            "model:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, labelPadding=8, ticks=False, domain=False)
        ),
    )
    x = alt.X("low:Q", title="F1", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    dash = alt.condition(alt.datum.kind == "baseline", alt.value([4, 3]), alt.value([1, 0]))
    panel = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q", color=_plain_kind(colours), strokeDash=dash),
        base.mark_point(filled=True, size=80, opacity=1).encode(x="f1:Q", tooltip=_tooltip(), **_kind(colours)),
        base.mark_text(align="left", dx=7).encode(x="high:Q", text="shown:N"),
        data=alt.InlineData(values=values),
    ).properties(width=width, height=alt.Step(20))
    header = alt.Header(
        title=None, labelAngle=0, labelOrient="top", labelAnchor="start", labelFontWeight="bold", labelPadding=4
    )
    tiers = list(dict.fromkeys(value["tier"] for value in values))
    chart = panel.facet(row=alt.Row("tier:N", sort=tiers, title=None, header=header), spacing=12)
    return _finished(
        chart.resolve_scale(y="independent"), colours, description="F1 of each model with its interval, by tier"
    )


def pair_cells(board: Mapping[str, Any], *, most: int) -> list[dict[str, Any]]:
    """Return a record for each pair among the first models of the board."""
    alpha = 1 - board["bootstrap"]["level"]
    shown = {row["model"] for row in good_rows(board)[:most]}
    return [
        {
            "first": visible(pair["first"]),
            "second": visible(pair["second"]),
            "verdict": verdict(pair, alpha=alpha),
            "shown": ("≈ " if pair["p"] >= alpha else "+") + f"{pair['difference']:.3f}".replace("0.", ".", 1),
            **{name: pair[name] for name in ("difference", "low", "high", "p", "p_bh", "p_leader")},
        }
        for pair in board["pairs"]
        if {pair["first"], pair["second"]} <= shown
    ]


def _pair_axes(names: Sequence[str]) -> tuple[alt.X, alt.Y]:
    label: dict[str, Any] = {"labelLimit": 160, "ticks": False, "domain": False, "grid": False}
    label["labelOverlap"] = len(names) > WORDY
    across = alt.Axis(**label, orient="bottom", labelAngle=-90 if len(names) > WORDY else -40)
    return (
        alt.X("second:N", title="… this one", scale=alt.Scale(domain=list(names[1:])), axis=across),
        alt.Y("first:N", title="This one leads …", scale=alt.Scale(domain=list(names[:-1])), axis=alt.Axis(**label)),
    )


def _pair_tips() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("first:N", title="this model"),
        alt.Tooltip("second:N", title="leads"),
        alt.Tooltip("difference:Q", title="by F1", format=".4f"),
        alt.Tooltip("low:Q", title="interval from", format=".4f"),
        alt.Tooltip("high:Q", title="to", format=".4f"),
        alt.Tooltip("p:Q", title="p, this pair alone", format=".4f"),
        alt.Tooltip("p_bh:Q", title="p, all pairs (BH)", format=".4f"),
        alt.Tooltip("verdict:N", title="verdict"),
    ]


def _by_verdict(values: Sequence[Any]) -> alt.Scale:
    """Return the scale that gives each verdict, in their order, a value."""
    return alt.Scale(domain=list(VERDICTS), range=list(values))


def _pair_layers(colours: Colours, *, wordy: bool, edge: int) -> list[alt.Chart]:
    """Return the marks of the matrix: tint, symbol by colour, shape and size, and the difference where it fits."""
    known, alone = (alt.datum.verdict == each for each in VERDICTS[:2])
    tint = alt.when(known).then(alt.value(colours["mark"])).when(alone).then(alt.value(colours["base"]))
    sizes = (90.0, 60.0, 40.0) if wordy else (edge**2 * 0.8, edge**2 * 0.4, max(2.0, edge**2 * 0.08))
    small = alt.value(sizes[2])
    legend = alt.Legend(title=None, orient="top", direction="vertical", symbolSize=90, symbolOpacity=1)
    inks = _by_verdict([colours[name] for name in ("mark", "base", "soft")])
    shapes = _by_verdict(["square", "triangle-up", "circle"])
    rect = alt.Chart().mark_rect(opacity=0.12, cursor="pointer")
    point = alt.Chart().mark_point(filled=True, opacity=1, cursor="pointer", xOffset=-22 if wordy else 0)
    layers = [
        rect.encode(color=tint.otherwise(alt.value(colours["soft"]))),
        point.encode(
            color=alt.Color("verdict:N", scale=inks, legend=legend),
            shape=alt.Shape("verdict:N", scale=shapes, legend=legend),
            size=alt.when(known).then(alt.value(sizes[0])).when(alone).then(alt.value(sizes[1])).otherwise(small),
        ),
    ]
    return [*layers, alt.Chart().mark_text(dx=8, cursor="pointer").encode(text="shown:N")] if wordy else layers


def pair_matrix(board: Mapping[str, Any], colours: Colours = PAGE, *, most: int | None = None) -> Spec:
    """Return the pairwise matrix: how far the row's model leads the column's, and whether that is known.

    On the page its data come by the name ``pairs``, so that 19,900 pairs lie there only once.
    """
    rows = good_rows(board)[:most]
    wordy, edge = len(rows) <= WORDY, max(4, min(22, 800 // max(1, len(rows))))
    x, y = _pair_axes([visible(row["model"]) for row in rows])
    layers = [layer.encode(x=x, y=y, tooltip=_pair_tips()) for layer in _pair_layers(colours, wordy=wordy, edge=edge)]
    data = alt.NamedData("pairs") if most is None else alt.InlineData(values=pair_cells(board, most=most))
    across, down = (64, 28) if wordy else (edge, edge)
    chart = alt.layer(*layers, data=data).properties(width=alt.Step(across), height=alt.Step(down))
    return _finished(chart, colours, description="Difference of F1 between every two models")


def _named(values: Sequence[Mapping[str, Any]], field: str) -> list[dict[str, Any]]:
    """Place a name beside each point, to the side with room; leave out those that would lie on others.

    A name takes a box of 0.02 of the plot's width a letter and 0.04 F1; the best models are named first.
    """
    places = [math.log(value[field]) for value in values]
    span = max(places) - min(places) or 1.0
    where = [((place - min(places)) / span, value["f1"]) for place, value in zip(places, values, strict=True)]
    taken: list[tuple[float, float, float]] = [(x, x, y) for x, y in where]
    named = []
    for value, (x, y) in zip(values, where, strict=True):
        length, placed = 0.02 * min(24, len(value["model"])), {"left": "", "right": ""}
        boxes = {"right": (x + 0.01, x + length), "left": (x - length, x - 0.01)}
        for side in ("left", "right") if x > 0.6 else ("right", "left"):
            start, end = boxes[side]
            if all(end < a or b < start or abs(y - f1) > 0.04 for a, b, f1 in taken):
                taken.append((start, end, y))
                placed[side] = value["model"]
                break
        named.append({**value, **placed})
    return named


def cost(board: Mapping[str, Any], field: str, colours: Colours = PAGE, *, width: Any = "container") -> Spec:  # noqa: ANN401
    """Return F1 against what a model costs: ``parameters`` or ``seconds``; models without the figure are left out."""
    values = [value for value in _values(good_rows(board)) if value[field]]
    title, digits, marks = {
        "parameters": ("Parameters", "[1, 3]", "replace(format(datum.value, '~s'), 'G', 'B')"),
        "seconds": ("Seconds to embed", "[1, 2, 5]", "format(datum.value, '~g')"),
    }[field]
    marks = f"indexof({digits}, round({FIRST_DIGIT})) < 0 ? '' : {marks}"
    axis = alt.Axis(labelExpr=marks, tickCount=5, grid=False, ticks=False, labelOverlap=True)
    base = alt.Chart(alt.InlineData(values=_named(values, field) if values else [])).encode(
        x=alt.X(f"{field}:Q", title=title, scale=alt.Scale(type="log", padding=40, nice=False), axis=axis)
    )
    more = [alt.Tooltip("size:N", title="parameters"), alt.Tooltip("seconds:Q", format=",.1f")]
    y = alt.Y("low:Q", title="F1", scale=alt.Scale(zero=True))
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.35).encode(y=y, y2="high:Q", color=_plain_kind(colours)),
        base.mark_point(filled=True, size=80, opacity=1).encode(y="f1:Q", tooltip=_tooltip(*more), **_kind(colours)),
        base.mark_text(align="left", dx=8, limit=150).encode(y="f1:Q", text="right:N"),
        base.mark_text(align="right", dx=-8, limit=150).encode(y="f1:Q", text="left:N"),
    ]
    chart = alt.layer(*layers).properties(width=width, height=300)
    return _finished(chart, colours, description=f"F1 against {title.lower()}")


def _side_by_side(specs: Sequence[Spec]) -> Spec:
    """Return plots beside each other, with the first one's style and the data of all."""
    shared = {name: specs[0][name] for name in ("$schema", "config")}
    shared["datasets"] = {name: values for spec in specs for name, values in spec.get("datasets", {}).items()}
    kept = [{name: value for name, value in spec.items() if name not in shared} for spec in specs]
    return {**shared, "hconcat": kept}


def plots(board: Mapping[str, Any]) -> dict[str, str]:
    """Return the SVG text of each plot by its name."""
    specs = {
        "forest": forest(board, FILE),
        "pairs": pair_matrix(board, FILE, most=PLOTTED),
        "cost": _side_by_side([cost(board, field, FILE, width=380) for field in ("parameters", "seconds")]),
    }
    return {name: vl_convert.vegalite_to_svg(spec) for name, spec in specs.items()}


def compiled(spec: Spec) -> Spec:
    """Return a plot in the terms of Vega, which draws it: nothing is left to be decided where the page is read."""
    plot: Spec = vl_convert.vegalite_to_vega(spec)
    return plot


@functools.cache
def plot_library() -> str:
    """Return the JavaScript that draws plots, for a script element of the page."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
