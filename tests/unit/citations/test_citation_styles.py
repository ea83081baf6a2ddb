from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, strategies as st

from citeloom.citations.citation_styles import render
from citeloom.roles.protocols import Verdict
from citeloom.settings.config import CitationStyle
from tests.support.citation_samples import make_source

SOURCES = (
    make_source("E1", "b2019"),
    make_source("E2", "a2020", page=4),
    make_source("E3", "a2020", page=7),
    make_source("E4", "k:é+1", section='The "big" [one]; p < 0.05 @ *home*'),
    make_source("E5", "c2021", section=""),
    make_source("E6", "a2020", page=4),
)


@pytest.mark.parametrize(
    ("text", "style", "expected"),
    [
        ("So [E2].", "key", "So (a2020)."),
        ("So [E2][E1][E3].", "key", "So (a2020; b2019)."),
        ("So [E2].", "pandoc", "So [@a2020, p. 4]."),
        ("So [E3][E2][E6][E5].", "pandoc", "So [@a2020, pp. 4, 7; @c2021]."),
        ("So [E1].", "pandoc", 'So [@b2019, in section "Results"].'),
        ("So [E4].", "pandoc", 'So [@k:é+1, in section "The big one p 0.05 home"].'),
        ("So [E2].", "latex", r"So \cite[p.~4]{a2020}."),
        ("So [E1][E5].", "latex", r"So \cite{b2019,c2021}."),
        ("So [E1][E2][E3][E5].", "latex", r"So \cite{b2019} \cite[pp.~4, 7]{a2020} \cite{c2021}."),
        ("So [E5]. And [E1]. Both [E1][E5].", "numeric", "So [1]. And [2]. Both [1, 2]."),
        ("So [E2][E3].", "numeric", "So [1, pp. 4, 7]."),
        ("So [E2]. And [E1]. Then [E3].", "numeric", "So [1, p. 4]. And [2]. Then [1, p. 7]."),
        ("So [E2][E1].", "numeric", "So [1, p. 4; 2]."),
        ("So [E2]. And [E3]. But [E1].", "numeric", "So. And [1, pp. 4, 7]. But [2]."),
        ("So do Ada et al. [E2]. And [E3].", "numeric", "So do Ada et al. [1, p. 4]. And [1, p. 7]."),
        ("So [E2]. And [E3]. But [E1].", "latex", r"So. And \cite[pp.~4, 7]{a2020}. But \cite{b2019}."),
        ("So [E2][E1]. And [E1][E3]. But [E1].", "numeric", "So. And [1, pp. 4, 7; 2]. But [2]."),
        ("So [E2], not [E1]. And [E1][E2].", "key", "So (a2020), not (b2019). And (b2019; a2020)."),
        ("So [E2], and so [E3].", "key", "So, and so (a2020)."),
        ("So [E2]. Well.\n\n- And [E3].\n- Then [E3].", "key", "So (a2020). Well.\n\n- And (a2020).\n- Then (a2020)."),
        (
            "So [E2], not [E1]. And [E2] it is. And [E2].",
            "key",
            "So (a2020), not (b2019). And (a2020) it is. And (a2020).",
        ),
        ("So [E2].", "key-page", "So [a2020, page 4]."),
        ("So [E2][E3][E1].", "key-page", 'So [a2020, pages 4, 7; b2019, section "Results"].'),
        ("So [E5].", "key-page", "So [c2021]."),
        (
            "- “So” [E2], in “Results”, page 4",
            "pandoc",
            "- “So” [@a2020], in “Results”, page 4",
        ),
        ("So [E9].", "key", "So [citation needed]."),
        ("So [E1][E9].", "key", "So (b2019) [citation needed]."),
    ],
)
def test_each_style_renders_its_citations(text: str, style: CitationStyle, expected: str) -> None:
    if "é" in expected:
        expected = expected.replace("@k:é+1", "@{k:é+1}")
    assert render(text, SOURCES, style).text == expected


def test_each_citation_opens_to_its_evidence() -> None:
    draft = "Degree matters [E2][E1]. It is plain. It lasts [E3]."
    verdicts = {("It lasts [E3].", "E3"): Verdict("supported", "said so")}
    rendered = render(draft, SOURCES, "key", verdicts=verdicts)
    assert [(c.evidence_id, c.key, c.page, c.sentence, c.verdict) for c in rendered.citations] == [
        ("E2", "a2020", 4, "Degree matters (a2020; b2019).", "unjudged"),
        ("E1", "b2019", None, "Degree matters (a2020; b2019).", "unjudged"),
        ("E3", "a2020", 7, "It lasts (a2020).", "supported"),
    ]
    for citation in rendered.citations:
        source = next(source for source in SOURCES if source.evidence.id == citation.evidence_id)
        assert source.text[citation.start : citation.end] == citation.quote
    assert rendered.keys == ("a2020", "b2019")
    assert [rendered.text[s.start : s.end] for s in rendered.sentences] == [
        "Degree matters (a2020; b2019).",
        "It is plain.",
        "It lasts (a2020).",
    ]


@given(
    st.lists(
        st.sampled_from(["Degree matters", " [E1]", "[E2]", "[E3][E4]", "[E9]", ". ", "\n\n", '"', "A. B"]),
        max_size=20,
    ),
    st.sampled_from(get_args(CitationStyle)),
)
def test_no_marker_reaches_the_reader_and_every_record_is_in_the_text(pieces: list[str], style: CitationStyle) -> None:
    rendered = render("".join(pieces), SOURCES, style)
    assert not any(f"[E{number}]" in rendered.text for number in range(1, 10))
    assert all(citation.sentence in rendered.text for citation in rendered.citations)
    assert {citation.key for citation in rendered.citations} == set(rendered.keys)
    assert all(0 <= s.start < s.end <= len(rendered.text) for s in rendered.sentences)
