"""A user makes a table on the page, opens its cells, edits one against another user, sorts, filters and deletes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.integration.server.pages.conftest import PAPER, Complaints
from tests.integration.server.pages.test_views import check_view
from tests.support.served_process import ServedProcess

QUESTION = "How does the tension of the warp change the width of the cloth?"


@pytest.fixture(scope="module")
def served(library_home: object) -> Iterator[ServedProcess]:
    """A server without a chat model: the cells hold the nearest sentences."""
    process = ServedProcess(library_home, {})
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="module")
def table(served: ServedProcess) -> str:
    """The id of a table of all papers."""
    body = {"question": QUESTION, "columns": ["sample", "effect"]}
    made = httpx.post(f"{served.url}/api/v1/tables", json=body, timeout=300)
    assert made.status_code == 200, made.text
    return str(made.json()["table_id"])


def test_a_table_is_made_and_its_cells_open_their_words_and_page(page: Page, served: ServedProcess) -> None:
    page.goto(f"{served.url}/tables")
    page.get_by_label("Question").fill("What does tension of the warp do to the width of cloth?")
    page.get_by_label("Columns").fill("samples, tension")
    page.get_by_role("button", name="Make the table").click()
    row = page.locator("#rows tr", has_text=PAPER)
    expect(row).to_be_visible()
    row.locator("a.cell").first.click()
    panel = page.get_by_role("dialog")
    expect(panel.locator("blockquote").first).not_to_be_empty()
    expect(panel.locator("img.loaded").first).to_be_visible()
    expect(panel.get_by_role("link", name="Read the PDF here").first).to_be_visible()
    expect(page.get_by_role("link", name="xlsx")).to_be_visible()


def test_a_sentence_of_an_answer_can_be_sent_to_who_agrees(page: Page, served: ServedProcess) -> None:
    page.goto(f"{served.url}/tables?claim=Tension+narrows+the+cloth+[1,+p.+4].")
    claim = page.get_by_role("textbox", name="Who agrees?")
    expect(claim).to_have_value("Tension narrows the cloth.")
    claim.fill("Tension of the warp narrows the cloth.")
    page.get_by_role("button", name="Ask the papers").click()
    expect(page.get_by_role("heading", name="Tension of the warp narrows the cloth.")).to_be_visible()
    expect(page.locator("#rows a.cell.not_judged").first).to_be_visible()
    expect(page.get_by_role("button", name="Complete the table")).to_have_count(0)


def test_a_column_that_contains_a_comma_stays_one_column(page: Page, served: ServedProcess, table: str) -> None:
    page.goto(f"{served.url}/tables/{table}")
    columns = page.get_by_role("textbox", name="Columns", exact=True)
    expect(columns).to_have_value("sample\neffect")
    for name in ("width, in cm", "effect"):
        columns.fill(f"sample\n{name}")
        page.get_by_role("button", name="Complete the table").click()
        expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()
        expect(page.locator("#table[data-active=yes]")).to_have_count(0)  # it loads itself again when it is complete


def test_two_people_who_edit_one_cell_lose_neither_edit(
    page: Page, served: ServedProcess, table: str, complaints: Complaints
) -> None:
    complaints.expected.append("409")
    page.goto(f"{served.url}/tables/{table}")
    cell = page.locator("#rows tr", has_text=PAPER).locator("a.cell").first
    cell.click()
    panel = page.get_by_role("dialog")
    panel.get_by_label("Your value").fill("forty")
    other = {"key": PAPER, "column": "sample", "value": "40 samples"}
    httpx.put(f"{served.url}/api/v1/tables/{table}/cells", json=other, timeout=300).raise_for_status()
    panel.get_by_role("button", name="Keep").click()
    expect(panel.get_by_role("alert")).to_contain_text("It now holds “40 samples”.")
    panel.get_by_role("button", name="Keep").click()
    expect(panel).to_be_hidden()
    expect(cell).to_have_text("forty [edited]")


def test_rows_are_sorted_and_filtered_by_a_column(page: Page, served: ServedProcess, table: str) -> None:
    page.goto(f"{served.url}/tables/{table}")
    page.get_by_label("Filter by Study").fill("weaver")
    shown = page.locator("#rows tr:visible")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text(PAPER)
    page.get_by_label("Filter by Study").fill("")
    studies = page.locator("#rows th")
    page.get_by_role("button", name="Study").click()
    found = studies.all_text_contents()
    assert found == sorted(found)
    page.get_by_role("button", name="Study").click()
    assert studies.all_text_contents() == found[::-1]


@pytest.mark.parametrize("width", [380, 1400])
def test_tables_are_accessible_and_fit_the_window(
    width: int, window: Callable[..., BrowserContext], served: ServedProcess, table: str
) -> None:
    page = window(width).new_page()
    for view in ("/tables", f"/tables/{table}"):
        page.goto(served.url + view)
        check_view(page, view)
    page.locator("#rows a.cell").first.click()
    expect(page.get_by_role("dialog").locator("form")).to_be_visible()
    check_view(page, "a cell")


def test_a_table_is_deleted(page: Page, served: ServedProcess) -> None:
    body = {"question": "What is to be deleted?", "columns": ["n"], "papers": [PAPER]}
    made = httpx.post(f"{served.url}/api/v1/tables", json=body, timeout=300).json()
    page.goto(f"{served.url}/tables/{made['table_id']}")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/tables")
    expect(page.get_by_role("link", name=body["question"])).to_have_count(0)
