"""Stage ``learning_curve``: the curves of all encoders of a run as JSON, CSV, Markdown and a plot.

The interval at each point is that of the board (percentile bootstrap over test items, shared by all encoders); the
spread over train subsets stands apart from it, since the one says nothing of the other.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nerprobe.bootstrap import Floats, interval, metric_values, weight_matrix
from nerprobe.files import hashes, read_json, write_json, write_text
from nerprobe.redact import visible
from nerprobe.render import escape_markdown, short
from nerprobe.subset import load_subset


def model_curve(record: Mapping[str, Any], weights: Floats, *, level: float) -> dict[str, Any]:
    """Return one encoder's part of ``learning_curve.json``.

    Args:
        record: Its ``curves/<model>.json``.
        weights: Shape (resamples, test items).
        level: Level of the intervals.
    """
    curve, repeats = [], []
    for fit in record["fits"]:
        if fit["first_rank"] == 0:
            counts = np.array([fit[name] for name in ("tp", "predicted", "gold")], dtype=np.float64).T
            low, high = interval(metric_values((weights @ counts)[:, None, :])["f1"], level)
            curve.append({"train_items": fit["train_items"], "f1": fit["f1"], "low": low, "high": high})
        if fit["repeat"]:
            repeats.append({name: fit[name] for name in ("first_rank", "train_items", "f1")})
    scores = [repeat["f1"] for repeat in repeats]
    return {
        "model": record["model"],
        "curve": curve,
        "repeats": repeats,
        "repeat_mean": statistics.fmean(scores) if scores else None,
        "repeat_sd": statistics.stdev(scores) if scores else None,
        "not_converged": sum(not fit["converged"] for fit in record["fits"]),
    }


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|:---|" + "---:|" * (len(header) - 1)]
    return lines + ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]


def curve_markdown(found: Mapping[str, Any]) -> str:
    """Return both tables as Markdown."""
    models, level = found["models"], 100 * found["level"]
    sizes = sorted({point["train_items"] for one in models for point in one["curve"]})
    lines = [f"# Learning curve: {escape_markdown(found['title'])}", "", f"{found['task']}, {found['run']}", ""]
    lines.append(f"F1 on the same {found['test_items']} test items, by number of train items. ")
    lines += [f"Brackets: {level:g} % percentile bootstrap over test items.", ""]
    rows = []
    for one in models:
        points = {p["train_items"]: f"{short(p['f1'])} [{short(p['low'])}, {short(p['high'])}]" for p in one["curve"]}
        rows.append([one["model"], *(points.get(size, "") for size in sizes)])
    lines += _table(["Model", *(f"{size:,}" for size in sizes)], rows)
    if any(one["repeats"] for one in models):
        size = next(one["repeats"][0]["train_items"] for one in models if one["repeats"])
        lines += ["", f"F1 over train subsets of {size:,} items that share none. This spread is not in the brackets"]
        lines += ["above, nor in those of the board.", ""]
        rows = []
        for one in (one for one in models if one["repeats"]):
            scores = [repeat["f1"] for repeat in one["repeats"]]
            spread = [short(one["repeat_mean"]), short(one["repeat_sd"]), f"{short(min(scores))}–{short(max(scores))}"]
            rows.append([one["model"], str(len(scores)), *spread])
        lines += _table(["Model", "Subsets", "Mean", "Standard deviation", "Lowest–highest"], rows)
    slow = [f"{one['model']} ({one['not_converged']})" for one in models if one["not_converged"]]
    lines += ["", "Fits that did not converge: " + escape_markdown(", ".join(slow)) + "."] if slow else []
    return "\n".join(lines) + "\n"


def curve_frame(found: Mapping[str, Any]) -> pd.DataFrame:
    """Return all fits as a frame: a row a model, kind (``curve`` or ``repeat``), first rank and size."""
    rows = [
        {"model": one["model"], "kind": kind, "first_rank": 0, **point}
        for one in found["models"]
        for kind, points in (("curve", one["curve"]), ("repeat", one["repeats"]))
        for point in points
    ]
    return pd.DataFrame(rows, columns=["model", "kind", "first_rank", "train_items", "f1", "low", "high"])


def curve_svg(found: Mapping[str, Any]) -> str:
    """Return the plot: the curves with their intervals, and beside them the scores over train subsets."""
    import altair as alt  # a second to import, and only this plot needs it
    import vl_convert

    frame = curve_frame(found)
    frame["model"] = frame["model"].map(visible)
    order = [visible(one["model"]) for one in found["models"]]
    f1 = alt.Y("f1:Q", title="F1", scale=alt.Scale(domain=[0, 1]))
    # Models also differ in shape: colour is never the only sign.
    looks: dict[str, Any] = {
        "color": alt.Color("model:N", sort=order, title="Model"),
        "shape": alt.Shape("model:N", sort=order, title="Model"),
    }
    sizes = sorted({point["train_items"] for one in found["models"] for point in one["curve"]})
    items = alt.X("train_items:Q", title="Train items", scale=alt.Scale(type="log"), axis=alt.Axis(values=sizes))
    curves = alt.Chart(frame[frame["kind"] == "curve"]).encode(x=items, color=looks["color"])
    line, points = curves.mark_line().encode(y=f1), curves.mark_point(filled=True, size=60).encode(y=f1, **looks)
    bars = curves.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q", title="F1"), y2="high:Q")
    left = (bars + line + points).properties(width=420, height=320, title="By train items; bars: test interval")
    repeats = frame[frame["kind"] == "repeat"]
    chart: alt.LayerChart | alt.HConcatChart = left
    if len(repeats):
        x = alt.X("model:N", sort=order, title=None)
        dots = alt.Chart(repeats).encode(x=x)
        spread = dots.mark_point(size=60).encode(y=f1, **looks) + dots.mark_tick(color="gray").encode(y="mean(f1):Q")
        size = int(repeats["train_items"].iloc[0])
        title = f"Over train subsets of {size:,}; tick: mean"
        chart = left | spread.properties(width=alt.Step(40), height=320, title=title)
    return str(vl_convert.vegalite_to_svg(chart.to_json()))


def write_learning_curve(spec: Mapping[str, Any], *, folder: Path) -> None:
    """Run the stage: write ``learning_curve.json``, ``.csv``, ``.md`` and ``.svg``.

    Args:
        spec: ``models`` and ``bootstrap``, as for the board.
        folder: ``results/<task>/<run>``.
    """
    about, subset, boot = read_json(folder / "corpus.json"), load_subset(folder / "subset.json"), spec["bootstrap"]
    test = subset["items"][about["evaluations"][0]["test_pool"]]
    seed = subset["seed"] if boot["seed"] is None else boot["seed"]
    weights = weight_matrix(len(test), resamples=boot["resamples"], seed=seed)
    records = [read_json(folder / "curves" / f"{model}.json") for model in spec["models"]]
    models = [model_curve(record, weights, level=boot["level"]) for record in records]
    found = {
        "schema": 1,
        "task": about["task"],
        "title": about["title"],
        "run": folder.name,
        "test_items": len(test),
        "level": boot["level"],
        "models": sorted(models, key=lambda one: (-one["curve"][-1]["f1"], one["model"])),
    }
    write_text(folder / "learning_curve.csv", curve_frame(found).to_csv(index=False, lineterminator="\n"))
    write_text(folder / "learning_curve.md", curve_markdown(found))
    write_text(folder / "learning_curve.svg", curve_svg(found))
    found["files"] = hashes(folder / f"learning_curve.{suffix}" for suffix in ("csv", "md", "svg"))
    write_json(folder / "learning_curve.json", found)
