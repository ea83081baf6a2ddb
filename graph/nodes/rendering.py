"""render: from markers to citations, references and the section's record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from citeloom.citations.flagged import Flag
from citeloom.citations.formats import manuscript
from citeloom.citations.numbers import NumberTrace
from citeloom.citations.references import References
from citeloom.citations.repeated import without_repeats
from citeloom.documents import Evidence, Paper
from citeloom.graph.briefs import (
    brief_of,
    chunks_shown,
    draft_of,
    read_beside,
    shown_evidence,
    with_chosen_quotes,
)
from citeloom.graph.events import progress
from citeloom.graph.state import SectionState, Update
from citeloom.graph.workbench import Workbench
from citeloom.models.roles import Draft, SectionBrief, Source, Verdict


async def render(state: SectionState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """The finished section: no marker is left, and nothing that the library does not hold."""
    result = await rendered(state, bench)
    runtime.stream_writer(progress("rendered", f"{len(result['citations'])} citations rendered"))
    return {"text": result["text"], "result": result}


async def rendered(state: SectionState, bench: Workbench) -> dict[str, Any]:
    """The section's record in the citation style of the settings; takes no model call."""
    page = await laid_out(await finished_text(state, bench), bench, read=chunks_shown(state))
    return section_record(page, await references_of(page.papers, page.shown.numbering, bench), bench)


@dataclass(frozen=True, slots=True)
class FinishedText:
    """A draft as it may reach the reader, its markers still in it: `marked` is what was replaced or left out."""

    state: SectionState
    brief: SectionBrief
    draft: Draft
    sources: Sequence[Source]
    text: str
    marked: Sequence[Finding]
    lost: Sequence[str]
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class Page:
    """A section in its citation style, with all that its record says of it; `left` are findings that stand in it."""

    final: FinishedText
    shown: Rendered
    papers: Sequence[Paper]
    left: Sequence[Finding]
    traces: Sequence[NumberTrace]
    flags: Sequence[Flag]
    source: str


async def finished_text(
    state: SectionState, bench: Workbench, earlier: Mapping[str, str] | None = None
) -> FinishedText:
    """The draft without what must not reach the reader; `earlier` are the finished texts of a paper's sections that
    were written before, by name, none of whose sentences it repeats.
    """
    brief, lost = await brief_of(state, bench)
    draft = draft_of(state)
    sources = with_chosen_quotes(brief.sources, draft)
    keys = [paper.key for paper in await asyncio.to_thread(bench.library.papers)]
    text, marked = await asyncio.to_thread(neutralise, draft.text, sources, brief.experiment.words(), known_keys=keys)
    text, repeated = without_repeats(text, earlier) if earlier is not None else (text, ())
    return FinishedText(state, brief, draft, sources, text, (*marked, *repeated), lost, keys)


async def laid_out(final: FinishedText, bench: Workbench, *, read: Sequence[str], before: Sequence[str] = ()) -> Page:
    """The text in the citation style of the settings.

    `read` are the chunks that the agent read beside, `before` the keys that a paper's sections before this one cite.
    """
    brief, sources, text = final.brief, final.sources, final.text
    # Marking may have mended more than it names, or less: what is told is what is left in the text.
    left = await asyncio.to_thread(
        check_draft,
        Draft(text, final.draft.truncated),
        sources,
        kind=brief.kind,
        experiment=brief.experiment,
        known_keys=final.keys,
    )
    traces = await asyncio.to_thread(trace_numbers, text, sources, brief.experiment)
    beside = await asyncio.to_thread(read_beside, bench.library, read)
    flags = await asyncio.to_thread(flag_sources, sources, beside)
    verdicts = {
        (record["sentence"], record["evidence_id"]): Verdict(record["label"], record["reason"])
        for record in final.state.get("verdicts", [])
    }
    style = bench.settings.cite_style
    shown = render_text(text, sources, style, verdicts=verdicts, before=before)
    cited = {source.paper.key: source.paper for source in sources}
    for_pandoc = shown if style == "pandoc" else render_text(text, sources, "pandoc")
    source = manuscript(for_pandoc.text, for_pandoc.places, title=section_title(brief.kind))
    return Page(final, shown, [cited[key] for key in shown.keys], left, traces, flags, source)


async def references_of(papers: Sequence[Paper], numbering: Sequence[str], bench: Workbench) -> References:
    """The references of these papers in the style of the settings, with their numbers in it."""
    numbers = {key: number for number, key in enumerate(numbering, 1)}
    csl = style_file(bench.settings.csl)
    return await asyncio.to_thread(build_references, papers, bench.settings.cite_style, numbers=numbers, csl=csl)


def section_record(page: Page, references: References, bench: Workbench) -> dict[str, Any]:
    """The section's record; of `references` those that it cites.

    `markdown` and `bibliography` are the contents of the files that go with it, so that the record stays whole
    when a paper leaves the library; `manuscript` is what other formats are made of, and `report` is what the evidence
    report shows beside the record.
    """
    final, shown, papers = page.final, page.shown, page.papers
    state, draft, lost, marked = final.state, final.draft, final.lost, final.marked
    flagged = flag_findings(page.flags)
    notes = [*state.get("warnings", []), *lost, *draft.notes, *references.warnings]
    document = SectionDocument(
        thread_id="",
        section=state["section"],
        text=shown.text,
        citations=shown.citations,
        evidence=[Evidence.from_dict(record) for record in shown_evidence(state)],
        papers=papers,
        references=[entry for entry in references.entries if entry.key in shown.keys],
        findings=[
            *(replace(finding, span=None) for finding in marked),
            *(_moved(finding, shown) for finding in page.left),
            *flagged,
        ],
        numbers=[replace(trace, start=shown.moved(trace.start), end=shown.moved(trace.end)) for trace in page.traces],
        warnings=_warnings(
            state, lost, _told(marked, page.left), _told_of_sources(flagged), draft.notes, references.warnings
        ),
        notice=bench.notice,
    )
    return {
        **document.as_dict(),
        "suspicious": [flag.as_dict() for flag in page.flags],
        "cite_style": bench.settings.cite_style,
        "csl": bench.settings.csl,
        "markdown": markdown_document(document),
        "bibliography": bibliography(papers),
        "manuscript": page.source,
        "report": {
            "places": [{"start": place.start, "end": place.end, "ids": list(place.ids)} for place in shown.places],
            "notes": list(dict.fromkeys(notes)),
            "notice": bench.notice,
        },
    }


def _moved(finding: Finding, shown: Rendered) -> Finding:
    """The finding with its span in the rendered text."""
    return replace(finding, span=(shown.moved(finding.span[0]), shown.moved(finding.span[1])) if finding.span else None)


def _told(marked: Sequence[Finding], left: Sequence[Finding]) -> list[str]:
    """A line for each finding: what was replaced, and what still stands in the text."""
    return [
        *(
            f"{'Left out of' if finding.rule == 'repeated-sentence' else 'Marked in'} the text: {finding.message}"
            for finding in marked
        ),
        *(f"{'Note' if finding.severity == 'note' else 'Left in the text'}: {finding.message}" for finding in left),
    ]


def _told_of_sources(flagged: Sequence[Finding]) -> list[str]:
    return [f"Suspicious source: {finding.message}" for finding in flagged]


def _warnings(state: SectionState, *more: Any) -> list[str]:
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
