"""Marks are inside their sentence, once per rule; leaving out sentences also removes emptied headings and items."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, strategies as st

from citeloom.citations.checks.findings import Finding, Rule
from citeloom.citations.citation_styles import MARKS, leave_out, marked_sentences, missing_marks, render
from citeloom.settings.config import CitationStyle
from tests.support.citation_samples import make_source

SOURCES = [make_source("E1", "a2020", page=4), make_source("E2", "b2019"), make_source("E3", "c2018")]


def found(text: str, *words: str, rule: Rule = "number-not-found") -> list[Finding]:
    """A finding for each of these words of a text."""
    return [Finding(rule, f"about {word}", (text.index(word), text.index(word) + len(word))) for word in words]


def marked(text: str, *findings: Finding, style: CitationStyle = "key") -> str:
    return render(text, SOURCES, style, marks=missing_marks(text, findings)).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was 42.", "It was 42 [number not found]."),
        ("It was 42", "It was 42 [number not found]"),
        ("Was it 42?! Yes.", "Was it 42 [number not found]?! Yes."),
        ("It was 42…", "It was 42 [number not found]…"),
        ("He said “it was 42.” Then not.", "He said “it was 42.” [number not found] Then not."),
        ("**It was 42.**", "**It was 42.** [number not found]"),
        ("# In 42 steps\n\nIt was.", "# In 42 steps [number not found]\n\nIt was."),
        ("- It was 42.\n- It was.", "- It was 42 [number not found].\n- It was."),
        ("| a | b |\n|---|---|\n| 42 | c |", "| a | b |\n|---|---|\n| 42 | c [number not found] |"),
        ("It was $x = 42.$", "It was $x = 42.$ [number not found]"),
        ("In Fig. 3 it was 42. So it was.", "In Fig. 3 it was 42 [number not found]. So it was."),
    ],
)
def test_a_mark_is_put_before_the_final_stop(text: str, expected: str) -> None:
    assert marked(text, *found(text, "42")) == expected


@pytest.mark.parametrize("style", get_args(CitationStyle))
def test_a_mark_is_put_after_the_citation_in_every_style(style: CitationStyle) -> None:
    text = "Degree matters [E1][E2]. It lasts [E3]."
    shown = render(text, SOURCES, style, marks=missing_marks(text, found(text, "It lasts [E3].", rule="unsupported")))
    plain = render(text, SOURCES, style)
    assert shown.text == f"{plain.text[:-1]} [not supported]."
    last = shown.citations[-1]
    assert last.sentence.startswith("It lasts") and last.sentence.endswith(" [not supported].")
    assert shown.keys == plain.keys
    for place, before in zip(shown.places, plain.places, strict=True):
        assert shown.text[place.start : place.end] == plain.text[before.start : before.end]


def test_each_rule_is_marked_once_per_sentence() -> None:
    text = "It was 42 and 43 and 44 [E1]. It was 45."
    findings = [
        *found(text, "42", "43", "45"),
        *found(text, "was 42 and 43", rule="copied-run"),
        *found(text, "It was 42 and 43 and 44 [E1].", rule="unsupported"),
        *found(text, "44", rule="one-sided"),
    ]
    shown = marked(text, *findings, style="pandoc")
    first, second = shown.split(". It")
    assert second == " was 45 [number not found]."
    assert first.count("[") == 1 + 3 and all(first.count(MARKS[finding.rule]) == 1 for finding in findings[:-1])


def test_words_copied_across_two_sentences_mark_both() -> None:
    text = "This was taken. So was this. But not this."
    assert marked(text, *found(text, "taken. So was this", rule="copied-run")) == (
        "This was taken [copied words]. So was this [copied words]. But not this."
    )


def test_a_sentence_already_marked_is_not_marked_again() -> None:
    text = "Others showed [citation needed] that it was. It was."
    (item,) = marked_sentences(text, found(text, "Others", rule="citation-missing"))
    assert item.marks == ("[citation needed]",) and item.found == ("about Others",)
    assert missing_marks(text, found(text, "Others", rule="citation-missing")) == []


def test_spans_stay_correct_when_marks_are_inserted() -> None:
    text = "It was 42. It was 43 [E1], then 44 [E2]."
    findings = found(text, "42", "43", "44")
    shown = render(text, SOURCES, "key-page", marks=missing_marks(text, findings))
    for finding in findings:
        assert finding.span
        start, end = shown.span(*finding.span)
        assert shown.text[start:end] == text[slice(*finding.span)]
    for sentence in shown.sentences:
        assert shown.text[sentence.start : sentence.end].endswith(" [number not found].")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("One. Bad. Two.", "One. Two."),
        ("Bad. One.", "One."),
        ("One. Bad.", "One."),
        ("One.\nBad.\nTwo.", "One.\nTwo."),
        ("One.\n\nBad.\n\nTwo.", "One.\n\nTwo."),
        ("- One.\n- Bad.\n- Two. Bad.\n", "- One.\n- Two."),
        ("1. Bad.\n2. Two.", "2. Two."),
        ("# All\n\nOne.\n\n## Part\n\nBad.\n\n## Other\n\nTwo.", "# All\n\nOne.\n\n## Other\n\nTwo."),
        ("# All\n\n## Part\n\nBad.", ""),
        ("# All\n\n## Part\n\nBad.\n\n# Next\n\nOne.", "# Next\n\nOne."),
        ("# All\n\n## Part\n\nOne. Bad.", "# All\n\n## Part\n\nOne."),
        ("> Bad.\n\nOne.", "One."),
        ("| a | b |\n|---|---|\n| Bad. | c |\n| d | e |", "| a | b |\n|---|---|\n| d | e |"),
        ("| a | b |\n|---|---|\n| Bad. | c |\n\nOne.", "One."),
        ("| Bad. | b |\n|---|---|\n| c | d |\n\nOne.", "One."),
        ("Bad.", ""),
    ],
)
def test_leaving_out_sentences_leaves_no_empty_headings_or_items(text: str, left: str) -> None:
    findings = [Finding("unsupported", "", (at, at + 4)) for at in range(len(text)) if text.startswith("Bad.", at)]
    assert leave_out(text, marked_sentences(text, findings)) == left


@given(st.text(alphabet='ab .!\n#|-[]E1"', max_size=80), st.data())
def test_marking_loses_no_text_and_leaving_out_terminates(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    findings = [Finding("unsupported", "", (start, data.draw(st.integers(start, len(text)))))]
    marks = missing_marks(text, findings)
    pieces, done = [], 0
    for mark in marks:
        assert done <= mark.position
        pieces.append(text[done : mark.position])
        done = mark.position
    assert "".join([*pieces, text[done:]]) == text
    failing = marked_sentences(text, findings)
    if failing:
        left = leave_out(text, failing)
        assert sum(map(str.isalnum, left)) < sum(map(str.isalnum, text))
