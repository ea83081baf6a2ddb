"""The evidence report in a real browser: what clicks and keys open, and that content of papers stays inert."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from citeloom.citations.export.evidence_report import evidence_report
from tests.support.browser import Page, browser, chromium
from tests.support.report_record import AFTER, QUOTE, make_record

# Elements that the report itself never has.
FOREIGN = (
    "script, img, iframe, svg, math, object, embed, form, input, video, audio, link, base, template, [onload], [style]"
)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium or Chrome here (Debian: apt-get install chromium)")
    with browser(program) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _desktop(page: Page) -> None:
    page.show(width=1440, height=900)


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """The address of a local server, and the paths requested from it."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()
        thread.join()


def _report(folder: Path, said: str = "", draft: str | None = None) -> Path:
    path = folder / "discussion.evidence.html"
    path.write_text(evidence_report(make_record(draft, said=said) if draft else make_record(said=said)), "utf-8")
    return path


def _hostile(address: str) -> str:
    """Everything by which a document could run code or call home, with the ends of all surrounding markup."""
    return (
        "\"'></mark></q></blockquote></p></a></li></details></section></style></title></textarea>"
        "<script>window.pwned = 1; alert('pwned')</script>"
        f"<img src='{address}/img' onerror='window.pwned = 2; alert(2)'><svg onload='window.pwned = 3'>"
        f"<iframe src='{address}/frame'></iframe><link rel='stylesheet' href='{address}/css'>"
        f"<style>@import '{address}/import'; body {{ background: url({address}/background) }}</style>"
        f"<meta http-equiv='refresh' content='0; url={address}/refresh'><base href='{address}/base/'>"
        f"<form action='{address}/form'><input autofocus onfocus='window.pwned = 4'></form>"
        f"<object data='{address}/object'></object><video src='{address}/video' autoplay></video>"
        f"<a href='javascript:window.pwned = 5'>here</a> ![x]({address}/markdown) {{{{ 7 * 7 }}}} <!-- "
    )


def test_clicking_a_citation_shows_its_passage_and_does_not_move_the_text(page: Page, tmp_path: Path) -> None:
    page.open(_report(tmp_path))
    assert not page.visible("#c1") and page.visible("#r1")
    page.click("#r1")
    assert page.visible("#c1 mark") and page.visible("#r1")
    card = page.text("#c1")
    assert QUOTE in page.text("#c1 mark") and AFTER.strip() in card
    assert "page 4" in card and "On degree 1" in card and "what degree explains" in card
    assert page.run("scrollY") == 0
    page.click("#r2")
    assert page.visible("#c2") and not page.visible("#c1")
    page.click("#c2 nav a:last-child")
    assert not page.visible("#c2")


def test_the_report_can_be_used_with_the_keyboard_alone(page: Page, tmp_path: Path) -> None:
    page.open(_report(tmp_path))
    for _ in range(30):
        page.press("Tab")
        if page.run("document.activeElement.id") == "r1":
            break
    page.press("Enter")
    assert page.visible("#c1") and page.run("document.activeElement.id") == "c1", (
        "a reader of the screen is taken there"
    )
    page.press("Tab")
    assert page.run("document.activeElement.ariaLabel") == "Next citation"
    page.press("Enter")
    assert page.visible("#c2") and not page.visible("#c1")
    page.press("Tab"), page.press("Tab")
    assert page.run("document.activeElement.innerText") == "Close"
    page.press("Enter")
    assert not page.visible("#c2") and page.visible("#r2")
    assert page.run("document.activeElement.id") == "r2", "back where the reader was"


def test_a_folded_search_opens_to_show_its_results(page: Page, tmp_path: Path) -> None:
    page.open(_report(tmp_path))
    assert not page.visible("#E3 blockquote")
    page.click("a[href='#E3']")
    assert page.visible("#E3 blockquote")


@pytest.mark.parametrize("width", [320, 390, 1024, 1440])
def test_nothing_is_wider_than_the_window(page: Page, tmp_path: Path, width: int) -> None:
    page.show(width=width, height=800)
    page.open(_report(tmp_path, said="Pneumonoultramicroscopicsilicovolcanoconiosis" * 6))
    page.click("#r1")
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.visible("#c1 h2")
    assert page.run("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#c1'))")


def test_on_a_phone_the_quote_is_seen_at_once_and_the_sheet_can_be_closed(page: Page, tmp_path: Path) -> None:
    page.show(width=390, height=844)
    page.open(_report(tmp_path, draft="Degree matters [E1]. " * 20))
    page.click("#r1")
    assert page.visible("#c1 mark")
    page.click("#c1 nav a:last-child")
    assert not page.visible("#c1") and page.visible("#r1")


_ABOVE_THE_SHEET = """(number => {
  const cited = document.querySelector(`#r${number}`).getClientRects();
  const sheet = document.querySelector(`#c${number}`).getBoundingClientRect();
  return cited[0].top >= 0 && cited[cited.length - 1].bottom <= sheet.top;
})"""


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 568), (800, 1100)])
def test_on_a_phone_the_clicked_citation_is_above_the_sheet(
    page: Page, tmp_path: Path, width: int, height: int
) -> None:
    page.show(width=width, height=height)
    page.open(_report(tmp_path, draft="Degree matters [E1]. So be it. " * 60))
    for number in (1, 11, 30, 60):
        page.click(f"#r{number}")
        assert page.visible(f"#c{number} mark")
        assert page.run(f"{_ABOVE_THE_SHEET}({number})"), number
        page.click(f"#c{number} nav a:last-child")
        assert not page.visible(f"#c{number}") and page.visible(f"#r{number}")
    page.click("#r20")
    page.click("#c20 nav a:nth-of-type(2)")
    assert page.visible("#c21") and page.run(f"{_ABOVE_THE_SHEET}(21)"), "walking on takes the text along"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_is_readable_in_light_and_dark_mode(page: Page, tmp_path: Path, dark: bool) -> None:
    page.show(width=1440, height=900, dark=dark)
    page.open(_report(tmp_path))
    page.click("#r1")
    for selector in (
        "#section p",
        "#c1 mark",
        "#c1 blockquote",
        "#c1 .meta",
        "#c1 .verdict",
        ".citation",
        ".missing",
        ".doubt",
    ):
        assert page.contrast(selector) >= 4.5, selector


def test_printing_opens_every_passage(page: Page, tmp_path: Path) -> None:
    page.show(width=800, height=1100, media="print")
    page.open(_report(tmp_path))
    for selector in ("#c1 mark", "#c2 mark"):
        assert page.run(f"document.querySelector('{selector}').checkVisibility()")
    assert not page.run("document.querySelector('#c1 nav').checkVisibility()")


def test_html_and_scripts_in_a_paper_do_nothing(page: Page, tmp_path: Path, asked: tuple[str, list[str]]) -> None:
    address, paths = asked
    hostile = _hostile(address)
    report = _report(tmp_path, hostile, draft=f"Degree matters [E1][E2]. It lasts [E2]. {hostile}")
    page.open(report)
    for number in (1, 2):
        page.click(f"#r{number}")
        assert hostile in page.text(f"#c{number} mark"), "shown word for word"
    page.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    page.press("Tab")
    assert page.run(f"document.querySelectorAll({FOREIGN!r}).length") == 0
    assert page.run("document.querySelectorAll('head > *').length") == 7
    assert page.run("typeof window.pwned") == "undefined"
    assert page.run("location.pathname") == report.as_uri().removeprefix("file://")
    assert page.dialogs == []
    assert page.requests == [report.as_uri()]
    assert paths == []
    assert page.refused == [], "nothing came so far that the policy had to stop it"


def test_the_policy_blocks_scripts_even_if_escaping_failed(
    page: Page, tmp_path: Path, asked: tuple[str, list[str]]
) -> None:
    address, paths = asked
    report = _report(tmp_path)
    live = (
        f"<script>window.pwned = 1; alert(1)</script><img src='{address}/img' onerror='window.pwned = 2'>"
        f"<iframe src='{address}/frame'></iframe><link rel='stylesheet' href='{address}/css'>"
        f"<style>body {{ display: none }}</style><svg onload='window.pwned = 3'></svg><base href='{address}/'>"
    )
    report.write_text(
        report.read_text("utf-8").replace('<article id="section"', live + '<article id="section"'), "utf-8"
    )
    page.open(report)
    assert page.run("document.querySelectorAll('script, img, iframe').length") == 3, "it is in the page"
    assert page.run("typeof window.pwned") == "undefined"
    assert page.dialogs == []
    assert paths == []
    assert len(page.refused) >= 5
    page.click("#r1")
    assert page.visible("#c1")
