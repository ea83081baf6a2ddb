"""The numbered list below an answer describes each paper and says where the cited words are."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.citations.citation_styles import Citation
from citeloom.citations.references import Place, Reference, cited_places, numbered_list


def citation(key: str, page: int | None, section: str, number: int = 1) -> Citation:
    return Citation(key, page, section, "E1", f"{key}-1", "Words.", 0, 6, "A sentence.", "supported", number=number)


def entry(**changes: Any) -> dict[str, Any]:
    usual = Reference("smith2024", "1", "Smith. 2024. “On.”", "On *looms* [v2]", ("Ada Smith",), 2024, "", "")
    return usual.as_dict() | changes


def test_each_place_is_listed_once_by_page() -> None:
    places = cited_places(
        [
            citation("a", 7, "Discussion"),
            citation("b", None, "Results"),
            citation("a", 4, "Results"),
            citation("a", 7, "Discussion"),
            citation("b", None, "Methods"),
            citation("c", None, ""),
        ]
    )
    assert places == {
        "a": (Place(4, "Results"), Place(7, "Discussion")),
        "b": (Place(None, "Results"), Place(None, "Methods")),
    }


def test_a_reference_shows_number_authors_year_title_key_and_places() -> None:
    places = [{"page": 4, "section": "Results [@x]"}, {"page": None, "section": "Methods"}, {"page": 9, "section": ""}]
    assert numbered_list([entry(places=places)]).splitlines() == [
        r"- **[1]** Smith 2024. On \*looms\* \[v2\] (smith2024)",
        '  - p. 4, "Results x"; "Methods"; p. 9',
    ]


@pytest.mark.parametrize(
    ("authors", "year", "shown"),
    [
        (["Ada Smith", "Doe, Jo"], 2024, "Smith and Doe 2024. On"),
        (["Ada Smith", "Jo Doe", "Al Roe"], None, "Smith et al. n.d. On"),
        ([], 2024, "** 2024."),
    ],
)
def test_long_lists_of_authors_are_shortened(authors: list[str], year: int | None, shown: str) -> None:
    assert shown in numbered_list([entry(authors=authors, year=year)])


def test_a_long_title_is_cut_between_words_and_old_records_have_no_places() -> None:
    old = entry(title="Very long words " * 20)
    del old["places"]
    (line,) = numbered_list([old]).splitlines()
    assert line.endswith("… (smith2024)") and len(line) < 160


def test_a_file_lists_the_places_after_numbers_but_not_after_keys() -> None:
    places = (Place(4, "Results"),)
    numbered = Reference("a", "3", "A. 2020.", "T", (), 2020, "", "", places)
    assert numbered.line == '- **3**: A. 2020.\n  - p. 4, "Results"'
    assert Reference("a", "a", "A. 2020.", "T", (), 2020, "", "", places).line == "- **a**: A. 2020."


def test_a_group_author_is_named_in_full() -> None:
    group = "Lowland Sensor Data Group"
    given = entry(authors=[group], text=f"{group}. 2024. *Calibration Error from Few Windows*.")
    assert f"{group} 2024. " in numbered_list([given])
