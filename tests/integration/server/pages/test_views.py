"""Every view on a phone and a wide screen, light and dark: accessible, without overflow, and light to load."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, Response, expect

from tests.integration.server.pages.conftest import ILLUSTRATED, PAPER, QUESTION
from tests.integration.server.pages.test_ask_page import answered, ask
from tests.support.served_process import ServedProcess

FIGURES = f"/library/{ILLUSTRATED}"
VIEWS = ("/", "/library", f"/library/{PAPER}", FIGURES, f"{FIGURES}/figures/0", "/library?q=nothing+like+this")
_FIRST_PAINT = 150_000  # bytes


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1400])
def test_views_are_accessible_and_fit_the_window(
    width: int, scheme: str, window: Callable[..., BrowserContext], served: ServedProcess
) -> None:
    page = window(width, scheme).new_page()
    for view in VIEWS:
        page.goto(served.url + view)
        check_view(page, view)
    page.goto(served.url)
    ask(page, QUESTION)
    answered(page)
    for summary in page.locator("#turn-1 details > summary").all():
        summary.click()
    check_view(page, "an answer")
    page.locator("#turn-1 a.citation").first.click()
    expect(page.locator("#panel img.loaded").first).to_be_visible()
    check_view(page, "the panel")


@pytest.mark.long
@pytest.mark.parametrize("width", [380, 1400])
def test_figures_load_when_scrolled_into_view_and_open_in_the_panel(
    width: int, window: Callable[..., BrowserContext], served: ServedProcess
) -> None:
    page = window(width).new_page()
    images: list[str] = []
    page.on("request", lambda request: images.append(request.url) if request.url.endswith("/image") else None)
    page.goto(served.url + FIGURES, wait_until="networkidle")
    assert images == []
    page.locator("#figures > summary").click()
    expect(page.locator("#figures img").first).to_have_js_property("naturalWidth", 120)
    check_view(page, "the figures")
    page.locator(".figure-open").first.click()
    expect(page.locator("#panel")).to_contain_text("Figure 1: Spread of the runs.")
    check_view(page, "a figure in the panel")
    page.get_by_role("button", name="Next figure").click()
    expect(page.locator("#panel")).to_contain_text("Figure 2: Number of seeds.")
    expect(page.get_by_role("button", name="Next figure")).to_be_disabled()


def check_view(page: Page, view: str) -> None:
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0, f"{view} is {overflow} pixels too wide"
    violations = Axe().run(page).response["violations"]
    serious = [item for item in violations if item["impact"] in ("serious", "critical")]
    assert serious == [], f"{view}: {[(item['id'], item['nodes'][0]['html'][:200]) for item in serious]}"


@pytest.mark.long
@pytest.mark.parametrize("view", VIEWS)
def test_the_first_page_load_is_small(view: str, page: Page, served: ServedProcess) -> None:
    responses: list[Response] = []
    page.on("response", lambda response: responses.append(response))
    page.goto(served.url + view, wait_until="networkidle")
    assert 20_000 < sum(len(response.body()) for response in responses) < _FIRST_PAINT
