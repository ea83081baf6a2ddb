"""Renders the evidence report: one HTML file in which every citation of a section links to the words that support it.

It is self-contained and runs no script. The template engine escapes text from papers and models; if an escape were ever
missed, the content security policy would still block scripts, requests and foreign styles, since it allows only one
style sheet, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from ...plurals import counted
from ..checks.support_findings import DOUBTFUL
from .report_html import Link, doi_html, reference_html, section_html, shown_text, standing_apart, zotero_html
from .report_model import ReportView, finding_place, report_view

if TYPE_CHECKING:
    from jinja2 import Template


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
        """The image as a data URI; empty if there is no image."""
        return data_uri(self.content, self.media_type) if self.content else ""


@dataclass(frozen=True, slots=True)
class ReportImages:
    """PNG images of pages and figures, by the id of the evidence."""

    pages: Mapping[str, bytes] = field(default_factory=dict)
    figures: Mapping[str, ReportFigure] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether the report has an image at all."""
        return bool(self.pages) or any(figure.content for figure in self.figures.values())


def data_uri(image: bytes, media_type: str = "image/png") -> str:
    """An image encoded as a data URI."""
    return f"data:{media_type};base64,{base64.b64encode(image).decode()}"


VERDICTS: Final[Mapping[str, tuple[str, str]]] = {
    "supported": ("Supported", "The judge found that the passage supports the sentence."),
    "partly": ("Partly supported", "The judge found that the passage supports part of the sentence."),
    "unsupported": ("Not supported", "The judge found no support for the sentence in the passage."),
    "contradicted": ("Contradicted", "The judge found that the passage contradicts the sentence."),
    "on-topic": (
        "Support not judged",
        "Only the topic was compared, and the passage is not clearly about something else.",
    ),
    "off-topic": ("Off topic", "The passage seems to be about something else; only the topic was compared."),
    "unjudged": ("Not judged", "The sentence was not compared with the passage."),
}
_SNAPPED_TO: Final = 'content: ""; position: absolute; width: 1px; height: 1em; scroll-snap-align: start;'
COSTS: Final[Mapping[str, str]] = {
    "llm_calls": "Model calls made",
    "journal_hits": "Answers taken from the journal",
    "input_tokens": "Tokens sent",
    "output_tokens": "Tokens received",
    "embedded_texts": "Texts embedded at an endpoint",
    "cost": "Cost",
}


def evidence_report(record: Mapping[str, Any], images: ReportImages | None = None) -> str:
    """Render the report of a finished section from its record, which includes `report`, and embed the `images`."""
    images = images or ReportImages()
    view = report_view(record)
    placed = standing_apart(record["text"], links_of(view, record))
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
            (COSTS.get(name, name), f"{value:,}" if isinstance(value, int | float) else str(value))
            for name, value in record["usage"].items()
            if value is not None
        ],
    )


def links_of(view: ReportView, record: Mapping[str, Any]) -> list[Link]:
    """The links of the text, most important first."""
    text = record["text"]
    cards = [Link("citation", card.number, card.start, card.end, card.doubtful) for card in view.cards]
    findings = [
        Link("finding", number, *finding_place(text, finding))
        for number, finding in enumerate(view.findings, 1)
        if finding["start"] is not None
    ]
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


def packaged_template(name: str) -> str:
    """The text of a template, style sheet or script of a report."""
    return files("citeloom.citations").joinpath("templates", name).read_text(encoding="utf-8")


def content_hash(text: str) -> str:
    """The hash by which a report's content security policy allows its own style sheet or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=4)
def report_template(name: str) -> Template:
    """A template of a report; text from papers, models and users is escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # imported lazily: only reports need it

    environment = Environment(
        loader=FunctionLoader(packaged_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) or not isinstance(value, str) else shown_text(value),
    )
    environment.filters["reference"] = reference_html
    environment.filters["doi"] = doi_html
    environment.filters["zotero"] = zotero_html
    environment.filters["commonness"] = commonness
    return environment.get_template(name)
