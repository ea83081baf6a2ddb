"""The evidence report: one HTML file in which every citation of a section links to the words that support it.

`report_view` collects what it shows from a section's record: citations with their passages, searches, unused evidence.

It is self-contained and runs no script. The template engine escapes text from papers and models; if an escape were ever
missed, the content security policy would still block scripts, requests and foreign styles, since it allows only one
style sheet, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from ...documents.plain_text import format_quote
from ...plurals import counted
from ...text.words import one_line, read_rules
from ..checks.support_findings import DOUBTFUL
from ..citation_styles import MARKS
from .report_html import Link, doi_html, non_overlapping, reference_html, section_html, shown_text, zotero_html

if TYPE_CHECKING:
    from jinja2 import Template


_BEFORE, _AFTER = 220, 360  # characters of the passage shown initially: the quote must be visible on a phone
_LISTED_AUTHORS = 4
# A paper that was removed from the library.
_UNKNOWN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("title", "venue", "doi", "zotero", "zotero_pdf", "status"), ""),
    **dict.fromkeys(("authors", "notices", "ocr_pages"), ()),
    "year": None,
}
# A line break within a paragraph; those between lists, tables, headings and paragraphs are kept.
_WRAPPED = re.compile(r"(?<!\n)\n(?![ \t]*(?:\n|[-*+|#>]|\d+[.)]))")


def _excerpt(before: str, quote: str, after: str) -> dict[str, Any]:
    """A quote and the words around it in its passage, few enough that a phone shows the quote."""
    near_before, near_after = before[-_BEFORE:].partition(" ")[2], after[:_AFTER].rpartition(" ")[0]
    return {
        **{"before": before, "quote": quote, "after": after},
        "near_before": before if len(before) <= _BEFORE else f"… {near_before}",
        "near_after": after if len(after) <= _AFTER else f"{near_after} …",
        "shortened": len(before) > _BEFORE or len(after) > _AFTER,
    }


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A piece of evidence: its record, its paper, and the numbers of its cards and of the searches that found it."""

    record: Mapping[str, Any]
    paper: Mapping[str, Any]
    searches: tuple[int, ...]
    cards: tuple[int, ...]
    quote: str  # with an ellipsis where its sentence is cut

    @property
    def authors(self) -> str:
        names = self.paper["authors"]
        return ", ".join(names[:_LISTED_AUTHORS]) + (" et al." if len(names) > _LISTED_AUTHORS else "")


@dataclass(frozen=True, slots=True)
class Support:
    """The support of a citation: its record, its evidence, and the passage if still available."""

    citation: Mapping[str, Any]
    found: SearchHit
    excerpt: Mapping[str, Any]
    whole: bool
    quote: str  # with an ellipsis where its sentence is cut
    decided: str = ""  # the words of the passage that the judge's verdict is based on


@dataclass(frozen=True, slots=True)
class Card:
    """One citation at `start:end` of the text, with its support, which covers the text from `since` to `start`."""

    number: int
    start: int
    end: int
    shown: str
    supports: tuple[Support, ...]
    since: int

    @property
    def doubtful(self) -> bool:
        return any(support.citation["verdict"] in DOUBTFUL for support in self.supports)


@dataclass(frozen=True, slots=True)
class ReportView:
    """The whole report: `unused` is uncited evidence by paper, best paper first; findings and numbers as recorded.

    `searches` have their evidence, best first, and their scope in words, `limits`; `suspicious` are the ids of evidence
    whose passage seems to contain prompt injection.
    """

    cards: tuple[Card, ...]
    searches: Sequence[Mapping[str, Any]]
    unused: tuple[tuple[SearchHit, ...], ...]
    verdicts: Mapping[str, int]
    findings: Sequence[Mapping[str, Any]]
    numbers: Sequence[Mapping[str, Any]]
    suspicious: frozenset[str]

    @property
    def supported(self) -> int:
        return self.verdicts.get("supported", 0)

    @property
    def doubted(self) -> int:
        return sum(count for verdict, count in self.verdicts.items() if verdict in DOUBTFUL)

    def cards_for(self, finding: Mapping[str, Any]) -> tuple[Card, ...]:
        """The citations whose verdict a finding reports."""
        labels = [label for label, rule in DOUBTFUL.items() if rule == finding["rule"]]
        near = (
            card for card in self.cards if labels and finding["start"] <= card.start and card.since < finding["end"]
        )
        return tuple(card for card in near if any(support.citation["verdict"] in labels for support in card.supports))


def report_view(record: Mapping[str, Any]) -> ReportView:
    """Build the view of a section's record, whose `report` holds places, searches, passages and papers."""
    report = record["report"]
    searches = report["searches"]
    found_by = _numbers([search["evidence_ids"] for search in searches])
    cited_by = _numbers([place["ids"] for place in report["places"]])
    found = {
        item["id"]: SearchHit(
            item,
            {**_UNKNOWN, **report["papers"].get(item["key"], {})},
            tuple(found_by[item["id"]]),
            tuple(cited_by[item["id"]]),
            report["quotes"].get(item["id"], item["quote"]),
        )
        for item in record["evidence"]
    }
    unused: dict[str, list[SearchHit]] = {}
    for item in sorted(found.values(), key=lambda item: -item.record["combined_score"]):
        if not item.cards:
            unused.setdefault(item.record["key"], []).append(item)
    return ReportView(
        cards=_cards(record, found),
        searches=[
            {
                **search,
                "number": number,
                "limits": _limits(search["scope"]),
                "found": [found[identifier] for identifier in search["evidence_ids"] if identifier in found],
            }
            for number, search in enumerate(searches, 1)
        ],
        unused=tuple(map(tuple, unused.values())),
        verdicts=Counter(citation["verdict"] for citation in record["citations"]),
        findings=record["findings"],
        numbers=record["numbers"],
        suspicious=frozenset(flag["evidence_id"] for flag in record["suspicious"] if flag["evidence_id"]),
    )


def _cards(record: Mapping[str, Any], found: Mapping[str, SearchHit]) -> tuple[Card, ...]:
    text, passages = record["text"], record["report"]["passages"]
    cards: list[Card] = []
    for number, place in enumerate(record["report"]["places"], 1):
        start, end = place["start"], place["end"]
        since = start - place.get("covers", 0)
        supports: list[Support] = []
        for citation in record["citations"]:
            identifier, words, quote = citation["evidence_id"], citation["sentence"], citation["quote"]
            # The sentence contains the place, or is an earlier sentence, from `since` on, that the card covers.
            first = since if since < start else max(0, end - len(words))
            known = identifier in place["ids"] and identifier in found
            if not known or text.find(words, first, start + len(words)) < 0:
                continue
            passage = passages.get(identifier, "")
            at = citation["start"] if passage[citation["start"] : citation["end"]] == quote else passage.find(quote)
            if not passage or at == -1:
                supports.append(Support(citation, found[identifier], _excerpt("", quote, ""), False, quote))
                continue
            flowing, behind = _WRAPPED.sub(" ", passage), at + len(quote)
            excerpt = _excerpt(flowing[:at], flowing[at:behind], flowing[behind:])
            shown, decided = format_quote(passage, at, behind), deciding_words(citation, passage)
            supports.append(Support(citation, found[identifier], excerpt, True, shown, decided))
        cards.append(Card(number, start, end, text[start:end], tuple(supports), since))
    return tuple(cards)


def deciding_words(citation: Mapping[str, Any], passage: str) -> str:
    spans = [span for span in citation["decided_by_spans"] if span["chunk_id"] == citation["chunk_id"]]
    return " \u2026 ".join(one_line(passage[span["start"] : span["end"]]) for span in spans)


def _numbers(ids: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, listed in enumerate(ids, 1):
        for identifier in listed:
            numbers[identifier].append(number)
    return numbers


def _limits(scope: Mapping[str, Any]) -> str:
    papers, categories, years, venue = (scope.get(name) for name in ("papers", "categories", "years", "venue"))
    parts = [f"in {', '.join(papers)}"] if papers else []
    parts += [f"sections: {', '.join(categories).replace('_', ' ')}"] if categories else []
    parts += ["years {}–{}".format(*years)] if years else []
    return "; ".join([*parts, f"venue: {venue}"] if venue else parts)


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A figure whose caption or rows are evidence; `content` is a PNG or JPEG, empty if too large to show.

    `description` was written by the model `described_by`; it is never the paper's words.
    """

    name: str
    content: bytes = b""
    media_type: str = "image/png"
    description: str = ""
    described_by: str = ""

    @property
    def address(self) -> str:
        return data_uri(self.content, self.media_type) if self.content else ""


@dataclass(frozen=True, slots=True)
class ReportImages:
    """PNG images of pages and figures, by the id of the evidence."""

    pages: Mapping[str, bytes] = field(default_factory=dict)
    figures: Mapping[str, ReportFigure] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        return bool(self.pages) or any(figure.content for figure in self.figures.values())


def data_uri(image: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(image).decode()}"


_WORDINGS: Final = read_rules(__file__, "report_wordings")
VERDICTS: Final[Mapping[str, tuple[str, str]]] = _WORDINGS["verdicts"]
_SNAPPED_TO: Final = 'content: ""; position: absolute; width: 1px; height: 1em; scroll-snap-align: start;'


def evidence_report(record: Mapping[str, Any], images: ReportImages | None = None) -> str:
    """Render the report of a finished section from its record, which includes `report`, and embed the `images`."""
    images = images or ReportImages()
    view = report_view(record)
    placed = non_overlapping(record["text"], report_links(view, record))
    style = _style(view)
    return report_template("evidence.html").render(
        record=record,
        report=record["report"],
        view=view,
        body=section_html(record["text"], placed),
        anchors={link.anchor for link in placed},
        style=Markup(style),
        has_images=images.any,
        pages={identifier: data_uri(image) for identifier, image in images.pages.items()},
        figures=images.figures,
        style_hash=content_hash(style),
        verdicts=VERDICTS,
        doubtful=DOUBTFUL,
        costs=[
            (_WORDINGS["costs"].get(name, name), f"{value:,}" if isinstance(value, int | float) else str(value))
            for name, value in record["usage"].items()
            if value is not None
        ],
    )


def report_links(view: ReportView, record: Mapping[str, Any]) -> list[Link]:
    """The links of the text, most important first."""
    text = record["text"]
    cards = [Link("citation", card.number, card.start, card.end, card.doubtful) for card in view.cards]
    findings: list[Link] = []
    for number, finding in enumerate(view.findings, 1):
        if finding["start"] is not None:  # the mark if the text contains it, else the words concerned
            start, end, mark = finding["start"], finding["end"], MARKS.get(finding["rule"], "")
            at = text.rfind(mark, start, end) if mark else -1
            findings.append(Link("finding", number, *((at, at + len(mark)) if at >= 0 else (start, end))))
    numbers = [Link("number", number, trace["start"], trace["end"]) for number, trace in enumerate(view.numbers, 1)]
    return [*cards, *findings, *numbers]


def _style(view: ReportView) -> str:
    """The style sheet, with a rule that highlights the citation whose card is open, and scrolls to it on a phone."""
    opened = ",\n".join(f":root:has(#c{card.number}:target) #r{card.number}" for card in view.cards)
    if not opened:
        return packaged_template("evidence.css")
    # Browsers snap to boxes with a size, which inline words do not have.
    held = ",\n".join(f":root:has(#c{card.number}:target) #r{card.number}::before" for card in view.cards)
    return f"{packaged_template('evidence.css')}{opened} {{ background: var(--lit); }}\n{held} {{ {_SNAPPED_TO} }}\n"


def commonness(found: Mapping[str, Any]) -> str:
    """Describe in how many passages and fields a number occurs."""
    counts = ((found["passages"], "passage"), (found["fields"], "field"))
    return ", ".join(counted(count, name) for count, name in counts if count)


def packaged_template(name: str, room: str = "citations") -> str:
    """The text of a template, style sheet or script of a report."""
    return files(f"citeloom.{room}").joinpath("templates", name).read_text(encoding="utf-8")


def content_hash(text: str) -> str:
    """The hash by which a report's content security policy allows its own style sheet or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=4)
def report_template(name: str, room: str = "citations", **filters: Callable[..., str]) -> Template:
    """A template of a report, with further filters; text from papers, models and users is escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # imported lazily: only reports need it

    environment = Environment(
        loader=FunctionLoader(lambda name: packaged_template(name, room)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) or not isinstance(value, str) else shown_text(value),
    )
    own = {"reference": reference_html, "doi": doi_html, "zotero": zotero_html, "commonness": commonness}
    environment.filters.update(own, **filters)
    return environment.get_template(name)
