"""render: from markers to citations, references and the section's record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from citeloom.citations import (
    Finding,
    SectionDocument,
    build_references,
    flag_findings,
    flag_sources,
    trace_numbers,
)
from citeloom.citations import render as render_text
from citeloom.citations.csl import style_file
from citeloom.citations.export import bibliography, markdown_document, section_title
from citeloom.citations.formats import manuscript
from citeloom.documents import Evidence
from citeloom.graph.briefs import brief_of, draft_of, read_beside, with_chosen_quotes
from citeloom.graph.events import progress
from citeloom.graph.final_text import final_text
from citeloom.graph.judging import still_placed, verdicts_of
from citeloom.graph.state import SectionState, Update
from citeloom.graph.workbench import Workbench


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
    verdicts = still_placed(verdicts_of(state), sources)
    strict = bench.settings.strict
    final = await asyncio.to_thread(
        final_text, draft, brief, sources, verdicts=verdicts, known_keys=keys, strict=strict
    )
    text, marks = final.text, final.marks
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
            *final.findings(shown),
            *flagged,
        ],
        numbers=[
            replace(trace, start=start, end=end)
            for trace in traces
            for start, end in [shown.span(trace.start, trace.end)]
        ],
        left_out=final.left_out(sources, style),
        warnings=_warnings(
            state,
            lost,
            final.told(),
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


def _told_of_sources(flagged: Sequence[Finding]) -> list[str]:
    return [f"Suspicious source: {finding.message}" for finding in flagged]


def _warnings(state: SectionState, *more: Any) -> list[str]:
    """All that the user should know, each once: what was lost, marked or left out."""
    lines = [*state.get("warnings", [])]
    for group in more:
        lines += group
    return list(dict.fromkeys(lines))
