"""The table in foreign_cases.tsv was labelled by hand before the detector was written."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from citeloom.citations.checks.fabricated_citations import find_fabricated
from citeloom.citations.citation_patterns import NamedSource
from citeloom.citations.markers import sentences

TABLE = Path(__file__).parent.parent / "foreign_cases.tsv"
CITED = {"E3": NamedSource(("himmelstein", "lizee"), 2017), "E4": NamedSource(("lee", "gitter"), 2022)}
KEYS = ("himmelstein2017systematic", "lee2022ten", "Zotero_Key-7")


def _plain(cell: str) -> str:
    return re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), cell)


def _cases() -> list[tuple[str, tuple[str, ...], str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        assert (row["label"] == "foreign") == bool(row["spans"])
    return [
        (
            _plain(row["text"]),
            tuple(map(_plain, row["spans"].split(" || "))) if row["spans"] else (),
            row["allowed"],
        )
        for row in rows
    ]


@pytest.mark.parametrize(("text", "expected", "allowed"), _cases(), ids=lambda value: None)
def test_labelled_cases_are_classified(text: str, expected: tuple[str, ...], allowed: str) -> None:
    cited = sentences(text)

    def names_at(position: int) -> list[NamedSource]:
        here = [sentence for sentence in cited if sentence.start <= position < sentence.end]
        return [CITED[id] for sentence in here for id in sentence.ids if id in CITED]

    found = find_fabricated(text, known_keys=KEYS, allowed_text=allowed, names_at=names_at)
    assert tuple(text[item.start : item.end] for item in found) == expected


def test_the_labelled_cases_include_both_classes() -> None:
    cases = _cases()
    assert len(cases) >= 190
    assert sum(bool(expected) for _, expected, _ in cases) >= 120


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000, "[" * 3000, "Smith " * 2000, "Smith, " * 2000, "A. " * 2000, "[E3" * 1500,
        "\\cite{" * 1000, "@" * 3000, "Smith and " * 1500 + "et al.", "^1" * 1500, "10.1000/" * 600,
        "&#91;" * 1500, "<a " * 1000, "*_`" * 1000, "[1, " * 1000, "smith2020_" * 400, '"' * 2000,
        "[a](" * 900,
    ],
)  # fmt: skip
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    find_fabricated(text, known_keys=KEYS)  # a pattern that backtracks would hang the suite here


TOLD = (
    "As Kerry and Bland showed, and as Eldridge et al. found in 2006, sizes matter (see bhatnagar2023saocp)"
    "---Anderson *et al.* built one."
)


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Kerry and Bland and Eldridge et al., cited there, gave design effects [E1].", []),
        ("Eldridge et al. (2006), cited there, gave design effects [E1].", []),
        ("Eldridge et al. (2007), cited there, gave design effects [E1].", ["Eldridge et al. (2007)"]),
        ("Murray et al., cited there, gave design effects [E1].", ["Murray et al."]),
        ("Sizes matter, since Bhatnagar et al., cited there, found an example [E1].", []),
        ("Bhatnagar et al. (2023), cited there, gave an example [E1].", []),
        ("Bhatnagar et al. (2022), cited there, gave an example [E1].", ["Bhatnagar et al. (2022)"]),
        ("Bhat et al., cited there, gave an example [E1].", ["Bhat et al."]),
        ("Logic works in cells, as reported by Anderson et al., cited by Lauer et al. [E1].", []),
    ],
)
def test_a_study_may_be_named_in_the_words_of_the_cited_source(text: str, foreign: list[str]) -> None:
    named = NamedSource(("lauer",), 2015, TOLD)
    found = find_fabricated(text, names_at=lambda _: [named])
    assert [text[item.start : item.end] for item in found] == foreign
