"""``nerprobe errors``: marks, counts and escapes by hand, and which board it reads."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from error_runs import FIRST, SECOND, full_run
from makers import make_item, run_nerprobe

from nerprobe.errors import NerprobeError
from nerprobe.errors_terminal import marked, print_errors, split_places
from nerprobe.manage import board_files
from nerprobe.run_predictions import find_runs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return full_run(tmp_path, {"first": FIRST, "second": SECOND})


def told(folder: Path, *arguments: str) -> str:
    done = run_nerprobe("errors", *arguments, cwd=folder.parents[2])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_brackets_may_cross() -> None:
    item = make_item(["el", "guardia", "civil", "de", "Vigo"])
    gold, said = [("P", 1, 3)], [("P", 2, 5)]
    assert marked(item, [gold, said], gold).plain == "el [guardia {civil] de Vigo}"
    assert marked(item, [gold, gold], gold).plain == "el [{guardia civil}] de Vigo"


def test_long_texts_are_cut_around_the_mentions() -> None:
    item = make_item([str(number) for number in range(60)])
    text = marked(item, [[("P", 20, 21)]], [("P", 20, 21)]).plain
    assert text.startswith("… 5 6 ")
    assert text.endswith(" 34 35 …")
    assert " [20] " in text


def test_errors_of_one_model_in_context(folder: Path) -> None:
    said = told(folder, "first")
    lines = [line.strip() for line in said.split("\n")]
    # gold mentions: Enfermera, guardia civil, en paro, médico; predicted: civil, en paro, médico, juez
    assert "first: F1 .250 [" in said
    assert "1 right of 4 predicted and 4 gold mentions" in said
    assert "La [Enfermera] y el [guardia {civil}]" in lines
    assert "missed: “Enfermera” PROFESION, seen in train" in lines
    kind = "wrong boundary: “guardia civil” PROFESION, predicted “civil” PROFESION, not seen in train"
    assert kind in lines
    assert "wrong type: “en paro” SITUACION_LABORAL, predicted “en paro” PROFESION, seen in train" in lines
    assert "invented: “juez” PROFESION, not seen in train" in lines
    assert "4 errors in 3 of 5 test items" in lines
    (row,) = (line.split() for line in lines if line.startswith("missed  "))
    assert row == ["missed", "--kind", "missed", "1", "0", "1"]


def test_markup_and_escapes_of_a_text_are_shown(folder: Path) -> None:
    said = told(folder, "second", "--kind", "invented")
    assert "{</script><script>alert(1)</script>} \\u001b[31m [médico]" in said
    assert "\x1b" not in said
    assert "1 error in 1 of 5 test items" in said


def test_two_models_where_they_differ(folder: Path) -> None:
    said = told(folder, "first", "second")
    assert "La [<Enfermera>] y el [guardia {civil}]" in said
    assert "only second right: “Enfermera” PROFESION, seen in train" in said
    assert "only first right: “médico” PROFESION" in said
    assert "only first wrong: “juez” PROFESION" in said
    # t1 Enfermera, civil; t3 en paro, paro; t4 markup, médico; t5 juez
    assert "7 differences in 4 of 5 test items" in said


def test_limit_and_kind(folder: Path) -> None:
    said = told(folder, "first", "--limit", "1")
    assert "“juez”" not in said
    assert "4 errors in 3 of 5 test items; --limit 3 shows all" in said
    assert "1 difference in 1 of 5" in told(folder, "first", "second", "--kind", "second-right")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["first", "--kind", "wrong"], "missed, invented, boundary, type, both"),
        (["first", "second", "--kind", "missed"], "first-right"),
        (["fist"], "did you mean first"),
        (["first", "nobody"], "nobody"),
        (["first", "first"], "itself"),
        (["first", "second", "third"], "at most two"),
        (["first", "./results/none/none"], "no board here"),
        (["\x1b[31m"], r"x1b\[31m"),
    ],
)
def test_mistakes_end_in_one_line(folder: Path, arguments: list[str], match: str) -> None:
    done = run_nerprobe("errors", *arguments, cwd=folder.parents[2])
    assert done.returncode == 1
    assert len(done.stderr.strip().split("\n")) == 1
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    assert re.search(match, done.stderr)


def test_places_and_names_are_told_apart() -> None:
    assert split_places(["other", "results/a/b", "./c", "leaderboard.json"]) == (
        ["other"],
        [Path("results/a/b"), Path("c"), Path("leaderboard.json")],
    )


def test_the_newest_board_that_has_the_model_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, models, time in (("old", ["m", "n"], 100), ("new", ["m"], 200)):
        made = full_run(tmp_path / "made" / name, {model: {} for model in models})
        folder = tmp_path / "results" / "tiny" / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        made.rename(folder)
        os.utime(folder / "subset.json", (time, time))
    assert [path.name for path in find_runs(["m"], board_files([]), every=False)] == ["new"]
    assert [path.name for path in find_runs(["n"], board_files([]), every=False)] == ["old"]
    assert [path.name for path in find_runs(["m"], board_files([]), every=True)] == ["old", "new"]


def test_a_board_that_is_none_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaderboard.json").write_text("[]")
    with pytest.raises(NerprobeError, match=r"leaderboard\.json"):
        print_errors("m", [], board_files([Path("leaderboard.json")]), every=True, kind=None, limit=1)
