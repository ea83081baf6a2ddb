"""Renders a finished text in its citation style, and builds its record: text, references, findings and files.

A paper is assembled from its sections: one text, one reference list, and merged records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from ..citations.checks.findings import RULES, Finding, for_reader
from ..citations.checks.injection import Flag, flag_findings, flag_sources
from ..citations.checks.number_tracing import NumberTrace, trace_numbers
from ..citations.checks.support_findings import PairKey, cited_claims
from ..citations.citation_styles import CITES_NOTHING, MARKS, Rendered, missing_marks, render as render_text
from ..citations.export.pandoc_formats import manuscript, pandoc_place
from ..citations.export.plot_figures import figures_in, find_mentions
from ..citations.export.section_files import bibliography, file_stem, markdown_document, section_title, without_title
from ..citations.references import References, build_references, cited_places, style_file
from ..citations.user_citations import UserCitation, find_user_citations
from ..documents import Paper
from ..metadata.bib_entry import complete_papers
from ..plurals import counted
from ..roles.extractive.passage_details import blank_details
from ..roles.protocols import AnswerBrief, Source, Verdict
from ..settings.config import CitationStyle
from ..stores.library import Library
from .finished_text import FinishedText, Outcome
from .written_draft import QuestionSearch, load_read_chunks, searches_of

Placed = TypeVar("Placed", NumberTrace, UserCitation)
_MOST_LEFT: Final = 8  # papers of an inventory that were opened and not cited


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How a text is rendered; `quoted_only` means no chat model wrote it, `strict` leaves failing sentences out."""

    style: CitationStyle
    csl: str
    strict: bool
    quoted_only: bool
    notice: str


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A section or an answer in its citation style, with the data of its record."""

    final: FinishedText
    options: PageOptions
    shown: Rendered
    papers: Sequence[Paper]
    traces: Sequence[NumberTrace]
    own: Sequence[UserCitation]
    flags: Sequence[Flag]
    source: str


def render_page(
    final: FinishedText, library: Library, options: PageOptions, *, read: Sequence[str] = (), before: Sequence[str] = ()
) -> RenderedPage:
    """Render the text; `read` are other chunks that the agent read, `before` keys cited earlier. Blocks."""
    brief, sources, text, style = final.written.brief, final.written.sources, final.text, options.style
    marks = [
        mark
        for mark in missing_marks(text, final.left)
        if not any(start <= mark.position <= end for start, end in final.unmarked)
    ]
    flags = flag_sources(sources, load_read_chunks(library, read), library.described.by_chunk())
    verdicts, typed = final.written.verdicts, final.typed
    shown = render_text(text, sources, style, verdicts=verdicts, marks=marks, before=before, typed=typed)
    papers = {paper.key: paper for paper in library.papers()}
    ending = screening_lines(final.written.search, papers, shown.keys)
    shown = replace(shown, text=shown.text + ending)
    own = [] if isinstance(brief, AnswerBrief) else find_user_citations(text, brief.experiment, list(papers.values()))
    shown = shown.with_cited_keys([key for citation in own for key in citation.keys])
    papers |= {source.paper.key: source.paper for source in sources}
    for_pandoc = shown
    if style != "pandoc":
        for_pandoc = render_text(text, sources, "pandoc", verdicts=verdicts, marks=marks, typed=typed)
    places = [*for_pandoc.places, *filter(None, (pandoc_place(citation, for_pandoc) for citation in own))]
    return RenderedPage(
        final,
        options,
        shown,
        complete_papers(library.metadata, [papers[key] for key in shown.keys]),
        trace_numbers(blank_details(final.prose), sources, brief.experiment),
        own,
        flags,
        manuscript(for_pandoc.text + ending, places, title=final.title, sections=style in ("pandoc", "key-page")),
    )


def screening_lines(search: QuestionSearch | None, papers: Mapping[str, Paper], cited: Sequence[str]) -> str:
    """The paragraph that ends an inventory: how many papers were screened, and why borderline ones are not in it.

    Empty for any other question. It has no source, so it is neither checked nor cited.
    """
    route = search.route if search else None
    if route is None or route["kind"] != "inventory" or not (screened := route.get("screened")):
        return ""
    titles = {key: f"{paper.title} ({paper.year or 'n.d.'})" for key, paper in papers.items()}
    opened = [key for key in dict.fromkeys([*screened["opened"], *cited]) if key in papers]
    left = [key for key in opened if key not in cited]
    cards = counted(screened["cards"], "paper")
    said = f"Screened by their cards: {cards}; {len(opened)} opened, {len(opened) - len(left)} of them cited."
    if "counts" in screened:  # a table names all that it holds
        said, left = screened["counts"], []
    shown = "; ".join(titles[key] for key in left[:_MOST_LEFT])
    more = f"; and {len(left) - _MOST_LEFT} more" if len(left) > _MOST_LEFT else ""
    unused = [f"- Opened but not cited: {shown}{more}."] if left else []
    beside = {key: why for key, why in screened["near"].items() if key in papers and key not in opened}
    near = [f"- {titles[key]}: {why.rstrip('.')}." for key, why in beside.items()]
    lines = [*near, *unused]
    return "\n\n".join([f"\n\n{said}" + (" Left out:" if lines else ""), *(["\n".join(lines)] if lines else [])])


def page_references(papers: Sequence[Paper], numbering: Sequence[str], style: CitationStyle, csl: str) -> References:
    """The references of these papers, with their numbers in the numeric style; blocks."""
    numbers = {key: number for number, key in enumerate(numbering, 1)}
    return build_references(papers, style, numbers=numbers, csl=style_file(csl))


def page_record(page: RenderedPage, references: References | None = None) -> dict[str, Any]:
    """The record of a section or an answer, with the `references` of the paper that the section is part of; blocks.

    `markdown` and `bibliography` are the contents of the accompanying files, so that the record stays complete if a
    paper is removed from the library; other formats are made from `manuscript`, and `report` holds further data for the
    evidence report. Its files are named when written.
    """
    final, written, shown, options = page.final, page.final.written, page.shown, page.options
    brief, strict = written.brief, options.strict
    references = references or page_references(page.papers, shown.numbering, options.style, options.csl)
    evidence = {source.evidence.id: source.evidence for source in written.sources}

    def reword(finding: Finding) -> Finding:
        """Name papers instead of markers in messages: markers are meant for the writer."""
        return replace(finding, message=for_reader(finding.message, evidence))

    def moved(finding: Finding) -> Finding:
        if finding.span is None:
            return finding
        start, end = finding.span
        whole = RULES[finding.rule].of_sentence
        return replace(
            finding, span=(shown.map_position(start), shown.map_position(end)) if whole else shown.span(start, end)
        )

    def lead(finding: Finding) -> str:
        if finding.severity == "note":
            return "Listed"
        begin = finding.span[0] if finding.span and finding.rule in MARKS else None
        unmarked = begin is None or any(start <= begin < end for start, end in final.unmarked)
        return "Left in the text" if unmarked else "Marked in the text"

    replaced, left = [*map(reword, final.replaced)], [*map(reword, final.left)]
    out = [(item, [for_reader(line, evidence) for line in item.found]) for item in final.out]
    flagged = flag_findings(page.flags)
    coverage = measure_coverage(written.queries, final.prose, written.sources, written.verdicts)
    if search := written.search:  # only questions have one
        screened = search.route.get("screened", {"cards": 0})["cards"]
        read = 0 if all_unreadable(coverage) else search.read
        coverage["papers"] = {"screened": screened, "read": read, "cited": len(shown.keys)}
    head: dict[str, Any] = {"section": brief.kind}
    places: Mapping[str, Any] = {}
    if isinstance(brief, AnswerBrief):
        places = cited_places(shown.citations)  # shown in the references; a section names them in its text
        ids = {citation.evidence_id for citation in shown.citations}
        cites = not ids.isdisjoint(evidence) and not written.draft.declined
        outcome: Outcome = "nothing" if not cites else "passages" if options.quoted_only else "answered"
        head = {
            "question": brief.question,
            "route": dict(search.route) if search else {},
            "answered": None if outcome == "passages" else outcome == "answered",
            "outcome": outcome,
        }
    cited = [
        replace(entry, places=places.get(entry.key, ())) for entry in references.entries if entry.key in shown.keys
    ]
    # The results show all plots, even those that the writer did not mention.
    figures = figures_in(shown.text, brief.experiment, file_stem(brief.kind), every=brief.kind == "results")
    notes = [*written.draft.notes, *references.warnings, *coverage_warnings(coverage)]
    warnings = [
        *written.warnings,
        *final.input_warnings,
        *final.lost,
        *(f"{'Left out of' if strict else 'Marked in'} the text: {finding.message}" for finding in replaced),
        *(f"Left out of the text: {line}" for _, found in out for line in found),
        *(f"{lead(finding)}: {finding.message}" for finding in left),
        *(f"Suspicious source: {finding.message}" for finding in flagged),
        *notes,
        *(
            f"Figure {item.number} ({Path(item.path).name}) is shown, but the text does not mention it."
            for item in figures
            if not find_mentions(item.number, shown.text)
        ),
    ]
    warnings = list(dict.fromkeys(warnings))
    # Replaced words are not in the text, so their findings have no span; a strict run names what it left out.
    findings = [*(replace(finding, span=None) for finding in (() if strict else replaced)), *map(moved, left), *flagged]
    # Keys in place of reference numbers, which mean nothing outside a text.
    style: CitationStyle = "key" if options.style == "numeric" else options.style
    shown_figures = [asdict(figure) for figure in figures]
    return {
        "thread_id": "",
        **head,
        "text": shown.text,
        "citations": [asdict(citation) for citation in shown.citations],
        "evidence": [dict(record) for record in written.evidence],
        "references": [reference.as_dict() for reference in cited],
        "findings": [finding.as_dict() for finding in findings],
        "numbers": [trace.as_dict(shown.text) for trace in _move_spans(page.traces, shown)],
        "left_out": [
            {
                "sentence": render_text(item.sentence.text, written.sources, style).text,
                "marks": list(item.marks),
                "why": found or [CITES_NOTHING],
            }
            for item, found in out
        ],
        "own_citations": [citation.as_dict() for citation in _move_spans(page.own, shown)],
        "figures": shown_figures,
        "usage": {},
        "warnings": warnings,
        "files": {},
        "coverage": coverage,
        "suspicious": [asdict(flag) for flag in page.flags],
        "cite_style": options.style,
        "csl": options.csl,
        "strict": strict,
        "markdown": markdown_document(final.title, shown.text, cited, shown_figures, [options.notice, *warnings]),
        "bibliography": bibliography(page.papers),
        "manuscript": page.source,
        "with_markers": final.text,
        "numbering": list(shown.numbering),
        "report": {
            "places": [
                {"start": place.start, "end": place.end, "ids": list(place.ids), "covers": place.covers}
                for place in shown.places
            ],
            "notes": list(dict.fromkeys([*final.input_warnings, *written.warnings, *final.lost, *notes])),
            "notice": options.notice,
        },
    }


def _move_spans(items: Sequence[Placed], shown: Rendered) -> list[Placed]:
    spans = [shown.span(item.start, item.end) for item in items]
    return [replace(item, start=start, end=end) for item, (start, end) in zip(items, spans, strict=True)]


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
    text, shifts = _join_sections(sections)
    warnings = [*_warnings(sections), *references.warnings]
    figures = {  # a figure that several sections mention counts once
        figure["number"]: {**figure, "file": f"paper{''.join(figure['file'].partition('.figure-')[1:])}"}
        for record in sections
        for figure in record["figures"]
    }
    shown = [figures[number] for number in sorted(figures)]

    notes = [f"{section_title(one['section'])}: {note}" for one in sections for note in one["report"]["notes"]]
    flags = [flag for record in sections for flag in record["suspicious"]]
    return {
        "section": "paper",
        "title": title,
        "sections": sections,
        "text": text,
        "citations": [citation for record in sections for citation in record["citations"]],
        "evidence": [dict(item) for item in evidence],
        "references": [reference.as_dict() for reference in references.entries],
        "findings": _shift_records(sections, shifts, "findings"),
        "numbers": _shift_records(sections, shifts, "numbers"),
        "left_out": [{**item, "section": record["section"]} for record in sections for item in record["left_out"]],
        "own_citations": _shift_records(sections, shifts, "own_citations"),
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
            "places": _shift_records(sections, shifts, "places"),
            "notes": [*notes, *references.warnings],
            "notice": notice,
        },
        "coverage": add_coverage(section["coverage"] for section in sections),
    }


def _join_sections(sections: Sequence[Mapping[str, Any]]) -> tuple[str, list[int]]:
    """The text of a paper, and by how much the spans of each section move in it."""
    text, shifts = "", list[int]()
    for record in sections:
        name = section_title(record["section"])
        body = without_title(record["text"], name)
        start = record["text"].find(body)
        if start == -1:  # the line ends differ
            body, start = record["text"], 0
        heading = ("\n\n" if text else "") + f"## {name}\n\n"
        shifts.append(len(text) + len(heading) - start)
        text += heading + body if body else ""  # a section may be empty
    return text, shifts


def _shift_records(sections: Sequence[Mapping[str, Any]], shifts: Sequence[int], name: str) -> list[dict[str, Any]]:
    """The records `name` of all sections, their spans moved to the paper's text; one about a heading has no span."""
    found: list[dict[str, Any]] = []
    for record, shift in zip(sections, shifts, strict=True):
        for item in record["report"][name] if name == "places" else record[name]:
            start, end = item["start"], item["end"]
            inside = start is not None and start + shift >= 0 and end <= len(record["text"])
            place = {"start": start + shift, "end": end + shift} if inside else {"start": None, "end": None}
            of_section = {"section": record["section"]} if name == "findings" else {}
            found.append({**item, **place, **of_section})
    return found


def _warnings(sections: Sequence[Mapping[str, Any]]) -> list[str]:
    """The warnings without duplicates, each with the sections that raised it."""
    raised: dict[str, list[str]] = {}
    for record in sections:
        for warning in record["warnings"]:
            raised.setdefault(warning, []).append(section_title(record["section"]))
    return [f"{', '.join(titles)}: {warning}" for warning, titles in raised.items()]


Coverage = Mapping[str, Mapping[str, int]]
_TOPIC_LABELS: Final = frozenset({"on-topic", "off-topic"})


def few_succeeded(things: str, done: str, total: int, succeeded: int) -> list[str]:
    """A warning if a step failed more often than it succeeded; `done` is the participle ("read", "judged")."""
    few = f"Only {succeeded} of {total} {things} were {done}: the model gave no valid answer for the others"
    return [f"{few}, so this result is based on incomplete input."] if 2 * succeeded < total else []


def coverage_warnings(coverage: Coverage) -> list[str]:
    """Warnings about reading and judging that failed more often than they succeeded."""
    passages, sentences = coverage["passages"], coverage["sentences"]
    # Without a judge sentences are compared by topic, edited ones alone: no judgement failed.
    cited = sentences["cited"] if sentences["judged"] or not sentences["by_topic"] else 0
    return [
        *few_succeeded(
            "passages shown to the model", "read", passages["read"] + passages["unreadable"], passages["read"]
        ),
        *few_succeeded("cited sentences", "judged", cited, sentences["judged"] + sentences["by_topic"]),
    ]


def measure_coverage(
    queries: Iterable[Mapping[str, Any]], text: str, sources: Sequence[Source], verdicts: Mapping[PairKey, Verdict]
) -> dict[str, dict[str, int]]:
    """Coverage of a section or an answer: the passages of its searches, and the cited sentences of its text.

    A text that was not judged has no sentences here; each cited sentence is judged, unjudged, or `by_topic`: compared
    only with the topic of its sources.
    """
    searched = searches_of(queries)
    proposed, shown, lost = (sum(record[name] for record in searched) for name in ("proposed", "shown", "unreadable"))
    claims = cited_claims(text, sources) if verdicts else {}
    pairs = [[(sentence, source.evidence.id) for source in claim.sources] for sentence, claim in claims.items()]
    labels = [{verdicts[pair].label for pair in of_one if pair in verdicts} for of_one in pairs]
    compared = sum(bool(given - {"unjudged"}) for given in labels)
    by_topic = sum(bool(given & _TOPIC_LABELS) and given <= {*_TOPIC_LABELS, "unjudged"} for given in labels)
    return {
        "passages": {"proposed": proposed, "read": shown - lost, "unreadable": lost},
        "sentences": {
            "cited": len(labels),
            "judged": compared - by_topic,
            "unjudged": len(labels) - compared,
            "by_topic": by_topic,
        },
    }


def add_coverage(parts: Iterable[Coverage]) -> dict[str, dict[str, int]]:
    """The coverage of a paper, summed over its sections."""
    total: dict[str, Counter[str]] = {}
    for things, counts in (item for part in parts for item in part.items()):
        total.setdefault(things, Counter()).update(counts)
    return {things: dict(counts) for things, counts in total.items()}


def all_unreadable(coverage: Coverage) -> bool:
    """True when passages were shown to the model and it could not read any of them."""
    return bool(coverage["passages"]["unreadable"]) and not coverage["passages"]["read"]


def coverage_line(coverage: Coverage) -> str:
    """The coverage on one line; for an answer, with the number of papers."""
    passages, sentences, papers = coverage["passages"], coverage["sentences"], coverage.get("papers")
    screened = f"{papers['screened']} screened by their cards, " if papers and papers["screened"] else ""
    of_papers = f"Papers: {screened}{papers['read']} read, {papers['cited']} cited. " if papers else ""
    outcomes = [f"{sentences['judged']} judged", f"{sentences['unjudged']} not judged"]
    if sentences["by_topic"]:
        outcomes.insert(1, f"{sentences['by_topic']} compared by topic only")
    of_passages = f"{passages['proposed']} proposed, {passages['read']} read, {passages['unreadable']} unreadable"
    of_sentences = ", ".join(outcomes) if sentences["cited"] else "none judged"
    return f"{of_papers}Passages: {of_passages}; cited sentences: {of_sentences}."
