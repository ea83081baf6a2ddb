"""The evidence report of real runs: from a library, through the graph, to the file."""

from __future__ import annotations

import html
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from citeloom import aingest, aopen_library, aresearch, awrite_section
from citeloom.experiment import parse_experiment
from citeloom.graph.session import open_session
from citeloom.models.http.client import close_connections
from citeloom.runs.execution import run_request
from citeloom.runs.output_files import public_record, save
from citeloom.runs.run_requests import SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from tests.support.browser import browser, chromium
from tests.support.openai_server import FakeOpenAI

SCRIPT = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
PAPER = f"""---
title: "Calibration {SCRIPT}"
author: ["Ada {SCRIPT} Lovelace"]
year: 2021
---

# Calibration {SCRIPT}

## Results {SCRIPT}

Seed ensembles {SCRIPT} lower the calibration error of wearable classifiers for new wearers. {SCRIPT}
Temperature scaling {SCRIPT} of pooled networks halves the expected calibration error at the wrist.
The sensor position changes how well an ensemble of five seeds is calibrated, {SCRIPT} and accuracy stays the same.
"""


async def test_the_report_shows_the_passage_of_each_citation(
    home: Path, experiment: dict[str, Any], tmp_path: Path
) -> None:
    async with aopen_library(home) as library:
        record = await awrite_section(library, "discussion", experiment, out=tmp_path)
        texts = {chunk.id: chunk.text for chunk in library.library.chunks([c["chunk_id"] for c in record["citations"]])}
    report = Path(record["files"]["evidence.html"]).read_text("utf-8")
    assert Path(record["files"]["evidence.html"]).name == "discussion.evidence.html"
    assert record["citations"] and "report" not in record
    for citation in record["citations"]:
        assert f"<mark>{html.escape(citation['quote'])}</mark>" in report.replace("&#34;", "&quot;").replace(
            "&#39;", "&#x27;"
        )
        assert texts[citation["chunk_id"]][citation["start"] : citation["end"]] == citation["quote"]
    assert report.count('class="citation') == report.count('class="card"') > 0


async def test_repeating_gives_the_same_file_and_another_style_changes_only_citations(
    home: Path, experiment: dict[str, Any], tmp_path: Path
) -> None:
    request = SectionRequest("discussion", parse_experiment(experiment))
    with open_session(Settings(), FolderHome(home)) as session:
        first = await run_request(request, session)
        again = await run_request(request, session)
        assert again.finished_earlier
        files = [save(done.record, tmp_path / name) for done, name in ((first, "a"), (again, "b"))]
        texts = [Path(record["files"]["evidence.html"]).read_bytes() for record in files]
        assert texts[0] == texts[1]
        other = open_session(Settings(cite_style="numeric"), FolderHome(home))
    with other as session:
        numbered = await run_request(request, session)
        assert numbered.finished_earlier and "[1]" in numbered.record["text"]
        saved = save(numbered.record, tmp_path / "c")
        report = Path(saved["files"]["evidence.html"]).read_text("utf-8")
    assert 'href="#c1">[1]</a>' in report
    assert texts[0].decode().count("<mark>") == report.count("<mark>")


async def test_passages_are_stored_with_the_run_and_not_in_its_checkpoints(
    home: Path, experiment: dict[str, Any]
) -> None:
    from citeloom.runs.execution import run_state

    with open_session(Settings(), FolderHome(home)) as session:
        finished = await run_request(SectionRequest("discussion", parse_experiment(experiment)), session)
        values = (await run_state(session.home, finished.record["thread_id"])).values
    passages = finished.record["report"]["passages"]
    assert passages.keys() == {citation["evidence_id"] for citation in finished.record["citations"]}
    assert not any(text in repr(values) for text in passages.values())
    assert "report" not in public_record(finished.record)


def _tags(text: str) -> set[str]:
    """The elements that a page would have, were the text put into it as it is."""
    found: set[str] = set()
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, attrs: found.add(tag)  # type: ignore[method-assign]
    reader.feed(text)
    return found


async def test_html_in_a_paper_passes_through_a_run_without_effect(experiment: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "ada2021.md").write_text(PAPER, "utf-8")
    with FakeOpenAI() as server:
        settings = {"chat_model": "fake", "chat_base_url": server.base_url, "score_threshold": 0.0}
        with open_session(Settings(**settings), FolderHome(tmp_path / "home")) as session:
            added = await aingest(session, [tmp_path / "ada2021.md"])
            assert added["papers_added"] == 1
            record = await awrite_section(session, "discussion", experiment, out=tmp_path)
        await close_connections()
        with open_session(Settings(), FolderHome(tmp_path / "home")) as session:
            answer = await aresearch(session, f"Do seed ensembles lower errors? {SCRIPT}", out=tmp_path)
    for made in (record, answer):
        for citation in made["citations"]:
            assert citation["chunk_text"][citation["start"] : citation["end"]] == citation["quote"]
        for shown in (made["text"], made["warnings"], made["references"], Path(made["files"]["md"]).read_text("utf-8")):
            assert _tags(str(shown)).isdisjoint({"script", "img"})
        for number in made["numbers"]:
            assert made["text"][number["start"] : number["end"]] == number["text"]
    assert any(SCRIPT in citation["chunk_text"] for citation in record["citations"])
    assert "&lt;script>" in answer["question"]
    assert any("&lt;script>" in reference["title"] for reference in record["references"])
    program = chromium()
    if program is None:
        pytest.skip("no Chromium or Chrome here (Debian: apt-get install chromium)")
    report = Path(record["files"]["evidence.html"])
    with browser(program) as page:
        page.open(report)
        page.click("#r1")
        assert SCRIPT in page.text("#c1"), "shown word for word"
        assert page.run("document.querySelectorAll('script, img').length") == 0
        assert page.run("typeof window.pwned") == "undefined"
        assert page.requests == [report.as_uri()] and not page.refused and not page.dialogs
