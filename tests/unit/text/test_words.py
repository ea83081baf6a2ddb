"""Queries that differ only in typography are equal; those with another meaning are not."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from string import ascii_lowercase

import pytest
import snowballstemmer
from hypothesis import given, strategies as st

from citeloom.text.words import foreign_language, plain_wording, shorten, stem, unescape_html


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Is degree enough?", "is  degree\nenough"),
        ("state-of-the-art: AUROC 0.95, p < 0.05.", "State of the art AUROC 0.95 p < 0.05"),
        ("“Quoted” bias", "'quoted' bias"),
        ("inspection\u2010bias", "inspection-bias"),
        ("e.g. this (or that)", "E.g., this or that!"),
        ("ﬁne tuning", "fine tuning"),
    ],
)
def test_typography_does_not_change_the_wording(one: str, other: str) -> None:
    assert plain_wording(one) == plain_wording(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("AUROC above 0.95", "AUROC above 095"),
        ("p < 0.05", "p > 0.05"),
        ("an effect of -0.5", "an effect of 0.5"),
        ("written in C++", "written in C"),
        ("written in C#", "written in C"),
        ("5 networks", "5% networks"),
        ("...", "!"),
        ("degree bias", "bias degree"),
    ],
)
def test_another_meaning_changes_the_wording(one: str, other: str) -> None:
    assert plain_wording(one) != plain_wording(other)


@given(st.text())
def test_plain_wording_stays_as_it_is(text: str) -> None:
    once = plain_wording(text)
    assert plain_wording(once) == once
    assert bool(once) == bool(text)


def test_a_numeric_reference_to_no_character_becomes_a_replacement_character() -> None:
    assert unescape_html(f"&#8211;&#0065; &#{'1' * 5_000}; &amp;") == "–A \ufffd &"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie viele Startwerte braucht ein Ensemble?", "German"),
        ("Welche Methoden erkennen strukturelle Varianten?", "German"),
        ("Combien de graines faut-il pour un ensemble ?", "French"),
        ("¿Cuántas semillas necesita un conjunto?", "Spanish"),
        ("Quanti semi servono per un insieme?", "Italian"),
        ("温度校准之后", "a language other than English"),
        ("How many seeds does an ensemble need?", ""),
        ("What is the role of de novo mutations?", ""),
        ("CRISPR de novo assembly", ""),
    ],
)
def test_a_language_other_than_english_is_recognised_by_its_frequent_words(text: str, language: str) -> None:
    assert foreign_language(text) == language


def test_several_threads_can_stem_words_at_once() -> None:
    """A stemmer stores the word that it works on: shared by threads, it mixed words up, or failed."""
    words = [f"relational{first}{second}ization" for first in ascii_lowercase for second in ascii_lowercase]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(stem, words * 2))
    finally:
        sys.setswitchinterval(interval)
    alone = snowballstemmer.stemmer("english")
    assert found == [alone.stemWord(word) for word in words * 2]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("no more than fits", "no more than fits"),
        ("the passage limits this to edges of one kind", "the passage limits this to\u2026"),
        ("a" * 40, "a" * 29 + "\u2026"),
        ("", ""),
    ],
)
def test_a_shortened_line_ends_behind_a_word(text: str, short: str) -> None:
    assert shorten(text, 30) == short and len(short) <= 30
