"""HTML that a model or a source brings in is text in a `.md` file, as it is in every other format."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from citeloom.citations.export import SectionDocument, markdown_document
from citeloom.citations.inert import inert
from citeloom.citations.references import Reference, References
from citeloom.citations.whole_paper import _markdown

ATTACKS = (
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe\nsrc=//evil.example>",
    "<style>*{display:none}</style>",
    "a <b>bold</b> claim",
    "</div>",
    "<!-- hidden -->",
    "<!DOCTYPE html>",
    "<?php x ?>",
    "<![CDATA[x]]>",
    "<details open ontoggle=alert(1)>",
    "<javascript:alert(1)>",
    "<mailto:a@evil.example>",
    "<a@evil.example>",
    "<div",
    "[a](javascript:alert(1))",
    "[a]( <JavaScript:alert(1)>)",
    "![a](data:text/html,x)",
    "[a]\n\n[a]: javascript:alert(1)",
    "``<script>alert(1)</script>`",
    "x < y and <em>z</em>",
)


def _html(markdown: str) -> str:
    reader = MarkdownIt("commonmark", {"html": True})
    reader.validateLink = lambda url: True  # type: ignore[method-assign]  # the most careless of viewers
    return str(reader.render(markdown))


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("frame", ["{}", "Before {} behind.", "- {}", "> {}", "| a |\n|---|\n| {} |"])
def test_no_html_of_a_text_comes_alive(attack: str, frame: str) -> None:
    page = _html(inert(frame.format(attack)))

    lowered = page.lower()
    for alive in ("<script", "<img src=x", "<svg", "<iframe", "<style", "<b>", "</div", "<!", "<?", "<details", "<em>"):
        assert alive not in lowered.replace('<img src="data', "")
    for address in ("javascript:", "data:", "mailto:"):
        assert f'href="{address}' not in lowered and f'src="{address}' not in lowered


@pytest.mark.parametrize(
    "text",
    ["p < 0.05 and n > 3", "$a<b$ holds", "a <- b", "See <https://doi.org/10.1/x>.", "A [link](https://a.b)", "a<1"],
)
def test_what_is_no_html_stays_as_it_was(text: str) -> None:
    assert inert(text) == text


def test_the_file_is_inert_and_the_record_plain() -> None:
    attack = "<script>alert(1)</script>"
    listed = Reference("a", "a", f"On {attack}. <https://doi.org/10.1/x>", "", (), None, "", "")
    document = SectionDocument("", "research", f"It holds. {attack}", references=[listed], title=f"Is it {attack}?")

    written = markdown_document(document)

    assert "<script" not in written and written.count("&lt;script>") == 3 and "<https://doi.org/10.1/x>" in written
    assert attack in document.as_dict()["text"]
    assert "<script" not in _markdown(attack, attack, References((listed,)), []).partition("<!--")[0]
