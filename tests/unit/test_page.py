"""The board's page and plots as files: what they say, that no text of data acts, and that equal boards give equal bytes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from boards import BOOTSTRAP, NOTHING, RUN, P, board_of, metrics_of, put_failure, put_metrics, run_folder

from nerprobe.charts import FILE, VERDICTS, cost, plots, verdict
from nerprobe.config import validate
from nerprobe.files import write_json
from nerprobe.leaderboard import write_board
from nerprobe.page import board_page, breakdown_tables, pair_columns, rate, short, tiers, verdicts

HALF = {"t1": "O O O", "t2": "O O"}
HOSTILE = "<script>alert(1)</script> \x1b[31m\u202e </title> {{ 7 * 7 }} <!--"
BASELINE = metrics_of("m")["encoder"] | {"baseline": True}
LEAKAGE = {"exact": 1, "near": 2, "threshold": 0.9, "test_items": 4}
PAIR = {"test": "t1", "train": "r1", "similarity": 1.0}


class Page(HTMLParser):
    """Text outside of scripts and styles, addresses, and tags of a page, as a browser would read it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src") or name.startswith("on")]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"] and self.cdata_elem:
            self.scripts[-1] += data
        elif self.tags[-1:] != ["style"] or not self.cdata_elem:
            self.text += data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return run_folder(tmp_path)


def four(folder: Path) -> dict[str, Any]:
    """Return a board of two encoders, a baseline and a failed one, with all that is optional."""
    part = {"dimension": "seen", "value": "seen in train", "gold": 2, "predicted": 0, "tp": 0}
    for model, predicted in (("best", None), ("half", HALF), ("lookup", NOTHING)):
        metrics = metrics_of(model, predicted, **({"encoder": BASELINE} if model == "lookup" else {}))
        metrics["evaluations"][0]["breakdown"] = [part | {"recall": 0.0, "precision": None}]
        score = {"f1": 0.25, "precision": 0.5, "recall": 0.75, "macro_f1": 0.125}
        metrics["exploratory"] = {"C": 10.0, "grid": [1.0, 10.0], "folds": 5, "cv_f1": {"1.0": 0.1}, "metrics": score}
        metrics["exploratory"]["converged"] = True
        write_json(folder / "metrics" / f"{model}.json", metrics)
    put_failure(folder, "bad", HOSTILE)
    write_json(folder / "leakage.json", LEAKAGE | {"pairs": [PAIR]})
    return board_of(folder, ["best", "half", "lookup", "bad"])


# --- what is passed on ---------------------------------------------------------------------------


def test_rows_pass_on_breakdown_exploratory_and_health(folder: Path) -> None:
    health = {"words": 11, "subwords": 20, "fertility": 1.8, "unknown_rate": 0.0, "words_without_subwords": 0}
    health |= {"items_windowed": 0, "offset_mismatches": 0}
    write_json(folder / "embeddings" / "half.0123456789ab.json", {"health": health, "seconds": 1.5})
    rows = {row["model"]: row for row in four(folder)["rows"]}
    assert rows["half"]["breakdown"][0]["value"] == "seen in train"
    assert rows["half"]["exploratory"]["C"] == 10.0
    assert rows["half"]["health_values"] == health
    assert rows["best"]["health_values"] is None
    assert "breakdown" not in rows["bad"]


def test_a_board_of_older_metrics_has_empty_places(folder: Path) -> None:
    put_metrics(folder, "half", HALF)
    board = board_of(folder, ["half"])
    row = board["rows"][0]
    assert (row["breakdown"], row["exploratory"], row["health_values"], board["leakage"]) == ([], None, None, None)
    assert board["texts_shareable"] is False
    page = Page(board_page(board))
    assert "exploratory" not in page.text.lower()
    assert "errors.html" not in page.links


def test_leakage_and_whether_texts_may_be_shown_come_from_the_run_s_files(tmp_path: Path) -> None:
    board = four(run_folder(tmp_path, texts_shareable=True))
    assert board["leakage"] == LEAKAGE | {"pairs": [PAIR]}
    assert board["texts_shareable"] is True
    page = Page(board_page(board, errors_page=True))
    assert "errors.html" in page.links
    assert "1 test item with the text of a train item and 2 with nearly one (of 4; leakage.json)" in page.text
    assert re.search(r"\(similarity 0\.9 or more\)\s*Test item\s*Train item\s*Similarity\s*t1\s*r1\s*1\.000", page.text)


def test_the_smallest_gap_is_the_least_difference_with_a_small_p(folder: Path) -> None:
    board = four(folder)
    small = [pair["difference"] for pair in board["pairs"] if pair["p"] < 0.05]
    assert board["smallest_gap"]["gap"] == (min(small) if small else None)
    assert board["smallest_gap"]["items"] == 4


def test_a_board_fits_its_schema(folder: Path) -> None:
    four(folder)
    write_board(folder, requested=["best", "half", "lookup", "bad"], bootstrap=BOOTSTRAP)
    board = json.loads((folder / "leaderboard.json").read_text())
    assert validate(board, schema="leaderboard", where="board") == board
    for broken in ({"schema": 2}, {"rows": [{"model": "m"}]}, {"extra": 1}, {"run": "latest"}):
        with pytest.raises(Exception, match="board"):
            validate(board | broken, schema="leaderboard", where="board")


# --- words ---------------------------------------------------------------------------------------


def made(*placed: tuple[str, int, float, str], gap: float | None = 0.1) -> dict[str, Any]:
    """Return as much of a board as words need: models with tier, F1 and kind."""
    rows = [
        {"model": model, "status": "ok", "tier": tier, "f1": f1, "kind": kind, "gold": 43}
        for model, tier, f1, kind in placed
    ]
    return {"rows": rows, "pairs": [], "bootstrap": {"level": 0.95}, "smallest_gap": {"gap": gap, "items": 100}}


def test_one_leader_and_two_tied_behind() -> None:
    board = made(("a", 1, 0.9, "encoder"), ("b", 2, 0.5, "encoder"), ("c", 2, 0.4, "baseline"))
    first, second = tiers(board)
    assert first["title"] == "Tier 1: one model alone"
    assert first["words"] == "Leads alone: every other model is separated from it."
    assert second["title"] == "Tier 2: 2 models tied"
    assert second["words"] == "Behind a; none is separated from b, so their order may be chance."
    assert verdicts(board) == [
        "a leads alone among 3 models.",
        "0 of 2 encoders are separated above the best baseline, c (adjusted for all pairs).",
        "With 100 test items and 43 mentions, the smallest difference in F1 that is separated is .100 (not adjusted).",
    ]


def test_all_tied_and_none_separated() -> None:
    board = made(("a", 1, 0.9, "encoder"), ("b", 1, 0.5, "encoder"), gap=None)
    assert tiers(board)[0]["words"] == "None is separated from the best, a: the whole order may be chance."
    assert verdicts(board) == [
        "2 of 2 models are tied for first: a, b.",
        "With 100 test items and 43 mentions, no two models are separated.",
    ]


def test_encoders_are_counted_above_the_best_baseline_only_if_separated() -> None:
    board = made(("a", 1, 0.9, "encoder"), ("b", 1, 0.8, "encoder"), ("l", 1, 0.7, "baseline"), ("m", 2, 0, "baseline"))
    pairs = [("a", "l", 0.2, 0.01), ("b", "l", 0.1, 0.2), ("a", "b", 0.1, 0.01), ("b", "m", 0.8, 0.001)]
    board["pairs"] = [dict(zip(("first", "second", "difference", "p_bh"), pair, strict=True)) for pair in pairs]
    assert "1 of 2 encoders are separated above the best baseline, l (adjusted for all pairs)." in verdicts(board)


@pytest.mark.parametrize(
    ("right", "whole", "text"),
    [(0, 0, "none"), (2, 3, "2 of 3"), (9, 9, "9 of 9"), (5, 10, ".500 (5 of 10)"), (10, 10, "1.000 (10 of 10)")],
)
def test_few_mentions_give_no_rate(right: int, whole: int, text: str) -> None:
    assert rate(right, whole) == text


@pytest.mark.parametrize(("value", "text"), [(0.0, ".000"), (0.9996, "1.000"), (1.0, "1.000"), (0.5124, ".512")])
def test_short_scores(value: float, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize(("p", "p_bh", "place"), [(0.01, 0.04, 0), (0.04, 0.05, 1), (0.05, 0.2, 2)])
def test_a_pair_s_verdict_is_strict_at_the_level(p: float, p_bh: float, place: int) -> None:
    assert verdict({"p": p, "p_bh": p_bh}, alpha=0.05) == VERDICTS[place]


def test_pairs_are_shown_rounded_but_judged_exactly(folder: Path) -> None:
    board = four(folder)
    board["pairs"] = [board["pairs"][0] | {"p": 0.0399964, "p_bh": 0.0499996, "difference": 0.12345678}]
    columns = pair_columns(board)
    assert (columns["difference"], columns["p"], columns["p_bh"], columns["verdict"]) == ([0.1235], [0.04], [0.05], [0])


def test_a_breakdown_table_has_a_column_a_value(folder: Path) -> None:
    (table,) = breakdown_tables(four(folder))
    assert (table["title"], table["values"]) == ("Seen in training or not", ["seen in train"])
    assert [row["model"] for row, _ in table["rows"]] == ["best", "half", "lookup"]


# --- the page ------------------------------------------------------------------------------------


def test_all_addresses_of_the_page_lie_beside_or_inside_it(folder: Path) -> None:
    page = Page(board_page(four(folder)))
    outside = [link for link in page.links if not link.startswith(("#", "metrics/", "data:,"))]
    assert outside == []
    assert not {"img", "iframe", "object"} & set(page.tags)
    assert page.tags.count("link") == 1, "only the empty icon, so that no browser asks for one"


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    board = four(run_folder(tmp_path, title=f"Title {HOSTILE}", types=[P, "SITUACION_LABORAL"]))
    page = Page(board_page(board))
    plain = Page(board_page(four(run_folder(tmp_path / "plain"))))
    assert page.tags == plain.tags
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not {"\x1b", "\u202e"} & set(page.text)


def test_the_data_of_the_script_are_whole_json_without_any_tag(folder: Path) -> None:
    board = four(folder)
    board["rows"][0]["command"] = HOSTILE
    text = board_page(board)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    assert "<" not in found[1]
    data = json.loads(found[1])
    assert [model["name"] for model in data["models"]] == ["best", "half", "lookup"]
    assert len(data["pairs"]["p"]) == 3
    assert data["run"] == f"results/tiny/{RUN}"


def test_a_name_with_signs_of_addresses_still_leads_to_its_file(folder: Path) -> None:
    put_metrics(folder, "a#b?c d%", HALF)
    assert "metrics/a%23b%3Fc%20d%25.json" in Page(board_page(board_of(folder, ["a#b?c d%"]))).links


@pytest.mark.parametrize("models", [[], ["half"]])
def test_a_board_without_pairs_can_be_shown(folder: Path, models: list[str]) -> None:
    for model in models:
        put_metrics(folder, model, HALF)
    put_failure(folder, "bad", "no")
    board = board_of(folder, [*models, "bad"])
    page = Page(board_page(board))
    assert "bad" in page.text
    assert set(plots(board)) == {"forest", "pairs", "cost"}


# --- plots ---------------------------------------------------------------------------------------


def test_plots_are_svg_with_every_model_and_again_the_same_bytes(folder: Path) -> None:
    board = four(folder)
    found = plots(board)
    assert plots(board) == found
    for name, text in found.items():
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        words = " ".join(root.itertext())
        for model in ("best", "half") if name == "cost" else ("best", "half", "lookup"):
            assert model in words
        assert "var(" not in text, "the page's colours mean nothing in a file of its own"


def test_models_without_parameters_are_left_out_of_the_cost_plot(folder: Path) -> None:
    encoder = metrics_of("m")["encoder"]
    put_metrics(folder, "half", HALF)
    put_metrics(folder, "none", HALF, encoder=encoder | {"info": {"family": "BERT", "parameters": None}})
    spec = cost(board_of(folder, ["half", "none"]), "parameters", FILE)
    (values,) = spec["datasets"].values()
    assert [value["model"] for value in values] == ["half"]
