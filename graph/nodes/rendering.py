"""render: from markers to citations, references and the section's record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

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
from citeloom.citations.coverage import mark_unsupported
from citeloom.citations.csl import style_file
from citeloom.citations.export import bibliography, markdown_document, section_title
from citeloom.citations.formats import manuscript
from citeloom.documents import Evidence
from citeloom.graph.answers import as_answer, cites, nothing_found
from citeloom.graph.briefs import brief_of, draft_of, read_beside, with_chosen_quotes
from citeloom.graph.events import progress
from citeloom.graph.state import ResearchState, RunState, Update
from citeloom.graph.workbench import Workbench
from citeloom.models.roles import AnswerBrief, Brief, Draft, Source, Verdict


async def render(state: RunState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """The finished section or answer: no marker is left, and nothing that the library does not hold."""
    result = await rendered(state, bench)
    runtime.stream_writer(progress("rendered", f"{len(result['citations'])} citations rendered"))
    answered = {"answered": result["answered"]} if "answered" in result else {}
    return {"text": result["text"], "result": result, **answered}


async def rendered(state: RunState, bench: Workbench) -> dict[str, Any]:
    """The record of a section or an answer in the citation style of the settings; takes no model call.

    `markdown` and `bibliography` are the contents of the files that go with it, so that the record stays whole
    when a paper leaves the library; `manuscript` is what other formats are made of, and `report` is what the evidence
    report shows beside the record.
    """
    brief, lost = await brief_of(state, bench)
    draft = draft_of(state)
    sources = with_chosen_quotes(brief.citable, draft)
    keys = [paper.key for paper in await asyncio.to_thread(bench.library.papers)]
    if isinstance(brief, AnswerBrief) and not cites(draft.text, sources):
        text = nothing_found(cast(ResearchState, state), len(keys))
        marked: tuple[Finding, ...] = ()
        left: tuple[Finding, ...] = ()
    else:
        text, marked, left = await asyncio.to_thread(_marked, draft, sources, brief, keys)
    traces = await asyncio.to_thread(trace_numbers, text, sources, brief.experiment)
    read = await asyncio.to_thread(read_beside, bench.library, state.get("messages", []))
    flags = await asyncio.to_thread(flag_sources, sources, read)
    flagged = flag_findings(flags)
    verdicts = {
        (record["sentence"], record["evidence_id"]): Verdict(record["label"], record["reason"])
        for record in state.get("verdicts", [])
    }
    style = bench.answer_style if isinstance(brief, AnswerBrief) else bench.settings.cite_style
    numbered = cast(ResearchState, state).get("numbers")
    shown = render_text(text, sources, style, verdicts=verdicts, numbers=numbered)
    cited = {source.paper.key: source.paper for source in sources}
    papers = [cited[key] for key in shown.keys]
    numbers = {key: shown.number(key) for key in shown.keys}
    csl = style_file(bench.settings.csl)
    references = await asyncio.to_thread(build_references, papers, style, numbers=numbers, csl=csl)
    for_pandoc = shown if style == "pandoc" else render_text(text, sources, "pandoc")
    title = brief.question if isinstance(brief, AnswerBrief) else section_title(brief.kind)
    notes = [*state.get("warnings", []), *lost, *draft.notes, *references.warnings]
    document = SectionDocument(
        thread_id="",
        section=brief.kind,
        title=title,
        text=shown.text,
        citations=shown.citations,
        evidence=[Evidence.from_dict(record) for record in state.get("evidence", [])],
        papers=papers,
        references=references.entries,
        findings=[
            *(replace(finding, span=None) for finding in marked),
            *(_moved(finding, shown) for finding in left),
            *flagged,
        ],
        numbers=[replace(trace, start=shown.moved(trace.start), end=shown.moved(trace.end)) for trace in traces],
        warnings=_warnings(
            state, lost, _told(marked, left), _told_of_sources(flagged), draft.notes, references.warnings
        ),
        notice=bench.notice,
    )
    record = document.as_dict()
    if isinstance(brief, AnswerBrief):
        record = as_answer(record, cast(ResearchState, state))
    return {
        **record,
        "suspicious": [flag.as_dict() for flag in flags],
        "cite_style": style,
        "csl": bench.settings.csl,
        "markdown": markdown_document(document),
        "bibliography": bibliography(papers),
        "marked": text,
        "paper_numbers": dict(shown.numbers),
        "manuscript": manuscript(for_pandoc.text, for_pandoc.places, title=title),
        "report": {
            "places": [{"start": place.start, "end": place.end, "ids": list(place.ids)} for place in shown.places],
            "notes": list(dict.fromkeys(notes)),
            "notice": bench.notice,
        },
    }


def _marked(
    draft: Draft, sources: Sequence[Source], brief: Brief, keys: Sequence[str]
) -> tuple[str, tuple[Finding, ...], tuple[Finding, ...]]:
    """The text with what is wrong marked in it, what was marked, and what is left."""
    text, marked = neutralise(draft.text, sources, brief.experiment.words(), known_keys=keys)
    if isinstance(brief, AnswerBrief):
        text, bare = mark_unsupported(text, sources)
        marked = (*marked, *bare)
    # Marking may have mended more than it names, or less: what is told is what is left in the text.
    final = Draft(text, draft.truncated)
    return text, marked, check_draft(final, sources, kind=brief.kind, experiment=brief.experiment, known_keys=keys)


def _moved(finding: Finding, shown: Rendered) -> Finding:
    """The finding with its span in the rendered text."""
    return replace(finding, span=(shown.moved(finding.span[0]), shown.moved(finding.span[1])) if finding.span else None)


def _told(marked: Sequence[Finding], left: Sequence[Finding]) -> list[str]:
    """A line for each finding: what was replaced, and what still stands in the text."""
    return [
        *(f"Marked in the text: {finding.message}" for finding in marked),
        *(f"{'Note' if finding.severity == 'note' else 'Left in the text'}: {finding.message}" for finding in left),
    ]


def _told_of_sources(flagged: Sequence[Finding]) -> list[str]:
    return [f"Suspicious source: {finding.message}" for finding in flagged]


def _warnings(state: RunState, *more: Any) -> list[str]:
    """All that the user should know, each once: what was lost, marked, left out, or judged not to hold."""
    lines = [*state.get("warnings", [])]
    for group in more:
        lines += group
    lines += [
        f"Judged {record['label']}: {record['sentence']} [{record['evidence_id']}]"
        for record in state.get("verdicts", [])
        if record["label"] in ("unsupported", "contradicted", "off-topic")
    ]
    return list(dict.fromkeys(lines))
