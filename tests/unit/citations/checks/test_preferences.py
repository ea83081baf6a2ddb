"""The author's preferences: which lines can be checked, and which words of a draft violate them."""

from __future__ import annotations

import pytest

from citeloom.api.remembering import suggested_lines
from citeloom.citations.checks.preferences import PreferenceKind, preference_findings, preference_kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("never cite smith2020", "ban"),
        ("Don't cite @smith2020.", "ban"),
        ("participants, not subjects", "term"),
        ("Use “participants” instead of “subjects”.", "term"),
        ("British spelling", "spelling"),
        ("use American English", "spelling"),
        ("our cohort is called PANGEO-2", "note"),
        ("never cite papers that were retracted", "note"),
    ],
)
def test_a_preference_is_read_as_a_person_would_say_it(line: str, kind: PreferenceKind) -> None:
    assert preference_kind(line) == kind


@pytest.mark.parametrize(
    ("text", "lines", "words"),
    [
        ("Subjects were asked; the subject of study was not.", ["participants, not subjects"], ["Subjects"]),
        ('He said "the subjects slept" [E1].', ["participants, not subjects"], []),
        ("Colorectal tumors change color in the laboratory.", ["British spelling"], ["tumors", "color"]),
        ("We analyzed two analyses of behavior.", ["British spelling"], ["analyzed", "behavior"]),
        ("We analysed two analyses of behaviour.", ["American spelling"], ["analysed", "behaviour"]),
        ("We analyzed color.", ["our cohort is called PANGEO-2", "never cite a2020"], []),
    ],
)
def test_words_that_the_author_writes_differently_are_found(text: str, lines: list[str], words: list[str]) -> None:
    found = preference_findings(text, lines)
    assert [text[slice(*finding.span)] for finding in found if finding.span] == words
    assert all("by the author's preferences" in finding.message for finding in found)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("The subjects slept [E1].", "The participants slept [E1].", ["participants, not subjects"]),
        ("Tumor color varied.", "Tumour colour varied.", ["British spelling"]),
        ("It rose by 3 percent.", "It rose by 4 percent.", []),
        ("The models are good.", "The model is good.", []),
        ("It was seen.", "It was seen in all of them and in others too.", []),
        ("They have the effect.", "These had an effect.", []),
    ],
)
def test_an_edit_suggests_a_term_or_a_spelling_and_nothing_else(before: str, after: str, lines: list[str]) -> None:
    assert list(dict.fromkeys(suggested_lines(before, after))) == lines
