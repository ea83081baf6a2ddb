"""Assembles a paper from its sections: one text, one reference list, and merged records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..citations.export.section_files import bibliography, markdown_document, section_title, without_title
from ..citations.references import References
from .completeness import add_coverage
from .page_record import RenderedPage, page_record, page_references

SectionRecord = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A section in the paper's text: its heading, its body, and the offset of the body."""

    record: SectionRecord
    heading: str
    body: str
    shift: int

    def moved(self, items: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Shift the records' spans to the paper's text; a record about the section's heading has no span."""
        for item in items:
            start, end = item["start"], item["end"]
            inside = start is not None and start + self.shift >= 0 and end <= len(self.record["text"])
            yield {
                **item,
                "start": start + self.shift if inside else None,
                "end": end + self.shift if inside else None,
            }


def paper_record(
    pages: Sequence[RenderedPage],
    usage: Sequence[Mapping[str, Any]],
    evidence: Sequence[Mapping[str, Any]],
    title: str,
    notice: str,
) -> dict[str, Any]:
    """The paper's record, without thread and usage; `evidence` is in the order of its ids, `title` may be empty.

    Blocks.
    """
    cited = {paper.key: paper for page in pages for paper in page.papers}
    numbering, options = pages[-1].shown.numbering, pages[-1].options
    papers = [cited[key] for key in numbering if key in cited]
    references = page_references(papers, numbering, options.style, options.csl)
    without_warnings = References(references.entries)
    sections = [
        {**page_record(page, without_warnings), "usage": spent} for page, spent in zip(pages, usage, strict=True)
    ]
    placed = list(_place_sections(sections))
    text = "\n\n".join(f"{section.heading}\n\n{section.body}" for section in placed if section.body)
    # A figure mentioned in several sections counts once in the paper.
    figures = {
        figure["number"]: {
            **figure,
            "file": "paper" + figure["file"].removeprefix(figure["file"].partition(".figure-")[0]),
        }
        for record in sections
        for figure in record["figures"]
    }
    shown = [figures[number] for number in sorted(figures)]
    raised: dict[str, list[str]] = {}  # each warning once, with the sections that raised it
    for record in sections:
        for warning in record["warnings"]:
            raised.setdefault(warning, []).append(section_title(record["section"]))
    warnings = [f"{', '.join(titles)}: {warning}" for warning, titles in raised.items()] + list(references.warnings)
    flags = [flag for record in sections for flag in record["suspicious"]]
    return {
        "section": "paper",
        "title": title,
        "sections": sections,
        "text": text,
        "citations": [citation for record in sections for citation in record["citations"]],
        "evidence": [dict(item) for item in evidence],
        "references": [reference.as_dict() for reference in references.entries],
        "findings": [
            {**finding, "section": section.record["section"]}
            for section in placed
            for finding in section.moved(section.record["findings"])
        ],
        "numbers": [number for section in placed for number in section.moved(section.record["numbers"])],
        "left_out": [{**item, "section": record["section"]} for record in sections for item in record["left_out"]],
        "own_citations": [item for section in placed for item in section.moved(section.record["own_citations"])],
        "figures": shown,
        "warnings": warnings,
        "suspicious": [flag for place, flag in enumerate(flags) if flag not in flags[:place]],
        "cite_style": options.style,
        "csl": options.csl,
        "strict": options.strict,
        "markdown": markdown_document(title, text, references.entries, shown, [notice, *warnings]),
        "bibliography": bibliography(papers),
        "manuscript": "\n".join(record["manuscript"] for record in sections if record["text"]),
        "report": {
            "places": [place for section in placed for place in section.moved(section.record["report"]["places"])],
            "notes": [
                *(
                    f"{section_title(record['section'])}: {note}"
                    for record in sections
                    for note in record["report"]["notes"]
                ),
                *references.warnings,
            ],
            "notice": notice,
        },
        "coverage": add_coverage(section["coverage"] for section in sections),
    }


def _place_sections(sections: Sequence[SectionRecord]) -> Iterator[_Placed]:
    length = 0
    for record in sections:
        name = section_title(record["section"])
        heading = f"## {name}"
        body = without_title(record["text"], name)
        start = record["text"].find(body)
        if start == -1:  # with different line ends
            body, start = record["text"], 0
        yield _Placed(record, heading, body, length + len(heading) + 2 - start)
        length += len(heading) + 2 + len(body) + 2 if body else 0  # a section may be empty
