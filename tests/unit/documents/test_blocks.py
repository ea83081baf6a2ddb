"""The structure of a user's text: lists, tables and headings keep their lines, paragraphs are joined."""

from __future__ import annotations

import pytest

from citeloom.documents.blocks import FieldBlock, field_blocks

TABLE = "| model | AP |\n|---|---|\n| a | 0.9 |"


def kept(text: str) -> FieldBlock:
    return FieldBlock("kept", text)


def paragraph(text: str) -> FieldBlock:
    return FieldBlock("paragraph", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("One line.", (paragraph("One line."),)),
        ("Wrapped\nby  hand.\n\nThe next.", (paragraph("Wrapped by hand."), paragraph("The next."))),
        ("We saw:\n- A\n- B\n  - nested\n", (paragraph("We saw:"), kept("- A\n- B\n  - nested"))),
        ("We saw:\n1. A\n2. B", (paragraph("We saw:"), kept("1. A\n2. B"))),
        ("\u2022 A\n\u2022 B", (kept("- A\n- B"),)),
        ("1. Train. 2. Fit.", (paragraph("1. Train. 2. Fit."),)),
        (TABLE, (kept(TABLE),)),
        (f"{TABLE}\nThat is all.", (kept(TABLE), paragraph("That is all."))),
        ("| model | AP |\n| a | 0.9 |", (kept(TABLE),)),
        ("| alone |", (paragraph("| alone |"),)),
        (
            "# Setup\ntext\n\n### Deep",
            (FieldBlock("heading", "## Setup"), paragraph("text"), FieldBlock("heading", "#### Deep")),
        ),
        ("Setup\n-----\ntext", (FieldBlock("heading", "## Setup"), paragraph("text"))),
        ("    indented prose", (paragraph("indented prose"),)),
        ("```\na - b\n\nc\n```", (kept("```\na - b\n\nc\n```"),)),
        ("> said\n> by others", (kept("> said\n> by others"),)),
        ("<b>bold</b>\n[a]: b", (paragraph("<b>bold</b> [a]: b"),)),
        ("A\r\n\r\n- B\r\n- C", (paragraph("A"), kept("- B\n- C"))),
    ],
)
def test_each_kind_of_block_keeps_its_kind(text: str, expected: tuple[FieldBlock, ...]) -> None:
    assert field_blocks(text) == expected


def test_headings_inside_a_field_are_below_those_of_the_sections() -> None:
    assert [block.text for block in field_blocks("## A\n\n#### B", top=3)] == ["### A", "##### B"]


def test_no_word_of_any_block_is_lost() -> None:
    text = "# T\n\nx\n* * *\ny\n- a\n\n  more\n\n1) b\n\n[r]: http://x.y 'z'\n\n<div>\nq\n</div>\n\n    code"
    words = set(" ".join(block.text for block in field_blocks(text)).split())
    assert set(text.replace("# T", "T").split()) <= words
