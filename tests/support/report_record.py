"""The record of a finished section as the evidence report reads it, made by hand."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from citeloom.citations.checks.support_findings import support_findings
from citeloom.citations.citation_styles import missing_marks, render
from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.roles.protocols import DecidingSpan, Source, Verdict, VerdictLabel
from citeloom.settings.config import CitationStyle

BEFORE = "Earlier work looked at networks only. "
QUOTE = "Node degree explains most of the edges."
AFTER = " It is a strong baseline."
DRAFT = "Degree matters [E1][E2]. It lasts on other networks [E2]. Much stays open [citation needed]."
QUERIES = ("what degree explains", "degrees of other networks")


def make_record(
    draft: str = DRAFT,
    *,
    said: str = "",
    style: CitationStyle = "key",
    verdicts: tuple[VerdictLabel, VerdictLabel] = ("supported", "unsupported"),
    marked: bool = False,
) -> dict[str, Any]:
    """A discussion that cites E1 (page 4) and E2 (no pages) but not E3; `said` is in all text by other people."""
    sources = [_source(number, said) for number in (1, 2, 3)]
    judged = {
        (sentence, identifier): _verdict(label, identifier, said)
        for sentence in draft.replace(". ", ".\n").splitlines()
        for identifier, label in zip(("E1", "E2"), verdicts, strict=True)
    }
    found = support_findings(draft, judged)
    shown = render(draft, sources, style, verdicts=judged, marks=missing_marks(draft, found) if marked else ())
    papers = {
        source.paper.key: {
            "title": source.paper.title,
            "authors": list(source.paper.authors),
            "year": source.paper.year,
            "venue": source.paper.venue,
            "doi": source.paper.doi,
        }
        for source in sources
    }
    return {
        "thread_id": "discussion-1",
        "section": "discussion",
        "text": shown.text,
        "citations": [asdict(citation) for citation in shown.citations],
        "evidence": [source.evidence.as_dict() for source in sources],
        "references": [{"key": key, "label": key, "text": f"Ada. 2017. “On {said}.”"} for key in shown.keys],
        "findings": [
            {"rule": "truncated", "severity": "error", "message": f"The text ends. {said}", "start": None, "end": None},
            _placed(shown.text, "lasts", rule="copied-run", severity="warning", message=f"Copied from a paper. {said}"),
            *(
                {
                    **finding.as_dict(),
                    "start": shown.map_position(finding.span[0]),
                    "end": shown.map_position(finding.span[1]),
                }
                for finding in found
                if finding.span
            ),
        ],
        "numbers": [
            {**_placed(shown.text, "lasts"), "text": "lasts", "found": None},
            {**_placed(shown.text, "stays"), "text": "stays", "found": None},
            {**_placed(shown.text, "open"), "text": "open", "found": _IN_RESULTS},
        ],
        "usage": {"llm_calls": 12, "journal_hits": 3, "input_tokens": 45678, "output_tokens": 901, "cost": None},
        "warnings": [],
        "left_out": [],
        "suspicious": [],
        "own_citations": [],
        "coverage": {
            "passages": {"proposed": 60, "read": 60, "unreadable": 0},
            "sentences": {"cited": 2, "judged": 2, "unjudged": 0, "by_topic": 0},
        },
        "report": {
            "quotes": {},
            "title": f"Degrees {said}",
            "library_version": "abc",
            "notice": "",
            "places": [{"start": place.start, "end": place.end, "ids": list(place.ids)} for place in shown.places],
            "notes": [f"One paper was left out. {said}"],
            "searches": [
                {"query": f"{QUERIES[0]} {said}", "origin": "default", "scope": {}, "evidence_ids": ["E1", "E3"]},
                {
                    "query": f"{QUERIES[1]} {said}",
                    "origin": "custom",
                    "scope": {"papers": ["b2019"], "years": [2017, 2020]},
                    "evidence_ids": ["E2", "E1"],
                },
            ],
            "passages": {source.evidence.id: source.text for source in sources[:2]},
            "papers": papers,
        },
    }


# The deciding words of a passage: none for an unsupported sentence.
_DECIDED: dict[str, tuple[int, int]] = {"supported": (0, 11), "partly": (0, 11), "contradicted": (0, 11)}
_IN_RESULTS = {
    "path": "results.auroc",
    "start": 10,
    "end": 14,
    "how": "rounded",
    "words": "0.97",
    "passages": 0,
    "fields": 1,
}


def _verdict(label: VerdictLabel, identifier: str, said: str) -> Verdict:
    start, end = _DECIDED.get(label, (None, None))
    chunk = f"{'a2020' if identifier == 'E1' else 'b2019'}:00004"
    spans = () if start is None or end is None else (DecidingSpan(chunk, start, end),)
    return Verdict(label, f"because {said}", start, end, spans=spans)


def _placed(text: str, words: str, **more: str) -> dict[str, Any]:
    """A record with its position in the text; at the beginning when the words do not occur."""
    start = max(text.find(words), 0)
    return {**more, "start": start, "end": start + len(words)}


def _source(number: int, said: str) -> Source:
    key = ("a2020", "b2019", "c2018")[number - 1]
    text = f"{BEFORE}{said}{QUOTE}{said}{AFTER}"
    page = 4 if number == 1 else None
    chunk = Chunk(f"{key}:00004", key, 4, text, f"Results {said}", "", Category.EVALUATION, 1, page, 0, len(text), 14)
    start = len(BEFORE)
    evidence = Evidence.of(
        chunk,
        id=f"E{number}",
        summary=f"Degree explains most edges. {said}",
        start=start,
        end=start + len(said) + len(QUOTE),
        vector_score=0.71,
        llm_score=0.82,
        combined_score=0.776,
        source_query=f"{QUERIES[number == 2]} {said}",
    )
    paper = Paper(
        key, f"On degree {number} {said}", (f"Ada {said} Lovelace",), 2017, venue=f"Networks {said}", doi=f"10.1/{said}"
    )
    return Source(evidence, paper, text)
