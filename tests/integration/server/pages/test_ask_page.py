"""A user asks on the page: watches the answer come, opens its citations, stops, resumes, and asks on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.integration.server.pages.conftest import PAPER, QUESTION, Complaints
from tests.support.event_streams import Gate
from tests.support.openai_server import FakeOpenAI, Status
from tests.support.served_process import ServedProcess

OTHER = "How wide is the cloth after washing, and how was the width measured?"


def ask(page: Page, question: str = QUESTION) -> None:
    page.get_by_role("textbox", name="Question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()


def answered(page: Page, number: int = 1) -> None:
    """Wait for an answer with its citations."""
    expect(page.locator(f"#turn-{number} a.citation").first).to_be_visible(timeout=300_000)


@contextmanager
def held(model: FakeOpenAI, after: int = 18) -> Iterator[Gate]:
    """Streams of the model stop in their second sentence, when the first is shown, until the gate is opened."""
    model.gate = gate = Gate(after)
    try:
        yield gate
    finally:
        gate.open()
        model.gate = None


def test_a_citation_of_an_answer_opens_the_page_with_the_words_marked(page: Page, served: ServedProcess) -> None:
    page.goto(served.url)
    ask(page)
    answered(page)

    expect(page.get_by_role("region", name="References")).to_contain_text("Warp tension")
    page.locator("#turn-1 a.citation").first.click()
    panel = page.get_by_role("dialog")
    expect(panel.locator("mark").first).not_to_be_empty()
    expect(panel).to_contain_text("page 1")
    image = panel.locator("img.loaded").first
    expect(image).to_be_visible()
    assert _has_marker(page)
    read = panel.get_by_role("link", name="Read the PDF here").first.get_attribute("href")
    assert read is not None
    assert read.startswith(f"/library/{PAPER}/read?page=1&quote=")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#turn-1 a.citation").first).to_be_focused()


def _has_marker(page: Page) -> bool:
    """Whether the image of the page has yellow pixels."""
    found = page.evaluate(
        """() => {
          const image = document.querySelector("#panel img.loaded");
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
          const drawing = canvas.getContext("2d");
          drawing.drawImage(image, 0, 0);
          const pixels = drawing.getImageData(0, 0, canvas.width, canvas.height).data;
          for (let at = 0; at < pixels.length; at += 4) if (pixels[at] > 230 && pixels[at + 2] < 180) return true;
          return false;
        }"""
    )
    return bool(found)


@pytest.mark.long
def test_a_question_sent_before_the_scripts_load_is_asked_once(page: Page, served: ServedProcess) -> None:
    scripts: list[Route] = []
    page.route("**/ask.js*", lambda route: scripts.append(route))
    with page.expect_request("**/ask.js*"):
        page.goto(served.url, wait_until="commit")
    ask(page)
    scripts[0].continue_()
    answered(page)
    assert "question=" not in page.url
    expect(page.locator(".turn")).to_have_count(1)


def test_steps_evidence_and_words_appear_before_the_answer_is_complete(
    page: Page, served: ServedProcess, model: FakeOpenAI
) -> None:
    page.goto(served.url)
    with held(model):
        ask(page, "What does humid air do to the width of the cloth?")
        expect(page.locator(".draft")).to_contain_text("The authors")
        assert page.locator(".stages > li").count() >= 2
        expect(page.locator(".evidence")).to_contain_text(PAPER)
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_hidden()
    answered(page)
    expect(page.locator(".draft")).to_have_count(0)
    assert "/conversations/chat-" in page.url


@pytest.mark.long
def test_reloading_the_page_during_an_answer_continues_it_without_asking_again(
    page: Page, served: ServedProcess, model: FakeOpenAI
) -> None:
    page.goto(served.url)
    with held(model):
        ask(page, "Who wove the samples of linen cloth?")
        expect(page.locator(".draft")).to_contain_text("The authors")
        asked = model.calls()
        page.reload()
        expect(page.locator(".draft")).to_contain_text("The authors")
        expect(page.locator(".asked")).to_have_text("Who wove the samples of linen cloth?")
        assert model.calls() == asked
    answered(page)


@pytest.mark.long
def test_an_answer_is_stopped_and_resumed(page: Page, served: ServedProcess, model: FakeOpenAI) -> None:
    page.goto(served.url)
    with held(model):
        ask(page, "How many samples of cloth were woven?")
        expect(page.locator(".draft")).to_contain_text("The authors")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".ending")).to_contain_text("Stopped")
        page.reload()  # it is still there
        expect(page.locator(".ending")).to_contain_text("was not answered to the end")
    page.get_by_role("button", name="Resume").click()
    answered(page)


@pytest.mark.long
def test_a_conversation_is_continued_improved_exported_and_deleted(page: Page, served: ServedProcess) -> None:
    page.goto(served.url)
    ask(page, "Does washing change the width of cloth?")
    answered(page)
    ask(page, OTHER)
    answered(page, 2)
    expect(page.locator("#turn-2")).to_contain_text("Understood as")
    expect(page.locator("#turn-1 .improve")).to_be_hidden()
    page.locator("#turn-2").get_by_role("button", name="Improve").click()
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()
    ask(page, "Say more on the measuring.")
    answered(page, 3)
    expect(page.locator("#head")).to_contain_text("3 answers")
    expect(page.locator("#conversation-list [aria-current]")).to_contain_text("Does washing change")

    with page.expect_download() as download:
        page.get_by_role("link", name="Markdown").click()
    assert OTHER in download.value.path().read_text(encoding="utf-8")

    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.locator("#turn-3")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="What do you want to know?")).to_be_visible()
    expect(page.locator("#conversation-list")).not_to_contain_text("Does washing change")


def test_a_conversation_is_renamed_found_and_archived_and_an_answer_has_an_address(
    page: Page, served: ServedProcess, model: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "others", ["larger"])
    page.goto(served.url)
    page.locator("#scope > summary").click()
    page.get_by_label("Model").locator("option", has_text="larger").wait_for(state="attached")
    page.get_by_label("Model").select_option("larger")
    page.get_by_label("Citations").select_option("key-page")
    expect(page.locator("#scope-line")).to_have_text(
        "Options: all papers, standard length, key-page citations, model larger"
    )
    ask(page, "Is the width of linen measured twice?")
    answered(page)
    expect(page.locator("#turn-1 .prose")).to_contain_text(f"[{PAPER}, page 1]")
    assert model.requests[-1]["model"] == "larger"

    page.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("Looms")
    page.keyboard.press("Enter")
    expect(page.locator("#conversation-list [aria-current]")).to_contain_text("Looms")
    expect(page.get_by_role("heading", name="Looms")).to_be_visible()
    search = page.get_by_role("searchbox", name="Search conversations")
    search.fill("the authors see it TWICE")  # of the answer, and of no other question here
    expect(page.locator("#conversation-list > li")).to_have_count(1)
    search.fill("nothing like this")
    expect(page.locator("#conversation-list")).to_have_text("None.")
    address = page.url
    with page.expect_navigation():
        page.get_by_role("button", name="Archive").click()
    expect(page.locator("#conversation-list")).not_to_contain_text("Looms")
    page.get_by_role("checkbox", name="Archived").check()
    expect(page.locator("#conversation-list")).to_contain_text("Looms")
    page.goto(f"{address}/turns/1")
    assert page.url == f"{address}#turn-1"
    assert (
        page.locator("#turn-1").get_by_role("link", name="Link").get_attribute("href")
        == f"{address[len(served.url) :]}/turns/1"
    )


@pytest.mark.long
def test_a_second_tab_shows_questions_asked_in_the_first(
    window: Callable[..., BrowserContext], served: ServedProcess, model: FakeOpenAI
) -> None:
    tabs = window()
    first = tabs.new_page()
    first.goto(served.url)
    ask(first, "What was the tension of the warp set with?")
    answered(first)
    second = tabs.new_page()
    second.goto(first.url)
    answered(second)

    with held(model):
        ask(first, OTHER)
        expect(second.locator(".draft")).to_contain_text("The authors")
    answered(first, 2)
    answered(second, 2)


@pytest.mark.long
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_an_open_page_continues_once_its_server_is_started_again(
    how: str, page: Page, served: ServedProcess, model: FakeOpenAI, complaints: Complaints
) -> None:
    complaints.expected.append("ERR_")  # connections that were broken off or refused
    page.goto(served.url)
    with held(model):
        ask(page, f"How was the tension of the warp checked when it was {how}?")
        expect(page.locator(".draft")).to_contain_text("The authors")
        served.kill() if how == "killed" else served.stop()
        expect(page.locator(".status")).to_contain_text("connection is lost")
    served.start()
    answered(page)
    expect(page.locator(".asked")).to_have_text(f"How was the tension of the warp checked when it was {how}?")


@pytest.mark.long
def test_a_failure_is_shown_with_a_remedy_and_can_be_retried(
    page: Page, served: ServedProcess, model: FakeOpenAI
) -> None:
    page.goto(served.url)
    model.failures = [Status(401, "no such key", code="invalid_api_key")] * 8
    ask(page, "Which loom was used for the linen?")
    expect(page.locator(".ending .problem")).to_contain_text("401")
    expect(page.locator(".ending .help")).not_to_be_empty()
    model.failures.clear()
    page.locator(".ending").get_by_role("button").click()
    answered(page)


@pytest.mark.long
def test_everything_can_be_done_with_the_keyboard_alone(page: Page, served: ServedProcess) -> None:
    page.goto(served.url)
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()
    page.keyboard.type("At which tension is the cloth narrowest?")
    page.keyboard.press("Enter")
    answered(page)
    _tab_to(page, "a.citation")
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_be_focused()
    _tab_to(page, "[data-close]")
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_be_hidden()
    expect(page.locator("#turn-1 a.citation").first).to_be_focused()


def _tab_to(page: Page, selector: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached with the Tab key")


@pytest.mark.long
def test_on_a_phone_the_panel_covers_the_page_and_a_button_opens_the_list(
    window: Callable[..., BrowserContext], served: ServedProcess, model: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A sentence without a source between two on one paper, which else would be cited once.
    monkeypatch.setattr(model.behaviour, "said", "So it is with every cloth. The authors see it in this way too")
    page = window(380).new_page()
    page.goto(served.url)
    ask(page, "What do the authors say about the width of linen?")
    answered(page)
    page.locator("#turn-1 a.citation").first.click()
    expect(page.locator("#panel:modal")).to_be_visible()
    page.get_by_role("button", name="Next citation").click()
    expect(page.locator("#panel-title")).to_contain_text("Citation 2")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("complementary", name="Conversations")).to_be_hidden()
    page.get_by_role("button", name="Conversations").click()
    expect(page.get_by_role("complementary", name="Conversations")).to_be_visible()


@pytest.mark.long
def test_a_question_with_markup_stays_text(page: Page, served: ServedProcess) -> None:
    live = '<img src=x onerror="document.title=1"> \u202etension of the warp'
    page.goto(served.url)
    ask(page, live)
    answered(page)
    expect(page.locator(".asked")).to_have_text(re.compile(r"^<img src=x onerror="))
    page.reload()
    expect(page.locator("#turn-1 .asked")).to_have_text(re.compile(r"^<img src=x onerror="))
    assert page.locator("main img").count() == 0
    assert "\u202e" not in page.content()


@pytest.mark.long
def test_a_draft_shows_lists_and_emphasis_while_being_written(page: Page, served: ServedProcess) -> None:
    page.goto(served.url)
    shown = page.evaluate(
        """async (pieces) => {
          const script = document.querySelector("script[src*='ask.js']").src;
          const { Draft } = await import(script.replace("ask.js", "draft.js"));
          const draft = new Draft(document.createElement("div"), () => {});
          for (const piece of pieces) { draft.rest += piece; draft.draw(); }
          return draft.root.innerHTML;
        }""",
        [
            "**Verdict.** It holds.\n\n",
            "*Nearest:*\n\n",
            "- “One” (a)\n",
            "- “Two <b>” (b)\n\n## More\n\n",
            "2 * 3 * 4",
        ],
    )
    assert shown == (
        "<p><strong>Verdict.</strong> It holds.</p><p><em>Nearest:</em></p>"
        "<ul><li>“One” (a)</li><li>“Two &lt;b&gt;” (b)</li></ul><h3>More</h3><p>2 * 3 * 4</p>"
    )


def test_a_citation_shows_a_card_and_its_question_can_be_repeated_without_its_paper(
    page: Page, served: ServedProcess
) -> None:
    page.goto(served.url)
    page.locator("[data-suggest]").first.click()
    expect(page.locator("#question")).to_have_value(re.compile("^What does “.*” find"))
    expect(page.locator("#question")).to_be_focused()
    assert page.locator("#question").evaluate("(field) => field.selectionStart === field.value.length"), "to write on"
    ask(page)
    answered(page)
    page.locator("#turn-1").get_by_role("button", name="Copy").click()
    toast, box = page.locator(".toast").bounding_box(), page.locator("#composer").bounding_box()
    suggested = page.locator("#turn-1 .suggested").bounding_box()
    assert toast and box and suggested and toast["y"] + toast["height"] <= box["y"], (
        "options and question stay in sight"
    )
    assert suggested["y"] + suggested["height"] <= box["y"] + 1 or suggested["y"] >= box["y"], (
        "seen whole or not at all"
    )
    citation = page.locator("#turn-1 a.citation").first
    citation.hover()
    card = page.get_by_role("tooltip")
    expect(card).to_contain_text("Warp tension and the width of linen cloth")
    expect(card).to_contain_text("page 1")
    expect(card.locator("blockquote").first).not_to_be_empty()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()

    citation.click()
    page.get_by_role("button", name="Ask again without it").first.click()
    expect(page.locator("#turn-2 .asked")).to_have_text(QUESTION, timeout=300_000)
    searched = page.locator("#turn-2 .searched")
    expect(searched).to_have_text(f"Searched without {PAPER}.")
    assert page.locator("#turn-2").get_by_text(PAPER).count() == 1
    expect(page.locator("#scope-line")).to_contain_text("Options: all but 1 paper, standard length, numbered citations")
    page.get_by_role("textbox", name="Question").fill("Half a question")
    page.reload()
    expect(page.get_by_role("textbox", name="Question")).to_have_value("Half a question")
    expect(page.locator("#scope-line")).to_contain_text("Options: all but 1 paper, standard length, numbered citations")
    ask(page, OTHER)
    expect(page.locator("#turn-3 .searched")).to_have_text(f"Searched without {PAPER}.", timeout=300_000)
    page.reload()
    expect(page.get_by_role("textbox", name="Question")).to_have_value("")
    page.locator("#scope summary").click()
    page.get_by_role("button", name=f"Remove: without {PAPER}").click()
    expect(page.locator("#scope-line")).to_contain_text("Options: all papers, ")
