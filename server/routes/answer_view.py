"""Shows an answer or section: its text with links, and what each link opens, at an address that needs no script."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal
from urllib.parse import quote

from fastapi import Request, Response
from markupsafe import Markup

from ...api import run_texts, running, serving
from ...documents.sandbox import in_thread
from .. import response_models
from ..problems import ServerError
from ..server_state import ServerState
from .html import page, strip_controls, without_styles

DetailKind = Literal["citation", "finding", "number", "evidence"]
_QUOTED: Final = 1500  # characters of a quote to search for on a PDF page


_KINDS: Final[Mapping[str, DetailKind]] = {
    "citations": "citation",
    "findings": "finding",
    "numbers": "number",
    "evidence": "evidence",
}
# A sentence in the text, and the button that opens it by keyboard.
_SENTENCE: Final = Markup('<span class="sentence{}" id="{}sentence-{}" data-position="{}" data-text="{}">')
_BUTTON: Final = Markup('<button class="edit" type="button" aria-label="Edit sentence {}"></button></span>')


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A text as shown; `text_id` is the id under which its sentences are edited, `troubled` counts those with findings.

    `left_out` has the keys of the papers that were not searched, if others were chosen.
    """

    record: Mapping[str, Any]
    report: run_texts.ReportView
    base: str
    body: Markup
    text_id: str
    edited: bool
    troubled: int
    left_out: list[str]

    @property
    def warnings(self) -> list[str]:
        """Warnings other than repeated findings."""
        findings = [finding["message"] for finding in self.report.findings]
        return [line for line in self.record["warnings"] if not any(message in line for message in findings)]


async def show_text(run: run_texts.RunRecord, session: serving.Session, base: str, prefix: str = "") -> AnswerView:
    """Show a finished text in the user's version, with later retractions; ids of its sentences begin with `prefix`."""
    edits = await asyncio.to_thread(session.home.runs().edits, run.thread_id)
    current = await in_thread(run_texts.current_text, run_texts.editable_text(run, edits), session)
    return await asyncio.to_thread(_view, current, session, base, prefix)


def _view(current: run_texts.CurrentText, session: serving.Session, base: str, prefix: str) -> AnswerView:
    """Build the text with its links; a sentence's findings get no link, as the sentence itself opens them. Blocks."""
    record = run_texts.add_status_warnings(current.record, session)
    report = run_texts.report_view(record)
    ends, sentences, troubled = {item["start"]: item["end"] for item in current.sentences}, [], 0
    for item in current.sentences:
        found, position = any(finding["severity"] != "note" for finding in item["findings"]), item["position"]
        looks = " troubled" * found + " edited" * (position in current.edited)
        before = _SENTENCE.format(looks, prefix, position, position, strip_controls(item["text"]))
        sentences.append(run_texts.EnclosedSentence(item["start"], item["end"], before, _BUTTON.format(position + 1)))
        troubled += found
    links = run_texts.report_links(report, record)
    links = [link for link in links if link.kind != "finding" or link.end < ends.get(link.start, link.end + 1)]
    placed = run_texts.non_overlapping(record["text"], links)
    name = base.strip("/").replace("/", "-")

    def attributes(link: run_texts.Link) -> Markup:
        form = Markup('id="{}-{}" href="{}/{}s/{}" data-panel aria-haspopup="dialog"')
        return form.format(name, link.anchor, base, link.kind, link.number)

    body = without_styles(run_texts.section_html(strip_in_place(record["text"]), placed, attributes, sentences))
    searched = (record.get("route") or {}).get("papers")
    left_out = [key for key in session.library.records() if key not in searched] if searched else []
    edited = bool(current.text.edits)
    return AnswerView(record, report, base, body, current.text.run.thread_id, edited, troubled, left_out)


def strip_in_place(text: str) -> str:
    """Like `strip_controls`, but keeps the length, so that spans stay valid."""
    if strip_controls(text) == text:
        return text
    return "".join(strip_controls(character) or "\u200b" for character in text)


def detail(view: AnswerView, kind: DetailKind, which: str, library: run_texts.Library) -> dict[str, Any]:
    """Content of the side panel for a link; raises `ServerError` if the text has no such link."""
    report, shown, hits = view.report, dict[str, Any](), list[run_texts.SearchHit]()
    if kind == "evidence":
        cited = [support.found for card in report.cards for support in card.supports]
        hits = [hit for hit in (*cited, *chain(*report.unused)) if hit.record["id"] == which][:1]
        shown = {"found": hits[0]} if hits else {}
    else:
        items = {"citation": report.cards, "finding": report.findings, "number": report.numbers}[kind]
        if which.isascii() and which.isdigit() and len(which) < 6 and 1 <= int(which) <= len(items):
            item = items[int(which) - 1]
            shown = {"number": int(which), "total": len(items), "item": item}
            hits = [support.found for support in item.supports] if isinstance(item, run_texts.Card) else []
    if not shown:
        help = "The page may be older than the text: load it again."
        raise ServerError(404, f"There is no {kind} {which[:40]!r} here.", help=help)
    figures = run_texts.find_cited_figures(library, [hit.record for hit in hits])
    return {"view": view, "kind": kind, **shown, "pages": _pages(library, hits), "figures": figures}


def _pages(library: run_texts.Library, hits: list[run_texts.SearchHit]) -> dict[str, Mapping[str, Any]]:
    """Find page and words to mark for the evidence from papers in the library, and whether each has a PDF page."""
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


async def detail_page(request: Request, state: ServerState, view: AnswerView, kinds: str, which: str) -> Response:
    """A link's details, as a fragment for the side panel, as a card beside the link, or as a full page."""
    if kinds not in _KINDS:
        raise ServerError(404, "There is no such page.")
    shown = await asyncio.to_thread(detail, view, _KINDS[kinds], which, state.session.library)
    templates = {"": "detail_page.html", "card": "citation_card.html"}
    return page(request, templates.get(request.headers.get("x-part", ""), "detail.html"), shown)


def file_records(files: Sequence[run_texts.ResultFiles], base: str) -> list[response_models.ResultFile]:
    return [
        {
            "name": name,
            "format": suffix,
            "version": "edited" if place else "original",
            "media_type": media_type(suffix),
            "href": f"{base}/{quote(name)}",
        }
        for place, result in enumerate(files)
        for suffix, name in zip(result.suffixes, result.names(), strict=True)
    ]


def media_type(suffix: str) -> str:
    return response_models.MEDIA_TYPES.get(suffix) or running.image_type(suffix) or "application/octet-stream"
