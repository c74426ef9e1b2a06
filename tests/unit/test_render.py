"""The board for people: scores as they are read, and texts that cannot act in Markdown or a terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from boards import board_of, metrics_of, put_failure, put_metrics, run_folder
from rich.console import Console

from nerprobe.page import board_page
from nerprobe.redact import visible
from nerprobe.render import board_markdown, print_board, score, size

HOSTILE = (
    "<script>alert(1)</script> | `x` [click](http://example.invalid) ![i](http://example.invalid/i) "
    "\x1b[31m\u202e\n- [bold]b[/nope]"
)
HALF = {"t1": "O O O", "t2": "O O"}


def hostile_board(tmp_path: Path, **corpus: Any) -> dict[str, Any]:
    folder = run_folder(tmp_path, **corpus)
    put_metrics(folder, "half", HALF)
    put_failure(folder, "bad", HOSTILE)
    return board_of(folder, ["half", "bad"])


def terminal(board: dict[str, Any], width: int = 200) -> str:
    out = io.StringIO()
    print_board(board, Console(file=out, width=width))
    return out.getvalue()


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.5124, 0.4006, 0.61751, ".512 [.401, .618]"),
        (1.0, 1.0, 1.0, "1.000 [1.000, 1.000]"),
        (0.0, 0.0, 0.0499, ".000 [.000, .050]"),
    ],
)
def test_a_score_is_shown_with_its_interval(value: float, low: float, high: float, text: str) -> None:
    assert score({"status": "ok", "f1": value, "f1_ci_low": low, "f1_ci_high": high}, "f1") == text


def test_a_failed_row_has_no_score() -> None:
    assert score({"status": "failed"}, "f1") == ""


@pytest.mark.parametrize(("parameters", "text"), [(22_700_000, "22.7M"), (278_000_000, "278.0M"), (None, ""), (0, "")])
def test_sizes_are_in_millions(parameters: int | None, text: str) -> None:
    assert size(parameters) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é", "plain é"),
        ("a\nb", "a\\u000ab"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
    ],
)
def test_control_characters_are_shown_and_not_sent(text: str, shown: str) -> None:
    assert visible(text) == shown


# --- what the boards say -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [board_markdown, board_page, terminal], ids=["markdown", "html", "terminal"])
def test_every_board_shows_scores_counts_and_the_data(tmp_path: Path, make: Any) -> None:
    text = " ".join(re.sub(r"<[^>]+>", " ", make(hostile_board(tmp_path))).split())
    for part in (".667", "half", "bad", "4 items with 4 mentions", "seed 7", "200 resamples", "95 %"):
        assert part in text


def test_a_baseline_is_marked(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    put_metrics(folder, "char-ngrams", HALF, encoder=metrics_of("m")["encoder"] | {"baseline": True})
    board = board_of(folder, ["char-ngrams"])
    assert "char-ngrams (baseline)" in board_markdown(board)
    assert "char-ngrams (baseline)" in terminal(board)


# --- hostile texts -------------------------------------------------------------------------------


def test_a_hostile_reason_stays_on_one_line_of_markdown(tmp_path: Path) -> None:
    lines = board_markdown(hostile_board(tmp_path)).splitlines()
    (line,) = [line for line in lines if "alert" in line]
    assert line.startswith("- bad failed: ")
    assert not re.search(r"(?<!\\)[<|`]", line[2:])


def test_a_hostile_reason_makes_no_link_and_no_image_in_markdown(tmp_path: Path) -> None:
    assert not re.search(r"(?<!\\)\](?<!\\)\(", board_markdown(hostile_board(tmp_path)))


def test_a_hostile_title_makes_no_html_in_markdown(tmp_path: Path) -> None:
    assert not re.search(r"(?<!\\)<script", board_markdown(hostile_board(tmp_path, title="<script>x</script>")))


@pytest.mark.parametrize("name", ["<b>", "a|b", "x\ny"])
def test_a_hostile_file_name_makes_no_html_in_markdown(tmp_path: Path, name: str) -> None:
    text = board_markdown(hostile_board(tmp_path, sha256={name: "0" * 64}))
    assert not re.search(r"(?<!\\)<b>", text)
    assert "x\ny" not in text


def test_rows_of_the_markdown_table_have_the_cells_of_its_head(tmp_path: Path) -> None:
    table = [line for line in board_markdown(hostile_board(tmp_path)).splitlines() if line.startswith("|")]
    assert len(table) == 4
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


def test_a_hostile_reason_cannot_act_in_a_terminal(tmp_path: Path) -> None:
    text = terminal(hostile_board(tmp_path))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]b[/nope]" in text.replace("\n", "")


@pytest.mark.parametrize("title", ["NER [/b]", "NER [red]all[/red]", "NER \x1b[31m", "NER \u202e"])
def test_a_title_is_shown_as_it_is_in_a_terminal(tmp_path: Path, title: str) -> None:
    assert visible(title) in terminal(hostile_board(tmp_path, title=title))


def test_a_narrow_terminal_still_shows_each_model(tmp_path: Path) -> None:
    assert "half" in terminal(hostile_board(tmp_path), width=80)
