from __future__ import annotations

import re

import pytest

from citeloom.citations.export.report_html import Link, reference_html, section_html


def _linked(text: str, *cited: str) -> str:
    """The HTML of a text in which these are the citations, in order."""
    links, at = [], 0
    for number, words in enumerate(cited, 1):
        start = text.index(words, at)
        at = start + len(words)
        links.append(Link("citation", number, start, at, doubtful=number == 2))
    return str(section_html(text, links))


def test_each_citation_opens_its_card_and_a_doubtful_one_looks_different() -> None:
    html = _linked("It holds (a2020). It lasts (b2019; c2018).", "(a2020)", "(b2019; c2018)")
    assert html == (
        '<p>It holds <a class="citation" id="r1" href="#c1">(a2020)</a>. '
        'It lasts <a class="citation doubtful" id="r2" href="#c2">(b2019; c2018)</a>.</p>\n'
    )


def test_the_page_keeps_headings_lists_tables_and_emphasis() -> None:
    html = _linked("# Discussion\n\n- *one* (a2020)\n- two\n\n| x | y |\n|---|---|\n| 1 | 2 |", "(a2020)")
    for part in ("<h3>Discussion</h3>", "<em>one</em>", "<li>two</li>", "<td>2</td>", 'href="#c1"'):
        assert part in html


@pytest.mark.parametrize(
    "text", ["`code (a2020)`", "    indented (a2020)", "```\nfenced (a2020)\n```", "``` (a2020)\nx"]
)
def test_a_citation_in_code_keeps_its_words(text: str) -> None:
    html = _linked(text, "(a2020)")
    assert "(a2020)" in re.sub("<[^>]*>", "", html)
    assert "\ue000" not in html


@pytest.mark.parametrize("style", ["[@a2020, p. 4]", "[3]", r"\cite[p.~4]{a2020}", "[a2020, page 4]", "[@{a_b*c_d*}]"])
def test_a_citation_is_shown_unchanged_in_every_style(style: str) -> None:
    words = re.search("<a [^>]*>(.*)</a>", _linked(f"It holds {style}.", style))
    assert words is not None
    assert words[1] == style


def test_a_missing_citation_is_visible() -> None:
    assert '<strong class="missing">[citation needed]</strong>' in _linked("It holds [citation needed].")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick=x> c",
        "[click](javascript:alert(1))",
        "[click](http://elsewhere.example)",
        "![see](http://elsewhere.example/x.png)",
        "<http://elsewhere.example>",
        "[click]\n\n[click]: http://elsewhere.example",
        "&lt;script&gt;",
        '``` x"onload=alert(1)\ncode\n```',
        "<!-- -->\n\n<div>\n\n</div>",
        "(a2020)\ue0001\ue001 \ue0009\ue001",
        "\x00\x08\x1b[31m\ud800\ufffe",
    ],
)
def test_nothing_in_the_text_becomes_an_element_or_an_address(text: str) -> None:
    for html in (str(section_html(f"{text} (a2020)", [])), str(reference_html(text))):
        assert not re.search(r"<(?!/?(?:p|code|pre)>)", html), html
        assert not re.search("[\x00-\x08\x1b\ud800-\udfff\ue000\ue001\ufffe]", html)


def test_a_reference_shows_its_address_as_text() -> None:
    html = reference_html("Ada. “On \\[x\\].” *Journal*. <https://doi.org/10.1/x>.")
    assert html == "Ada. “On [x].” <em>Journal</em>. https://doi.org/10.1/x."
    assert reference_html("doi: [10.1/x](https://doi.org/10.1/x).") == "doi: 10.1/x."


@pytest.mark.parametrize(
    ("text", "doi", "shown"),
    [
        ("Ada. *J*. <https://doi.org/10.1000/x(1)>.", "10.1000/x(1)", ">https://doi.org/10.1000/x(1)</a>."),
        ("Ada. *J*.", "https://doi.org/10.1000/x", ">doi:10.1000/x</a>"),
        ("Ada. doi: [10.1000/x](https://doi.org/10.1000/x).", "10.1000/X", ">doi: 10.1000/x</a>."),
        ("Ada, on 10.1000/xyz.", "10.1000/x", ">doi:10.1000/x</a>"),
    ],
)
def test_the_doi_of_a_reference_becomes_a_link(text: str, doi: str, shown: str) -> None:
    html = reference_html(text, doi)
    assert html.count("<a ") == 1 and 'href="https://doi.org/10.1000/' in html and shown in html


@pytest.mark.parametrize("doi", ["", "10.1/x", "10.1000/a b", '10.1000/"><script>', "javascript:alert(1)"])
def test_an_invalid_doi_becomes_no_link(doi: str) -> None:
    html = reference_html(f"Ada. *J*. <https://doi.org/{doi}>.", doi)
    assert "<a " not in html and "<script" not in html
