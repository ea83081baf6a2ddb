"""Assembles a paper from its sections: one text, one reference list, and merged records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..citations.export.figures import figure_lines
from ..citations.export.files import bibliography, comment, section_title, without_title
from ..citations.html_escaping import inert
from ..citations.references import References
from ..documents import Paper

SectionRecord = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A section in the paper's text: its heading and body, and the offset of its body's positions."""

    record: SectionRecord
    heading: str
    body: str
    shift: int

    def moved(self, items: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Records with their spans in the paper's text; a record about the section's own heading has none."""
        for item in items:
            start, end = item["start"], item["end"]
            inside = start is not None and start + self.shift >= 0 and end <= len(self.record["text"])
            yield {
                **item,
                "start": start + self.shift if inside else None,
                "end": end + self.shift if inside else None,
            }


def whole_paper(
    title: str,
    sections: Sequence[SectionRecord],
    evidence: Sequence[Mapping[str, Any]],
    papers: Sequence[Paper],
    references: References,
    notice: str,
) -> dict[str, Any]:
    """The paper's record, without thread and usage.

    Args:
        title: the title of the paper; may be empty.
        sections: the records of its sections, in order.
        evidence: all evidence gathered, in the order of its ids.
        papers: the cited papers.
        references: the references to them.
        notice: one line on the mode.
    """
    placed = list(_placed(sections))
    text = "\n\n".join(f"{section.heading}\n\n{section.body}" for section in placed if section.body)
    figures = _figures(sections)
    warnings = [*_section_warnings(sections), *references.warnings]
    return {
        "section": "paper",
        "title": title,
        "sections": list(sections),
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
        "figures": figures,
        "warnings": warnings,
        "suspicious": _each_once(flag for record in sections for flag in record["suspicious"]),
        "cite_style": sections[0]["cite_style"],
        "csl": sections[0]["csl"],
        "strict": sections[0]["strict"],
        "markdown": _markdown(title, text, references, [notice, *warnings], figures),
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
    }


def _placed(sections: Sequence[SectionRecord]) -> Iterator[_Placed]:
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


def _figures(sections: Sequence[SectionRecord]) -> list[dict[str, Any]]:
    """The figures that any section mentions, without duplicates, as files of the paper."""
    figures = {figure["number"]: figure for record in sections for figure in record["figures"]}
    return [
        {**figures[number], "file": "paper" + figure["file"].removeprefix(figure["file"].partition(".figure-")[0])}
        for number, figure in sorted(figures.items())
    ]


def _section_warnings(sections: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each warning once, with the sections that have it."""
    of: dict[str, list[str]] = {}
    for record in sections:
        for warning in record["warnings"]:
            of.setdefault(warning, []).append(section_title(record["section"]))
    return [f"{', '.join(titles)}: {warning}" for warning, titles in of.items()]


def _markdown(
    title: str, text: str, references: References, notes: Sequence[str], figures: Sequence[Mapping[str, Any]] = ()
) -> str:
    name = " ".join(title.split())
    parts = [f"# {inert(name)}" if name else "", inert(text), figure_lines(figures)]
    if references.entries:
        parts.append("## References\n\n" + "\n".join(inert(reference.line) for reference in references.entries))
    parts.append(comment(notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def _each_once(records: Iterator[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for record in records:
        if record not in found:
            found.append(dict(record))
    return found
