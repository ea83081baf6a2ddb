"""render: from markers to citations, references and the section's record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from citeloom.citations import (
    Finding,
    Rendered,
    SectionDocument,
    build_references,
    check_draft,
    flag_findings,
    flag_sources,
    neutralise,
    trace_numbers,
)
from citeloom.citations import render as render_text
from citeloom.citations.csl import style_file
from citeloom.citations.export import bibliography, markdown_document, section_title
from citeloom.citations.formats import manuscript
from citeloom.citations.marking import CITES_NOTHING, MARKS, MarkedSentence, leave_out, marked_sentences, marks_of
from citeloom.citations.support import support_findings
from citeloom.config import CitationStyle
from citeloom.documents import Evidence
from citeloom.graph.briefs import brief_of, draft_of, read_beside, with_chosen_quotes
from citeloom.graph.events import progress
from citeloom.graph.judging import still_placed, verdicts_of
from citeloom.graph.state import SectionState, Update
from citeloom.graph.workbench import Workbench
from citeloom.models.roles import Draft, Source

_OF_SENTENCES = frozenset(
    {"citation-missing", "unsupported", "contradicted", "partly-supported", "off-topic", "unjudged"}
)


async def render(state: SectionState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """The finished section: no marker is left, and nothing that the library does not hold."""
    result = await rendered(state, bench)
    runtime.stream_writer(progress("rendered", f"{len(result['citations'])} citations rendered"))
    return {"text": result["text"], "result": result}


async def rendered(state: SectionState, bench: Workbench) -> dict[str, Any]:
    """The section's record in the citation style of the settings; takes no model call.

    `markdown` and `bibliography` are the contents of the files that go with it, so that the record stays whole
    when a paper leaves the library; `manuscript` is what other formats are made of, and `report` is what the evidence
    report shows beside the record.
    """
    brief, lost = await brief_of(state, bench)
    draft = draft_of(state)
    sources = with_chosen_quotes(brief.sources, draft)
    keys = [paper.key for paper in await asyncio.to_thread(bench.library.papers)]
    text, marked = await asyncio.to_thread(neutralise, draft.text, sources, brief.experiment.words(), known_keys=keys)
    verdicts = still_placed(verdicts_of(state), sources)
    strict = bench.settings.strict

    def check(text: str) -> list[Finding]:
        # Marking may have mended more than it names, or less: what is told is what is left in the text.
        final = Draft(text, draft.truncated)
        found = check_draft(final, sources, kind=brief.kind, experiment=brief.experiment, known_keys=keys)
        return [*found, *support_findings(text, verdicts)]

    text, left, out = await asyncio.to_thread(_held_to, text, check, strict=strict, kind=brief.kind)
    marks = marks_of(text, left)
    traces = await asyncio.to_thread(trace_numbers, text, sources, brief.experiment)
    read = await asyncio.to_thread(read_beside, bench.library, state.get("messages", []))
    flags = await asyncio.to_thread(flag_sources, sources, read)
    flagged = flag_findings(flags)
    style = bench.settings.cite_style
    shown = render_text(text, sources, style, verdicts=verdicts, marks=marks)
    cited = {source.paper.key: source.paper for source in sources}
    papers = [cited[key] for key in shown.keys]
    numbers = {key: shown.number(key) for key in shown.keys}
    csl = style_file(bench.settings.csl)
    references = await asyncio.to_thread(build_references, papers, style, numbers=numbers, csl=csl)
    for_pandoc = shown if style == "pandoc" else render_text(text, sources, "pandoc", marks=marks)
    notes = [*state.get("warnings", []), *lost, *draft.notes, *references.warnings]
    document = SectionDocument(
        thread_id="",
        section=state["section"],
        text=shown.text,
        citations=shown.citations,
        evidence=[Evidence.from_dict(record) for record in state.get("evidence", [])],
        papers=papers,
        references=references.entries,
        findings=[
            *(replace(finding, span=None) for finding in marked if not strict),
            *(_moved(finding, shown) for finding in left),
            *flagged,
        ],
        numbers=[
            replace(trace, start=start, end=end)
            for trace in traces
            for start, end in [shown.span(trace.start, trace.end)]
        ],
        left_out=[_left_out(item, sources, style) for item in out],
        warnings=_warnings(
            state,
            lost,
            [f"{'Left out of' if strict else 'Marked in'} the text: {finding.message}" for finding in marked],
            [f"Left out of the text: {line}" for item in out for line in item.found],
            _told(left),
            _told_of_sources(flagged),
            draft.notes,
            references.warnings,
        ),
        notice=bench.notice,
    )
    return {
        **document.as_dict(),
        "suspicious": [flag.as_dict() for flag in flags],
        "cite_style": style,
        "csl": bench.settings.csl,
        "strict": strict,
        "markdown": markdown_document(document),
        "bibliography": bibliography(papers),
        "manuscript": manuscript(for_pandoc.text, for_pandoc.places, title=section_title(state["section"])),
        "report": {
            "places": [{"start": place.start, "end": place.end, "ids": list(place.ids)} for place in shown.places],
            "notes": list(dict.fromkeys(notes)),
            "notice": bench.notice,
        },
    }


def _moved(finding: Finding, shown: Rendered) -> Finding:
    """The finding with its span in the rendered text."""
    if finding.span is None:
        return finding
    # A sentence's span has its mark in it, that of words in the sentence has not.
    whole = finding.rule in _OF_SENTENCES
    start, end = finding.span
    return replace(finding, span=(shown.moved(start), shown.moved(end)) if whole else shown.span(start, end))


def _held_to(
    text: str, check: Callable[[str], list[Finding]], *, strict: bool, kind: str
) -> tuple[str, list[Finding], list[MarkedSentence]]:
    """The text with what is wrong with it, and with `strict` what was left out of it until nothing in it fails.

    What goes may be what another sentence leaned on, such as the first mention of a number.
    """
    out: list[MarkedSentence] = []
    while True:
        found = check(text)
        failing = marked_sentences(text, found) if strict else []
        if not failing:
            return text, found, out
        out += failing
        text = leave_out(text, failing)
        if not any(map(str.isalnum, text)):
            nothing = f"Nothing is left of the {kind}: every sentence failed a check and was left out."
            return "", [Finding("empty", nothing)], out


def _left_out(item: MarkedSentence, sources: Sequence[Source], style: CitationStyle) -> dict[str, Any]:
    """A sentence that was left out, as it would have been shown; numbers of references mean nothing outside a text."""
    shown = render_text(item.sentence.text, sources, "key" if style == "numeric" else style)
    return {"sentence": shown.text, "marks": list(item.marks), "why": list(item.found or (CITES_NOTHING,))}


def _told(left: Sequence[Finding]) -> list[str]:
    """A line for each finding that still stands in the text."""
    return [f"{_lead(finding)}: {finding.message}" for finding in left]


def _lead(finding: Finding) -> str:
    if finding.severity == "note":
        return "Listed"
    return "Marked in the text" if finding.rule in MARKS and finding.span else "Left in the text"


def _told_of_sources(flagged: Sequence[Finding]) -> list[str]:
    return [f"Suspicious source: {finding.message}" for finding in flagged]


def _warnings(state: SectionState, *more: Any) -> list[str]:
    """All that the user should know, each once: what was lost, marked or left out."""
    lines = [*state.get("warnings", [])]
    for group in more:
        lines += group
    return list(dict.fromkeys(lines))
