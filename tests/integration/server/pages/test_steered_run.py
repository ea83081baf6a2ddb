"""A run that asks is answered on its page: needs, evidence, a budget and doubtful sentences, and in another tab."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.integration.server.pages.conftest import Complaints
from tests.integration.server.pages.test_views import check_view
from tests.integration.server.pages.test_write_page import experiment
from tests.support.judging_model import DRAFT, JudgingModel
from tests.support.openai_server import FakeOpenAI
from tests.support.served_process import ServedProcess

PASSAGE = "Adding windows from the same people did little"  # of varga2021calibration
HELPS = "Calibration helps after pooling"


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=JudgingModel(DRAFT, f"{HELPS} [E3].")) as running:
        yield running


def asked(page: Page, what: str) -> None:
    expect(page.locator("#waiting-title")).to_contain_text(what)


def go_on(page: Page, name: str = "Go on") -> None:
    page.get_by_role("button", name=name).click()


@pytest.mark.long
def test_a_person_answers_every_question_of_a_run(page: Page, served: ServedProcess, complaints: Complaints) -> None:
    complaints.expected += ["409", "422"]  # of answers that are refused
    body = {"experiment": experiment("Steered on its page"), "interrupts": ["all"], "max_calls": 6}
    headers = {"Prefer": "respond-async"}
    httpx.post(f"{served.url}/api/v1/sections/discussion", json=body, headers=headers, timeout=60).raise_for_status()
    page.goto(f"{served.url}/runs")
    page.get_by_role("link", name="Answer Discussion: Steered on its page").click()
    asked(page, "1 need")
    other = page.context.new_page()
    other.goto(page.url)
    asked(other, "1 need")
    page.locator("textarea[name=N1]").fill("")
    go_on(page)
    expect(page.get_by_role("alert")).to_contain_text("all needs were dropped")
    page.locator("textarea[name=N1]").fill("ensembles of seeds")
    page.locator("textarea[name=add]").fill("early stopping")
    go_on(page)

    asked(page, "findings")
    expect(page.locator("#waiting")).to_contain_text("N2: early stopping")
    go_on(other)
    expect(other.locator("#toasts")).to_contain_text("was already answered")
    asked(other, "findings")
    other.close()
    check_view(page, "a question on evidence")
    page.get_by_label("Show it to the writer: E3").check()
    page.get_by_label("Leave it out: E5", exact=True).check()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Paper of E3").click()
    expect(opened.value.get_by_role("heading", level=1)).to_be_visible()
    opened.value.close()
    page.locator("textarea[name=passages]").fill(f"tanaka2023position: {PASSAGE}")
    go_on(page)
    expect(page.get_by_role("alert")).to_contain_text("tanaka2023position does not contain")
    page.locator("textarea[name=passages]").fill(f"varga2021calibration: {PASSAGE}")
    page.locator("textarea[name=papers]").fill("tanaka2023position")
    page.locator("textarea[name=search]").fill("N1: label noise in wearable sensors")
    go_on(page)
    expect(page.locator("#waiting")).to_contain_text(PASSAGE)
    expect(page.get_by_label("Leave it out: E5", exact=True)).to_have_count(0)
    go_on(page)

    asked(page, "budget is reached: 6 of 6")
    page.locator("textarea[name=max_calls]").fill("many")
    go_on(page, "Raise the limit")
    expect(page.get_by_role("alert")).to_contain_text("positive number")
    page.locator("textarea[name=max_calls]").fill("500")
    go_on(page, "Raise the limit")
    asked(page, "sentences")
    page.locator("textarea[name=S1]").fill("Every wearer slept.")
    page.get_by_label("Search for it again: S2").check()
    go_on(page)
    text = page.locator("#run .prose").first
    expect(text).to_contain_text("Every wearer slept.")
    expect(text).to_contain_text(HELPS)
    page.get_by_text("What people said while it was written").click()
    expect(page.get_by_text("Every wearer slept well [E2].")).to_be_visible()
    expect(page.get_by_text("on the page").first).to_be_visible()
