"""Functions that process users' text, planners' answers and results, each called with a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from langchain_core.messages import AIMessage, HumanMessage

from citeloom.api import citing
from citeloom.citations import user_citations, verification
from citeloom.citations.export import latex_output as latex, plot_figures as figures
from citeloom.claims import markup_readers
from citeloom.documents import blocks, entry_labels, marker_escaping, paper_names
from citeloom.errors import InputError
from citeloom.graph import conversation_graph, section_queries as needs_filter
from citeloom.language_server import manuscript_documents
from citeloom.models import context_size
from citeloom.roles.chat import chat_reader as reader_output
from citeloom.roles.protocols import Need
from citeloom.server.routes import chat_completions
from citeloom.zotero import item_entry
from citeloom.zotero.zotero_records import Creator, ZoteroItem, ZoteroLibrary
from tests.support.reader_company import EXPERIMENT, PLAIN, experiment, paper

Reader = Callable[[str], object]


def _need(text: str) -> Need:
    """As planned: at most 300 characters."""
    return Need("N1", text[:300], (text[:300],))


def _read(text: str) -> object:
    finding = {"statement": text, "sentences": text, "need": text, "score": text}
    return reader_output.PassageReading.model_validate({"findings": [finding]}, strict=False)


def _refusable(text: str) -> None:
    try:
        _read(text)
    except ValueError as error:
        str(error)


def _item(text: str) -> ZoteroItem:
    """Everything that Zotero may hold of an item."""
    names = "title extra date DOI url pages abstractNote archiveID publicationTitle citationKey".split()
    return ZoteroItem("ABCD2345", "journalArticle", dict.fromkeys(names, text), (Creator("author", text, text),))


def _regions(text: str) -> None:
    for marks in (text, f"% citeloom:begin {text}\n{text}\n% citeloom:end", f"% citeloom:here {text}"):
        with suppress(InputError):
            latex.find_regions(marks, "a.tex")


def _in_editor(text: str) -> None:
    for suffix in (".md", ".tex", ".typ", ".org"):
        list(manuscript_documents.cited_keys(text, suffix))
        for place in (0, len(text) // 2, len(text)):
            manuscript_documents.open_citation(text, place, suffix)
            manuscript_documents.cited_at(text, place, suffix)


def _sentence(text: str) -> None:
    for suffix in (".md", ".tex", ".typ", ".org"):
        with suppress(InputError):
            citing.sentence_at(text, len(text) // 2, len(text) // 2, suffix)


USERS: Final[Mapping[str, Reader]] = {
    "figure_lines": lambda text: figures.figure_lines([{"number": 1, "caption": text, "file": "a.figure-1.png"}]),
    "regions of a LaTeX file": _regions,
    "entries of a LaTeX project": lambda text: latex.grow_bibliography({"a.bib": text}, [paper()]),
    "a section for a LaTeX project": lambda text: latex.section_body(text, text, {"a": "b"}, [], ""),
    "packages of a LaTeX project": lambda text: latex.missing_packages(text, latex.without_comments(text)),
    "citing_statements": lambda text: user_citations.citing_statements(experiment(text)),
    "own_citations": lambda text: user_citations.find_user_citations(PLAIN, experiment(text), [paper()]),
    "with_literal_markers": lambda text: user_citations.with_literal_markers(text, PLAIN),
    "numbers that are verified": lambda text: verification._agree(text, "0.5", exact=False),
    "citations in an editor": _in_editor,
    "sentence_at": _sentence,
    "read_org": lambda text: markup_readers.read_org("a.org", text),
    "entry_span": lambda text: manuscript_documents.entry_span(text, text[:200]),
    "field blocks": blocks.field_blocks,
    "escape_markers": marker_escaping.escape_markers,
    "unescape": marker_escaping.unescape,
    "strip_placeholders": marker_escaping.strip_placeholders,
    "without_own_results": lambda text: needs_filter.without_own_results([_need(text)], EXPERIMENT),
    "find_refused_size": context_size.find_refused_size,
    "reading_answer": _refusable,
    "chat_question": lambda text: conversation_graph.chat_question(
        [HumanMessage(text), AIMessage(text), HumanMessage(text), AIMessage("So."), HumanMessage("Why?")]
    ),
    "entry_labels": entry_labels,
    "zotero_links": paper_names.zotero_links,
    "is_zotero_address": paper_names.is_zotero_address,
    "item_entry": lambda text: item_entry.item_entry(_item(text), "key", ZoteroLibrary()),
    "bibtex_key": lambda text: item_entry.bibtex_key(_item(text)),
    "html_text": item_entry.html_text,
    "task_answer": lambda text: chat_completions.task_answer([HumanMessage(text)]),
    "task_answer, a title": lambda text: chat_completions.task_answer(
        [HumanMessage(f"Write a title for this chat.\n{text}")]
    ),
}
