"""An evidence table given to a section: its cells can be cited with their words, and the text can show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import citeloom
from citeloom.api.arguments import ArgumentError
from citeloom.api.blocking import run_async
from citeloom.api.evidence_tables import aedit_cell
from citeloom.documents.types import EvidenceSpan
from citeloom.evidence_tables.cells import TableCell
from citeloom.evidence_tables.extraction import Decision, paper_version
from citeloom.graph.session import Session
from citeloom.roles.protocols import TableColumn
from citeloom.settings.config import Settings
from citeloom.stores.evidence_table_register import StoredCell, StoredPaper, UnknownTableError
from tests.support.openai_server import FakeOpenAI
from tests.support.run_fixtures import experiment, home, sample_home
from tests.support.scripted_agent import ScriptedAgent

__all__ = ["experiment", "home", "sample_home"]
KEY, TITLE = "okafor2022ensembles", "Which studies average networks, and what do they find?"


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        running.behaviour = ScriptedAgent(planned=["ensembles"])
        yield running


@pytest.fixture
def library(home: Path, server: FakeOpenAI) -> Iterator[Session]:
    settings = Settings(chat_model="fake", chat_base_url=server.base_url, max_retries=0, max_search_iterations=0)
    with ExitStack() as stack:
        yield stack.enter_context(citeloom.open_library(home, settings=settings))


def keep_table(session: Session) -> EvidenceSpan:
    """Store a table of one paper with a cell that is read and one that is not reported; returns its words."""
    chunk = next(item for item in session.library.paper_chunks(KEY) if "seed" in item.text)
    start = chunk.text.index("seed")
    span = EvidenceSpan.of(
        chunk, chunk.text.rindex("\n", 0, start) + 1 if "\n" in chunk.text[:start] else 0, start + 40
    )
    columns = [TableColumn("finding", "what was found"), TableColumn("n")]
    register = session.home.evidence_tables()
    register.save("table-abc", TITLE, {"columns": [column.as_dict() for column in columns], "papers": []})
    paper = StoredPaper(KEY, paper_version(session.library.paper(KEY)), asdict(Decision("included", "it does")))
    cells = {"finding": TableCell("averaging | helps", status="reported", spans=(span,)), "n": TableCell()}
    register.save_row(
        "table-abc", paper, [StoredCell(KEY, "", name, "", cell.as_dict()) for name, cell in cells.items()]
    )
    return span


def write(library: Session, experiment: dict[str, Any], **options: Any) -> dict[str, Any]:
    return citeloom.write_section(library, "discussion", experiment, **options)


@pytest.mark.parametrize("name", ["table-abc", "table-a", TITLE.upper()])
def test_the_writer_can_cite_cells_of_a_table(
    library: Session, server: FakeOpenAI, experiment: dict[str, Any], name: str
) -> None:
    span = keep_table(library)
    record = write(library, experiment, tables=name)
    agent: Any = server.behaviour
    shown = agent.writing[0]["messages"][-1]["content"]
    assert f"What has to be known: what the table “{TITLE}” says of each study" in shown
    assert "[E1] finding: averaging | helps" in shown
    cell = record["evidence"][0]
    assert (cell["id"], cell["key"], cell["quote"], cell["page"]) == ("E1", KEY, span.quote, span.page)
    assert any(citation["evidence_id"] == "E1" and citation["quote"] == span.quote for citation in record["citations"])
    assert "| Study |" not in record["text"]


def test_the_table_appears_where_it_is_requested_in_every_format(
    library: Session, experiment: dict[str, Any], tmp_path: Path
) -> None:
    span = keep_table(library)
    formats: Any = ["tex", "html", "docx"]
    given: Any = {"tables": ["table-abc"], "show_tables": True, "cite_style": "key"}
    del given["cite_style"]
    record = write(library, experiment, **given, out=tmp_path, formats=formats)
    row = next(line for line in record["text"].splitlines() if line.startswith("| Okafor"))
    assert row.endswith(f"({KEY}) | averaging \\| helps | not reported |")
    assert record["text"].rstrip().endswith(f"Table: {TITLE}")
    cited = next(item for item in record["citations"] if item["sentence"] == row)
    assert (cited["evidence_id"], cited["quote"]) == ("E1", span.quote)
    assert row in (tmp_path / "discussion.md").read_text("utf-8")
    tex, html = ((tmp_path / f"discussion.{name}").read_text("utf-8") for name in ("tex", "html"))
    assert "\\begin{longtable}" in tex and "averaging \\textbar" in tex and f"\\citep{{{KEY}}}" in tex
    assert "<table" in html and "averaging | helps</td>" in html and "not reported</td>" in html
    assert not [item for item in record["findings"] if item["rule"] == "number"]


def test_nothing_is_asked_twice_and_a_changed_table_starts_a_new_text(
    library: Session, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    keep_table(library)
    first = write(library, experiment, tables="table-abc")
    calls = len(server.requests)
    assert write(library, experiment, tables=["table-abc"])["thread_id"] == first["thread_id"]
    assert len(server.requests) == calls
    run_async(aedit_cell(library, "table-abc", KEY, "finding", "it helps much"))
    changed = write(library, experiment, tables="table-abc")
    assert changed["thread_id"] != first["thread_id"]
    assert changed["evidence"][0]["summary"] == "finding: it helps much"


def test_only_texts_that_weigh_studies_accept_tables(library: Session, experiment: dict[str, Any]) -> None:
    keep_table(library)
    with pytest.raises(ArgumentError, match="introduction and discussion do"):
        citeloom.write_section(library, "methods", experiment, tables="table-abc")
    with pytest.raises(UnknownTableError, match="no table"):
        write(library, experiment, tables="Which of them?")
