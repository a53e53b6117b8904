"""A real browser for pages from disk; tests are skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WAIT_MS = 20_000


@pytest.fixture(scope="module")  # its event loop runs until it is closed, and would get in the way of others
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (group `browser`)")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no chromium on this machine: apt-get install chromium fonts-noto-cjk")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """``opened(path, ...)``: a page that is ready; in the end it must have been silent and asked for nothing."""
    told: list[str] = []
    pages = []

    def open_page(path: Path, fragment: str = "", **options: Any) -> Any:
        page = browser.new_page(viewport={"width": 1200, "height": 900}, **options)
        pages.append(page)
        page.set_default_timeout(_WAIT_MS)
        page.on("console", lambda message: told.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: told.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (told.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: request.url.startswith(path.as_uri()) or told.append(request.url))
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert told == []
