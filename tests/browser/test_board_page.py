"""The board's page in a real browser: it sorts, filters, compares, and can be read anywhere."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from synthetic import synthetic_board

Visit = Callable[..., Page]
ACTING = "<img src=x onerror=\"document.title='acted'\">"
REASON = "OSError: <script>document.title='acted'</script> no fast tokenizer"
SMALL = {"xlm-roberta-base": 0.62, "roberta-base-bne": 0.66, "minilm-l6": 0.35, "e5-small": 0.64, ACTING: 0.5}
SMALL |= {"base-lookup": 0.55, "base-ngrams": 0.42, "base-random": 0.02}
BOARDS = pytest.mark.parametrize("which", ["small", "large"])


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Open a run's page; when the test ends, it must have asked for nothing else and logged nothing."""
    asked: list[str] = []
    logged: list[str] = []
    contexts = []

    def open_page(folder: Path, *, width: int = 1280, ready: bool = True, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        address = (folder / "leaderboard.html").as_uri()
        page.on("request", lambda request: asked.append(request.url) if request.url != address else None)
        page.on("console", lambda message: logged.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: logged.append(str(error)))
        page.on("dialog", lambda dialog: logged.append(f"dialog: {dialog.message}"))
        page.goto(address)
        if ready:
            page.wait_for_selector("html[data-ready]", timeout=120_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    # The table library lies in the page and is read from there as a blob.
    assert [url[:100] for url in asked if not url.startswith(("blob:null/", "data:"))] == []
    assert logged == []


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight models and a failed one; a model's name and the reason would act if they could."""
    return synthetic_board(tmp_path_factory.mktemp("small"), SMALL, failed={"bad-model": REASON})


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 200 models and a failed one."""
    models = {f"{'base' if i % 50 == 0 else 'encoder-with-a-name'}-{i:03d}": 0.1 + 0.8 * i / 200 for i in range(200)}
    return synthetic_board(tmp_path_factory.mktemp("large"), models, failed={"bad-model": REASON})


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "leaderboard.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def good_rows(folder: Path) -> list[dict[str, str]]:
    return [row for row in rows_of(folder) if row["status"] == "ok"]


def board_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "leaderboard.json").read_text(encoding="utf-8"))
    return found


def names(page: Page, cells: str = "#board td.name") -> list[str]:
    """Return the models of a column of names, as shown."""
    return [text.split("\n")[0].removesuffix(" (baseline)") for text in page.locator(cells).all_inner_texts()]


def expect_names(page: Page, models: list[str]) -> None:
    """Wait until the board's table shows these models in this order: it sorts and filters when it gets to it."""
    cells = page.locator("#board td.name")
    expect(cells).to_have_count(len(models))
    expect(cells).to_contain_text(models)
    assert names(page) == models


def decimals(value: float) -> str:
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.4f}")


def head(page: Page, name: str) -> Any:
    return page.locator("#board thead th").filter(has_text=re.compile(rf"^\s*{name}\s*$"))


@BOARDS
def test_it_can_be_read_to_its_end_without_a_request_or_a_message(
    visit: Visit, request: pytest.FixtureRequest, which: str
) -> None:
    folder = request.getfixturevalue(which)
    page = visit(folder)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    for chart in ("forest", "pairs", "parameters", "seconds"):
        box = page.locator(f"[data-chart={chart}] :is(svg, canvas)").bounding_box()
        assert box is not None
        assert box["width"] > 100
        assert box["height"] > 100
    assert (folder / "leaderboard.html").stat().st_size < {"small": 2_500_000, "large": 5_000_000}[which]


@BOARDS
def test_tied_models_stand_in_one_card_and_its_heading_says_so(
    visit: Visit, request: pytest.FixtureRequest, which: str
) -> None:
    folder = request.getfixturevalue(which)
    cards = visit(folder).locator(".tier")
    by_tier: dict[str, list[str]] = {}
    for row in good_rows(folder):
        by_tier.setdefault(row["tier"], []).append(row["model"])
    assert cards.count() == len(by_tier)
    for place, (tier, models) in enumerate(by_tier.items()):
        card = cards.nth(place)
        count = f"{len(models)} models tied" if len(models) > 1 else "one model alone"
        expect(card.locator("h3")).to_have_text(f"Tier {tier}: {count}")
        for model in models:
            expect(card).to_contain_text(model)
    assert len(by_tier) > 2, "a board of one tier proves little"


def test_the_first_view_says_who_is_tied(visit: Visit, small: Path) -> None:
    page = visit(small)
    first = [row["model"] for row in good_rows(small) if row["tier"] == "1"]
    expect(page.locator(".verdicts li").first).to_have_text(
        f"{len(first)} of 8 models are tied for first: {', '.join(first)}."
    )
    expect(page.locator(".tier").first).to_be_in_viewport()
    expect(page.locator("[data-chart=forest] svg")).to_be_in_viewport()


@pytest.mark.parametrize(("heading", "column"), [("F1", "f1"), ("Size", "parameters"), ("Seconds", "seconds")])
def test_a_heading_sorts_by_number(visit: Visit, small: Path, heading: str, column: str) -> None:
    page = visit(small)
    rows = sorted(good_rows(small), key=lambda row: float(row[column]))
    up = [row["model"] for row in rows]
    expect_names(page, [row["model"] for row in rows_of(small)])
    head(page, heading).click()
    expect_names(page, ["bad-model", *up])
    head(page, heading).click()
    expect_names(page, [*up[::-1], "bad-model"])


def test_thick_lines_part_the_tiers_only_while_rows_are_in_their_order(visit: Visit, small: Path) -> None:
    page = visit(small)
    rows = rows_of(small)
    begins = [row["model"] for before, row in pairwise(rows) if row["tier"] != before["tier"]]
    assert names(page, "#board tr.next td.name") == begins[:-1], "the failed one begins no tier"
    head(page, "Size").click()
    expect(page.locator("#board tr.next")).to_have_count(0)


def test_filters_by_text_and_by_tier(visit: Visit, small: Path) -> None:
    page = visit(small)
    box = page.get_by_label("Filter")
    box.fill("base-l")
    expect_names(page, ["base-lookup"])
    expect(page.locator("#table .dt-info")).to_contain_text("1 of")
    box.fill("")
    expect_names(page, [row["model"] for row in rows_of(small)])
    page.locator("#board thead th", has_text="Tier").get_by_role("button").last.click()
    page.locator(".dtcc-list-buttons button", has_text=re.compile(r"^2$")).click()
    expect_names(page, [row["model"] for row in good_rows(small) if row["tier"] == "2"])


@BOARDS
def test_choosing_two_models_shows_their_difference(visit: Visit, request: pytest.FixtureRequest, which: str) -> None:
    folder = request.getfixturevalue(which)
    page, board = visit(folder), board_of(folder)
    commands = {row["model"]: row["command"] for row in board["rows"] if row["status"] == "ok"}
    for pair in (board["pairs"][1], board["pairs"][-1]):
        page.locator("#one").select_option(label=pair["second"])
        page.locator("#two").select_option(label=pair["first"])
        told = page.locator("#pair")
        expect(told.locator("strong")).to_contain_text(
            f"{pair['first']} leads {pair['second']} by {decimals(pair['difference'])} F1."
        )
        difference, low, high = (decimals(pair[name]) for name in ("difference", "low", "high"))
        expect(told).to_contain_text(f"{difference} [{low}, {high}], 95 % interval")
        expect(told).to_contain_text(f"{decimals(pair['p'])}, right if this is the only pair looked at")
        expect(told).to_contain_text(f"{decimals(pair['p_bh'])}, adjusted over all {len(board['pairs']):,} pairs")
        holm = (
            "only for pairs with the leader" if pair["p_leader"] is None else f"{decimals(pair['p_leader'])}, adjusted"
        )
        expect(told).to_contain_text(holm)
        expect(told).to_contain_text(commands[pair["first"]])
    assert len(board["pairs"]) == {"small": 28, "large": 19_900}[which]


def test_a_click_on_a_cell_opens_its_pair(visit: Visit, small: Path) -> None:
    page = visit(small)
    pair = max(board_of(small)["pairs"], key=lambda pair: pair["difference"])
    page.locator("[data-chart=pairs] svg text", has_text=f"+{pair['difference']:.3f}".replace("0.", ".")).click()
    expect(page.locator("#pair strong")).to_contain_text(f"{pair['first']} leads {pair['second']}")


def test_a_click_on_the_canvas_of_200_models_opens_a_pair(visit: Visit, large: Path) -> None:
    page = visit(large)
    before = page.locator("#pair strong").inner_text()
    canvas = page.locator("[data-chart=pairs] canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": box["width"] * 0.75, "y": box["height"] * 0.25})
    expect(page.locator("#pair strong")).not_to_have_text(before)


def test_200_models_are_paged_and_all_are_printed(visit: Visit, large: Path) -> None:
    page = visit(large)
    expect(page.locator("#table .dt-info")).to_have_text("1 to 50 of 201 models")
    page.locator("#table .dt-length select").select_option(label="All")
    expect_names(page, [row["model"] for row in rows_of(large)])
    page.locator("#table .dt-length select").select_option(label="50")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("#board td.name")).to_have_count(201)
    expect(page.locator("nav.sections")).to_be_hidden()


def test_hostile_text_is_text(visit: Visit, small: Path) -> None:
    page = visit(small)
    failed = page.locator("#board tr.failed")
    expect(failed).to_contain_text(REASON)
    expect(failed).to_be_visible()
    assert ACTING in names(page)
    page.locator("#one").select_option(label=ACTING)
    expect(page.locator("#pair")).to_contain_text(ACTING)
    point = page.locator("[data-chart=forest] svg .mark-symbol.role-mark path").first
    point.hover()
    expect(page.locator("#vg-tooltip-element")).to_contain_text("interval from")
    assert page.locator("img").count() == 0
    assert page.title() == "Synthetic scores"


def test_every_number_links_to_its_metrics_file_and_shows_its_command(visit: Visit, small: Path) -> None:
    page = visit(small)
    commands = {row["model"]: row.get("command") for row in board_of(small)["rows"]}
    targets = page.evaluate("[...document.querySelectorAll('a.n')].map((a) => decodeURIComponent(a.pathname))")
    assert len(targets) > 200
    assert all(Path(target).is_file() for target in set(targets))
    for row in page.locator("#board tbody tr").all()[:3]:
        number = row.locator("a.n").nth(1)
        number.hover()
        name = row.locator("td.name").inner_text().removesuffix(" (baseline)")
        assert number.get_attribute("title") == commands[name]
    page.locator("#board td.name a").first.click()
    first = rows_of(small)[0]["model"]
    expect(page.locator("#model-0 code").first).to_have_text(commands[first] or "")
    expect(page.locator("#model-0 code").first).to_be_visible()


def test_rates_over_few_mentions_are_only_counts(visit: Visit, small: Path) -> None:
    page = visit(small)
    row = page.locator("#types tbody tr").first
    of = board_of(small)["rows"][0]["per_type"]["SITUACION_LABORAL"]
    assert of["gold"] < 10
    expect(row.locator("td").nth(4)).to_have_text("too few")
    expect(row.locator("td").nth(5)).to_have_text(f"{of['tp']} of {of['gold']}")


@BOARDS
def test_a_phone_scrolls_no_further_than_its_width(visit: Visit, request: pytest.FixtureRequest, which: str) -> None:
    page = visit(request.getfixturevalue(which), width=390)
    for details in page.locator("details").all()[:3]:
        details.evaluate("(element) => { element.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_and_its_plots_follow_the_colour_scheme(visit: Visit, small: Path, scheme: Any) -> None:
    page = visit(small, color_scheme=scheme)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    inks = [page.evaluate("getComputedStyle(document.body).color")]
    inks.append(page.evaluate("getComputedStyle(document.querySelector('[data-chart=forest] svg text')).fill"))
    inks.append(page.evaluate("getComputedStyle(document.querySelector('#board td.name')).color"))
    bright = [sum(map(int, re.findall(r"\d+", colour)[:3])) / 765 for colour in (back, *inks)]
    assert (bright[0] < 0.2) is (scheme == "dark")
    assert all(abs(ink - bright[0]) > 0.6 for ink in bright[1:])


def test_without_javascript_the_table_is_complete(visit: Visit, small: Path) -> None:
    page = visit(small, ready=False, java_script_enabled=False)
    assert names(page) == [row["model"] for row in rows_of(small)]
    first = rows_of(small)[0]
    expect(page.locator("#board tbody tr").first).to_contain_text(f"{float(first['f1']):.3f}".removeprefix("0"))
    expect(page.locator("noscript p")).to_contain_text("plots/forest.svg")
