"""A headless Chromium of the system, and pages that may ask for nothing and log nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from synthetic import synthetic_board

NAMES = ("chromium", "chromium-browser", "google-chrome")
Visit = Callable[..., Page]
ACTING = "<img src=x onerror=\"document.title='acted'\">"
REASON = "OSError: <script>document.title='acted'</script> no fast tokenizer"
SMALL = {"xlm-roberta-base": 0.62, "roberta-base-bne": 0.66, "minilm-l6": 0.35, "e5-small": 0.64, ACTING: 0.5}
SMALL |= {"base-lookup": 0.55, "base-ngrams": 0.42, "base-random": 0.02}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        message = f"no Chromium here (looked for {', '.join(NAMES)}); apt-get install chromium"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


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
