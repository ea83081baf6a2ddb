"""The structure of markdown papers, with exact places."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from citeloom.documents.markdown import parse_heading, parse_markdown
from citeloom.documents.types import Category

PAPER = """\
---
title: "Looms: a study"
author:
  - name: Ada Lovelace
  - {name: {given: Charles, family: Babbage}}
date: 1843-09-01
doi: https://doi.org/10.1234/Loom.1
---

# Looms: a study

## Abstract

We weave.

# Introduction {#sec:intro}

Looms are old.

```{r}
#| echo: false
# not a heading
plot(x)
```

```python
# Not a heading either
```

$$
a
=
b
$$

## The *art* of [weaving](http://a.org)

| a | b |
|---|---|
| 1 | 2 |

<!-- ## Hidden -->

Setext methods
--------------

We wove.

# References

1. Somebody.
"""


def test_front_matter_stays_text_whatever_yaml_would_make_of_it() -> None:
    given = "title: 1:59:59\nauthor: null\nyear: !!int 1843\ndoi: ~\njournal: {<<: {a: b}}\nabstract: no"
    front = parse_markdown(f"---\n{given}\n---\n\nX.").front_matter
    assert (front.title, front.authors, front.year, front.doi, front.venue) == ("1:59:59", (), 1843, "", "")
    assert (front.abstract, front.problem) == ("no", "")


def test_a_note_on_correspondence_is_not_part_of_a_name() -> None:
    notes = (
        "Corresponding Author: Ada Lovelace <ada@example.org>",
        "\\*Ada Lovelace: <ada@example.org>",
        "\\*For correspondence: a",
    )
    for note in notes:
        given = f"author:\n- \\*Ada Lovelace\n- 'Charles Babbage{note}'"
        assert parse_markdown(f"---\n{given}\n---\n\nX.").front_matter.authors == ("Ada Lovelace", "Charles Babbage")


def test_sections_and_front_matter_are_read() -> None:
    paper = parse_markdown(PAPER)
    assert paper.title == "Looms: a study"
    assert paper.front_matter.authors == ("Ada Lovelace", "Charles Babbage")
    assert (paper.front_matter.year, paper.front_matter.doi) == (1843, "10.1234/loom.1")
    assert [(s.title, s.parent, s.level, s.category.name, s.searchable) for s in paper.sections] == [
        ("Looms: a study", "", 1, "INTRODUCTION", True),
        ("Abstract", "", 2, "ABSTRACT", True),
        ("Introduction", "", 1, "INTRODUCTION", True),
        ("The art of weaving", "Introduction", 2, "INTRODUCTION", True),
        ("Setext methods", "Introduction", 2, "METHOD", True),
        ("References", "", 1, "OTHER", False),
    ]
    assert paper.abstract() == "We weave."


def test_blocks_are_exact_and_have_a_kind() -> None:
    paper = parse_markdown(PAPER)
    found = [(block.kind, PAPER[block.start : block.end].splitlines()[0]) for block in paper.blocks]
    assert found == [
        ("prose", "We weave."),
        ("prose", "Looms are old."),
        ("hidden", "```{r}"),
        ("code", "```python"),
        ("math", "$$"),
        ("table", "| a | b |"),
        ("hidden", "<!-- ## Hidden -->"),
        ("prose", "We wove."),
        ("list", "1. Somebody."),
    ]


@pytest.mark.parametrize(
    ("text", "title", "sections"),
    [
        ("Just prose.\n\nAnd more.", "", [""]),
        ("# Introduction\n\nNo title here.", "", ["Introduction"]),
        (
            "# Evaluation of looms at work\n\n## Abstract\n\nX.",
            "Evaluation of looms at work",
            ["Evaluation of looms at work", "Abstract"],
        ),
        ("Lead text.\n\n# Methods\n\nX.", "", ["", "Methods"]),
        ("---\ntitle: [broken\n---\n\n# A title\n\nX.", "A title", ["A title"]),
        ("---\njust: yaml\n---\nX.", "", [""]),
        ("", "", [""]),
        ("# Title\r\n\r\n## Methods\r\n\r\nX.\r\n", "Title", ["Title", "Methods"]),
        ("Costs of $5 and\n$$ stray\n\n## Results\n\nX $$y$$.", "", ["", "Results"]),
        ("A long paragraph\nover two lines\n---\n\n## Results\n\nX.", "", ["", "Results"]),
    ],
)
def test_odd_papers_can_be_parsed(text: str, title: str, sections: list[str]) -> None:
    paper = parse_markdown(text)
    assert (paper.title, [section.title for section in paper.sections]) == (title, sections)


def test_broken_front_matter_is_reported() -> None:
    assert "not YAML" in parse_markdown("---\ntitle: [broken\n---\n\nX.").front_matter.problem


def test_a_reviewer_letter_includes_everything_after_it() -> None:
    text = (
        "# T\n\n## Results\n\nR.\n\n# Response to Reviewers\n\n## Reviewer #1\n\nGood.\n\n# Reviewer #2\n\nBad.\n\n"
        "# Methods\n\nStill a letter."
    )
    kept = [section.title for section in parse_markdown(text).sections if section.searchable]
    assert kept == ["T", "Results"]


def test_prose_below_a_section_of_code_is_kept() -> None:
    code = "```r\n" + "x <- 1\n" * 80 + "```\n"
    paper = parse_markdown(f"# T\n\n## Fitting\n\n{code}\n### Outcome\n\nIt converged quickly.\n")
    assert {s.title: s.searchable for s in paper.sections} == {"T": True, "Fitting": False, "Outcome": True}


def test_annotated_references_are_not_the_papers_own_words() -> None:
    paper = parse_markdown("# T\n\n## Outlook\n\nX.\n\n# Random forests\n\n[@doi:10.1/x]\n\nThey show it.")
    assert {s.title: s.searchable for s in paper.sections}["Random forests"] is False


LINES = [
    "# Title\n", "## Methods\n", "### Reviewer #1\n", "Prose. More prose.\n", "\n", "```{r}\n", "```\n",
    "$$\n", "=\n", "---\n", "- item\n", "| a | b |\n", "|---|---|\n", "<!-- c -->\n", "> quoted\n", "\r\n",
    "    indented\n", "\\begin{align}\n", "\\end{align}\n", "[x]: http://a.org\n", ":::\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=12), max_size=30).map("".join))
def test_any_text_gives_ordered_sections_and_blocks_inside_them(text: str) -> None:
    paper = parse_markdown(text)
    assert [section.index for section in paper.sections] == list(range(len(paper.sections)))
    assert all(0 <= section.start <= section.end <= len(text) for section in paper.sections)
    assert all(a.end <= b.start for a, b in zip(paper.sections, paper.sections[1:], strict=False))
    for block in paper.blocks:
        section = paper.sections[block.section]
        assert section.start <= block.start < block.end <= section.end
        assert text[block.start : block.end].strip() == text[block.start : block.end]
    assert all(a.end <= b.start for a, b in zip(paper.blocks, paper.blocks[1:], strict=False))
    assert all(section.category in Category for section in paper.sections)


@pytest.mark.parametrize(
    ("given", "heading", "title"),
    [
        ("smith2020looms", "Looms and Engines", "Looms and Engines"),
        ("index", "Looms and Engines", "Looms and Engines"),
        ("my_paper-final", "Looms and Engines", "Looms and Engines"),
        ("Looms", "Looms and Engines", "Looms"),
        ("treeheatr", "Introduction", "treeheatr"),
        ("paper2", "Introduction", "paper2"),
    ],
)
def test_a_file_name_is_not_used_as_title_if_there_is_a_heading(given: str, heading: str, title: str) -> None:
    assert parse_markdown(f"---\ntitle: {given}\n---\n\n# {heading}\n\nText of it.\n").title == title


def plain_cases() -> list[dict[str, str]]:
    with (Path(__file__).parent / "plain_headings.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("row", plain_cases(), ids=lambda row: row["line"][:40])
def test_a_line_is_a_heading_as_labelled(row: dict[str, str]) -> None:
    found = parse_heading(row["line"])
    assert (str(found.level) if found else "-") == row["level"]


PROSE = "Some text that is long enough to be prose of a paper, and so on and on.\n\n"


def outline(text: str) -> list[tuple[str, int, Category]]:
    return [(section.title, section.level, section.category) for section in parse_markdown(text).sections]


def test_a_paper_without_marked_headings_gets_the_visible_ones() -> None:
    lines = ["**Looms and Engines**", "**Abstract**", "**1. Introduction**", "RESULTS", "2.1 Cards", "References"]
    text = "".join(f"{line}\n\n{PROSE}" for line in lines)
    assert outline(text) == [
        ("Looms and Engines", 1, Category.INTRODUCTION),
        ("Abstract", 2, Category.ABSTRACT),
        ("1. Introduction", 2, Category.INTRODUCTION),
        ("RESULTS", 2, Category.EVALUATION),
        ("2.1 Cards", 3, Category.EVALUATION),
        ("References", 2, Category.OTHER),
    ]
    paper = parse_markdown(text)
    assert paper.title == "Looms and Engines" and not paper.sections[-1].searchable
    assert all(paper.text[section.start : section.end].strip() == PROSE.strip() for section in paper.sections)


def test_marked_headings_and_a_single_bold_line_leave_text_as_it_is() -> None:
    marked = f"# Looms\n\n## Methods\n\n**Introduction**\n\n{PROSE}RESULTS\n\n{PROSE}"
    assert [title for title, *_ in outline(marked)] == ["Looms", "Methods"]
    assert len(outline(f"{PROSE}**Introduction**\n\n{PROSE}")) == 1
    assert len(outline(f"**One**\n\n{PROSE}**Two**\n\n{PROSE}**Three**\n\n{PROSE}")) == 1


def test_an_abstract_ends_even_if_no_heading_follows() -> None:
    paragraphs = [f"Paragraph {number} " + "of many words " * 60 for number in range(9)]
    assert parse_markdown("# Looms\n\n## Abstract\n\n" + "\n\n".join(paragraphs)).abstract() == "\n\n".join(
        paragraph.strip() for paragraph in paragraphs[:4]
    )
