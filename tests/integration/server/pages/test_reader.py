"""A user reads what a citation rests on in the paper itself, searches it, and keeps highlights and notes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from tests.integration.server.pages.conftest import ILLUSTRATED, PAPER, QUESTION
from tests.support.plain_pdf import Line, write_pdf
from tests.support.served_process import ServedProcess

MARKED = "name => [...(CSS.highlights.get(name) ?? [])].map((range) => range.toString()).join(' ')"
SELECT = """() => {
  const [range] = CSS.highlights.get("cited");
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}"""
SCRIPT = b"/OpenAction << /S /JavaScript /JS (app.alert\\(1\\); document.title = 'owned') >>"
LINK = b"/Annots [<< /Subtype /Link /Rect [0 0 612 792] /A << /S /URI /URI (javascript:document.title='owned') >> >>]"


WITHOUT_LIGATURES = """async (words) => {
  const style = document.querySelector('link[href$="/citeloom.css"]').href;
  const { findWords } = await import(style.replace("citeloom.css", "marks.js"));
  const root = document.createElement("div");
  for (const line of [
    "Fitted well: Looms of a scienti\\0c workshop keep the same",
    "warp tension for as long as no thread \\0ts the",
    "other side of the frame or is o\\0 it. The end.",
  ])
    root.append(Object.assign(document.createElement("span"), { textContent: line }), document.createElement("br"));
  return findWords(root, words).map((range) => range.toString());
}"""


def test_cited_words_are_marked_without_a_hole_where_a_pdf_lacks_letters(page: Page, served: ServedProcess) -> None:
    page.goto(served.url)
    quote = "Looms of a scientific workshop keep the same warp tension for as long as no thread fits "
    quote += "the other side of the frame or is off it."
    marked = page.evaluate(WITHOUT_LIGATURES, quote)
    assert len(marked) == 1 and marked[0].startswith("Looms of a scienti") and marked[0].endswith("frame or is")
    (within,) = page.evaluate(WITHOUT_LIGATURES, "fits the other side of the frame or is off it. The end.")
    assert within.startswith("theother side"), "the first letters of the word are gone"
    (inner,) = page.evaluate(WITHOUT_LIGATURES, quote.removeprefix("Looms of a "))
    assert inner.startswith("scienti\0c workshop")


def test_a_cited_pdf_opens_beside_the_answer_with_the_words_highlighted(
    window: Callable[..., BrowserContext], served: ServedProcess, library_home: Path
) -> None:
    context = window()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, hosts = context.new_page(), set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(served.url)
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.locator("a.citation").first.click()
    panel = page.locator("#panel")
    panel.locator("a[data-panel]").filter(has_text="Read").first.click()
    expect(panel.locator(".textLayer span").first).to_be_attached()
    expect(page.locator(".turn .prose")).to_be_visible()  # beside it
    expect(page.locator("#announcer")).to_have_text("The cited words are marked.")

    page.evaluate(SELECT)
    panel.get_by_role("button", name="Copy citation").click()
    assert page.evaluate("navigator.clipboard.readText()") == f"[@{PAPER}, p. 1]"
    panel.get_by_role("button", name="Highlight").click()
    expect(panel.locator("[data-saved]")).to_have_text("Saved.")
    panel.get_by_role("button", name="Notes").click()
    notes = panel.get_by_label("Your notes")
    before = notes.input_value()
    notes.fill(f"{before} and more")
    expect(panel.locator("[data-saved]")).to_have_text("Not saved yet.")
    notes.fill(before)
    expect(panel.locator("[data-saved]")).to_have_text("")
    assert page.evaluate(MARKED, "noted") == page.evaluate(MARKED, "cited")
    noted = (library_home.parent / f"{PAPER}.notes.md").read_text("utf-8")
    assert noted.startswith("> ")
    assert noted.endswith(" (p. 1)\n")
    found = httpx.get(f"{served.url}/api/v1/papers/{PAPER}").json()
    assert found["note"] == noted

    panel.get_by_label("Search in this paper").fill("spring balance")
    page.keyboard.press("Enter")
    expect(panel.locator("[data-matches]")).to_have_text("1 of 1")
    panel.get_by_role("button", name="Thumbnails").click()
    expect(panel.get_by_role("button", name="Page 1", exact=True)).to_have_attribute("aria-current", "page")
    panel.get_by_role("button", name="Zoom in").click()
    found = Axe().run(page)
    assert [item["id"] for item in found.response["violations"] if item["impact"] in ("serious", "critical")] == []
    panel.get_by_role("button", name="Back").click()
    expect(panel.locator("blockquote").first).to_be_visible()
    assert hosts == {served.url.removeprefix("http://")}


def test_a_paper_without_a_pdf_is_shown_as_text_and_can_be_asked_about(
    window: Callable[..., BrowserContext], served: ServedProcess
) -> None:
    page = window(380, "dark").new_page()
    text = httpx.get(f"{served.url}/api/v1/papers/{ILLUSTRATED}/text").json()["text"]
    words = next(item["text"] for item in text if len(item["text"]) > 400).strip()[:80].rpartition(" ")[0]
    page.goto(f"{served.url}/library/{ILLUSTRATED}/read?quote={words}")
    expect(page.locator("#announcer")).to_have_text("The cited words are marked.")
    page.evaluate(SELECT)
    page.get_by_role("button", name="Ask about it").click()
    page.wait_for_url("**/?question=*")


@pytest.mark.attack
def test_scripts_in_a_pdf_or_note_do_not_run(page: Page, served: ServedProcess, library_home: Path) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\"> (p. 1)"
    address = f"{served.url}/api/v1/papers/{PAPER}/note"
    stored = httpx.get(f"{served.url}/api/v1/papers/{PAPER}").json()["note"]
    assert httpx.put(address, json={"text": hostile, "before": "something else"}).status_code == 422
    assert httpx.put(address, json={"text": hostile, "before": stored}).status_code == 204
    assert httpx.put(address, json={"text": "x"}, headers={"Origin": "http://evil.example"}).status_code == 403
    file = library_home.parent / "hostile.pdf"
    write_pdf(file, [Line("Read me")])
    content = file.read_bytes().replace(b"/Pages 2 0 R", b"/Pages 2 0 R " + SCRIPT)
    page.route("**/file", lambda route: route.fulfill(body=content.replace(b"/MediaBox", LINK + b" /MediaBox")))
    page.goto(f"{served.url}/library/{PAPER}/read")
    expect(page.locator(".textLayer")).to_contain_text("Read me")
    expect(page.locator(".annotationLayer")).to_be_attached()
    assert page.locator("[href^=javascript]").count() == 0
    page.locator(".page").click()
    expect(page.get_by_label("Your notes")).to_have_value(hostile)
    assert page.title() != "owned"

    page.unroute("**/file")
    page.route("**/file", lambda route: route.fulfill(body=b"%PDF-1.4 broken"))
    page.reload()
    expect(page.locator(".reader .problem")).to_contain_text("The PDF cannot be shown here.")
