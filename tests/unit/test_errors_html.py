"""Data of errors.html by hand, what is escaped, and whose texts stay out."""

from __future__ import annotations

from pathlib import Path

import pytest
from boards import BOOTSTRAP
from error_runs import FIRST, SECOND, full_run, page_json
from makers import make_item, run_nerprobe

from nerprobe.errors import ArtefactError
from nerprobe.errors_page import errors_html, shown_words, write_errors_page
from nerprobe.leaderboard import write_board
from nerprobe.manage import forget_model
from nerprobe.run_predictions import load_predictions

KINDS = ["missed", "invented", "wrong boundary", "wrong type", "wrong boundary and type"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return full_run(tmp_path, {"first": FIRST, "second": SECOND, "right": {}})


def spelled(data, model: str) -> list[tuple[str, str, str]]:
    """Return kind, gold words and predicted words of a model's errors."""

    def words(number: int) -> str:
        if number < 0:
            return ""
        item, _, first, stop, _ = data["mentions"][number]
        return " ".join(data["items"][item][1][first:stop])

    (found,) = (one for one in data["models"] if one["name"] == model)
    return [(data["kinds"][kind], words(gold), words(said)) for kind, gold, said in found["wrong"]]


def test_errors_by_hand(folder: Path) -> None:
    data = page_json(errors_html(load_predictions(folder)))
    assert data["kinds"] == KINDS
    assert spelled(data, "right") == []
    assert spelled(data, "first") == [
        ("missed", "Enfermera", ""),
        ("wrong boundary", "guardia civil", "civil"),
        ("wrong type", "en paro", "en paro"),
        ("invented", "", "juez"),
    ]
    assert spelled(data, "second") == [
        ("missed", "guardia civil", ""),
        ("wrong boundary and type", "en paro", "paro"),
        ("invented", "", "</script><script>alert(1)</script>"),
        ("missed", "médico", ""),
    ]
    assert data["total"] == 5
    assert [item[0] for item in data["items"]] == ["t1", "t3", "t4", "t5"], "nobody errs in t2"


def test_seen_means_the_same_words_whatever_their_case(folder: Path) -> None:
    data = page_json(errors_html(load_predictions(folder)))
    seen = {(item, first, stop): bool(flag) for item, _, first, stop, flag in data["mentions"]}
    assert seen[0, 1, 2], "Enfermera; train has enfermera"
    assert not seen[0, 4, 6], "guardia civil"
    assert seen[1, 1, 3], "en paro"
    assert not seen[1, 2, 3], "paro alone was no mention"


def test_markup_of_a_text_ends_no_element_and_escapes_are_shown(folder: Path) -> None:
    html = errors_html(load_predictions(folder))
    assert "alert(1)</script>" not in html
    assert html.count("</script>") == 2
    assert "\x1b" not in html
    assert page_json(html)["items"][2][1][1] == "\\u001b[31m"
    assert "Tiny &lt;b&gt;&amp;" in html


def test_the_page_names_nothing_to_load(folder: Path) -> None:
    html = errors_html(load_predictions(folder))
    assert "default-src 'none'" in html
    assert not [word for word in ("http:", "https:", "src=", "@import", "url(") if word in html]


def test_words_keep_joined_emoji_and_show_what_could_act() -> None:
    item = make_item(["👩\u200d⚕\ufe0f", "a\u202eb", "\u200d", "x\ny", "\u2028"])
    words, gaps = shown_words(item)
    assert words == ["👩\u200d⚕\ufe0f", "a\\u202eb", "\\u200d", "x\\u000ay", "\\u2028"]
    assert gaps == ["", " ", " ", " ", " "]


def test_texts_stand_once_however_many_models(tmp_path: Path) -> None:
    few = full_run(tmp_path / "few", {"m": SECOND})
    many = full_run(tmp_path / "many", {f"m{index}": SECOND for index in range(60)})
    small, large = (errors_html(load_predictions(folder)) for folder in (few, many))
    assert large.count("guardia") == small.count("guardia") == 1
    # one more model takes its facts and its four errors, with no text
    assert (len(large) - len(small)) / 59 < 260


def test_the_command_writes_the_page(folder: Path) -> None:
    done = run_nerprobe("errors-page", "--folder", str(folder), cwd=folder.parents[2])
    assert (done.returncode, done.stdout) == (0, "")
    assert (folder / "errors.html").read_text(encoding="utf-8") == errors_html(load_predictions(folder))


@pytest.mark.parametrize("shareable", [True, False])
def test_a_warning_stands_where_texts_may_not_be_passed_on(tmp_path: Path, shareable: bool) -> None:
    folder = full_run(tmp_path, {"m": {}}, texts_shareable=shareable)
    assert ("For your eyes" in errors_html(load_predictions(folder))) is not shareable


def test_no_text_is_in_the_board(folder: Path) -> None:
    for path in folder.glob("leaderboard.*"):
        assert "guardia" not in path.read_text(encoding="utf-8")


def test_a_board_without_a_page_removes_an_old_one(folder: Path) -> None:
    write_errors_page(folder)
    write_board(folder, requested=["first"], bootstrap=BOOTSTRAP)
    assert (folder / "errors.html").exists()
    write_board(folder, requested=["first"], bootstrap=BOOTSTRAP, errors_page=False)
    assert not (folder / "errors.html").exists()


def test_a_forgotten_model_leaves_the_page(folder: Path) -> None:
    write_errors_page(folder)
    forget_model("first", yes=True)
    data = page_json((folder / "errors.html").read_text(encoding="utf-8"))
    assert [model["name"] for model in data["models"]] == ["right", "second"]


def test_a_model_off_the_list_without_predictions_is_named(folder: Path) -> None:
    (folder / "predictions" / "second.parquet").unlink()
    html = errors_html(load_predictions(folder))
    assert "not here: second." in html


@pytest.mark.parametrize("damage", ["cut", "other", "empty"])
def test_damaged_or_other_predictions_are_refused(folder: Path, damage: str) -> None:
    path = folder / "predictions" / "second.parquet"
    data = path.read_bytes()
    replaced = {"cut": data[: len(data) // 2], "empty": b"", "other": path.with_name("first.parquet").read_bytes()}
    path.write_bytes(replaced[damage])
    with pytest.raises(ArtefactError, match=r"second\.parquet"):
        load_predictions(folder)
