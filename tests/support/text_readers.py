"""Every function that processes text from outside, by name, called with the text alone.

A text may come from a model (drafts, answers, JSON), a paper, a `.bib`, an experiment, or a user (questions). Functions
that take more than a text get ordinary surroundings, so that the text is what is measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.messages import AIMessage

from citeloom.api import remembering
from citeloom.citations import (
    citation_patterns as author_year_patterns,
    citation_styles,
    cited_works,
    html_escaping,
    markers,
    references,
    user_citations,
)
from citeloom.citations.checks import (
    citation_coverage,
    draft_checks,
    fabricated_citations as foreign_citations,
    injection as injection_flags,
    injection as injection_patterns,
    number_parsing,
    number_parsing as number_words,
    number_tracing,
    preferences,
    repetition as copied_text,
    repetition as repeated_sentences,
    support_findings,
    support_findings as absence,
    unicode_folding,
)
from citeloom.citations.checks.findings import Finding
from citeloom.citations.export import (
    latex_output as latex_characters,
    pandoc_formats,
    report_html,
    section_files as files,
    word_fields,
)
from citeloom.citations.markers import CitedSentence
from citeloom.commands import output, papers
from citeloom.commands.shell import parser
from citeloom.documents import (
    Paper,
    bibliography,
    categories,
    chunking,
    edited_documents,
    figure_search,
    front_matter,
    markdown,
    pandoc,
    paper_names,
    plain_text,
)
from citeloom.documents.pdf import dehyphenation as pdf_mending, headings as pdf_headings, lines as pdf_lines
from citeloom.drafts.draft_stream import DraftEventStream
from citeloom.errors import CiteloomError
from citeloom.graph import section_queries as default_queries
from citeloom.graph.nodes import agent as repeated_queries
from citeloom.ingestion import sources
from citeloom.models.http import failures
from citeloom.roles.chat import (
    model_answers,
    prompt_format,
)
from citeloom.roles.chat.prompt_format import present_experiment
from citeloom.roles.extractive import (
    follow_ups as rewriter,
    passage_details,
    passage_scores,
    section_outlines,
    section_outlines as metrics_table,
    statement_needs as needs,
)
from citeloom.roles.protocols import Draft, EarlierSection
from citeloom.settings import key_trust
from citeloom.text import sentences, wordings, words
from citeloom.tools import paper_mentions, question_routing, scope
from tests.support.answer_readers import ANSWERS, PASSAGES, Reader, need
from tests.support.reader_company import EXPERIMENT, KEYS, PIECE, PLAIN, SOURCES, chunk, experiment, paper, source
from tests.support.user_readers import USERS

EDIT: Final = 4000  # longer sentences are rejected
EDITED: Final = user_citations.CitableEvidence([item.evidence for item in SOURCES], "key")
QUESTION: Final = scope._MOST_CHARACTERS  # longer questions are rejected


def _streamed(text: str) -> None:
    stream = DraftEventStream(SOURCES, "key", lambda _: None)
    for start in range(0, len(text), PIECE):
        stream.piece(text[start : start + PIECE])
    stream.finish(Draft(text))


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
    for number in [*number_words.spelt_numbers(text), *number_words.shares(text)]:
        number_words.counts(text, number)
        number_words.measures(text, number)


def _left_out(text: str) -> str:
    return citation_styles.leave_out(text, citation_styles.marked_sentences(text, _all_at_fault(text)))


def _of_a_file(read: Callable[[str], object]) -> Reader:
    """A reader of file contents: decoded, so without lone surrogates; rejected when nested too deeply."""

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
    return sources.read_documents("a2020", [given], _bibliography(""))


def _render(style: Any) -> Reader:
    return lambda text: citation_styles.render(text, SOURCES, style)


def _linked(text: str) -> object:
    step = max(10, len(text) // 2_000)
    links = [report_html.Link("number", n, at, at + 5) for n, at in enumerate(range(0, len(text) - 5, step))]
    return report_html.section_html(text, report_html.non_overlapping(text, links))


CITATIONS: Final[Mapping[str, Reader]] = {
    "edited sentence": lambda text: EDITED.with_markers(text[:EDIT], PLAIN),
    "fold": unicode_folding.fold,
    "normalise_markers": markers.normalise_markers,
    "sentences": markers.sentences,
    "marker_ids": markers.marker_ids,
    "marker_groups": markers.marker_groups,
    "find_fabricated": lambda text: foreign_citations.find_fabricated(text, known_keys=KEYS, allowed_text=PLAIN),
    "find_fabricated, allowed": lambda text: foreign_citations.find_fabricated(
        f"{PLAIN} (Lee, 2020) [12]", allowed_text=text
    ),
    "replace_invalid_citations": lambda text: draft_checks.replace_invalid_citations(
        text, SOURCES, EXPERIMENT.words, known_keys=KEYS
    ),
    "replace_invalid_citations, of an experiment": lambda text: draft_checks.replace_invalid_citations(
        f"{PLAIN} [12] (Lee, 2020)", SOURCES, text
    ),
    "check_draft": lambda text: draft_checks.check_draft(
        Draft(text), SOURCES, kind="discussion", experiment=EXPERIMENT, earlier={"methods": PLAIN}
    ),
    "check_draft, an answer": lambda text: draft_checks.check_draft(
        Draft(text), SOURCES, kind="answer", experiment=EXPERIMENT
    ),
    "check_draft, of a source": lambda text: draft_checks.check_draft(
        Draft(PLAIN), (source(text),), kind="discussion", experiment=EXPERIMENT
    ),
    "check_draft, of an experiment": lambda text: draft_checks.check_draft(
        Draft(PLAIN), SOURCES, kind="discussion", experiment=experiment(text)
    ),
    "check_draft, of itself": lambda text: draft_checks.check_draft(
        Draft(text), SOURCES, kind="discussion", experiment=experiment(text)
    ),
    "check_draft, after a section": lambda text: draft_checks.check_draft(
        Draft(PLAIN), SOURCES, kind="discussion", experiment=EXPERIMENT, earlier={"methods": text}
    ),
    "copied_findings": lambda text: copied_text.copied_findings(text, SOURCES, PLAIN),
    "copied_findings, of itself": lambda text: copied_text.copied_findings(text, (source(text),), PLAIN),
    "read_preferences": lambda text: preferences.read_preferences((text,)),
    "preference_findings": lambda text: preferences.preference_findings(
        text, ("participants, not subjects", "British spelling")
    ),
    "preference_findings, American": lambda text: preferences.preference_findings(text, ("American spelling",)),
    "spelling_of": lambda text: preferences.spelling_of(text, text),
    "suggested_lines": lambda text: list(remembering.suggested_lines(PLAIN, text[:4000])),
    "uncited_sentences": lambda text: citation_coverage.uncited_sentences(text, PLAIN),
    "unsupported_findings": citation_coverage.unsupported_findings,
    "balance_findings": lambda text: citation_coverage.balance_findings(text, SOURCES),
    "quoted_spans": markers.quoted_spans,
    "verbatim_spans": lambda text: markers.verbatim_spans(text, [PLAIN, text]),
    "is_verbatim": lambda text: markers.is_verbatim(PLAIN, text),
    "an edited file": edited_documents.without_frame,
    "links_to_keys": edited_documents.links_to_keys,
    "notes of an edited file": lambda text: edited_documents.with_notes(f"[^1]: a\n{text}"),
    "tables of a manuscript": word_fields.mark_tables,
    "links_to_keys, behind a link": lambda text: edited_documents.links_to_keys(f"[a](#ref-b){text}"),
    "figures of a LaTeX file": edited_documents.latex_without_figures,
    "find_author_year_works": cited_works.find_author_year_works,
    "characters of LaTeX": lambda text: latex_characters.with_printable_characters(f"\\begin{{document}}{text}", ""),
    "claimed_numbers": number_parsing.claimed_numbers,
    "given_numbers": number_parsing.given_numbers,
    "trace_numbers": lambda text: number_tracing.trace_numbers(text, SOURCES, EXPERIMENT),
    "trace_numbers, of a source": lambda text: number_tracing.trace_numbers(PLAIN, (source(text),), EXPERIMENT),
    "split_authors": author_year_patterns.split_authors,
    "only_dates": lambda text: author_year_patterns.only_dates(text, ""),
    "NamedSource.is_named": lambda text: author_year_patterns.NamedSource.of(SOURCES[0].paper).is_named(
        [text], True, "2017"
    ),
    "find_marks": lambda text: cited_works.find_marks(text, KEYS),
    "parse_keys": lambda text: cited_works.parse_keys(text, KEYS),
    "expand_numbers": cited_works.expand_numbers,
    "pages_in": cited_works.pages_in,
    "wording": repeated_sentences.wording,
    "repeated_findings": lambda text: repeated_sentences.repeated_findings(text, {"methods": text}),
    "cited_claims": lambda text: support_findings.cited_claims(text, SOURCES),
    "absence_pairs": lambda text: support_findings.absence_pairs(text, SOURCES),
    "absence_findings": lambda text: absence.absence_findings(text, [text]),
    "states_only_absence": lambda text: absence.states_only_absence(CitedSentence(text, 0, len(text), ("E1",))),
    "numbers in words": _numbers_in_words,
    "missing_marks": lambda text: citation_styles.missing_marks(text, _all_at_fault(text)),
    "leave_out": _left_out,
    "DraftEventStream": _streamed,
    **{f"render, {style}": _render(style) for style in ("key", "pandoc", "locator", "numeric", "latex")},
    "section_html": _linked,
    "reference_html": report_html.reference_html,
    "shown_text": report_html.shown_text,
    "find_suspicions": injection_patterns.find_suspicions,
    "flag_sources": lambda text: injection_flags.flag_sources([source("x", paper=paper(text))]),
    "plain_reference": lambda text: references.plain_reference(paper(text)),
    "an entry for pandoc": lambda text: references._SUFFIXED.sub("", f"@misc{{a,\n{text}\n}}"),
    "escapes for pandoc": lambda text: references._HEX_ESCAPE.sub("", text),
    "a reference of pandoc": lambda text: references._SPAN.sub("", references._DIV.sub(" ", text)),
    "a label of pandoc": lambda text: references._LABEL.sub("", text),
    "_escape_markup, for pandoc": pandoc_formats._escape_markup,
    "_escape_markup, a formula for pandoc": lambda text: pandoc_formats._escape_markup(f"${text.strip()}$"),
    "a manuscript for pandoc": lambda text: pandoc_formats.manuscript(text, [], title=text),
    "slug": files.slug,
    "without_title": lambda text: files.without_title(text, "Results"),
    "comment": lambda text: files.comment([text]),
}

DOCUMENTS: Final[Mapping[str, Reader]] = {
    "parse_identifier": paper_names.parse_identifier,
    "parse_markdown": markdown.parse_markdown,
    "find_figures": lambda text: figure_search.find_figures(markdown.parse_markdown(text)),
    "chunk_paper": lambda text: chunking.chunk_paper("a", markdown.parse_markdown(text), _words),
    "describe": _of_a_file(
        lambda text: bibliography.describe(Path("a.md"), markdown.parse_markdown(text), bibliography.Bibliography())
    ),
    "extractive_summary": lambda text: bibliography.extractive_summary(markdown.parse_markdown(text)),
    "make_entry": lambda text: bibliography.make_entry(paper(text)),
    "key_from_path": _of_a_file(lambda text: bibliography.key_from_path(Path(f"{text}.md".replace("/", "")))),
    "sentence_spans": _of_a_file(sentences.sentence_spans),
    "make_note": _of_a_file(lambda text: chunking.make_note(f"a{text}", lambda part: len(part) // 4 + 1)),
    "read_front_matter": front_matter.read_front_matter,
    "front matter of a paper": lambda text: markdown.parse_markdown(f"---\ntitle: x\nabstract: {text}\n---\n\nText.\n"),
    "find_doi": front_matter.find_doi,
    "parse_bibliography": _bibliography,
    "parse_bibliography, a field": _as_field,
    "field_value": lambda text: bibliography.field_value(text, {}),
    "uses_macros": bibliography.uses_macros,
    "readable": _of_a_file(bibliography.readable),
    "author_names": _of_a_file(bibliography.author_names),
    "as_latex": bibliography.as_latex,
    "family_name": paper_names.family_name,
    "in_text_name": lambda text: paper_names.in_text_name(paper(text)),
    "short_title": lambda text: paper_names.short_title(paper(text)),
    "plain_title": categories.plain_title,
    "is_reviewer_letter": categories.is_reviewer_letter,
    "classify_section": lambda text: categories.classify_section(text, 1),
    "translate_heading": categories.translate_heading,
    "parse_heading": markdown.parse_heading,
    "find_unmarked_headings": lambda text: list(markdown.find_unmarked_headings(text.split("\n"))),
    "is_latin": words.is_latin,
    "foreign_language": words.foreign_language,
    "is_remark": rewriter.is_remark,
    "rank_by_words": lambda text: passage_scores.rank_by_words([text], [text]),
    "count_of": lambda text: passage_scores._count(
        text, list(passage_scores._ASKED.finditer(f"how many seeds? {text}"))
    ),
    "share_of": lambda text: passage_scores._count(text, list(passage_scores._ASKED.finditer("how much of a seed"))),
    "plain_wording": words.plain_wording,
    "reads_as_heading": lambda text: pdf_headings.reads_as_heading(text, larger=True),
    "opening_category": pdf_headings.opening_category,
    "without_numbers": pdf_lines.without_numbers,
    "plain, of a PDF": pdf_mending.plain,
    "lacks_ligatures": lambda text: pdf_mending.lacks_ligatures([text]),
    "find_damaged_words": lambda text: pdf_mending.find_damaged_words([text]),
    "repair_words": lambda text: pdf_mending.repair_words(text, {"node": "mode"}),
    "made of a document by pandoc": pandoc._remove_boxes,
    "read_documents": _given,
    "join_runs": lambda text: pdf_mending.join_runs(text, text, 1.0, True),
}

MODELS: Final[Mapping[str, Reader]] = {
    "prose": model_answers.prose,
    "answer_text": lambda text: model_answers.answer_text(AIMessage(text)),
    "answer_alone": lambda text: model_answers.extract_answer(Draft(text)),
    "CleanStream": lambda text: _heard(model_answers.CleanStream(_Deaf(), model_answers.prose), text),
    "json_objects": lambda text: list(model_answers.json_objects(text)),
    "server_message": failures.server_message,
    "fenced": lambda text: prompt_format.fence(text, "a"),
    "shortened": lambda text: prompt_format.shorten(text, 900),
    "without_markers": prompt_format.strip_markers,
    "present_experiment": lambda text: present_experiment(experiment(text), "discussion", 900),
    "present_earlier": lambda text: prompt_format.present_earlier([EarlierSection("results", text)], "conclusion"),
    "present_evidence": lambda text: prompt_format.present_evidence([need(text)], [source(text)]),
    "present_findings": lambda text: prompt_format.present_findings([need(text)], [source(text, paper=paper(text))]),
    "show_passages": lambda text: prompt_format.show_passages(text, [chunk(text)]),
    "present_paper": lambda text: prompt_format.present_paper(paper(text), text),
    "quotable_passages": passage_scores.quotable_passages,
    "is_quotable": passage_scores.is_quotable,
    "format_quote": lambda text: plain_text.format_quote(text, len(text) // 3, len(text) // 2),
    "omit_pointers": plain_text.omit_pointers,
    "words_of": words.split_words,
    "field_paragraphs": section_outlines.field_paragraphs,
    "outline": lambda text: [section_outlines.outline(kind, experiment(text)) for kind in ("results", "discussion")],
    "metrics_table": lambda text: metrics_table.metrics_table({text: {text: text}, "a": text}),
    "without_details": passage_details.blank_details,
    "queries_for": needs.queries_for,
    "subject_of": lambda text: wordings.find_subject(text[:QUESTION]),
    "subject_words": lambda text: wordings.subject_words(text[:QUESTION]),
    "stand_alone": lambda text: rewriter.complete_question(text[:QUESTION], "How does node degree bias edges?"),
    "stand_alone, after": lambda text: rewriter.complete_question("Why does it?", text[:QUESTION]),
    "parts_of": lambda text: needs.split_question(text[:QUESTION]),
}

TOOLS: Final[Mapping[str, Reader]] = {
    "named_papers": lambda text: paper_mentions.find_mentions(text[:QUESTION], _papers("On degree")),
    "named_papers, of a library": lambda text: paper_mentions.find_mentions("What does Lee (2020) say?", _papers(text)),
    "papers_by_author": lambda text: paper_mentions.papers_by_author(text[:QUESTION], _papers("On degree")),
    "papers_by_author, of a library": lambda text: paper_mentions.papers_by_author("What does Lee say?", _papers(text)),
    "route": lambda text: question_routing.route(text[:QUESTION], _papers("On degree")),
    "asked_categories": lambda text: question_routing.requested_categories(
        text[:QUESTION], about_a_paper=True, alone=True
    ),
    "coined_names": lambda text: question_routing.coined_names(text[:QUESTION]),
    "plain_question": lambda text: _said(scope.plain_question, text),
    "require_words": lambda text: _said(scope.require_words, text),
    "category_named": lambda text: _said(scope.parse_category, text),
    "default_queries": lambda text: default_queries.default_queries(
        "discussion", experiment(text), lambda t: len(t) // 4
    ),
    "code_subject": default_queries.code_subject,
    "log_subject": default_queries.log_subject,
    "find_similar_record": lambda text: repeated_queries.find_similar_record(text, {}, []),
    "Experiment.words": lambda text: experiment(text).words,
    "Experiment.leaves": lambda text: experiment(text).leaves(),
    "shown_address": key_trust.shown_address,
    "printable.shown": output.printable,
    "printable.one_line": output.one_line,
    "inert": html_escaping.inert,
    "papers.plain_sentence": papers.plain_sentence,
    "shell line": parser.parse,
}


def _said(function: Callable[[str], object], text: str) -> None:
    try:
        function(text)
    except CiteloomError as error:
        str(error)


READERS: Final[Mapping[str, Reader]] = {**CITATIONS, **DOCUMENTS, **PASSAGES, **MODELS, **ANSWERS, **TOOLS, **USERS}
