"""Every way in which text from outside is looked at: by name, a function of the text alone.

A text may come from a model (drafts, answers, JSON), a paper, a `.bib`, an experiment, or a user (questions). What
takes more than a text is given ordinary company, so that what is measured is the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import AIMessage

from citeloom.citations import (
    checks,
    copied,
    coverage,
    export,
    flagged,
    folding,
    foreign,
    inert,
    instructions,
    markers,
    marking,
    names,
    numbers,
    quantities,
    quotations,
    references,
    repeated,
    report_text,
    styles,
    support,
)
from citeloom.citations.findings import Finding
from citeloom.citations.streaming import MarkerStream
from citeloom.commands import printable, search_view
from citeloom.commands.shell import language
from citeloom.documents import (
    Category,
    Chunk,
    Evidence,
    Paper,
    authors,
    bibliography,
    bibtex,
    categories,
    chunking,
    front_matter,
    markdown,
    metadata,
    notes,
    other_languages,
    plain_headings,
    quoting,
    scripts,
    sentences,
    wording,
)
from citeloom.documents.pdf import headings as pdf_headings
from citeloom.documents.pdf import lines as pdf_lines
from citeloom.documents.pdf import mending as pdf_mending
from citeloom.errors import CiteloomError
from citeloom.experiment import Experiment
from citeloom.graph import queries, repeats
from citeloom.models import errors
from citeloom.models.briefs import EarlierSection, Source
from citeloom.models.chat import answers, presenting, streamed_answer, streamed_prose, structured
from citeloom.models.extractive import (
    attributable,
    plans,
    question_planner,
    quotable,
    rewriting,
    shares,
    subjects,
    terms,
    themes,
)
from citeloom.models.roles import Draft
from citeloom.tools import asking, authorship, coined, naming, pairing, routing, scope

Reader = Callable[[str], object]

_PLAIN: Final = "Node degree explains most of the edges of the network [E1]. It is a strong baseline in 2 of 3 cases."
_KEYS: Final = ("himmelstein2017systematic", "lee2020")
_FIELDS: Final = {
    "paper_concept": {"title": "Node degree", "description": _PLAIN},
    "results": "The baseline explains 72.5% of the edges.",
}
EXPERIMENT: Final = Experiment.model_validate(_FIELDS)
PIECE: Final = 40  # characters in which a model's answer streams
QUESTION: Final = asking._MOST_CHARACTERS  # what is longer is refused as a question


def source(text: str = _PLAIN, id: str = "E1", paper: Paper | None = None) -> Source:
    """A source whose passage is `text`."""
    text = text.replace("\ud800", "\ufffd") or " "  # no library holds half a character
    known = paper or Paper(_KEYS[0], "On degree", ("Ada Himmelstein",), 2017, family_names=("Himmelstein",))
    chunk = Chunk(f"{known.key}:00004", known.key, 4, text, "Results", "", Category.EVALUATION, 1, 1, 0, len(text), 9)
    scores = {"vector_score": 0.7, "llm_score": 0.8, "combined_score": 0.76}
    made = Evidence.of(chunk, id=id, summary="Degree.", start=0, end=min(9, len(text)), source_query="degree", **scores)
    return Source(made, known, text)


SOURCES: Final = (source(), source(id="E2"), source(id="E3"))


def _streamed(text: str) -> None:
    stream = MarkerStream(SOURCES, "key")
    for start in range(0, len(text), PIECE):
        stream.feed(text[start : start + PIECE])
    stream.finish()


class _Deaf:
    def piece(self, text: str) -> None:
        pass

    def restart(self) -> None:
        pass


def _heard(listener: Any, text: str) -> None:
    for start in range(0, len(text), PIECE):
        listener.piece(text[start : start + PIECE])
    listener.finish()


def _words(texts: Any) -> list[int]:
    return [len(text) // 4 + 1 for text in texts]


def _all_at_fault(text: str) -> list[Finding]:
    return [Finding("unsupported", "x", (item.start, item.end)) for item in markers.sentences(text)]


def _left_out(text: str) -> str:
    return marking.leave_out(text, marking.marked_sentences(text, _all_at_fault(text)))


def _bibliography(text: str) -> object:
    return bibliography.parse_bibliography(text, source="x.bib")


def _as_field(text: str) -> object:
    inner = text.replace("{", "").replace("}", "").replace("@", "")
    return _bibliography(
        f"@article{{a2020,\n  title = {{{inner}}},\n  author = {{{inner}}},\n  url = {{{inner}}}\n}}\n"
    )


def _papers(text: str) -> list[Paper]:
    return [Paper(_KEYS[0], text, (text,), 2017, family_names=(text,)), Paper(_KEYS[1], "A title", ("Wei Lee",), 2020)]


def _of_paper(text: str) -> Paper:
    return Paper(_KEYS[0], text, (text,), 2017, venue=text, url=text, abstract=text, bibtex=f"@misc{{a,\n{text}\n}}")


def _experiment_of(text: str) -> Experiment:
    return Experiment.model_validate({**_FIELDS, "results": text.replace("\ud800", "")})


def _themed(text: str) -> object:
    return themes.experiment_themes(_experiment_of(text), themes.vocabulary([("a", text)]))


def _render(style: Any) -> Reader:
    return lambda text: styles.render(text, SOURCES, style)


def _linked(text: str) -> object:
    step = max(10, len(text) // 2_000)
    links = [report_text.Link("number", n, at, at + 5) for n, at in enumerate(range(0, len(text) - 5, step))]
    return report_text.section_html(text, report_text.standing_apart(text, links))


CITATIONS: Final[Mapping[str, Reader]] = {
    "fold": folding.fold,
    "normalise_markers": markers.normalise_markers,
    "sentences": markers.sentences,
    "sentences_with_markers": markers.sentences_with_markers,
    "marker_ids": markers.marker_ids,
    "marker_groups": markers.marker_groups,
    "find_foreign": lambda text: foreign.find_foreign(text, known_keys=_KEYS, allowed_text=_PLAIN),
    "find_foreign, allowed": lambda text: foreign.find_foreign(f"{_PLAIN} (Lee, 2020) [12]", allowed_text=text),
    "neutralise": lambda text: checks.neutralise(text, SOURCES, EXPERIMENT.words(), known_keys=_KEYS),
    "neutralise, of an experiment": lambda text: checks.neutralise(f"{_PLAIN} [12] (Lee, 2020)", SOURCES, text),
    "check_draft": lambda text: checks.check_draft(
        Draft(text), SOURCES, kind="discussion", experiment=EXPERIMENT, earlier={"methods": _PLAIN}
    ),
    "check_draft, an answer": lambda text: checks.check_draft(
        Draft(text), SOURCES, kind="answer", experiment=EXPERIMENT
    ),
    "check_draft, of a source": lambda text: checks.check_draft(
        Draft(_PLAIN), (source(text),), kind="discussion", experiment=EXPERIMENT
    ),
    "check_draft, of an experiment": lambda text: checks.check_draft(
        Draft(_PLAIN), SOURCES, kind="discussion", experiment=_experiment_of(text)
    ),
    "check_draft, after a section": lambda text: checks.check_draft(
        Draft(_PLAIN), SOURCES, kind="discussion", experiment=EXPERIMENT, earlier={"methods": text}
    ),
    "copied_runs": lambda text: copied.copied_runs(text, SOURCES, _PLAIN),
    "copied_runs, of itself": lambda text: copied.copied_runs(text, (source(text),), _PLAIN),
    "uncited_sentences": lambda text: coverage.uncited_sentences(text, _PLAIN),
    "unsupported_findings": lambda text: coverage.unsupported_findings(text),
    "balance_findings": lambda text: coverage.balance_findings(text, SOURCES),
    "quoted_spans": quotations.quoted_spans,
    "claimed_numbers": quantities.claimed_numbers,
    "given_numbers": quantities.given_numbers,
    "trace_numbers": lambda text: numbers.trace_numbers(text, SOURCES, EXPERIMENT),
    "trace_numbers, of a source": lambda text: numbers.trace_numbers(_PLAIN, (source(text),), EXPERIMENT),
    "split_authors": names.split_authors,
    "only_dates": lambda text: names.only_dates(text, ""),
    "NamedSource.is_named": lambda text: names.NamedSource.of(SOURCES[0].paper).is_named([text], True, "2017"),
    "wording": repeated.wording,
    "repeated_findings": lambda text: repeated.repeated_findings(text, {"methods": text}),
    "without_repeats": lambda text: repeated.without_repeats(text, {"methods": _PLAIN}),
    "cited_pairs": lambda text: support.cited_pairs(text, SOURCES),
    "marks_of": lambda text: marking.marks_of(text, _all_at_fault(text)),
    "leave_out": _left_out,
    "MarkerStream": _streamed,
    **{f"render, {style}": _render(style) for style in ("key", "pandoc", "locator", "numeric", "latex")},
    "section_html": _linked,
    "reference_html": report_text.reference_html,
    "shown_text": report_text.shown_text,
    "suspicious": instructions.suspicious,
    "flag_sources": lambda text: flagged.flag_sources([source("x", paper=_of_paper(text))]),
    "plain_reference": lambda text: references.plain_reference(_of_paper(text)),
    "an entry for pandoc": lambda text: references._mended(f"@misc{{a,\n{text}\n}}"),
    "a reference of pandoc": lambda text: references._readable(text, _of_paper("x"), own_style=True),
    "slug": export.slug,
    "without_title": lambda text: export.without_title(text, "Results"),
    "comment": lambda text: export.comment([text]),
}

DOCUMENTS: Final[Mapping[str, Reader]] = {
    "parse_markdown": markdown.parse_markdown,
    "chunk_paper": lambda text: chunking.chunk_paper("a", markdown.parse_markdown(text), _words),
    "describe": lambda text: metadata.describe(Path("a.md"), markdown.parse_markdown(text), None),
    "extractive_summary": lambda text: metadata.extractive_summary(markdown.parse_markdown(text)),
    "made_entry": lambda text: metadata.made_entry(_of_paper(text)),
    "key_of": lambda text: metadata.key_of(Path(f"{text}.md".replace("/", ""))),
    "sentence_spans": sentences.sentence_spans,
    "make_note": lambda text: notes.make_note(f"a{text}", lambda part: len(part) // 4 + 1),
    "read_front_matter": front_matter.read_front_matter,
    "front matter of a paper": lambda text: markdown.parse_markdown(f"---\ntitle: x\nabstract: {text}\n---\n\nText.\n"),
    "find_doi": front_matter.find_doi,
    "parse_bibliography": _bibliography,
    "parse_bibliography, a field": _as_field,
    "field_value": lambda text: bibtex.field_value(text, {}),
    "uses_macros": bibtex.uses_macros,
    "readable": bibtex.readable,
    "author_names": bibtex.author_names,
    "as_latex": bibtex.as_latex,
    "family_name": authors.family_name,
    "in_text_name": lambda text: authors.in_text_name(_of_paper(text)),
    "short_title": lambda text: authors.short_title(_of_paper(text)),
    "plain_title": categories.plain_title,
    "opens_letters": categories.opens_letters,
    "place": lambda text: categories.place(text, 1),
    "in_english": other_languages.in_english,
    "plain_heading": plain_headings.plain_heading,
    "headings_among": lambda text: list(plain_headings.headings_among(text.split("\n"))),
    "is_latin": scripts.is_latin,
    "plain_wording": wording.plain_wording,
    "reads_as_heading": lambda text: pdf_headings.reads_as_heading(text, larger=True),
    "lists_references": pdf_headings.lists_references,
    "begins_text": pdf_headings.begins_text,
    "numbered_level": pdf_headings.numbered_level,
    "without_numbers": pdf_lines.without_numbers,
    "is_number": pdf_lines.is_number,
    "plain, of a PDF": pdf_mending.plain,
    "lost_ligatures": lambda text: pdf_mending.lost_ligatures([text]),
    "damaged_words": lambda text: pdf_mending.damaged_words([text]),
    "words_made_whole": lambda text: pdf_mending.words_made_whole([text], [text]),
    "with_words": lambda text: pdf_mending.with_words(text, {"node": "mode"}),
    "joined": lambda text: pdf_mending.joined(text, text, 1.0, True),
}

MODELS: Final[Mapping[str, Reader]] = {
    "prose": lambda text: answers.prose(AIMessage(text)),
    "answer_text": lambda text: answers.answer_text(AIMessage(text)),
    "answer_alone": lambda text: streamed_answer.answer_alone(Draft(text)),
    "StreamedProse": lambda text: _heard(streamed_prose.StreamedProse(_Deaf()), text),
    "StreamedAnswer": lambda text: _heard(streamed_answer.StreamedAnswer(_Deaf()), text),
    "json_objects": lambda text: list(structured.json_objects(text)),
    "server_message": errors.server_message,
    "fenced": lambda text: presenting.fenced(text, "a"),
    "shortened": lambda text: presenting.shortened(text, 900),
    "without_markers": presenting.without_markers,
    "present_experiment": lambda text: presenting.present_experiment(_experiment_of(text), "discussion", 900),
    "present_earlier": lambda text: presenting.present_earlier([EarlierSection("results", text)], "conclusion"),
    "present_evidence": lambda text: presenting.present_evidence([source(text)]),
    "present_sources": lambda text: presenting.present_sources([source(text, paper=_of_paper(text))]),
    "present_paper": lambda text: presenting.present_paper(_of_paper(text), text),
    "quotable_passages": quotable.quotable_passages,
    "quotable_passages, attributed": lambda text: quotable.quotable_passages(text, attributed=True),
    "is_quotable": quotable.is_quotable,
    "is_quotable, attributed": lambda text: quotable.is_quotable(text, attributed=True),
    "shown_quote": lambda text: quoting.shown_quote(text, len(text) // 3, len(text) // 2),
    "without_pointers": quoting.without_pointers,
    "attributable_passages": attributable.attributable_passages,
    "tells_of_doing": attributable.tells_of_doing,
    "words_of": terms.words_of,
    "experiment_themes": _themed,
    "plans.sentences": plans.sentences,
    "plans.plain": plans.plain,
    "plans.paragraphs": lambda text: [
        plans.paragraphs(kind, _experiment_of(text)) for kind in ("results", "discussion")
    ],
    "share_of": lambda text: [shares.share_of(kind, _experiment_of(text), ()) for kind in ("discussion", "abstract")],
    "subject_of": lambda text: subjects.subject_of(text[:QUESTION]),
    "subject_words": lambda text: subjects.subject_words(text[:QUESTION]),
    "stand_alone": lambda text: rewriting.stand_alone(text[:QUESTION], "How does node degree bias edges?"),
    "stand_alone, after": lambda text: rewriting.stand_alone("Why does it?", text[:QUESTION]),
    "parts_of": lambda text: question_planner.parts_of(text[:QUESTION]),
}

TOOLS: Final[Mapping[str, Reader]] = {
    "named_papers": lambda text: naming.named_papers(text[:QUESTION], _papers("On degree")),
    "named_papers, of a library": lambda text: naming.named_papers("What does Lee (2020) say?", _papers(text)),
    "papers_by_author": lambda text: authorship.papers_by_author(text[:QUESTION], _papers("On degree")),
    "papers_by_author, of a library": lambda text: authorship.papers_by_author("What does Lee say?", _papers(text)),
    "route": lambda text: routing.route(text[:QUESTION], _papers("On degree")),
    "asked_categories": lambda text: routing.asked_categories(text[:QUESTION], about_a_paper=True, alone=True),
    "coined_names": lambda text: coined.coined_names(text[:QUESTION]),
    "_can_claim": pairing._can_claim,
    "plain_question": lambda text: _said(asking.plain_question, text),
    "require_words": lambda text: _said(scope.require_words, text),
    "category_named": lambda text: _said(scope.category_named, text),
    "default_queries": lambda text: queries.default_queries("discussion", _experiment_of(text), lambda t: len(t) // 4),
    "code_subject": queries.code_subject,
    "log_subject": queries.log_subject,
    "answered_before": lambda text: repeats.answered_before(text, {}, []),
    "Experiment.words": lambda text: _experiment_of(text).words(),
    "Experiment.leaves": lambda text: _experiment_of(text).leaves(),
    "printable.shown": printable.shown,
    "printable.one_line": printable.one_line,
    "inert": inert.inert,
    "search_view.shown": search_view.shown,
    "shell line": language.parse,
}


def _said(function: Callable[[str], object], text: str) -> None:
    try:
        function(text)
    except CiteloomError as error:
        str(error)


READERS: Final[Mapping[str, Reader]] = {**CITATIONS, **DOCUMENTS, **MODELS, **TOOLS}
