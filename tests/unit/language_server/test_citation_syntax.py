"""The citation at a cursor, and the keys of a text, in every format."""

from __future__ import annotations

import pytest

from citeloom.language_server.manuscript_documents import cited_at, cited_keys, entry_span, open_citation

# A text with its cursor; the prefix, the key that is replaced, the whole citation, and its other keys.
OPEN = [
    (
        ".tex",
        r"A \citep[see][p. 3]{smith2020,gr|aph} c",
        "gr",
        "graph",
        r"\citep[see][p. 3]{smith2020,graph}",
        ["smith2020"],
    ),
    (".tex", r"x \cite{|", "", "", r"\cite{", []),
    (".tex", r"x \cite{a, graph geno|} d", "graph geno", "graph geno", r"\cite{a, graph geno}", ["a"]),
    (".md", "text [see @a, p. 3; @b|c] d", "b", "bc", "[see @a, p. 3; @bc]", ["a"]),
    (".md", "text @|", "", "", "@", []),
    (".md", "[one](two) and [@x|", "x", "x", "[@x", []),
    (".typ", "foo @ab| bar", "ab", "ab", "@ab", []),
    (".typ", "#cite(<a|>)", "a", "a", "#cite(<a>)", []),
    (".org", "[cite:@a;@b|] x", "b", "b", "[cite:@a;@b]", ["a"]),
    (".org", "cite:a,b|", "b", "b", "cite:a,b", ["a"]),
]
CLOSED = [r"no {|", r"\cite{a} b|", "a@b.c|", "see @fig-a|", r"x \@|", "[text|"]


@pytest.mark.parametrize(("suffix", "text", "prefix", "replaced", "whole", "others"), OPEN)
def test_a_citation_being_typed_is_recognised(
    suffix: str, text: str, prefix: str, replaced: str, whole: str, others: list[str]
) -> None:
    cursor, plain = text.index("|"), text.replace("|", "")
    found = open_citation(plain, cursor, suffix)
    assert found is not None
    assert (found.prefix, plain[found.start : found.end]) == (prefix, replaced)
    assert plain[slice(*found.whole)] == whole and list(found.keys) == others


@pytest.mark.parametrize("text", CLOSED)
def test_other_text_is_not_a_citation_being_typed(text: str) -> None:
    cursor, plain = text.index("|"), text.replace("|", "")
    assert open_citation(plain, cursor, ".tex" if "\\" in text or "{" in text else ".md") is None


def test_the_keys_of_a_text_are_found() -> None:
    texts = {
        ".tex": (r"\cite[p]{a,b} \bibitem{c} \nocite{*} \section{d}", ["a", "b", "c", "*"]),
        ".md": ("[@a; see @{b:c}] @d. x@y [-@e] @fig:f", ["a", "b:c", "d", "e"]),
        ".typ": ("@a. #cite(<b>) @fig:1", ["a", "b"]),
        ".org": ("[cite:see @a p. 3;@b] cite:c,d. cite:e;", ["a", "b", "c", "d", "e"]),
    }
    for suffix, (text, keys) in texts.items():
        found = list(cited_keys(text, suffix))
        assert [item.key for item in found] == keys
        assert [text[item.start : item.end] for item in found] == keys


def test_numbered_citations_and_entries_are_located() -> None:
    found = cited_at("It is so [12, 3].", 14, ".md")
    assert found is not None and found.key == "3" and found.whole == (9, 16)
    assert cited_at("It is so.", 4, ".md") is None
    bib = "@book{ab,\n title={x}}\n@article{ a ,\n}"
    assert entry_span(bib, "a") == (bib.index(" a ,") + 1, bib.index(" a ,") + 2)
    assert entry_span(bib, "b") is None
