"""Shows an answer or section: its text with links, and what each opens, at an address that needs no script."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from markupsafe import Markup

from ...api import run_texts
from ...api.serving import Session
from ...documents.sandbox import in_thread
from ..problems import ServerError
from .html import strip_controls, without_styles

DetailKind = Literal["citation", "finding", "number", "evidence"]
_QUOTED: Final = 1500  # characters of a quote to search for on a PDF page


# A sentence as it stands in the text, and the button that opens it for the keyboard.
_SENTENCE: Final = Markup('<span class="sentence{}" id="{}sentence-{}" data-position="{}" data-text="{}">')
_BUTTON: Final = Markup('<button class="edit" type="button" aria-label="Edit sentence {}"></button></span>')


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A text as shown; `text_id` is the id under which its sentences are edited, `troubled` those with findings."""

    record: Mapping[str, Any]
    report: run_texts.ReportView
    base: str
    body: Markup
    text_id: str
    edited: bool
    troubled: int

    @property
    def warnings(self) -> list[str]:
        """Warnings other than repeated findings."""
        findings = [finding["message"] for finding in self.report.findings]
        return [line for line in self.record["warnings"] if not any(message in line for message in findings)]


async def show_text(run: run_texts.RunRecord, session: Session, base: str, prefix: str = "") -> AnswerView:
    """A finished text in the user's version, with retractions since; ids of its sentences begin with `prefix`."""
    edits = await asyncio.to_thread(session.home.runs().edits, run.thread_id)
    current = await in_thread(run_texts.current_text, run_texts.editable_text(run, edits), session)
    return await asyncio.to_thread(_view, current, session, base, prefix)


def _view(current: run_texts.CurrentText, session: Session, base: str, prefix: str) -> AnswerView:
    """The text with its links; of a sentence no finding is a link, as it opens its findings. Blocks."""
    record = run_texts.with_notices(current.record, session)
    report = run_texts.report_view(record)
    ends, sentences, troubled = {item["start"]: item["end"] for item in current.sentences}, [], 0
    for item in current.sentences:
        found, position = any(finding["severity"] != "note" for finding in item["findings"]), item["position"]
        looks = " troubled" * found + " edited" * (position in current.edited)
        before = _SENTENCE.format(looks, prefix, position, position, strip_controls(item["text"]))
        sentences.append(run_texts.EnclosedSentence(item["start"], item["end"], before, _BUTTON.format(position + 1)))
        troubled += found
    links = run_texts.report_links(report, record)
    links = [
        link for link in links if link.kind != "finding" or link.end < ends.get(link.start, 0) or link.start not in ends
    ]
    placed = run_texts.non_overlapping(record["text"], links)
    name = base.strip("/").replace("/", "-")

    def attributes(link: run_texts.Link) -> Markup:
        form = Markup('id="{}-{}" href="{}/{}s/{}" data-panel aria-haspopup="dialog"')
        return form.format(name, link.anchor, base, link.kind, link.number)

    body = without_styles(run_texts.section_html(strip_in_place(record["text"]), placed, attributes, sentences))
    return AnswerView(record, report, base, body, current.text.run.thread_id, bool(current.text.edits), troubled)


def strip_in_place(text: str) -> str:
    """Like `strip_controls`, but keeps the length, so that spans stay valid."""
    return (
        "".join(strip_controls(character) or "\u200b" for character in text) if strip_controls(text) != text else text
    )


def detail(view: AnswerView, kind: DetailKind, which: str, library: run_texts.Library) -> dict[str, Any]:
    """Content of the side panel for a link; raises `ServerError` if the text has no such link."""
    shared = {"view": view}
    if kind == "evidence":
        cited = [support.found for card in view.report.cards for support in card.supports]
        hits = [*cited, *(hit for group in view.report.unused for hit in group)]
        found = next((hit for hit in hits if hit.record["id"] == which), None)
        if found is None:
            raise _unknown(kind, which)
        return {**shared, "kind": kind, "found": found, **_images(library, [found])}
    number = int(which) if which.isascii() and which.isdigit() and len(which) < 6 else 0
    items = {"citation": view.report.cards, "finding": view.report.findings, "number": view.report.numbers}[kind]
    if not 1 <= number <= len(items):
        raise _unknown(kind, which)
    item = items[number - 1]
    hits = [support.found for support in item.supports] if isinstance(item, run_texts.Card) else []
    return {**shared, "kind": kind, "number": number, "total": len(items), "item": item, **_images(library, hits)}


def _unknown(kind: str, which: str) -> ServerError:
    return ServerError(
        404, f"There is no {kind} {which[:40]!r} here.", help="The page may be older than the text: load it again."
    )


def _images(library: run_texts.Library, hits: list[run_texts.SearchHit]) -> dict[str, Any]:
    return {
        "pages": _pages(library, hits),
        "figures": run_texts.find_cited_figures(library, [hit.record for hit in hits]),
    }


def _pages(library: run_texts.Library, hits: list[run_texts.SearchHit]) -> dict[str, Mapping[str, Any]]:
    """For evidence from papers in the library: the page and the words to mark on it, and whether it is a PDF's."""
    records = library.records()
    return {
        hit.record["id"]: {
            "key": hit.record["key"],
            "page": hit.record["page"],
            "quote": hit.record["quote"][:_QUOTED],
            "ocr": hit.record["page"] in hit.paper["ocr_pages"],
            "pdf": hit.record["page"] is not None and records[hit.record["key"]].paper.source.lower().endswith(".pdf"),
        }
        for hit in hits
        if hit.record["key"] in records
    }
