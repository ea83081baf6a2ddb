"""A citation stays in the sentence in which the user typed it; one that the run shared stays shared."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from citeloom.citations.citation_styles import render
from citeloom.claims.claim_records import PassageRecord
from citeloom.documents.edited_documents import EditedDocument
from citeloom.runs.edited_text import EditableText, NotEditableError, editable_text
from citeloom.runs.imported_text import import_sections
from citeloom.runs.sentence_check import passage_evidence
from citeloom.stores.library import Library
from citeloom.stores.run_register import EditedSentence, RunRecord
from tests.support.citation_samples import make_source

SOURCES = [make_source("E1", "ada2017degree", page=4), make_source("E3", "ada2017degree", page=9)]
DRAFT = "Degree was compared in nine networks [E1]. It explained most edges [E3]."
FIRST, LAST = "Degree was compared in nine networks.", "It explained most edges [1, pp. 4, 9]."
OWN = "Degree was compared in nine networks [1, p. 4]. It explained most edges [1, p. 9]."


def finished_run() -> RunRecord:
    shown = render(DRAFT, SOURCES, "numeric")
    record = {
        "section": "discussion",
        "with_markers": DRAFT,
        "text": shown.text,
        "cite_style": "numeric",
        "numbering": ["ada2017degree"],
        "citations": [asdict(citation) for citation in shown.citations],
        "evidence": [source.evidence.as_dict() for source in SOURCES],
    }
    return RunRecord("r", "discussion", "", "finished", "", "1", False, 0.0, 0.0, "", {"experiment": {}}, record)


def text_of(text: EditableText) -> str:
    (section,) = text.sections
    edited = section.apply(section.edits)
    return render(edited.text, SOURCES, "numeric", typed=edited.typed).text


def test_consecutive_sentences_share_a_citation() -> None:
    assert text_of(editable_text(finished_run(), [])) == f"{FIRST} {LAST}"


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("Degree was compared in nine networks [1, p. 4].", LAST, OWN),
        ("Degree was compared in nine networks [1, pp. 4, 9].", LAST, OWN),
        ("Degree was compared in ten networks.", LAST, f"Degree was compared in ten networks. {LAST}"),
        (FIRST, "It explained many edges [1, pp. 4, 9].", f"{FIRST} It explained many edges [1, pp. 4, 9]."),
        (FIRST, "It explained most edges [1, p. 9].", OWN),
    ],
)
def test_a_typed_citation_is_kept(first: str, last: str, expected: str) -> None:
    run = finished_run()
    changed = [(0, first), (1, last)]
    edits = [EditedSentence(place, words) for place, words in changed if words not in (FIRST, LAST)]
    assert text_of(editable_text(run, edits)) == expected
    document = EditedDocument(f"# Discussion\n\n{first} {last}\n")
    (imported,), _ = import_sections(editable_text(run, []), document, Path("discussion.md"))
    assert text_of(replace(editable_text(run, []), sections=(imported.section,))) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("# T\n\n# Results\n\nA.\n\n# Discussion\n\nB.\n\n### Results\n\nC.", {"B.\n\n### Results\n\nC.", "A."}),
        ("## Results\n\nA.\n\n**Discussion**\n\nB.\n\n# Results\n\nC.", {"B.", "C."}),
        ("# Discussion\n\nB.\n\nDiscussion\n\nC.\n\n# Results\n\nA.", {"B.\n\nDiscussion\n\nC.", "A."}),
    ],
)
def test_a_users_subheading_equal_to_a_title_is_kept(written: str, expected: set[str]) -> None:
    run = finished_run()
    section: dict[str, Any] = dict(run.result or {})
    paper = replace(run, section="paper", result={"sections": [section, {**section, "section": "results"}]})
    made, _ = import_sections(editable_text(paper, []), EditedDocument(written), Path("paper.docx"))
    assert {one.section.imported.text for one in made if one.section.imported} == expected
    for words, kept in ((f"{FIRST}\n\n## Discussion\n\nC.", True), ("# My own\n\n# Discussion\n\nC.", False)):
        (alone,), _ = import_sections(editable_text(run, []), EditedDocument(words), Path("discussion.tex"))
        assert alone.section.imported is not None
        assert ("## Discussion" in alone.section.imported.text) == kept and "C." in alone.section.imported.text


@pytest.mark.parametrize(
    ("bracket", "expected"),
    [
        ("[but see @ada2017degree]", ", but see [1, p. 9]."),
        ("[cf. @ada2017degree, p. 9]", ", cf. [1, p. 9]."),
        ("[see @ada2017degree, p. 12]", ", see [1, p. 9] (p. 12)."),
        ("(but see ada2017degree)", " (but see ada2017degree)."),
        ("[but see @other]", " [but see @other]."),
    ],
)
def test_text_before_a_citation_is_kept(bracket: str, expected: str) -> None:
    document = EditedDocument(f"# Discussion\n\n{FIRST} It explained most edges {bracket}.\n")
    (imported,), _ = import_sections(editable_text(finished_run(), []), document, Path("discussion.md"))
    text = text_of(replace(editable_text(finished_run(), []), sections=(imported.section,)))
    assert text.endswith(f"It explained most edges{expected}")


def test_of_two_swapped_sentences_the_later_is_listed_as_moved() -> None:
    document = EditedDocument(f"# Discussion\n\n{LAST} {FIRST}\n")
    (imported,), _ = import_sections(editable_text(finished_run(), []), document, Path("discussion.md"))
    assert [(item["state"], item["was"][:2]) for item in imported.sentences] == [("moved", "It"), ("kept", "De")]


def test_a_deleted_passage_is_reported() -> None:
    library = cast(Library, SimpleNamespace(chunks=lambda ids: []))
    passage = cast(PassageRecord, {"key": "ada2017degree", "chunk_id": "ada2017degree:00001"})
    with pytest.raises(NotEditableError, match="ada2017degree"):
        passage_evidence(library, passage, "E1")
