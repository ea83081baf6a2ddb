"""A finished text is one document: a sentence is edited where it stands, checked, undone, compared and rewritten."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.integration.server.pages.conftest import Complaints
from tests.integration.server.pages.test_write_page import experiment
from tests.support.judging_model import FALSE, GOOD, WEAK, JudgingModel
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import envelope
from tests.support.served_process import ServedProcess

MINE = "Wearers differ"
SHORTER = "Wearers slept [E2]."


class RewritingModel(JudgingModel):
    """Rewrites every sentence that it is asked to repair."""

    def __call__(self, body: Json) -> Json:
        if "problem of S1: It is too long" in body["messages"][-1]["content"]:
            return envelope(body, content=json.dumps({"S1": SHORTER}))
        return super().__call__(body)


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=RewritingModel(f"{GOOD} {FALSE}\n\n- {WEAK}")) as running:
        yield running


@pytest.fixture
def run(served: ServedProcess, request: pytest.FixtureRequest) -> str:
    """The address of the page of a finished discussion of three sentences."""
    body = {"experiment": experiment(request.node.name)}
    answer = httpx.post(f"{served.url}/api/v1/sections/discussion", json=body, timeout=300)
    return f"{served.url}/runs/{answer.json()['thread_id']}"


def opened(page: Page, position: int) -> Any:
    """The field of a sentence, opened with the keyboard."""
    page.locator(f"#sentence-{position} .edit").focus()
    page.keyboard.press("Enter")
    field = page.get_by_role("textbox", name=f"Sentence {position + 1}")
    expect(field).to_be_focused()
    expect(page.get_by_role("button", name="Keep", exact=True)).to_be_visible()
    return field


def retype(page: Page, words: str) -> None:
    page.keyboard.press("Control+a")
    page.keyboard.type(words)


def key_of(page: Page, position: int) -> str:
    return str(page.locator(f"#sentence-{position}").get_attribute("data-text")).rpartition("(")[2].rstrip(").")


def test_a_sentence_is_edited_in_place_checked_undone_and_exported(page: Page, run: str) -> None:
    page.goto(run)
    text, second = page.locator("#run .prose"), page.locator("#sentence-1")
    expect(text.locator(".sentence")).to_have_count(3)
    expect(page.get_by_text("Every wearer slept well").locator("visible=true")).to_have_count(1)
    x, y = second.evaluate("one => [one.getClientRects()[0].left + 30, one.getClientRects()[0].top + 8]")
    page.mouse.click(x, y)
    field = page.get_by_role("textbox", name="Sentence 2")
    expect(field).to_be_focused()
    expect(page.locator(".sentence-tools .check-result")).to_contain_text("no word on sleep")
    page.keyboard.press("Escape")
    expect(page.locator("#sentence-1 .edit")).to_be_focused()
    key = key_of(page, 1)

    opened(page, 1)
    retype(page, f"Every wearer slept 7.77 hours ({key}), as (smith2020sleep) says")
    page.keyboard.press("Enter")
    notes = page.locator(".sentence-tools.notes")
    expect(notes).to_contain_text("Number not found")
    expect(notes).to_contain_text("Foreign citation")
    expect(second).to_contain_text("7.77")
    opened(page, 1)
    retype(page, f"{MINE} ({key})")
    page.keyboard.press("Enter")
    expect(page.locator(".toast").last).to_contain_text("No problem was found")
    expect(second).to_have_text(f"{MINE} ({key}).")
    expect(page.locator("#sentence-1 .edit")).to_be_focused()

    for name in ("md", "html", "tex"):  # what is exported is what is seen
        with page.expect_download() as download:
            page.get_by_role("region", name="Files").get_by_role("link", name=name, exact=True).click()
        content = Path(download.value.path()).read_text(encoding="utf-8")
        assert MINE in content and "slept" not in content, name
        if name == "md":
            elsewhere = content.replace(MINE, "Wearers vary").encode()
    page.get_by_label("Edited elsewhere?").set_input_files(
        {"name": "a.md", "mimeType": "text/markdown", "buffer": elsewhere}
    )
    page.get_by_role("button", name="Load the edited file").click()
    expect(text).to_contain_text("Wearers vary")
    page.get_by_role("button", name="Undo").click()
    expect(second).to_contain_text(MINE)

    page.keyboard.press("Control+z")
    expect(second).to_contain_text("7.77")
    page.reload()
    page.get_by_role("button", name="Undo").click()
    expect(second).to_contain_text("Every wearer slept well")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    expect(page.get_by_role("region", name="Files")).not_to_contain_text("your version")
    page.keyboard.press("Control+Shift+z")
    page.get_by_role("button", name="Redo").click()
    expect(second).to_contain_text(MINE)
    page.get_by_role("link", name="Versions").click()
    changed = page.locator(".differs", has_text=MINE)
    expect(changed.locator("mark").first).to_contain_text("Every wearer slept well")
    page.get_by_role("button", name="Return to").click()
    expect(page.get_by_text("Both are the same.")).to_be_visible()


def test_a_sentence_is_removed_rewritten_and_restored(page: Page, run: str) -> None:
    page.goto(run)
    opened(page, 1)
    page.get_by_role("button", name="Shorter").click()
    field = page.get_by_role("textbox", name="Sentence 2")
    expect(field).to_have_text(f"Wearers slept ({key_of(page, 1)}).")
    page.keyboard.press("Escape")
    expect(page.locator("#sentence-1")).to_contain_text("Every wearer slept well")
    opened(page, 1)
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.locator(".sentence")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#sentence-1")).to_contain_text("Every wearer slept well")
    opened(page, 2)  # an item of a list
    retype(page, "It may help some.")
    page.keyboard.press("Enter")
    expect(page.locator("#run .prose li")).to_contain_text("It may help some.")


def test_typed_text_survives_a_reload_and_another_tab_is_not_overwritten(
    window: Callable[..., BrowserContext], run: str, complaints: Complaints
) -> None:
    complaints.expected.append("status of 409")
    context = window()
    first, second = context.new_page(), context.new_page()
    for page in (first, second):
        page.goto(run)
        opened(page, 0)
    key = key_of(first, 0)
    retype(first, f"Written in one tab ({key}).")
    first.reload()
    expect(first.get_by_role("textbox", name="Sentence 1")).to_have_text(f"Written in one tab ({key}).")
    expect(first.get_by_role("button", name="Keep", exact=True)).to_be_visible()
    first.get_by_role("textbox", name="Sentence 1").press("Enter")
    expect(first.locator(".toast")).to_contain_text("Kept")
    second.bring_to_front()
    retype(second, f"Written in the other ({key}).")
    second.keyboard.press("Enter")
    expect(second.locator(".sentence-tools .check-result")).to_contain_text("was changed meanwhile")
    expect(second.locator(".sentence-tools .check-result")).to_contain_text("Written in one tab")
    expect(second.get_by_role("textbox", name="Sentence 1")).to_have_text(f"Written in the other ({key}).")
    second.get_by_role("button", name="Keep mine all the same").click()
    expect(second.locator("#sentence-0")).to_contain_text("Written in the other")
    expect(first.locator("#sentence-0")).to_contain_text("Written in the other")


@contextmanager
def left_for_the_next(page: Page, run: str, said: str) -> Iterator[tuple[str, list[Route]]]:
    """The new words of the first sentence, and the requests that keep them, unanswered while the second is edited."""
    page.goto(run)
    opened(page, 0)
    words = f"{said} ({key_of(page, 0)})."
    retype(page, words)
    routes: list[Route] = []
    page.route("**/sentences", lambda route: routes.append(route))
    with page.expect_request("**/sentences"):
        click_at(page, 1)
    yield words, routes
    page.unroute("**/sentences")


def click_at(page: Page, position: int) -> None:
    """Click a sentence near its beginning."""
    find = "one => [one.getClientRects()[0].left + 30, one.getClientRects()[0].top + 8]"
    page.mouse.click(*page.locator(f"#sentence-{position}").evaluate(find))


def test_a_second_sentence_can_be_edited_while_the_first_is_being_saved(page: Page, run: str) -> None:
    with left_for_the_next(page, run, "Wearers differ") as (words, requests):
        page.keyboard.press("End")
        page.keyboard.type(" MORE")
        field = page.get_by_role("textbox", name="Sentence 2")
        expect(field).to_contain_text(" MORE")
        expect(page.locator("#sentence-0")).to_have_text(words)
        page.keyboard.type(" WORDS")
        requests[0].continue_()
    expect(page.locator(".toast").last).to_contain_text("Kept")
    expect(page.locator("#sentence-0")).to_have_text(words)
    page.keyboard.type(" STILL")
    expect(field).to_be_focused()
    expect(field).to_contain_text(" MORE WORDS STILL")
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox")).to_have_count(0)
    expect(page.locator("#sentence-1")).to_contain_text(" MORE WORDS STILL")
    expect(page.locator("#sentence-0 a.citation")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#sentence-1")).not_to_contain_text("MORE")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#sentence-0")).not_to_contain_text("Wearers differ")


def test_text_that_could_not_be_saved_is_reported_and_stays_in_its_field(
    page: Page, run: str, complaints: Complaints
) -> None:
    complaints.expected.append("status of 503")
    with left_for_the_next(page, run, "Mine") as (words, requests):
        page.keyboard.type("Meanwhile ")
        requests[0].fulfill(status=503, json={"detail": "The judge does not answer."})
        expect(page.locator(".problem")).to_contain_text("The judge does not answer.")
    expect(page.locator(".toast")).to_contain_text("Sentence 1 was not kept")
    expect(page.get_by_role("textbox", name="Sentence 2")).to_contain_text("Meanwhile")
    page.keyboard.press("Escape")
    click_at(page, 0)
    expect(page.get_by_role("textbox", name="Sentence 1")).to_have_text(words)
    page.keyboard.press("Enter")
    expect(page.locator(".toast").last).to_contain_text("Kept")
    page.reload()
    expect(page.locator("#sentence-0")).to_have_text(words)


def test_an_answer_in_a_conversation_can_be_edited_as_a_document(
    window: Callable[..., BrowserContext], served: ServedProcess
) -> None:
    with httpx.Client(base_url=f"{served.url}/api/v1", timeout=120) as api:
        thread = api.post("/conversations").json()["thread_id"]
        for question in ("Do wearers differ?", "How did wearers sleep?"):
            assert api.post(f"/conversations/{thread}/turns", json={"question": question, "alone": True}).is_success
    context = window()
    page, other = context.new_page(), context.new_page()
    for one in (page, other):
        one.goto(f"{served.url}/conversations/{thread}")
    first, second = (page.locator(f"#answer-{turn}-sentence-1") for turn in (1, 2))
    expect(second).to_contain_text("Every wearer slept well")
    page.bring_to_front()
    second.locator(".edit").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Sentence 2")).to_be_focused()
    expect(page.locator(".sentence-tools .check-result")).to_contain_text("no word on sleep")
    retype(page, f"{MINE} [1].")
    page.reload()
    field = page.get_by_role("textbox", name="Sentence 2")
    expect(field).to_have_text(f"{MINE} [1].")
    expect(page.get_by_role("button", name="Keep", exact=True)).to_be_visible()
    field.press("Enter")
    expect(second).to_have_text(f"{MINE} [1].")
    expect(first).to_contain_text("Every wearer slept well")
    expect(other.locator("#answer-2-sentence-1")).to_contain_text(MINE)
    second.locator(".edit").focus()
    page.keyboard.press("Enter")
    retype(page, f"{MINE} still [1].")
    page.locator("#answer-2-sentence-0 .edit").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Sentence 1")).to_be_focused()
    expect(second).to_have_text(f"{MINE} still [1].")
    page.keyboard.press("Escape")
    page.locator("body").press("Control+z")
    expect(second).to_have_text(f"{MINE} [1].")
    foot = page.locator("#turn-2 .turn-foot")
    expect(foot.get_by_role("link", name="Versions")).to_be_visible()
    expect(page.locator("#turn-1 .turn-foot").get_by_role("button", name="Undo")).to_be_hidden()
    page.locator("#turn-2 summary", has_text="Download your version").click()
    for name in ("md", "tex"):
        with page.expect_download() as download:
            page.locator("#turn-2").get_by_role("link", name=name, exact=True).click()
        assert MINE in Path(download.value.path()).read_text(encoding="utf-8")
    page.locator("body").press("Control+z")
    expect(second).to_contain_text("Every wearer slept well")
    foot.get_by_role("button", name="Redo").click()
    expect(second).to_contain_text(MINE)
    foot.get_by_role("link", name="Versions").click()
    page.get_by_role("button", name="Return to").click()
    expect(page.get_by_text("Both are the same.")).to_be_visible()
    page.get_by_role("link", name="Back to the text").click()
    assert page.url == f"{served.url}/conversations/{thread}#turn-2"


@pytest.mark.parametrize("width", [380, 1400])  # on a phone the panel lies over the text
def test_text_selected_in_the_reader_goes_into_the_sentence(
    window: Callable[..., BrowserContext], run: str, width: int
) -> None:
    page = window(width).new_page()
    page.goto(run)
    field = page.get_by_role("textbox", name="Sentence 1")  # that of the citation
    if width == 380:
        field = opened(page, 1)
        assert page.locator("#run .prose").bounding_box()["y"] < 600, "a phone shows the text first"  # type: ignore[index]
    page.locator("a.citation").first.click()
    panel = page.locator("#panel")
    panel.locator("a[data-panel]").filter(has_text="Read").first.click()
    words = panel.locator(".reader-scroll p").first
    key = str(panel.locator(".reader").get_attribute("data-key"))
    selected = words.evaluate("one => (getSelection().selectAllChildren(one), getSelection().toString())")
    panel.get_by_role("button", name="Put into the section").click()
    expect(field).to_contain_text(f"“{' '.join(selected.split())}” ({key}")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    scripts: list[Route] = []
    page.route("**/reader.js*", lambda route: scripts.append(route))  # words are selected before it is here
    with page.expect_request("**/reader.js*"):
        page.goto(f"{run.partition('/runs')[0]}/library/{key}/read")  # away from the text that was open last
    page.locator(".reader-scroll p").first.evaluate("one => getSelection().selectAllChildren(one)")
    scripts[0].continue_()
    page.get_by_role("button", name="Put into the section").click()
    expect(page.get_by_role("textbox", name="Sentence 3")).to_contain_text(f"({key}")
    assert page.url == run


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 800, 1400])
def test_the_editor_of_a_sentence_is_accessible(
    window: Callable[..., BrowserContext], run: str, width: int, scheme: str
) -> None:
    page = window(width, scheme).new_page()
    page.goto(run)
    opened(page, 1)
    for address in ("", "/versions"):
        if address:
            page.goto(run + address)
        barriers = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}).response["violations"]
        assert [item["id"] for item in barriers] == [], (address, barriers)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, address
