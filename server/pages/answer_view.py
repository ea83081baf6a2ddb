"""Shows an answer or section: its text with links, and what each opens, at an address that needs no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from markupsafe import Markup

from ...api import run_texts
from ..problems import ServerError
from .html import strip_controls, without_styles

DetailKind = Literal["citation", "finding", "number", "evidence"]
_QUOTED: Final = 1500  # characters of a quote to search for on a PDF page


@dataclass(frozen=True, slots=True)
class AnswerView:
    record: Mapping[str, Any]
    report: run_texts.ReportView
    base: str
    body: Markup

    @property
    def warnings(self) -> list[str]:
        """Warnings other than repeated findings."""
        findings = [finding["message"] for finding in self.report.findings]
        return [line for line in self.record["warnings"] if not any(message in line for message in findings)]


def answer_view(
    record: Mapping[str, Any], base: str, sentences: Sequence[run_texts.EnclosedSentence] = ()
) -> AnswerView:
    """The text with its links; of a `sentence` that can be edited no finding is a link, as it opens its findings."""
    report = run_texts.report_view(record)
    links = run_texts.report_links(report, record)
    ends = {item.start: item.end for item in sentences}
    links = [
        link for link in links if link.kind != "finding" or link.end < ends.get(link.start, 0) or link.start not in ends
    ]
    placed = run_texts.non_overlapping(record["text"], links)
    name = base.strip("/").replace("/", "-")

    def attributes(link: run_texts.Link) -> Markup:
        form = Markup('id="{}-{}" href="{}/{}s/{}" data-panel aria-haspopup="dialog"')
        return form.format(name, link.anchor, base, link.kind, link.number)

    body = run_texts.section_html(strip_in_place(record["text"]), placed, attributes, sentences)
    return AnswerView(record, report, base, without_styles(body))


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
