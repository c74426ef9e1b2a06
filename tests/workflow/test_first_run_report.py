"""What a real run hands on: a board that fits its schema, a page without corpus text, plots, and the report."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from helpers import MODELS, Place, Ran, read

from nerprobe.config import validate

pytestmark = pytest.mark.workflow


def test_the_board_fits_its_schema(board: Path) -> None:
    found = read(board / "leaderboard.json")
    assert validate(found, schema="leaderboard", where="leaderboard.json") == found
    assert {row["model"] for row in found["rows"]} >= set(MODELS)  # other tests of a session may add encoders


def test_the_page_holds_no_text_of_the_corpus(board: Path) -> None:
    page = (board / "leaderboard.html").read_text(encoding="utf-8")
    texts = pq.read_table(board / "corpus.parquet", columns=["text"])["text"].to_pylist()
    assert len(texts) == 110
    held = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), page)
    assert [text for text in texts if any(part in held for part in (text, text[:30], text[-30:]))] == []


def test_plots_lie_beside_the_board(board: Path) -> None:
    for name in ("forest", "pairs", "cost"):
        text = (board / "plots" / f"{name}.svg").read_text(encoding="utf-8")
        words = " ".join(ElementTree.fromstring(text).itertext())
        assert "alpha" in words
        assert "var(" not in text


def test_a_lost_plot_is_made_again(place: Place, full: Ran, board: Path) -> None:
    plot = board / "plots" / "forest.svg"
    before = plot.read_bytes()
    plot.unlink()
    config = place.config("./alpha", baselines="train-lookup,char-ngrams,random-bert")
    again = place.run(*config)
    assert again.code == 0, again.out
    assert again.jobs == [("leaderboard", "")]
    assert plot.read_bytes() == before
    assert place.dry(*config).nothing


def test_the_report_carries_board_plots_and_captions(place: Place, full: Ran, board: Path, tmp_path: Path) -> None:
    report = place.typed / "report.zip"
    config = place.config("./alpha", baselines="train-lookup,char-ngrams,random-bert")
    done = place.run(*config, flags=["--report", str(report)])
    assert done.code == 0, done.out
    with zipfile.ZipFile(report) as held:
        contents = {name: held.read(name) for name in held.namelist()}
    for file in ("leaderboard.html", "leaderboard.md", "plots/forest.svg", "plots/pairs.svg", "plots/cost.svg"):
        assert (board / file).read_bytes() in contents.values(), f"the report lacks {file}"
    words = " ".join(data.decode() for name, data in contents.items() if name.endswith(("report.html", ".json")))
    for caption in ("bootstrap interval, a panel a tier", "leads the column", "on logarithmic axes", "as one page"):
        assert caption in json.dumps(words) or caption in words
    assert "Frozen text encoders, ranked by" in words
    assert board.name in words
