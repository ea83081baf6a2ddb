"""Lays a finished text out in its citation style, and builds its record: text, references, findings and files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ..citations.checks.findings import OF_SENTENCES, Finding, for_reader
from ..citations.checks.injection_flags import Flag, flag_findings, flag_sources
from ..citations.checks.number_tracing import NumberTrace, trace_numbers
from ..citations.citation_styles import Rendered
from ..citations.citation_styles import render as render_text
from ..citations.csl_styles import style_file
from ..citations.export.figures import figures_in, is_mentioned
from ..citations.export.files import SectionDocument, bibliography, file_stem, markdown_document
from ..citations.export.pandoc_formats import manuscript, pandoc_place
from ..citations.marking import CITES_NOTHING, MARKS, MarkedSentence, marks_of
from ..citations.references import Reference, References, build_references
from ..citations.user_citations import OwnCitation
from ..documents import Evidence, Paper
from ..documents.sandbox import in_thread
from ..roles.extractive.passage_details import without_details
from ..roles.inputs import Source
from ..settings.config import CitationStyle
from .completeness import coverage_of, coverage_warnings, tried_of
from .finished_text import FinishedText
from .role_inputs import load_read_chunks, visible_evidence
from .session import Session
from .state_conversion import own_queries

Placed = TypeVar("Placed", NumberTrace, OwnCitation)


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A section or an answer in its citation style, with the data of its record."""

    final: FinishedText
    style: CitationStyle
    shown: Rendered
    papers: Sequence[Paper]
    traces: Sequence[NumberTrace]
    own: Sequence[OwnCitation]
    flags: Sequence[Flag]
    source: str


async def layout_page(
    final: FinishedText, session: Session, *, read: Sequence[str], before: Sequence[str] = ()
) -> RenderedPage:
    """Render the text in the citation style of the settings.

    `read` are the other chunks that the agent read, `before` the keys that were cited earlier: by previous sections of
    a paper, or in a conversation.
    """
    brief, sources, text = final.brief, final.sources, final.text
    # In threads, so that an interrupt takes effect between two steps however long the text is.
    marks = [
        mark
        for mark in await asyncio.to_thread(marks_of, text, final.left)
        if not any(start <= mark.position <= end for start, end in final.unmarked)
    ]
    traces = await asyncio.to_thread(trace_numbers, without_details(text), sources, brief.experiment)
    beside = await asyncio.to_thread(load_read_chunks, session.library, read)
    described = await asyncio.to_thread(session.library.described.by_chunk)
    flags = await asyncio.to_thread(flag_sources, sources, beside, described)
    style = session.style_of(brief)
    shown = await asyncio.to_thread(
        render_text, text, sources, style, verdicts=final.verdicts, marks=marks, before=before
    )
    library = {paper.key: paper for paper in await asyncio.to_thread(session.library.papers)}
    own = await asyncio.to_thread(final.rules.own_citations, text, list(library.values()))
    shown = shown.citing_too([key for citation in own for key in citation.keys])
    cited = {**library, **{source.paper.key: source.paper for source in sources}}
    for_pandoc = (
        shown if style == "pandoc" else await asyncio.to_thread(render_text, text, sources, "pandoc", marks=marks)
    )
    linked = [pandoc_place(citation, for_pandoc) for citation in own]
    places = [*for_pandoc.places, *filter(None, linked)]
    source = manuscript(for_pandoc.text, places, title=final.rules.title, sections=style in ("pandoc", "key-page"))
    papers = await asyncio.to_thread(session.completed, [cited[key] for key in shown.keys])
    return RenderedPage(final, style, shown, papers, traces, own, flags, source)


async def references_of(
    papers: Sequence[Paper], numbering: Sequence[str], style: CitationStyle, session: Session
) -> References:
    """The references of these papers, with their numbers in the numeric style."""
    numbers = {key: number for number, key in enumerate(numbering, 1)}
    csl = style_file(session.settings.csl)
    return await in_thread(build_references, papers, style, numbers=numbers, csl=csl)


def page_record(
    page: RenderedPage, references: References, session: Session, notice: str | None = None
) -> dict[str, Any]:
    """The record of a section or an answer, with those of the `references` that it cites.

    `markdown` and `bibliography` are the contents of the accompanying files, so that the record stays complete when a
    paper leaves the library; other formats are made from `manuscript`, and `report` is what the evidence report shows
    besides the record. `notice` is one line on how the text was written, if not that of the session.
    """
    page = replace(page, final=_with_readers_messages(page.final))
    final, shown, settings = page.final, page.shown, session.settings
    coverage = coverage_of(own_queries(final.state), final.text, final.sources, final.verdicts)
    tried = coverage_warnings(*tried_of(coverage))
    said = session.notice_of(final.brief) if notice is None else notice
    document = _document(page, references, tried, said, strict=settings.strict)
    quoted_only = "writer" in session.extractive
    notes = [*_notes_on_input(final), *final.draft.notes, *references.warnings, *tried]
    return {
        **final.rules.completed(document.as_dict(), final.state, final.sources, quoted_only=quoted_only),
        "coverage": coverage,
        "suspicious": [flag.as_dict() for flag in page.flags],
        "cite_style": page.style,
        "csl": settings.csl,
        "strict": settings.strict,
        "markdown": markdown_document(document),
        "bibliography": bibliography(page.papers),
        "manuscript": page.source,
        "with_markers": final.text,
        "numbering": list(shown.numbering),
        "report": {
            "places": [{"start": place.start, "end": place.end, "ids": list(place.ids)} for place in shown.places],
            "notes": list(dict.fromkeys(notes)),
            "notice": document.notice,
        },
    }


def _with_readers_messages(final: FinishedText) -> FinishedText:
    """The text with messages that name papers where those for the writer have markers."""
    evidence = {source.evidence.id: source.evidence for source in final.sources}

    def renamed(findings: Sequence[Finding]) -> list[Finding]:
        return [replace(finding, message=for_reader(finding.message, evidence)) for finding in findings]

    return replace(
        final,
        replaced=renamed(final.replaced),
        left=renamed(final.left),
        out=[replace(item, found=tuple(for_reader(line, evidence) for line in item.found)) for item in final.out],
    )


def _document(
    page: RenderedPage, references: References, tried: Sequence[str], notice: str, *, strict: bool
) -> SectionDocument:
    """The content of the files; `tried` are warnings about needs that were searched for in vain."""
    final, shown = page.final, page.shown
    brief = final.brief
    flagged = flag_findings(page.flags)
    # The results show all plots, so that none is lost whose number the writer left out.
    figures = figures_in(shown.text, brief.experiment, file_stem(brief.kind), every=brief.kind == "results")
    unmentioned = [figure for figure in figures if not is_mentioned(figure.number, shown.text)]
    return SectionDocument(
        thread_id="",
        section=brief.kind,
        title=final.rules.title,
        text=shown.text,
        citations=shown.citations,
        evidence=[Evidence.from_dict(record) for record in visible_evidence(final.state)],
        papers=page.papers,
        references=_cited_references(page, references),
        findings=_document_findings(page, flagged, strict=strict),
        numbers=_moved_spans(page.traces, shown),
        left_out=[_left_out(item, final.sources, page.style) for item in final.out],
        warnings=_distinct(
            final.state.get("warnings", []),
            final.rules.input_warnings(),
            final.lost,
            _finding_lines(final, strict=strict),
            [f"Suspicious source: {finding.message}" for finding in flagged],
            final.draft.notes,
            references.warnings,
            tried,
            [
                f"Figure {item.number} ({Path(item.path).name}) is shown, but the text does not mention it."
                for item in unmentioned
            ],
        ),
        own_citations=_moved_spans(page.own, shown),
        figures=figures,
        notice=notice,
    )


def _cited_references(page: RenderedPage, references: References) -> list[Reference]:
    """The references of the text, with the places that it cites."""
    places = page.final.rules.places(page.shown.citations)
    return [
        replace(entry, places=places.get(entry.key, ())) for entry in references.entries if entry.key in page.shown.keys
    ]


def _document_findings(page: RenderedPage, flagged: Sequence[Finding], *, strict: bool) -> list[Finding]:
    """All findings; those whose words are not in the text have no span."""
    final = page.final
    gone = () if strict else final.replaced
    return [
        *(replace(finding, span=None) for finding in gone),
        *(_moved(finding, page.shown) for finding in final.left),
        *flagged,
    ]


def _moved_spans(items: Sequence[Placed], shown: Rendered) -> list[Placed]:
    """The items with their spans in the rendered text."""
    spans = [shown.span(item.start, item.end) for item in items]
    return [replace(item, start=start, end=end) for item, (start, end) in zip(items, spans, strict=True)]


def _notes_on_input(final: FinishedText) -> list[str]:
    return [*final.rules.input_warnings(), *final.state.get("warnings", []), *final.lost]


def _moved(finding: Finding, shown: Rendered) -> Finding:
    """The finding with its span in the rendered text."""
    if finding.span is None:
        return finding
    # A sentence's span includes its mark, the span of words in it does not.
    whole = finding.rule in OF_SENTENCES
    start, end = finding.span
    return replace(finding, span=(shown.moved(start), shown.moved(end)) if whole else shown.span(start, end))


def _left_out(item: MarkedSentence, sources: Sequence[Source], style: CitationStyle) -> dict[str, Any]:
    """A sentence that was left out, as it would have been rendered; reference numbers mean nothing outside a text."""
    shown = render_text(item.sentence.text, sources, "key" if style == "numeric" else style)
    return {"sentence": shown.text, "marks": list(item.marks), "why": list(item.found or (CITES_NOTHING,))}


def _finding_lines(final: FinishedText, *, strict: bool) -> list[str]:
    """A line for each finding: what was replaced or left out, and what remains in the text."""
    return [
        *(f"{'Left out of' if strict else 'Marked in'} the text: {finding.message}" for finding in final.replaced),
        *(f"Left out of the text: {line}" for item in final.out for line in item.found),
        *(f"{_lead(finding, final.unmarked)}: {finding.message}" for finding in final.left),
    ]


def _lead(finding: Finding, unmarked: Sequence[tuple[int, int]]) -> str:
    if finding.severity == "note":
        return "Listed"
    span = finding.span
    marked = finding.rule in MARKS and span and not any(start <= span[0] < end for start, end in unmarked)
    return "Marked in the text" if marked else "Left in the text"


def _distinct(*groups: Sequence[str]) -> list[str]:
    """The lines of all groups, each once."""
    return list(dict.fromkeys(line for group in groups for line in group))
