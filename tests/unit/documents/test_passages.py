"""A reader sees a passage as units with exact positions, without markup, for any input and in linear time."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from citeloom.documents.passages import ReadableUnit, readable_units
from citeloom.documents.plain_text import plain_text
from citeloom.text.sentences import sentence_spans

CASES = Path(__file__).parents[1] / "cases" / "markup_cases.json"

FRAGMENTS = (
    "![", "](a.png)", "{#fig:x}", "[@doi:10.1/x]", "[12]", "^1^", "<sup>2</sup>", "| a | b |\n", "|---|---|\n", "$$",
    "\n\n", "Table 1: Yield.", "Figure 2. Growth. ", "(A) Cells. ", "(B) Loss. ", "# Head\n", "10.1371/j.x", "**", "_",
    "```\n", "Cells grew fast. ", "x = 3", "\\begin{equation}", "\\end{equation}", "<!--", "-->", "<table>", "</table>",
    "- ", "zymo 405 19 47.1%", "\\item ", "\t", "\r\n", "é", "\U0001f600", "\ue000", "&amp;", "{", "}", "~", "word ",
)  # fmt: skip


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _numbered_before(passage: str) -> list[str]:
    """What readers were shown before: every sentence with a letter, as it was typed."""
    return [passage[start:end] for start, end in sentence_spans(passage) if any(map(str.isalpha, passage[start:end]))]


def _score(shown: Callable[[str], list[str]]) -> tuple[int, int, int, int]:
    """Units right, missed and wrong in the labelled passages, and how many passages are exactly right."""
    right = missed = wrong = exact = 0
    for case in json.loads(CASES.read_text(encoding="utf-8"))["cases"]:
        wanted = [_letters(unit) for unit in case["shown"]]
        found = [_letters(unit) for unit in shown(case["passage"])]
        exact += wanted == found
        for unit in wanted:
            if unit in found:
                found.remove(unit)
                right += 1
            else:
                missed += 1
        wrong += len(found)
    return right, missed, wrong, exact


def test_labelled_passages_are_shown_as_a_careful_reader_wants_them() -> None:
    assert _score(_numbered_before) == (53, 35, 74, 3)
    right, missed, wrong, exact = _score(lambda passage: [unit.text for unit in readable_units(passage)])
    assert right >= 86 and missed <= 2 and wrong <= 1 and exact >= 39


def _check(text: str, units: list[ReadableUnit]) -> None:
    last = 0
    for unit in units:
        assert last <= unit.start < unit.end <= len(text)
        assert text[unit.start : unit.end] == text[unit.start : unit.end].strip()
        assert any(map(str.isalpha, unit.text)) and unit.text == " ".join(unit.text.split())
        last = unit.end


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join))
@settings(max_examples=300, deadline=None)
def test_units_are_in_order_without_overlap_whatever_markup_is_cut(text: str) -> None:
    _check(text, readable_units(text))


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_shown(text: str) -> None:
    _check(text, readable_units(text))


def _operations(text: str) -> int:
    """Calls made while `text` is read: what grows with it, whatever the machine is doing."""
    count = 0

    def called(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    readable_units("Warm.")
    sys.setprofile(called)
    try:
        readable_units(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("piece", FRAGMENTS)
def test_the_work_grows_linearly_with_the_text(piece: str) -> None:
    small, large = (_operations(piece * (size // len(piece))) for size in (2_000, 16_000))
    assert large <= 8 * small + 20 * 8 + 16_000


def shown(text: str) -> list[str]:
    return [unit.text for unit in readable_units(text)]


def test_a_pdf_table_without_bars_is_one_unit_under_its_caption() -> None:
    text = (
        "Table 1: Four metagenomes.\n\ngenomes data set size identified\n\nzymo mock 405,839 19 47.1%\n\n"
        "podar 5,800 74 54.8%\n\n| gut real | 96,423 | 99 | 36.0% |\n|---|---|---|---|\n\nIn Table 1 we show."
    )
    units = readable_units(text)
    assert [unit.kind for unit in units] == ["table", "sentence"]
    assert text[units[0].start : units[0].end].startswith("Table 1:") and "36.0%" in units[0].text


def test_words_along_the_axes_of_a_figure_are_not_a_table() -> None:
    text = "ASQA ELI5 80 60 70\n\nDPR 30 GTR 0 5 20\n\n60 40 50 5\n\nFigure 4: Recall on ASQA.\n\nRecall grows."
    assert [unit.kind for unit in readable_units(text) if unit.kind == "table"] == []


def test_a_long_table_keeps_its_header_and_says_how_many_rows_are_left_out() -> None:
    rows = "".join(f"| gene {number} | {number * 3} | a word on it |\n" for number in range(200))
    (unit,) = readable_units(f"| Gene | Count | Note |\n|---|---|---|\n{rows}\nTable: Genes of the set.")
    assert unit.text.startswith("Gene | Count | Note / gene 0 | 0 |") and unit.text.endswith("Genes of the set.")
    assert "more rows left out" in unit.text and "gene 199 | 597" in unit.text and len(unit.text) < 2_600


def test_a_caption_cut_at_either_end_is_shown_without_its_link() -> None:
    assert shown("bars are errors. More words stand here.](images/a.png){#fig:1}\n\nNext.") == [
        "bars are errors.",
        "More words stand here.",
        "Next.",
    ]
    assert shown("Before.\n\n![Growth of the mutants at night.") == ["Before.", "Growth of the mutants at night."]


@pytest.mark.parametrize(
    ("typed", "clean"),
    [
        ("KGs include links [@doi:10.1/x; @y] (e.g., [@z]) here.", "KGs include links here."),
        ("([**Fig. 5**](#pone-g005)) shows *Mtb* growth [26], [27].", "(Fig. 5) shows Mtb growth."),
        ("An *X*~1~*X*~2~ effect in [0, 1] of 2*3*4 for x_y_z.", "An X1X2 effect in [0, 1] of 2*3*4 for x_y_z."),
        ("Cells (10<sup>6</sup>/mm^2^) lost CHCl<sub>3</sub>.^12,13^", "Cells (10^6/mm^2) lost CHCl3."),
        ("As \\[31,63--66\\] say, *P*\\<10^−4^ holds.", "As say, P<10^−4 holds."),
        ("The slope is $\\left( a\\,b \\right)$, at $n$ = 3.", "The slope is ( a b ), at n = 3."),
        ("Summarized in @tbl:tasks and Figure {@fig:m}B.", "Summarized in table and Figure B."),
    ],
)
def test_markup_within_a_sentence_is_not_shown(typed: str, clean: str) -> None:
    (unit,) = readable_units(typed)
    assert unit.text == clean
    assert typed[unit.start : unit.end] == typed


def test_a_caption_that_is_only_markup_counts_as_empty() -> None:
    assert readable_units("Figure 2. > > >") == ()


def test_comments_are_hidden_unless_unclosed_or_very_long() -> None:
    assert plain_text("Cells <!-- how - many? --> grew<!----> <!-- and died.") == "Cells grew <!-- and died."
    assert "many" in plain_text(f"Cells <!-- {'many ' * 500}--> grew.")


def test_a_trial_registration_is_read_though_it_looks_like_a_heading() -> None:
    text = "It worked.\n\n**Trial registration:** NCT00624286\n\n**Discussion:** All"
    assert [unit.text for unit in readable_units(text)] == ["It worked.", "Trial registration: NCT00624286"]
