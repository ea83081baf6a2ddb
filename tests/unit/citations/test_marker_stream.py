"""Markers become citations while the text is still being written, and the whole is what `render` makes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from citeloom.citations.citation_styles import render
from citeloom.citations.marker_stream import Cited, MarkerStream
from citeloom.settings.config import CitationStyle
from tests.support.citation_samples import make_source

SOURCES = [
    make_source("E1", "himmelstein2017systematic", page=4),
    make_source("E2", "ching2018opportunities", ("Ching", "Himmelstein")),
    make_source("E3", "himmelstein2017systematic", page=7),
    make_source("E12", "greene2014big", ("Greene",), page=1),
]
STYLES: tuple[CitationStyle, ...] = ("key", "pandoc", "latex", "numeric", "key-page")

WRITTEN = [
    *("[E1]", "(E2)", "[E1, E3]", "[E9]", "【E1】", "[[E2]]", "[(E3)]", "(see E1 and E2)", "[E1-E3]", "[E12, p. 4]"),
    *("[E1](#e1)", "^[E2]^", "<sup>[E1]</sup>", "**[E3]**", "&#91;E1&#93;", "\\[E1\\]", "[<b>E1</b>]", "(Evidence 4)"),
    *(
        "[",
        "]",
        "(",
        ")",
        "[E",
        "E",
        "1",
        "2",
        "(#",
        "^",
        "*",
        "**",
        "`",
        "_",
        "~",
        "~~",
        "\\",
        "&",
        ";",
        ":",
        "/",
        "-",
    ),
    *(" ", "  ", "\n", "\n\n", "\t", ".", ". ", ", ", "!", "?", "\u2026", '"', "\u201c", "\u201d", "\u2019", "'", ","),
    *(
        "word",
        "Word",
        "al",
        "e.g",
        "Fig",
        "see",
        "sec",
        "section",
        "sections",
        "and",
        "to",
        "page",
        "x",
        "é",
        "e\u0301",
    ),
    *("<b>", "</b>", "<", "<!--", "-->", "<!", ">", "&amp;", "&#9", "\ud83d", "\ude00", "\u200b", "\u0301", "Е1"),
]
# What is no tag, and would be one once the marker in it is set.
_TAG_BY_MARKERS = re.compile(r"</?[a-zA-Z][^<>\s]*[\[(&\\【]")
DRAFTS = st.lists(st.sampled_from(WRITTEN) | st.text(max_size=3), max_size=24).map("".join)


def streamed(pieces: Sequence[str], style: CitationStyle) -> tuple[list[str], list[Cited]]:
    """What is shown after each piece, and what is cited."""
    stream = MarkerStream(SOURCES, style)
    shown: list[str] = []
    cited: list[Cited] = []
    for given_out in (*map(stream.feed, pieces), stream.finish()):
        shown.append("".join(item for item in given_out if isinstance(item, str)))
        cited += [item for item in given_out if isinstance(item, Cited)]
    return shown, cited


@settings(max_examples=600, deadline=None, derandomize=True)
@given(DRAFTS, st.lists(st.integers(1, 7), min_size=1, max_size=8), st.sampled_from(STYLES))
@example("a. [E1]. [E2] b", [1], "key")
@example("see al. [E1]. Then", [1], "numeric")
@example("[ (E1) ] x", [1], "key")
@example("(sectio", [1], "key")
@example("a [E1](#b) c", [1], "key")
@example("[E1](#<[E2]) c", [1], "key")
@example("([E1]\\&#91;E1&#93;,sections^?&(E2)[E1] x", [2], "key")
@example("<!--(E3)“[E1]2<!--> x", [1], "key")
def test_pieces_joined_are_the_whole(text: str, lengths: list[int], style: CitationStyle) -> None:
    assume(_TAG_BY_MARKERS.search(text) is None)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        length = lengths[len(pieces) % len(lengths)]
        pieces.append(text[start : start + length])
        start += length
    shown, cited = streamed(pieces, style)
    whole = render(text, SOURCES, style)
    assert "".join(shown) == whole.text
    assert list(dict.fromkeys(item.key for item in cited)) == list(whole.keys)
    assert all(whole.number(item.key) == item.number for item in cited)
    assert len({item.evidence_id for item in cited}) == len(cited)


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        pytest.param(["Degree", " explains", " edges"], ["Degree", " explains", " edges"], id="words come at once"),
        pytest.param(["edges", ".", " It"], ["edges", "", ". It"], id="a stop waits for what is behind it"),
        pytest.param(
            ["edges ", "[", "E", "1", "]", ". ", "It"],
            ["edges", "", "", "", "", "", " (himmelstein2017systematic). It"],
            id="a marker in five pieces",
        ),
        pytest.param(
            ["so [E2]", " [E3]", ", and"],
            ["so", "", " (ching2018opportunities; himmelstein2017systematic), and"],
            id="neighbours are one citation",
        ),
        pytest.param(["edges. [E1]", " It"], ["edges", " (himmelstein2017systematic). It"], id="behind the full stop"),
        pytest.param(["a (see", " the", " rest)."], ["a", " (see the", " rest", ")."], id="a bracket that is none"),
        pytest.param(["a [E", "xtra]"], ["a", " [Extra", "]"], id="no marker after all"),
        pytest.param(["a [E9] b"], ["a [citation needed] b"], id="an unknown marker"),
        pytest.param(["a [E1][E9] b"], ["a (himmelstein2017systematic) [citation needed] b"], id="known and unknown"),
        pytest.param(["a [E1"], ["a", " [E1"], id="the draft breaks off inside a marker"),
    ],
)
def test_as_little_as_possible_is_held_back(pieces: list[str], shown: list[str]) -> None:
    came, _ = streamed(pieces, "key")
    assert [text for text in came if text] == [text for text in shown if text]
    assert came[: len(pieces)] == [*shown, ""][: len(pieces)]


def test_each_citation_is_emitted_once_before_the_text_that_shows_it() -> None:
    stream = MarkerStream(SOURCES, "numeric")
    assert stream.feed("One [E3]. Two [E1][E12]. ") == [
        "One ",
        Cited(1, "himmelstein2017systematic", 7, "Results", "E3"),
        "[1]. Two",
    ]
    assert stream.feed("Three [E3].") == [
        " ",
        Cited(1, "himmelstein2017systematic", 4, "Results", "E1"),
        Cited(2, "greene2014big", 1, "Results", "E12"),
        "[1, 2]. Three",
    ]
    assert stream.finish() == [" [1]."]


def test_a_bracket_that_never_closes_costs_no_time() -> None:
    stream = MarkerStream(SOURCES, "key")
    shown = [stream.feed("(") for _ in range(30_000)]
    assert not any(shown)
    assert stream.finish() == ["(" * 30_000]
