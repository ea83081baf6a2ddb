"""A draft is streamed sentence by sentence with its citations; no part of a marker is ever shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from citeloom.citations.citation_styles import render
from citeloom.citations.markers import normalise_markers
from citeloom.drafts.draft_stream import DraftEventStream
from citeloom.roles.protocols import Draft
from citeloom.settings.config import CitationStyle
from tests.support.citation_samples import make_source

SOURCES = [
    make_source("E1", "himmelstein2017systematic", page=4),
    make_source("E2", "ching2018opportunities", ("Ching", "Himmelstein")),
    make_source("E3", "himmelstein2017systematic", page=7),
    make_source("E12", "greene2014big", ("Greene",), page=1),
]
STYLES: tuple[CitationStyle, ...] = ("key", "pandoc", "latex", "numeric", "key-page")

# A known marker, or the beginning of one in any form.
_PART_OF_MARKER = re.compile(r"[\[(【]\s*(?:E|see E|Evidence)\s?\d*\Z|\[E\d+\]")
SENTENCES = [
    *("Degree explains most edges [E1].", "It lasts on other networks (E2).", "Seeds matter. [E1, E3]"),
    *("Nobody knows why [E9].", "So it is 【E1】.", "It holds [[E2]] in all.", "It holds (see E1 and E2) too."),
    *(
        "A range [E1-E3] counts.",
        "On page four [E12, p. 4].",
        "It is **bold** [E3]! Is it?",
        "Ching et al. [E2] say so.",
    ),
    *(
        'He said "it holds. It lasts" [E1].',
        "It rose (from 0.4 to 0.7) [E1].",
        "The interval is [0, 1] [E2].",
        "Without.",
    ),
]
BETWEEN = [" ", "\n\n", "\n\n## Heading\n\n", "\n\n- ", "\n"]
HOSTILE = [
    *(
        "[",
        "]",
        "(",
        ")",
        "[E",
        "E1",
        "1",
        "[E1]",
        "(E2)",
        "[(E3)]",
        "(#",
        "^",
        "**",
        "`",
        "~~",
        "\\",
        "&#91;",
        "&#93;",
    ),
    *(" ", "\n", "\n\n", ". ", ".", "! ", "Word", "word", "al", "e.g", "see", "page", "<b>", "</b>", "<!--", "-->"),
    *("\u200b", "\u0301", "Е1", "【", "】", "\ud83d", "\ude00"),
]


def streamed(pieces: Sequence[str], style: CitationStyle = "key") -> tuple[list[str], list[dict[str, Any]]]:
    """What is shown after each piece and at the end, and the citations."""
    events: list[dict[str, Any]] = []
    shown: list[str] = []
    stream = DraftEventStream(SOURCES, style, events.append)
    for piece in pieces:
        before = len(events)
        stream.piece(piece)
        shown.append("".join(event.get("text", "") for event in events[before:]))
    before = len(events)
    stream.finish(Draft("".join(pieces)))
    shown.append("".join(event.get("text", "") for event in events[before:]))
    assert all(event["kind"] in ("token", "citation") for event in events)
    return shown, [event for event in events if event["kind"] == "citation"]


def split(text: str, lengths: Sequence[int]) -> list[str]:
    pieces: list[str] = []
    start = 0
    while start < len(text):
        length = lengths[len(pieces) % len(lengths)]
        pieces.append(text[start : start + length])
        start += length
    return pieces


LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=8)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(SENTENCES), st.sampled_from(BETWEEN)), max_size=8),
    LENGTHS,
    st.sampled_from(STYLES),
)
def test_streamed_sentences_joined_equal_the_whole_text(
    parts: list[tuple[str, str]], lengths: list[int], style: CitationStyle
) -> None:
    text = "".join(f"{sentence}{between}" for sentence, between in parts)
    shown, cited = streamed(split(text, lengths), style)
    whole = render(text, SOURCES, style)
    assert "".join(shown) == whole.text
    assert list(dict.fromkeys(item["key"] for item in cited)) == list(whole.keys)
    assert all(whole.numbering[item["number"] - 1] == item["key"] for item in cited)
    assert len({item["evidence_id"] for item in cited}) == len(cited)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(HOSTILE), max_size=24).map("".join), LENGTHS)
@example("(see p. 4, E1). It [E1]. [E2", [1])
@example("[see al. E1]. Then", [1])
@example("&#91;E1. Then &#93;", [2])
def test_no_partial_marker_is_shown(text: str, lengths: list[int]) -> None:
    shown, _ = streamed(split(text, lengths))
    for place in range(1, len(shown)):
        assert not _PART_OF_MARKER.search("".join(shown[:place]))
    assert normalise_markers("".join(shown)).count("[E") <= text.count("[E") + text.count("(E") + text.count("E1")


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        pytest.param(["Degree explains", " edges. ", "It"], ["", "", "Degree explains edges. "], id="a whole sentence"),
        pytest.param(
            ["edges", ".", " [E2]", " It", " is so [E1]. So"],
            ["", "", "", "edges", " (ching2018opportunities). It is so"],
            id="behind a stop; its citation once the next sentence is whole",
        ),
        pytest.param(
            ["Edges [E1]. It", " is so [E3]. So ", "be it [E2]. And"],
            ["Edges", ". It is so", " (himmelstein2017systematic). So be it"],
            id="two sentences on one paper have one citation",
        ),
        pytest.param(["(see p. 4. It", " rests). So"], ["", "(see p. 4. It rests). "], id="an open bracket waits"),
        pytest.param(["a [E9] b. C"], ["a [citation needed] b. "], id="an unknown marker"),
        pytest.param(["# On seeds\n\nThey"], ["# On seeds\n\n"], id="a heading"),
    ],
)
def test_a_sentence_is_shown_when_the_next_one_starts(pieces: list[str], shown: list[str]) -> None:
    assert streamed(pieces)[0][: len(pieces)] == shown


def test_each_citation_is_emitted_once_before_the_text_that_shows_it() -> None:
    events: list[dict[str, Any]] = []
    stream = DraftEventStream(SOURCES, "numeric", events.append)
    stream.piece("One [E3]. Two [E1][E12]. Three [E3]. ")
    stream.finish(Draft("One [E3]. Two [E1][E12]. Three [E3]. "))
    assert [event.get("text") or (event["number"], event["evidence_id"], event["page"]) for event in events] == [
        "One ",
        (1, "E3", 7),
        "[1, p. 7]. Two",
        " ",
        (1, "E1", 4),
        (2, "E12", 1),
        "[1, p. 4; 2, p. 1]. Three [1, p. 7]. ",
    ]


def test_a_draft_that_differs_from_what_was_streamed_starts_over() -> None:
    events: list[dict[str, Any]] = []
    stream = DraftEventStream(SOURCES, "key", events.append)
    stream.piece("One thing. Another")
    stream.finish(Draft("Something else."))
    assert [(event["kind"], event.get("text")) for event in events] == [
        ("token", "One thing. "),
        ("restarted", None),
        ("token", "Something else."),
    ]


def test_an_unclosed_bracket_costs_no_time() -> None:
    shown, _ = streamed(["("] * 30_000)
    assert shown[-1] == "(" * 30_000 and not any(shown[:-1])
