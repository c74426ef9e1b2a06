"""errors.html in a real browser: choosing, marks, filters, hostile texts, and that it asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from error_runs import FIRST, SECOND, full_run
from playwright.sync_api import Browser, Page

from nerprobe.errors_page import write_errors_page

P, S = "PROFESION", "SITUACION_LABORAL"


@dataclass
class Seen:
    """What a page did beside showing itself."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def page(browser: Browser, seen: Seen) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.on("request", lambda request: seen.requests.append(request.url))
    opened.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: seen.complaints.append(str(error)))
    yield opened
    context.close()


@pytest.fixture(scope="module")
def errors_html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = {"first": FIRST, "second": SECOND, "lookup": {"t1": "O O O O O O"}}
    return write_errors_page(full_run(tmp_path_factory.mktemp("errors"), models, baselines=["lookup"]))


@pytest.fixture
def opened(page: Page, errors_html: Path, seen: Seen) -> Page:
    page.goto(errors_html.as_uri() + "#a=first")
    assert seen.complaints == []
    return page


def articles(page: Page) -> dict[str, str]:
    """Return the text of each item that is shown, as people read it, tags in their places."""
    return {
        article.locator("h3").inner_text(): article.locator(".text").inner_text()
        for article in page.locator("article").all()
    }


def counts(page: Page) -> dict[str, list[str]]:
    rows = page.locator("#counts tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}


def test_errors_of_one_model(opened: Page) -> None:
    assert opened.locator("#found").inner_text() == "4 errors in 3 of 5 test items"
    texts = articles(opened)
    assert list(texts) == ["t1", "t3", "t5"]
    assert texts["t1"] == f"La Enfermeragold {P} y el guardia civilgold {P}predicted {P}"
    assert texts["t3"] == f"estoy en parogold {S}predicted {P} hoy"
    assert texts["t5"] == f"ni médico ni juezpredicted {P}"
    assert counts(opened) == {
        "missed": ["1", "0", "1"],
        "invented": ["1", "0", "1"],
        "wrong boundary": ["1", "0", "1"],
        "wrong type": ["0", "1", "1"],
        "wrong boundary and type": ["0", "0", "0"],
        "all": ["3", "1", "4"],
    }
    assert opened.locator("article li").all_inner_texts() == [
        f"missed “Enfermera” {P}, seen in train",
        f"wrong boundary “guardia civil” {P}, predicted “civil” {P}, not seen in train",
        f"wrong type “en paro” {S}, predicted “en paro” {P}, seen in train",
        f"invented “juez” {P}, not seen in train",
    ]


def test_marks_differ_in_line_style_and_cross(opened: Page) -> None:
    item = opened.locator("article").first
    assert item.locator(".gold").all_inner_texts() == ["Enfermera", "guardia ", "civil"]
    assert item.locator(".a").all_inner_texts() == ["civil"]
    style = "e => { const s = getComputedStyle(e); return [s.borderTopStyle, s.borderBottomStyle]; }"
    assert item.locator(".gold").first.evaluate(style) == ["none", "solid"]
    assert item.locator(".a").first.evaluate(style) == ["dashed", "none"]


def test_a_right_mention_is_called_right(opened: Page) -> None:
    opened.select_option("select[name=a]", "second")
    assert articles(opened)["t1"].startswith(f"La Enfermeraright {P} y el guardia civilgold {P}")


def test_a_pair(opened: Page) -> None:
    opened.select_option("select[name=b]", "second")
    assert opened.locator("#found").inner_text() == "7 differences in 4 of 5 test items"
    assert {name: row[-1] for name, row in counts(opened).items()} == {
        "only A right": "1",
        "only B right": "1",
        "only A wrong": "3",
        "only B wrong": "2",
        "all": "7",
    }
    texts = articles(opened)
    assert texts["t1"] == f"La Enfermeragold + B {P} y el guardia civilgold {P}A {P}"
    assert texts["t3"] == f"estoy en parogold {S}A {P}B {P} hoy"
    assert opened.locator(".b").first.evaluate("e => getComputedStyle(e).borderTopStyle") == "dotted"
    about = opened.locator("#about").inner_text()
    assert "A: first: F1 0.250, 1 right of 4 predicted and 4 gold mentions" in about
    assert "nerprobe errors first second " in about


def test_filters_are_kept_in_the_address(opened: Page, errors_html: Path) -> None:
    opened.select_option("select[name=type]", label=S)
    assert list(articles(opened)) == ["t3"]
    opened.select_option("select[name=type]", "")
    opened.select_option("select[name=seen]", "1")
    assert opened.locator("#found").inner_text() == "2 errors in 2 of 5 test items"
    opened.select_option("select[name=kind]", label="missed")
    assert list(articles(opened)) == ["t1"]
    assert opened.locator("li.off").all_inner_texts()[0].startswith("wrong boundary")
    address = opened.url
    opened.goto("about:blank")
    opened.goto(address)
    assert opened.locator("#found").inner_text() == "1 error in 1 of 5 test items"
    opened.go_back()
    opened.goto(errors_html.as_uri() + "#a=first&b=lookup&kind=9&type=x")
    assert opened.locator("select[name=kind]").input_value() == ""


def test_markup_shows_as_text_and_nothing_is_asked_for(opened: Page, seen: Seen, errors_html: Path) -> None:
    dialogs: list[str] = []
    opened.on("dialog", lambda dialog: dialogs.append(dialog.message))
    opened.select_option("select[name=a]", "second")
    text = articles(opened)["t4"]
    assert text == f"</script><script>alert(1)</script>predicted {P} \\u001b[31m médicogold {P}"
    assert opened.locator("h1").inner_text() == "Errors: Tiny <b>&"
    opened.select_option("select[name=b]", "lookup")
    assert dialogs == []
    assert seen.complaints == []
    assert {url.partition("#")[0] for url in seen.requests} == {errors_html.as_uri()}


def test_without_an_address_the_best_encoder_is_shown(page: Page, errors_html: Path) -> None:
    page.goto(errors_html.as_uri())
    # F1 by hand: lookup 2 * 2 / (2 + 4), but it is a baseline; second 2 * 1 / (3 + 4); first 2 * 1 / (4 + 4)
    assert page.locator("select[name=a]").input_value() == "second"
    assert page.locator("select[name=a] option").all_inner_texts()[0] == "lookup (baseline)"


def test_links_lead_to_files_that_are_there(opened: Page, errors_html: Path) -> None:
    links = [link.get_attribute("href") for link in opened.locator("a").all()]
    assert links == ["leaderboard.html", "metrics/first.json"]
    assert all((errors_html.parent / link).is_file() for link in links if link)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(page: Page, errors_html: Path, seen: Seen, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(errors_html.as_uri() + "#a=first&b=second")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    back, ink = page.evaluate("(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
    assert (sum(map(int, back[4:-1].split(", "))) < sum(map(int, ink[4:-1].split(", ")))) is (scheme == "dark")
    assert seen.complaints == []


def test_print_shows_the_list_without_the_controls(opened: Page) -> None:
    opened.emulate_media(media="print")
    assert not opened.locator("form").is_visible()
    assert opened.locator("article").count() == 3


def test_two_hundred_encoders_over_a_hundred_items(page: Page, tmp_path: Path, seen: Seen) -> None:
    texts = {f"i{index}": f"aquí {index} la enfermera jefe dice que hoy no hay </script> nada" for index in range(100)}
    gold = dict.fromkeys(texts, "O O O B-P I-P O O O O O O O")
    models = {
        f"m{number}": {name: "O O O O B-P O O O O O O O" for index, name in enumerate(texts) if index % 200 <= number}
        for number in range(200)
    }
    made = write_errors_page(full_run(tmp_path, models, texts=texts, gold=gold))
    assert made.stat().st_size < 400_000
    page.goto(made.as_uri() + "#a=m199&b=m49")
    # m49 cuts the first 50 items, m199 all
    assert page.locator("#found").inner_text() == "100 differences in 50 of 100 test items"
    assert page.locator("select[name=a] option").count() == 200
    assert seen.complaints == []
