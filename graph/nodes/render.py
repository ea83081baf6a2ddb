"""render: turns markers into citations, and builds the references and the record of a section or an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langgraph.runtime import Runtime

from ...citations import (
    Finding,
    Rendered,
    SectionDocument,
    build_references,
    check_draft,
    flag_findings,
    flag_sources,
    replace_invalid_citations,
    trace_numbers,
)
from ...citations import render as render_text
from ...citations.checks.absence import absence_findings
from ...citations.checks.injection_flags import Flag
from ...citations.checks.number_tracing import NumberTrace
from ...citations.checks.repeated_sentences import without_repeats
from ...citations.checks.support_findings import PairKey, support_findings
from ...citations.csl_styles import style_file
from ...citations.export.figures import figures_in
from ...citations.export.files import bibliography, file_stem, markdown_document, section_title
from ...citations.export.pandoc_formats import manuscript, pandoc_place
from ...citations.marking import CITES_NOTHING, MARKS, MarkedSentence, leave_out, marked_sentences, marks_of
from ...citations.numbered_references import cited_places
from ...citations.references import References
from ...citations.user_citations import OwnCitation, left_to_other_sections, own_citations, with_own_statements
from ...config import CitationStyle
from ...documents import Evidence, Paper
from ...documents.subprocesses import in_thread
from ...experiment import experiment_warnings
from ...plurals import counted
from ...roles.inputs import AnswerBrief, Brief, SectionBrief, Source
from ...roles.protocols import Draft, Verdict
from ..answer_record import ALL_LEFT_OUT, as_answer, cites, nothing_found, outcome_of
from ..completeness import coverage_of, coverage_warnings, tried_of
from ..events import progress
from ..role_inputs import brief_of, chunks_shown, draft_of, load_read_chunks, visible_evidence, with_chosen_quotes
from ..session import Session
from ..state import ResearchState, RunState, Update
from ..state_conversion import own_queries, searched_in_vain
from ..verdicts import still_placed, verdicts_of

_OF_SENTENCES = frozenset(
    {
        "citation-missing",
        "unsupported",
        "contradicted",
        "partly-supported",
        "idle-marker",
        "absence-unsearched",
        "off-topic",
        "unjudged",
    }
)


async def render(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """The finished section or answer: no markers are left, and nothing that the library does not hold."""
    result = await render_record(state, session)
    runtime.stream_writer(progress("rendered", f"{counted(len(result['citations']), 'citation')} rendered"))
    answered = {"answered": result["answered"]} if "answered" in result else {}
    return {"text": result["text"], "result": result, **answered}


async def render_record(state: RunState, session: Session) -> dict[str, Any]:
    """The record of a section or an answer in the citation style of the settings; makes no model call."""
    before = cast(ResearchState, state).get("numbering", ())
    page = await layout_page(
        await finished_text(state, session), session, read=chunks_shown(state, session), before=before
    )
    return page_record(page, await references_of(page.papers, page.shown.numbering, page.style, session), session)


@dataclass(frozen=True, slots=True)
class FinishedText:
    """A draft as the reader may see it, with its markers.

    `replaced` are findings whose words were replaced, `repeated` those whose sentences were removed, `left` those that
    remain in the text, and `out` the sentences that a strict run leaves out.
    """

    state: RunState
    brief: Brief
    draft: Draft
    sources: Sequence[Source]
    verdicts: Mapping[PairKey, Verdict]
    lost: Sequence[str]
    text: str = ""
    replaced: Sequence[Finding] = ()
    repeated: Sequence[Finding] = ()
    left: Sequence[Finding] = ()
    out: Sequence[MarkedSentence] = ()


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A section or an answer in its citation style, with the data of its record."""

    final: FinishedText
    title: str
    style: CitationStyle
    shown: Rendered
    papers: Sequence[Paper]
    traces: Sequence[NumberTrace]
    own: Sequence[OwnCitation]
    flags: Sequence[Flag]
    source: str


async def finished_text(state: RunState, session: Session, earlier: Mapping[str, str] | None = None) -> FinishedText:
    """The draft without what must not reach the reader.

    `earlier` are the finished texts of a paper's previous sections by name; none of their sentences is repeated.
    """
    brief, lost = await brief_of(state, session)
    draft = draft_of(state)
    sources = with_chosen_quotes(brief.citable, draft)
    keys = [paper.key for paper in await asyncio.to_thread(session.library.papers)]
    verdicts = still_placed(verdicts_of(state), sources)
    final = FinishedText(state, brief, draft, sources, verdicts, lost=lost)
    if isinstance(brief, AnswerBrief) and not cites(draft.text, sources):
        return replace(final, text=nothing_found(cast(ResearchState, state), len(keys)))
    text, replaced = await asyncio.to_thread(
        replace_invalid_citations,
        draft.text,
        sources,
        brief.experiment.words(),
        known_keys=keys,
        word_for_word=brief.word_for_word,
    )
    if isinstance(brief, SectionBrief):
        own = (brief.kind, brief.experiment, list((earlier or {}).values()), keys)
        if "writer" not in session.extractive:
            text = await asyncio.to_thread(with_own_statements, text, *own)
        lost = [*lost, *await asyncio.to_thread(left_to_other_sections, text, *own)]
    text, repeated = (text, ()) if earlier is None else await asyncio.to_thread(without_repeats, text, earlier)

    def check(text: str) -> list[Finding]:
        # Marking may fix more than it names, or less: what is reported is what remains in the text.
        written = Draft(text, draft.truncated)
        found = check_draft(written, sources, kind=brief.kind, experiment=brief.experiment, known_keys=keys)
        return [*found, *support_findings(text, verdicts), *absence_findings(text, searched_in_vain(state))]

    strict = session.settings.strict
    text, left, out = await asyncio.to_thread(_checked_text, text, check, strict=strict, kind=brief.kind)
    if isinstance(brief, AnswerBrief) and not text:
        text = ALL_LEFT_OUT
    return replace(final, lost=lost, text=text, replaced=replaced, repeated=repeated, left=left, out=out)


async def layout_page(
    final: FinishedText, session: Session, *, read: Sequence[str], before: Sequence[str] = ()
) -> RenderedPage:
    """Render the text in the citation style of the settings.

    `read` are the other chunks that the agent read, `before` the keys that were cited earlier: by previous sections of
    a paper, or in a conversation.
    """
    brief, sources, text = final.brief, final.sources, final.text
    # In threads, so that an interrupt takes effect between two steps however long the text is.
    marks = await asyncio.to_thread(marks_of, text, final.left)
    traces = await asyncio.to_thread(trace_numbers, text, sources, brief.experiment)
    beside = await asyncio.to_thread(load_read_chunks, session.library, read)
    flags = await asyncio.to_thread(flag_sources, sources, beside)
    style = session.style_of(brief)
    shown = await asyncio.to_thread(
        render_text, text, sources, style, verdicts=final.verdicts, marks=marks, before=before
    )
    library = {paper.key: paper for paper in await asyncio.to_thread(session.library.papers)}
    own: list[OwnCitation] = []
    if isinstance(brief, SectionBrief):
        own = await asyncio.to_thread(own_citations, text, brief.experiment, list(library.values()))
        shown = shown.citing_too([key for citation in own for key in citation.keys])
    cited = {**library, **{source.paper.key: source.paper for source in sources}}
    for_pandoc = (
        shown if style == "pandoc" else await asyncio.to_thread(render_text, text, sources, "pandoc", marks=marks)
    )
    title = brief.question if isinstance(brief, AnswerBrief) else section_title(brief.kind)
    linked = [pandoc_place(citation, for_pandoc) for citation in own]
    source = manuscript(for_pandoc.text, [*for_pandoc.places, *filter(None, linked)], title=title)
    papers = await asyncio.to_thread(session.completed, [cited[key] for key in shown.keys])
    return RenderedPage(final, title, style, shown, papers, traces, own, flags, source)


async def references_of(
    papers: Sequence[Paper], numbering: Sequence[str], style: CitationStyle, session: Session
) -> References:
    """The references of these papers, with their numbers in the numeric style."""
    numbers = {key: number for number, key in enumerate(numbering, 1)}
    csl = style_file(session.settings.csl)
    return await in_thread(build_references, papers, style, numbers=numbers, csl=csl)


def page_record(page: RenderedPage, references: References, session: Session) -> dict[str, Any]:
    """The record of a section or an answer, with those of the `references` that it cites.

    `markdown` and `bibliography` are the contents of the accompanying files, so that the record stays complete when a
    paper leaves the library; other formats are made from `manuscript`, and `report` is what the evidence report shows
    besides the record.
    """
    final, shown, papers = page.final, page.shown, page.papers
    state, brief, draft, strict = final.state, final.brief, final.draft, session.settings.strict
    notice = session.notice_of(brief)
    flagged = flag_findings(page.flags)
    places = cited_places(shown.citations) if isinstance(brief, AnswerBrief) else {}
    of_input = experiment_warnings(brief.experiment) if isinstance(brief, SectionBrief) else []
    coverage = coverage_of(own_queries(state), final.text, final.sources, final.verdicts)
    tried = coverage_warnings(*tried_of(coverage))
    notes = [*of_input, *state.get("warnings", []), *final.lost, *draft.notes, *references.warnings, *tried]
    document = SectionDocument(
        thread_id="",
        section=brief.kind,
        title=page.title,
        text=shown.text,
        citations=shown.citations,
        evidence=[Evidence.from_dict(record) for record in visible_evidence(state)],
        papers=papers,
        references=[
            replace(entry, places=places.get(entry.key, ())) for entry in references.entries if entry.key in shown.keys
        ],
        findings=[
            *(replace(finding, span=None) for finding in final.replaced if not strict),
            *(replace(finding, span=None) for finding in final.repeated),
            *(_moved(finding, shown) for finding in final.left),
            *flagged,
        ],
        numbers=[
            replace(trace, start=start, end=end)
            for trace in page.traces
            for start, end in [shown.span(trace.start, trace.end)]
        ],
        left_out=[_left_out(item, final.sources, page.style) for item in final.out],
        warnings=_warnings(
            state,
            of_input,
            final.lost,
            _finding_lines(final, strict=strict),
            [f"Suspicious source: {finding.message}" for finding in flagged],
            draft.notes,
            references.warnings,
            tried,
        ),
        own_citations=[
            replace(citation, start=start, end=end)
            for citation in page.own
            for start, end in [shown.span(citation.start, citation.end)]
        ],
        figures=figures_in(shown.text, brief.experiment, file_stem(brief.kind)),
        notice=notice,
    )
    record = document.as_dict()
    if isinstance(brief, AnswerBrief):
        ids = {citation.evidence_id for citation in shown.citations}
        cited = [source for source in final.sources if source.evidence.id in ids]
        outcome = outcome_of(brief.question, cited, quoted_only="writer" in session.extractive)
        record = as_answer(record, cast(ResearchState, state), outcome)
    return {
        **record,
        "coverage": coverage,
        "suspicious": [flag.as_dict() for flag in page.flags],
        "cite_style": page.style,
        "csl": session.settings.csl,
        "strict": strict,
        "markdown": markdown_document(document),
        "bibliography": bibliography(papers),
        "manuscript": page.source,
        "with_markers": final.text,
        "numbering": list(shown.numbering),
        "report": {
            "places": [{"start": place.start, "end": place.end, "ids": list(place.ids)} for place in shown.places],
            "notes": list(dict.fromkeys(notes)),
            "notice": notice,
        },
    }


def _moved(finding: Finding, shown: Rendered) -> Finding:
    """The finding with its span in the rendered text."""
    if finding.span is None:
        return finding
    # A sentence's span includes its mark, the span of words in it does not.
    whole = finding.rule in _OF_SENTENCES
    start, end = finding.span
    return replace(finding, span=(shown.moved(start), shown.moved(end)) if whole else shown.span(start, end))


def _checked_text(
    text: str, check: Callable[[str], list[Finding]], *, strict: bool, kind: str
) -> tuple[str, list[Finding], list[MarkedSentence]]:
    """The text with its findings and, with `strict`, the sentences left out until nothing in it fails.

    Leaving a sentence out may break another one that depends on it, such as on the first mention of a number.
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
    """A sentence that was left out, as it would have been rendered; reference numbers mean nothing outside a text."""
    shown = render_text(item.sentence.text, sources, "key" if style == "numeric" else style)
    return {"sentence": shown.text, "marks": list(item.marks), "why": list(item.found or (CITES_NOTHING,))}


def _finding_lines(final: FinishedText, *, strict: bool) -> list[str]:
    """A line for each finding: what was replaced or left out, and what remains in the text."""
    return [
        *(f"{'Left out of' if strict else 'Marked in'} the text: {finding.message}" for finding in final.replaced),
        *(f"Left out of the text: {finding.message}" for finding in final.repeated),
        *(f"Left out of the text: {line}" for item in final.out for line in item.found),
        *(f"{_lead(finding)}: {finding.message}" for finding in final.left),
    ]


def _lead(finding: Finding) -> str:
    if finding.severity == "note":
        return "Listed"
    return "Marked in the text" if finding.rule in MARKS and finding.span else "Left in the text"


def _warnings(state: RunState, *more: Any) -> list[str]:
    """All warnings for the user, each once: what was lost, marked or left out."""
    lines = [*state.get("warnings", [])]
    for group in more:
        lines += group
    return list(dict.fromkeys(lines))
