from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from citeloom.citations.checks.draft_checks import check_draft, replace_invalid_citations
from citeloom.citations.markers import marker_ids
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Draft
from tests.support.citation_samples import make_source

SOURCES = (
    make_source("E3"),
    make_source("E4", "lee2022ten", ("Lee", "Gitter"), year=2022, page=4),
    make_source("E5", "Zotero_Key-7", ("Sirén",), year=2020),
)
FINE = "Node degree explains most edges [E3]. It is a baseline."
FATAL = {"unknown-marker", "foreign-citation"}


def _codes(text: str, *, kind: str | None = None, truncated: bool = False, experiment: str = "") -> list[str]:
    found = check_draft(Draft(text, truncated), SOURCES, kind=kind, experiment=Experiment(summary=experiment))  # type: ignore[arg-type]
    return [finding.rule for finding in found]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (FINE, []),
        ("Degree matters [E99].", ["unknown-marker"]),
        ("Degree matters [E3, E99].", ["unknown-marker"]),
        ("Degree matters (E99).", ["unknown-marker"]),
        ("Degree <!--[E99]--> matters.", ["unknown-marker"]),
        ("Degree matters [E3x].", ["unknown-marker"]),
        ("Degree matters [Evidence 3].", ["unknown-marker"]),
        ("Degree matters [Е99].", ["unknown-marker"]),
        ("Degree matters [@made_up].", ["foreign-citation"]),
        ("Smith et al. showed that degree matters [E3].", ["foreign-citation"]),
        ("Himmelstein et al. showed that degree matters [E3].", []),
        ("Sirén (2020) showed that degree matters [E5].", []),
        ("Siren et al. showed that degree matters [E5].", []),
        ("Degree matters (lee2022ten).", ["foreign-citation"]),
        ("As E3 shows, degree matters [E3].", ["bare-marker"]),
        ("An E3 ligase acts on edges [E3].", []),
        ("", ["empty"]),
        ("# Discussion\n\n[E3]", ["empty"]),
        ("Degree matters [E3]. It also", ["truncated"]),
        ("Degree matters [E3].\n\n## Limits", ["truncated"]),
        ("Degree matters here.\n\n```python\nx = 1", ["truncated"]),
        ("Degree matters here:\n\n- one thing\n- another", []),
        ("Degree matters, as they say “so.”", []),
        ("It fell in the text. [E3]", []),
        ("Was it degree [E3]?", []),
        ("Degree | matters here\n--- | ---\nyes | no |", []),
    ],
)
def test_faults_of_a_draft_are_found(text: str, codes: list[str]) -> None:
    assert _codes(text) == codes


def test_an_answer_cut_off_at_its_limit_is_truncated_even_if_it_ends_well() -> None:
    assert _codes(FINE, truncated=True) == ["truncated"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("discussion", ["no-citation"]), ("introduction", ["no-citation"]), ("methods", [])],
)
def test_only_citing_sections_need_a_citation(kind: str, expected: list[str]) -> None:
    assert _codes("Node degree explains most edges.", kind=kind) == expected


def test_without_sources_no_citation_is_required() -> None:
    assert check_draft(Draft("Node degree explains it."), (), kind="discussion", experiment=Experiment()) == ()


def test_addresses_written_by_the_user_are_allowed() -> None:
    assert _codes("The code is at https://example.org/x.", experiment="See https://example.org/x for it.") == []


def test_messages_name_the_words_and_spans_point_to_them() -> None:
    text = "Degree matters (Smith et al., 2021), and more [E99]."
    findings = check_draft(Draft(text), SOURCES, kind=None, experiment=Experiment())
    assert ["(Smith et al., 2021)" in findings[0].message, "[E99]" in findings[1].message] == [True, True]
    spans = [finding.span for finding in findings if finding.span]
    assert [text[start:end] for start, end in spans] == ["(Smith et al., 2021)", "[E99]"]
    assert all("\n" not in finding.message for finding in findings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FINE, FINE),
        ("Degree matters [E3, E99].", "Degree matters [E3] [citation needed]."),
        ("Degree matters (Smith et al., 2021).", "Degree matters [citation needed]."),
        ("Degree matters (Smith et al., 2021 [E3]).", "Degree matters ([citation needed] [E3])."),
        ("Degree matters [see @x; @E3].", "Degree matters [citation needed]."),
        ("Degree matters [1][2], [3].", "Degree matters [citation needed]."),
        ("It is [well known](http://x.y/z) here.", "It is well known [citation needed] here."),
        ("Degree matters [Smith 2021](http://x.y).", "Degree matters [citation needed]."),
        ("Degree matters [[12]].", "Degree matters [citation needed]."),
        ("Smith et al. showed this [E3].", "[citation needed] showed this [E3]."),
    ],
)
def test_failing_words_are_marked_and_the_rest_is_kept(text: str, expected: str) -> None:
    neutral, findings = replace_invalid_citations(text, SOURCES, "")
    assert neutral == expected
    assert bool(findings) == (text != expected)


HOSTILE = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "[@", "@", "]", "[", "(", ")", "[E9]", "[E3]", "E9", "e9", "(E9)", "［Ｅ９］", "【12】",
                "[12]", "12", "Smith", " et al.", ", 2021", " (2020)", "&#91;", "&#93;", "&#64;",
                "&lbrack;", "\\", "\\cite{", "\\citep[", "}", "{", "a", "x", "\u200b", "\u00ad",
                "\ufeff", "\u2060", "\ufe0f", "\u0301", "^", "^1^", "[^1]", "<b>", "</b>", "<!--", "-->",
                "<sup>", "http://", "](http://x.y)", "10.1000/x", "doi:", "himmelstein2017systematic",
                "lee2022ten", "smith2021deep", " ", ". ", "\n\n", "`", "*", "_", "$", "~", ";", ",", "-",
                "!", '"', "“", "”", "Himmelstein et al.", "[citation needed]", "citation", "¹²", "Е",
                "①", "‑", " and ", "&", "PMID: 1", "arXiv:2101.00001", "@made_up", "[@made_up]", "．",
                "\u202e", "\ud800", "# ", "- ", "| ", "\t", "\r\n",
            ]
        ),
        st.text(max_size=4),
    ),
    max_size=30,
).map("".join)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(HOSTILE)
def test_no_invented_citation_survives(text: str) -> None:
    neutral, _ = replace_invalid_citations(text, SOURCES, "")
    left = check_draft(Draft(neutral), SOURCES, kind=None, experiment=Experiment())
    assert not [finding for finding in left if finding.rule in FATAL]
    assert set(marker_ids(neutral)) <= {"E3", "E4", "E5"}
    assert not any(word in neutral for word in ("himmelstein2017systematic", "lee2022ten"))


def test_a_source_without_authors_excuses_no_invented_citation() -> None:
    nameless = make_source("E3", "anon", ())
    found = check_draft(Draft("Smith et al. showed this [E3]."), [nameless], kind=None, experiment=Experiment())
    assert [finding.rule for finding in found] == ["foreign-citation"]
