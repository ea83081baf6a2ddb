"""A user writes a section on the page: fills in the form, watches, edits, downloads, and resumes a paused run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from tests.integration.server.pages.conftest import Complaints
from tests.support.event_streams import Gate
from tests.support.judging_model import FALSE, GOOD, JudgingModel
from tests.support.openai_server import FakeOpenAI
from tests.support.served_process import ServedProcess

ROOT = Path(__file__).resolve().parents[4]
EXPERIMENT = ROOT / "examples" / "exp.json"
FORMATS = ("md", "bib", "json", "tex", "docx", "html", "evidence report")


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    """A chat model that writes one sound and one unsound sentence, and judges them."""
    with FakeOpenAI(behaviour=JudgingModel(f"{GOOD} {FALSE}")) as running:
        yield running


@contextmanager
def held(model: FakeOpenAI, after: int = 24) -> Iterator[Gate]:
    """The drafts stop in their second sentence, when the first is shown, until the gate is opened."""
    model.gate = gate = Gate(after)
    try:
        yield gate
    finally:
        gate.open()
        model.gate = None


def experiment(title: str) -> dict[str, Any]:
    """The sample experiment under a title of its own, so that each test has its own run."""
    sample: dict[str, Any] = json.loads(EXPERIMENT.read_text(encoding="utf-8"))
    return {**sample, "paper_concept": {**sample["paper_concept"], "title": title}}


def started(served: ServedProcess, title: str, **limits: int) -> str:
    """The address of the page of a run that was started over the API."""
    body = {"experiment": experiment(title), **limits}
    headers = {"Prefer": "respond-async"}
    answer = httpx.post(f"{served.url}/api/v1/sections/discussion", json=body, headers=headers, timeout=300)
    assert answer.status_code == 202, answer.text
    return f"{served.url}/runs/{answer.json()['id']}"


def finished(page: Page) -> None:
    """Wait for the text with its sentences."""
    expect(page.locator("#sentence-0")).to_be_visible()


@pytest.mark.long
def test_a_section_is_written_from_the_form_watched_edited_and_downloaded(
    page: Page, served: ServedProcess, model: FakeOpenAI
) -> None:
    page.goto(f"{served.url}/write")
    page.get_by_label("Title", exact=False).first.fill("Filled in by hand")
    page.get_by_role("textbox", name="Reasoning").fill("Ensembles of seeds and a temperature correct different errors.")
    page.get_by_role("textbox", name="Metrics").fill("calibration error 0.118")
    page.get_by_role("radio", name="Discussion").check()
    page.get_by_role("button", name="Write the discussion").click()
    expect(page.locator("#field-metrics-error")).to_contain_text("name = value")
    expect(page.get_by_role("textbox", name="Metrics")).to_be_focused()
    page.get_by_role("textbox", name="Metrics").fill("calibration error = 0.118")
    expect(page.locator("#field-metrics-error")).to_be_hidden()

    with held(model) as gate:
        page.get_by_role("button", name="Write the discussion").click()
        expect(page.locator("#live-stages li").first).to_be_visible()
        expect(page.locator("#live-drafts .prose")).to_contain_text("Ensembles")
        page.reload()
        expect(page.locator("#live-drafts .prose")).to_contain_text("Ensembles")
        gate.open()
        finished(page)

    expect(page.locator(".sentence.troubled")).to_contain_text("Every wearer slept well")
    files = page.get_by_role("region", name="Files").locator(".chips")
    for name in FORMATS:
        with page.expect_download() as download:
            files.get_by_role("link", name=name, exact=True).click()
        content = Path(download.value.path()).read_bytes()
        assert content, name
        assert name in ("bib", "docx") or b"Every wearer slept well" in content, name


@pytest.mark.long
def test_plot_images_are_added_kept_over_a_reload_and_removed(
    page: Page, served: ServedProcess, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.png"
    wrong.write_text("<html>")
    page.goto(f"{served.url}/write")
    page.locator("#file").set_input_files(EXPERIMENT)
    page.locator("#images").set_input_files([EXPERIMENT.parent / "reliability.png", wrong])
    expect(page.locator("#images-message")).to_contain_text("Images: reliability.png.")
    expect(page.locator("#images-message")).to_contain_text("wrong.png is not the png image that its name says")
    expect(page.locator("#warnings")).to_contain_text("'ece_by_variant.png', 'shared_errors.png'")
    page.reload()
    expect(page.locator("#images-message")).to_contain_text("Images: reliability.png.")
    expect(page.locator("#warnings")).not_to_contain_text("reliability.png")
    page.get_by_role("button", name="Remove the images").click()
    expect(page.locator("#warnings")).to_contain_text("'reliability.png'")


@pytest.mark.long
def test_a_paused_run_says_why_and_resumes_with_a_larger_limit(page: Page, served: ServedProcess) -> None:
    address = started(served, "Paused by its budget", max_calls=1)
    page.goto(address)
    resume = page.get_by_role("region", name="This run is paused")
    expect(resume).to_contain_text("1 of 1 call has been made")
    page.goto(f"{served.url}/runs?show=stopped")
    row = page.locator(".run-rows > li", has_text="Paused by its budget")
    expect(row).to_contain_text("The budget is reached")
    row.get_by_role("link", name="Resume").click()
    calls = resume.get_by_label("Model calls, at most")
    expect(calls).to_be_focused()
    expect(calls).to_have_value("2")
    calls.fill("many")
    resume.get_by_role("button", name="Resume").click()
    expect(resume.get_by_role("alert")).to_contain_text("not a number above 0")
    calls.fill("500")
    resume.get_by_role("button", name="Resume").click()
    finished(page)
    page.goto(f"{served.url}/runs")
    field, button = (page.locator(f"form.filters {part}").bounding_box() for part in ("[name=q]", "button"))
    assert field and button and field["x"] + field["width"] < button["x"], "in one row"
    expect(page.get_by_role("region", name="Table of the usage").locator("tbody tr")).to_have_count(1)
    page.locator(".run-rows > li", has_text="Paused by its budget").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".run-rows > li", has_text="Paused by its budget")).to_have_count(0)


@pytest.mark.long
def test_the_page_of_a_run_continues_after_the_server_was_killed(
    page: Page, served: ServedProcess, model: FakeOpenAI, complaints: Complaints
) -> None:
    complaints.expected.append("net::ERR")
    with held(model) as gate:
        page.goto(started(served, "Killed in the middle"))
        expect(page.locator("#live-drafts .prose")).to_contain_text("Ensembles")
        served.kill()
        try:
            expect(page.locator("#live-status")).to_contain_text("connection is lost")
            gate.open()
        finally:
            served.start()
    finished(page)


@pytest.mark.long
def test_a_run_is_stopped(page: Page, served: ServedProcess, model: FakeOpenAI) -> None:
    with held(model):
        page.goto(started(served, "Stopped by its user"))
        expect(page.locator("#live-drafts .prose")).to_contain_text("Ensembles")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("region", name="This run is paused")).to_contain_text("What was paid for is saved")


def test_an_uploaded_experiment_fills_the_form_completely(page: Page, served: ServedProcess, tmp_path: Path) -> None:
    page.goto(f"{served.url}/write")
    page.locator("#file").set_input_files(EXPERIMENT)
    expect(page.locator("#upload-message")).to_contain_text("is loaded")
    expect(page.locator('[data-needs="paper"]')).to_have_text("✓ ready")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save exp.json").click()
    assert json.loads(Path(download.value.path()).read_bytes()) == json.loads(EXPERIMENT.read_bytes())
    page.reload()
    expect(page.get_by_label("Title", exact=False).first).not_to_have_value("")
    odd = tmp_path / "odd.json"
    odd.write_text('{"metrics": 3, "hypotesis": {"description": "x"}, "plots": [{"path": 1}]}', encoding="utf-8")
    page.locator("#file").set_input_files(odd)
    expect(page.locator("#field-metrics-error")).to_contain_text("an object")
    expect(page.locator("#field-metrics")).to_have_attribute("aria-invalid", "true")
    plain = tmp_path / "plain.json"
    plain.write_text('{"hypothesis": "Seeds help.", "experimental_plan": ["Train.", "Test."]}', encoding="utf-8")
    page.locator("#file").set_input_files(plain)
    expect(page.locator("#field-hypothesis-description")).to_have_value("Seeds help.")
    expect(page.locator("#field-experimental_plan")).to_have_value("Train.\n\nTest.")
    broken = tmp_path / "broken.json"
    broken.write_text('{"metrics": <script>alert(1)</script>', encoding="utf-8")
    page.locator("#file").set_input_files(broken)
    expect(page.locator("#upload-message")).to_contain_text("broken.json is not JSON")
    page.get_by_role("button", name="Clear the form").click()
    page.get_by_role("button", name="Undo").click()


def test_the_form_keeps_every_value_after_a_refusal_or_a_reload(
    page: Page, served: ServedProcess, complaints: Complaints
) -> None:
    complaints.expected.append("status of 422")
    page.goto(f"{served.url}/write")
    page.locator("#images").set_input_files(EXPERIMENT.parent / "reliability.png")
    expect(page.locator("#images-message")).to_contain_text("Images: reliability.png.")
    page.locator("#field-paper_concept-title").fill("Kept")
    page.locator("#field-metrics").fill("calibration error 0.118")
    page.locator("input[name=kind][value=results]").check()
    page.get_by_text("Limits and options").click()
    page.locator("#max_calls").fill("many")
    page.locator("#fresh").check()

    def all_kept(metrics: str) -> None:
        expect(page.locator("#field-paper_concept-title")).to_have_value("Kept")
        expect(page.locator("#field-metrics")).to_have_value(metrics)
        expect(page.locator("input[name=kind][value=results]")).to_be_checked()
        expect(page.locator("#max_calls")).to_have_value("many")
        expect(page.locator("#fresh")).to_be_checked()
        expect(page.locator("#field-plots")).to_have_value(re.compile("reliability.png"))
        expect(page.locator("#images-message")).to_contain_text("Images: reliability.png.")
        expect(page.locator("#submit")).to_have_text("Write the results")

    page.get_by_role("button", name="Write the results").click()
    expect(page.locator("#field-metrics-error")).to_contain_text("name = value")
    all_kept("calibration error 0.118")
    page.reload()
    all_kept("calibration error 0.118")
    page.locator("#field-metrics").fill("")
    page.get_by_role("button", name="Write the results").click()
    expect(page.locator("#refusal")).to_contain_text("not a number above 0")
    all_kept("")
    page.locator("#max_calls").fill("")
    page.get_by_role("button", name="Write the results").click()
    expect(page.locator("#refusal")).to_contain_text("needed for results")
    expect(page.locator("input[name=kind][value=results]")).to_be_checked()
    expect(page.locator("#field-paper_concept-title")).to_have_value("Kept")
    expect(page.locator("#fresh")).to_be_checked()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1400])
def test_no_view_has_a_serious_accessibility_fault_or_scrolls_sideways(
    window: Callable[..., BrowserContext], served: ServedProcess, width: int, scheme: str
) -> None:
    run = started(served, "Read by everybody")
    paused = started(served, "Waits for a larger budget", max_calls=1)
    page = window(width, scheme).new_page()
    for address in (run, paused, f"{served.url}/write", f"{served.url}/runs", f"{served.url}/settings"):
        page.goto(address)
        page.wait_for_selector("#sentence-0, #resume, #experiment, .run-rows, .settings")
        barriers = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}).response["violations"]
        assert [item["id"] for item in barriers] == [], (address, barriers)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, address
