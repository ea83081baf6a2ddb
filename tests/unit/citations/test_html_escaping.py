"""HTML from a model or a source is plain text in a `.md` file, as in every other format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from markdown_it import MarkdownIt

from citeloom.citations.export.section_files import markdown_document
from citeloom.citations.html_escaping import inert, inert_record
from citeloom.citations.references import Reference

pytestmark = pytest.mark.attack

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
def test_html_in_a_text_is_inert(attack: str, frame: str) -> None:
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
def test_text_without_html_stays_unchanged(text: str) -> None:
    assert inert(text) == text


def test_html_in_the_markdown_file_is_inert() -> None:
    attack = "<script>alert(1)</script>"
    listed = Reference("a", "a", f"On {attack}. <https://doi.org/10.1/x>", "", (), None, "", "")

    written = markdown_document(f"Is it {attack}?", f"It holds. {attack}", [listed])

    assert "<script" not in written and written.count("&lt;script>") == 3 and "<https://doi.org/10.1/x>" in written


LIVE = "<script>alert(1)</script>"


@pytest.mark.parametrize("attack", [*ATTACKS, LIVE * 3, "[a](javascript:x) <b> [b](data:x)"])
def test_html_in_the_json_is_inert_and_every_span_still_fits(attack: str) -> None:
    text = f"{attack} It gains 0.725 {attack} (Own, 2020), p < 0.05 and $a<b$. {attack}"
    spans = {words: (text.index(words), text.index(words) + len(words)) for words in ("0.725", "(Own, 2020)", "gains")}

    def at(words: str) -> dict[str, int]:
        return dict(zip(("start", "end"), spans[words], strict=True))

    told = {"text": attack, "title": attack, "authors": [attack], "places": [{"page": 1, "section": attack}]}
    record = {
        "text": text,
        "title": attack,
        "numbers": [{"text": "0.725", **at("0.725"), "found": {"path": "a", "start": 90, "end": 95, "how": "equal"}}],
        "own_citations": [{"citation": "(Own, 2020)", "sentence": text, **at("(Own, 2020)"), "keys": []}],
        "findings": [
            {"rule": "x", "message": attack, **at("gains")},
            {"rule": "x", "message": attack, "start": None, "end": None},
            {"rule": "x", "message": attack, "start": 0, "end": len(text)},
        ],
        "references": [{"key": "k", **told}],
        "warnings": [attack],
        "left_out": [{"sentence": attack, "marks": [], "why": [attack]}],
        "citations": [{"quote": attack, "start": 3, "end": 3 + len(attack), "sentence": attack, "reason": attack}],
    }
    shown = inert_record(record)
    live = inert_record(
        {name: value for name, value in shown.items() if name != "citations"}
        | {"citations": [{**item, "quote": ""} for item in shown["citations"]]}
    )
    for words in _strings(live):
        assert inert(words) == words and "<script" not in words
    new = shown["text"]
    assert "p < 0.05" in new and "$a<b$" in new and _words(_html(new)) == _words(_html(inert(text)))
    number, own, finding = shown["numbers"][0], shown["own_citations"][0], shown["findings"][0]
    assert new[number["start"] : number["end"]] == number["text"] == "0.725"
    assert new[own["start"] : own["end"]] == own["citation"] == "(Own, 2020)"
    assert new[finding["start"] : finding["end"]] == "gains"
    assert (shown["findings"][1]["start"], shown["findings"][2]["start"], shown["findings"][2]["end"]) == (
        None,
        0,
        len(new),
    )
    assert number["found"] == record["numbers"][0]["found"]
    assert shown["citations"][0]["quote"] == attack and shown["citations"][0]["start"] == 3
    assert inert_record(shown) == shown


def test_the_words_of_a_number_inside_a_tag_are_those_of_the_escaped_text() -> None:
    text = "See <b 0.7> or <a 0.9>."
    start = text.index("<a")
    shown = inert_record({"text": text, "numbers": [{"text": "<a 0.9>", "start": start, "end": start + 7}]})

    number = shown["numbers"][0]
    assert shown["text"][number["start"] : number["end"]] == number["text"] == "&lt;a 0.9>"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _words(page: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", page))
