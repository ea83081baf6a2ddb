"""A user looks after the library on the page: finds papers, reads one, adds good and bad files, removes one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.integration.server.pages.conftest import PAPER, Complaints, write_paper
from tests.support.served_process import ServedProcess

HOSTILE = '<script>document.title="owned"</script> and <b>bold</b>'


def test_papers_are_found_by_their_words_and_sorted(page: Page, served: ServedProcess) -> None:
    page.goto(f"{served.url}/library")
    papers = page.locator(".papers h2")
    expect(papers).to_have_count(5)
    page.get_by_role("searchbox").fill("calibration")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 paper found.")).to_be_visible()
    expect(papers).to_have_count(1)
    exported = page.request.get(served.url + (page.get_by_role("link", name="RIS").get_attribute("href") or "")).text()
    assert exported.count("TY  - ") == exported.count("ER  - ") == 1
    assert "calibration" in exported.casefold()
    csl = page.request.get(f"{served.url}/api/v1/papers/export.csl.json").json()
    assert len(csl) == 5
    assert f"{{{PAPER}," in page.request.get(f"{served.url}/api/v1/papers/export.bib").text()
    page.get_by_text("Passages nearest to").click()
    page.locator(".found-passages a").first.click()
    expect(page.locator("#panel .reader")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Show all").click()
    page.get_by_role("combobox", name="Order").select_option("Key")
    expect(papers.first).to_contain_text("seeds", ignore_case=True)  # obrien2019seeds
    assert "sort=key" in page.url


def test_words_of_a_text_open_the_paper_where_they_stand(page: Page, served: ServedProcess) -> None:
    page.goto(f"{served.url}/library?q=narrowest+tension")
    expect(page.get_by_text("No title, author, venue or key has all these words")).to_be_visible()
    page.locator(".papers").get_by_role("link", name="narrowest at the highest").click()
    expect(page.locator("#panel .textLayer")).to_contain_text("narrowest at the highest tension")
    expect(page.locator("#announcer")).to_have_text("The cited words are marked.")


def test_a_tag_and_a_collection_filter_the_library_and_a_question(page: Page, served: ServedProcess) -> None:
    address = f"{served.url}/api/v1/papers/{PAPER}"
    entry = page.request.get(address).json()["bibtex"].rstrip().removesuffix("}").rstrip().removesuffix(",")
    bibtex = f"{entry},\n  keywords = {{to read}},\n  groups = {{Thesis/Cloth}}\n}}"
    assert page.request.put(f"{address}/entry", data={"bibtex": bibtex}, headers={"Origin": served.url}).ok
    page.goto(f"{served.url}/library")
    page.get_by_label("Collection").select_option("Thesis")
    expect(page.locator(".papers h2")).to_have_count(1)
    page.get_by_label("Tag").fill("nothing")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No paper is like that.")).to_be_visible()
    page.goto(f"{served.url}/library/{PAPER}")
    page.get_by_role("link", name="to read").click()
    expect(page.locator(".papers h2")).to_contain_text(["Warp tension"])
    page.goto(served.url)
    page.locator("#scope summary").click()
    page.get_by_label("Collection").select_option("Thesis/Cloth")
    expect(page.locator("#scope-line")).to_contain_text("Thesis/Cloth")
    page.get_by_role("textbox", name="Question").fill("What was woven?")
    with page.expect_request("**/turns") as asked:
        page.get_by_role("button", name="Ask", exact=True).click()
    assert asked.value.post_data_json["collection"] == "Thesis/Cloth"
    expect(page.locator(".turn:not(.working)")).to_be_visible()


@pytest.mark.long
def test_a_paper_shows_its_sections_text_and_page(page: Page, served: ServedProcess) -> None:
    page.goto(f"{served.url}/library/{PAPER}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Warp tension")
    page.get_by_role("navigation", name="Sections", exact=True).get_by_role("link", name="Results").click()
    expect(page.locator("#text")).to_contain_text("narrowest at the highest tension")
    page.locator("#text a[data-panel]").first.click()
    expect(page.locator("#panel .textLayer")).to_contain_text("narrowest at the highest tension")
    with page.expect_response("**/file") as response:
        page.evaluate("key => fetch(`/api/v1/papers/${key}/file`)", PAPER)
    assert response.value.headers["content-type"] == "application/pdf"
    assert response.value.headers["content-disposition"].startswith("inline")


@pytest.mark.long
def test_a_good_file_is_added_and_a_bad_one_refused_with_the_reason(
    page: Page, served: ServedProcess, tmp_path: Path
) -> None:
    good = write_paper(tmp_path / "silk2025dye.pdf", HOSTILE)
    good.write_bytes(good.read_bytes().replace(b"linen", b"silky"))
    bad = tmp_path / "broken2020.pdf"
    bad.write_bytes(b"%PDF-1.4\nnothing")
    page.goto(f"{served.url}/library")
    page.locator("#files").set_input_files([good, bad])

    expect(page.locator("#added")).to_contain_text("1 paper was added")
    expect(page.locator("main")).to_contain_text("6 papers, ")  # counted without a reload
    expect(page.locator("#added .problem")).to_contain_text("broken2020.pdf: is cut off")
    page.locator("#added").get_by_role("link", name="silk2025dye").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    assert page.title().startswith("<script>")

    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("dialog")).to_contain_text("is deleted too")
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator(".papers h2")).to_have_count(5)


@pytest.mark.long
def test_a_stopped_upload_lists_the_papers_that_it_added(page: Page, served: ServedProcess, tmp_path: Path) -> None:
    said = "As [*others*](#o) did, **we sailed**."
    files = [tmp_path / f"sail{year}.md" for year in range(2001, 2061)]
    for file in files:
        file.write_text(f"# Sails of {file.stem}\n\n{said} " + f"The sail of {file.stem} was mended. " * 300)
    page.goto(f"{served.url}/library")
    page.locator("#files").set_input_files(files)
    expect(page.locator("#adding-status")).to_contain_text(
        re.compile(r"^\d+ of 60 papers added, reading Sails of sail\d+$")
    )
    page.get_by_role("button", name="Stop").click()
    stopped = page.locator("#added .notice")
    expect(stopped).to_contain_text(re.compile(r"^Stopped\. \d+ papers? (was|were) kept:"))
    added = stopped.locator("a").count()
    assert 0 < added < len(files)
    expect(page.locator(".papers h2").filter(has_text="Sails of")).to_have_count(added)
    expect(page.locator("#added .problem")).to_have_count(0)

    page.get_by_role("searchbox").fill("we sailed")
    page.keyboard.press("Enter")
    expect(page.locator(".found-passages p[dir]", has_text="As others did, we sailed.").first).to_be_attached()
    for key in [file.stem for file in files]:
        page.request.delete(f"{served.url}/api/v1/papers/{key}", headers={"Origin": served.url})


@pytest.mark.long
def test_files_can_be_added_by_dropping_them(page: Page, served: ServedProcess, complaints: Complaints) -> None:
    complaints.expected.append("422")  # the status of the refusal
    page.goto(f"{served.url}/library")
    dropped = page.evaluate_handle(
        """() => {
          const carried = new DataTransfer();
          carried.items.add(new File(["MZ"], "virus.exe"));
          return carried;
        }"""
    )
    page.dispatch_event("main", "dragenter", {"dataTransfer": dropped})
    expect(page.locator("#drop.over")).to_be_visible()
    page.dispatch_event("main", "drop", {"dataTransfer": dropped})
    expect(page.locator("#added")).to_contain_text("virus.exe: is not a paper")
    expect(page.locator("#drop.over")).to_have_count(0)


@pytest.mark.long
def test_the_library_can_be_checked_from_its_page(page: Page, served: ServedProcess) -> None:
    page.goto(f"{served.url}/library")
    page.get_by_text("Check the library").click()
    expect(page.locator(".findings")).to_contain_text("Fine")


@pytest.mark.long
def test_the_page_of_an_unknown_paper_names_similar_ones(
    window: Callable[..., BrowserContext], served: ServedProcess, complaints: Complaints
) -> None:
    complaints.expected.append("404")
    page = window().new_page()
    page.goto(f"{served.url}/library/weaver2024")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    expect(page.locator("main")).to_contain_text(f"Did you mean {PAPER}?")
