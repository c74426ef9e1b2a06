"""What ``nerprobe sweep`` says: the table, what its scores are not, and the registry entry of the best cell."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nerprobe.config import PROJECT, load_registry
from nerprobe.encoders import Encoder
from nerprobe.render import mentions, score, wide_console

WIDE = 100
"""Columns of a terminal from which every score is shown with its interval."""


def describe(encoder: Encoder, about: Mapping[str, Any], *, key: str) -> dict[str, Any]:
    """Return what the file of a sweep says of the encoder."""
    return {
        "source": encoder.identity,
        "revision": encoder.revision,
        "settings": {name: value for name, value in encoder.settings.items() if name not in ("layer", "pooling")},
        "measured": {name: value for name, value in about.items() if name != "device"},
        "key": key,
    }


def exploratory(result: Mapping[str, Any]) -> str:
    """Return the line that says what these scores are not."""
    held = result["split"]["counts"]["held_out"]
    total = sum(held["mentions"].values())
    return (
        f"exploratory: chosen on {held['items']} train items with {total} mention{'s' * (total != 1)}, "
        f"not a benchmark score; "
        f"the best of {len(result['cells'])} cells is optimistic"
    )


def registry_entry(reference: str, encoder: Encoder, *, best: Mapping[str, Any], family: str) -> dict[str, Any] | None:
    """Return the entry of ``config/models.yaml`` that uses the best cell; None where it is the default one."""
    if (best["layer"], best["pooling"]) == ("last", "mean"):
        return None
    source = {name: value for name, value in encoder.source.items() if name != "content_sha256"}
    known = load_registry(PROJECT / "config" / "models.yaml").get(reference, {"source": source, "family": family})
    name = f"{encoder.slug[:70]}-layer-{best['layer']}-{best['pooling']}"
    return {name: {**known, "layer": best["layer"], "pooling": best["pooling"]}}


def report(result: Mapping[str, Any], file: Path, console: Console | None = None) -> None:
    """Print a sweep: what it was made from, a row a layer and a column a pooling, and what to do with it."""
    console = console or wide_console()
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    counts, boot, best = result["split"]["counts"], result["bootstrap"], result["best"]
    console.print(Text(f"{result['model']}  {result['task']}/{result['run']}", style="bold"))
    for name in ("fit", "held_out"):
        say(f"{name.replace('_', ' ').capitalize()}: {mentions(counts[name])}.")
    say(f"F1 on the held-out items; brackets: {100 * boot['level']:g} % percentile bootstrap over them.")
    console.print(_table(result, wide=console.width >= WIDE))
    say(f"* best: layer {best['layer']}, pooling {best['pooling']}, F1 {score({**best, 'status': 'ok'}, 'f1')}")
    over = result["over_default"]
    if over is not None and result["entry"] is not None:
        rest = f"{over['difference']:+.3f} [{over['low']:+.3f}, {over['high']:+.3f}]"
        say(f"  over layer last, pooling mean: {rest}, on the same resamples, choice not accounted for")
    slow = sum(not cell["converged"] for cell in result["cells"])
    if slow:
        say(f"{slow} of {len(result['cells'])} fits did not converge within {result['probe']['max_iter']} iterations")
    say(result["exploratory"])
    say(f"written to {file}")
    if result["entry"] is None:
        say("The best cell is what an entry without layer and pooling uses.")
    else:
        say("To use it, add this to config/models.yaml:\n")
        say(yaml.safe_dump(result["entry"], sort_keys=False, allow_unicode=True), end="")


def _table(result: Mapping[str, Any], *, wide: bool) -> Table:
    cells: dict[Any, dict[str, Any]] = {}
    for cell in result["cells"]:
        cells.setdefault(cell["layer"], {})[cell["pooling"]] = cell
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, heading in enumerate(("Layer", *next(iter(cells.values())))):
        table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    named = {0: "0 (embeddings)", "last": f"{result['encoder']['measured']['layers']} (last)"}
    for layer, row in cells.items():
        shown = [Text(named.get(layer, str(layer)))]
        for cell in row.values():
            text = score({**cell, "status": "ok"}, "f1")
            mark, style = ("*", "bold green") if cell == result["best"] else ("", "")
            shown.append(Text((text if wide else text.partition(" ")[0]) + mark, style=style))
        table.add_row(*shown)
    return table
