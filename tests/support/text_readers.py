"""Every way in which text from outside is looked at: by name, a function of the text alone.

A text may come from a model (drafts, answers, JSON), a paper, a `.bib`, an experiment, or a user (questions). What
takes more than a text is given ordinary company, so that what is measured is the text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.messages import AIMessage

from citeloom import key_trust
from citeloom.citations import (
    absence,
    checks,
    copied,
    coverage,
    export,
    flagged,
    folding,
    foreign,
    formats,
    inert,
    instructions,
    markers,
    marking,
    names,
    number_words,
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
from citeloom.citations.markers import CitedSentence
from citeloom.citations.streaming import MarkerStream
from citeloom.commands import printable, search_view
from citeloom.commands.shell import language
from citeloom.documents import (
    Paper,
    authors,
    bibliography,
    bibtex,
    categories,
    chunking,
    conversion,
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
from citeloom.graph import queries, repeats
from citeloom.models import errors
from citeloom.models.briefs import EarlierSection
from citeloom.models.chat import answers, presenting, presenting_passages, streamed_answer, streamed_prose, structured
from citeloom.models.chat.presenting_experiment import present_experiment
from citeloom.models.extractive import (
    answerer,
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
from citeloom.stores import given_documents
from citeloom.tools import asking, authorship, coined, naming, pairing, routing, scope
from tests.support.answer_readers import ANSWERS, PASSAGES, Reader, need
from tests.support.reader_company import EXPERIMENT, KEYS, PIECE, PLAIN, SOURCES, chunk, experiment, paper, source
from tests.support.user_readers import USERS

QUESTION: Final = asking._MOST_CHARACTERS  # what is longer is refused as a question


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


def _numbers_in_words(text: str) -> None:
    for number in [*number_words.words(text), *number_words.shares(text)]:
        number_words.counts(text, number)
        number_words.measures(text, number)


def _left_out(text: str) -> str:
    return marking.leave_out(text, marking.marked_sentences(text, _all_at_fault(text)))


def _of_a_file(read: Callable[[str], object]) -> Reader:
    """A reader of what stands in a file: decoded, so without half characters; refused when it is nested too deeply."""

    def tried(text: str) -> None:
        with contextlib.suppress(RecursionError):
            read(text.replace("\ud800", "\ufffd"))

    return tried


def _bibliography(text: str) -> object:
    return bibliography.parse_bibliography(text, source="x.bib")


def _as_field(text: str) -> object:
    inner = text.replace("{", "").replace("}", "").replace("@", "")
    return _bibliography(
        f"@article{{a2020,\n  title = {{{inner}}},\n  author = {{{inner}}},\n  url = {{{inner}}}\n}}\n"
    )


def _papers(text: str) -> list[Paper]:
    return [Paper(KEYS[0], text, (text,), 2017, family_names=(text,)), Paper(KEYS[1], "A title", ("Wei Lee",), 2020)]


def _given(text: str) -> object:
    given = Document(text, metadata={"key": "a2020", "author": text, "title": text, "doi": text})
    return given_documents.read_given(given_documents.Given("a2020", (given,)), _bibliography(""))


def _themed(text: str) -> object:
    return themes.experiment_themes(experiment(text), themes.vocabulary([("a", text)]))


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
    "find_foreign": lambda text: foreign.find_foreign(text, known_keys=KEYS, allowed_text=PLAIN),
    "find_foreign, allowed": lambda text: foreign.find_foreign(f"{PLAIN} (Lee, 2020) [12]", allowed_text=text),
    "neutralise": lambda text: checks.neutralise(text, SOURCES, EXPERIMENT.words(), known_keys=KEYS),
    "neutralise, of an experiment": lambda text: checks.neutralise(f"{PLAIN} [12] (Lee, 2020)", SOURCES, text),
    "check_draft": lambda text: checks.check_draft(
        Draft(text), SOURCES, kind="discussion", experiment=EXPERIMENT, earlier={"methods": PLAIN}
    ),
    "check_draft, an answer": lambda text: checks.check_draft(
        Draft(text), SOURCES, kind="answer", experiment=EXPERIMENT
    ),
    "check_draft, of a source": lambda text: checks.check_draft(
        Draft(PLAIN), (source(text),), kind="discussion", experiment=EXPERIMENT
    ),
    "check_draft, of an experiment": lambda text: checks.check_draft(
        Draft(PLAIN), SOURCES, kind="discussion", experiment=experiment(text)
    ),
    "check_draft, after a section": lambda text: checks.check_draft(
        Draft(PLAIN), SOURCES, kind="discussion", experiment=EXPERIMENT, earlier={"methods": text}
    ),
    "copied_runs": lambda text: copied.copied_runs(text, SOURCES, PLAIN),
    "copied_runs, of itself": lambda text: copied.copied_runs(text, (source(text),), PLAIN),
    "uncited_sentences": lambda text: coverage.uncited_sentences(text, PLAIN),
    "unsupported_findings": coverage.unsupported_findings,
    "balance_findings": lambda text: coverage.balance_findings(text, SOURCES),
    "quoted_spans": quotations.quoted_spans,
    "claimed_numbers": quantities.claimed_numbers,
    "given_numbers": quantities.given_numbers,
    "trace_numbers": lambda text: numbers.trace_numbers(text, SOURCES, EXPERIMENT),
    "trace_numbers, of a source": lambda text: numbers.trace_numbers(PLAIN, (source(text),), EXPERIMENT),
    "split_authors": names.split_authors,
    "only_dates": lambda text: names.only_dates(text, ""),
    "NamedSource.is_named": lambda text: names.NamedSource.of(SOURCES[0].paper).is_named([text], True, "2017"),
    "wording": repeated.wording,
    "repeated_findings": lambda text: repeated.repeated_findings(text, {"methods": text}),
    "without_repeats": lambda text: repeated.without_repeats(text, {"methods": PLAIN}),
    "cited_claims": lambda text: support.cited_claims(text, SOURCES),
    "pairs_of_absence": lambda text: support.pairs_of_absence(text, SOURCES),
    "absence_findings": lambda text: absence.absence_findings(text, [text]),
    "states_only_absence": lambda text: absence.states_only_absence(CitedSentence(text, 0, len(text), ("E1",))),
    "numbers in words": _numbers_in_words,
    "marks_of": lambda text: marking.marks_of(text, _all_at_fault(text)),
    "leave_out": _left_out,
    "MarkerStream": _streamed,
    **{f"render, {style}": _render(style) for style in ("key", "pandoc", "locator", "numeric", "latex")},
    "section_html": _linked,
    "reference_html": report_text.reference_html,
    "shown_text": report_text.shown_text,
    "suspicious": instructions.suspicious,
    "flag_sources": lambda text: flagged.flag_sources([source("x", paper=paper(text))]),
    "plain_reference": lambda text: references.plain_reference(paper(text)),
    "an entry for pandoc": lambda text: references._mended(f"@misc{{a,\n{text}\n}}"),
    "a reference of pandoc": lambda text: references._readable(text, paper("x"), own_style=True),
    "_escaped, for pandoc": formats._escaped,
    "_escaped, a formula for pandoc": lambda text: formats._escaped(f"${text.strip()}$"),
    "a manuscript for pandoc": lambda text: formats.manuscript(text, [], title=text),
    "slug": export.slug,
    "without_title": lambda text: export.without_title(text, "Results"),
    "comment": lambda text: export.comment([text]),
}

DOCUMENTS: Final[Mapping[str, Reader]] = {
    "parse_markdown": markdown.parse_markdown,
    "chunk_paper": lambda text: chunking.chunk_paper("a", markdown.parse_markdown(text), _words),
    "describe": _of_a_file(lambda text: metadata.describe(Path("a.md"), markdown.parse_markdown(text), None)),
    "extractive_summary": lambda text: metadata.extractive_summary(markdown.parse_markdown(text)),
    "made_entry": lambda text: metadata.made_entry(paper(text)),
    "key_of": _of_a_file(lambda text: metadata.key_of(Path(f"{text}.md".replace("/", "")))),
    "sentence_spans": _of_a_file(sentences.sentence_spans),
    "make_note": _of_a_file(lambda text: notes.make_note(f"a{text}", lambda part: len(part) // 4 + 1)),
    "read_front_matter": front_matter.read_front_matter,
    "front matter of a paper": lambda text: markdown.parse_markdown(f"---\ntitle: x\nabstract: {text}\n---\n\nText.\n"),
    "find_doi": front_matter.find_doi,
    "parse_bibliography": _bibliography,
    "parse_bibliography, a field": _as_field,
    "field_value": lambda text: bibtex.field_value(text, {}),
    "uses_macros": bibtex.uses_macros,
    "readable": _of_a_file(bibtex.readable),
    "author_names": _of_a_file(bibtex.author_names),
    "as_latex": bibtex.as_latex,
    "family_name": authors.family_name,
    "in_text_name": lambda text: authors.in_text_name(paper(text)),
    "short_title": lambda text: authors.short_title(paper(text)),
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
    "made of a document by pandoc": conversion._without_boxes,
    "read_given": _given,
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
    "present_experiment": lambda text: present_experiment(experiment(text), "discussion", 900),
    "present_earlier": lambda text: presenting.present_earlier([EarlierSection("results", text)], "conclusion"),
    "present_evidence": lambda text: presenting.present_evidence([need(text)], [source(text)]),
    "present_findings": lambda text: presenting.present_findings([need(text)], [source(text, paper=paper(text))]),
    "show_passages": lambda text: presenting_passages.show_passages(text, [chunk(text)]),
    "present_paper": lambda text: presenting.present_paper(paper(text), text),
    "a title in an answer": lambda text: answerer._title(source(paper=paper(text))),
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
    "plans.paragraphs": lambda text: [plans.paragraphs(kind, experiment(text)) for kind in ("results", "discussion")],
    "share_of": lambda text: [shares.share_of(kind, experiment(text), ()) for kind in ("discussion", "abstract")],
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
    "default_queries": lambda text: queries.default_queries("discussion", experiment(text), lambda t: len(t) // 4),
    "code_subject": queries.code_subject,
    "log_subject": queries.log_subject,
    "answered_before": lambda text: repeats.answered_before(text, {}, []),
    "Experiment.words": lambda text: experiment(text).words(),
    "Experiment.leaves": lambda text: experiment(text).leaves(),
    "shown_address": key_trust.shown_address,
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


READERS: Final[Mapping[str, Reader]] = {**CITATIONS, **DOCUMENTS, **PASSAGES, **MODELS, **ANSWERS, **TOOLS, **USERS}
