r"""Values of BibTeX fields as plain text: the fast path gives what the LaTeX decoder would give."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, reject, settings, strategies as st
from pylatexenc.latex2text import LatexNodes2Text  # type: ignore[import-untyped]

from citeloom.documents.bibliography import readable


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"{\'E}tude de {M\"u}ller", "Étude de Müller"),
        (r"Garc{\'{\i}}a and Garc\'ia and Garc\'{\i}a", "García and García and García"),
        (r"{\v{S}}koda, Fran\c{c}ois, Erd\H{o}s, \k{a}, \r{A}ngstr\"om", "Škoda, François, Erdős, ą, Ångström"),
        (r"Stra{\ss}e, S{\o}ren, {\L}ukasz, {\AE}on", "Straße, Søren, Łukasz, Æon"),
        (r"pages 3--5 --- ``quoted''~here", "pages 3–5 — “quoted” here"),
        (r"R\&D at 50\% and R&D at 50%", "R&D at 50% and R&D at 50%"),
        (r"{{The {DNA} of $x_{i}$}}", "The DNA of $x_{i}$"),
        (r"\textit{E. coli} and \emph{more}", "E. coli and more"),
        (
            r"Growth of <i>E. coli</i> in H<sub>2</sub>O, <jats:p>p < 0.05</jats:p>",
            "Growth of E. coli in H2O, p < 0.05",
        ),
        (r"M\" uller and \' {E}tude, \(a + b\)", r"Müller and Étude, \(a + b\)"),
        (r"Without an argument \textcolor{red}", r"Without an argument \textcolor{red}"),
        (r"\textless{}i\textgreater{}E. coli\textless/i\textgreater{} at p \textless 0.05", "E. coli at p <0.05"),
    ],
)
def test_a_latex_value_becomes_readable_text(source: str, shown: str) -> None:
    assert readable(source) == shown


PARTS = r"""{\"u} \"u \'e {\'E} \'{e} \'{\i} {\'\i} \c{c} {\v{s}} \H{o} \k{a} \r{a} {\ss} {\o} {\AE} \~n \^o \`a \=a \.z
-- --- `` '' ~ { } a word M \& \% % \_ \# \$ $x$ ? ! ` ' , \u{g} < - " é ü \i \textit{a} & ^ _ \\ << >> ?` ,,
\' \textcolor{a}{b}""".split()


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*PARTS, " "]), max_size=8).map("".join))
def test_any_value_is_read_as_by_pylatexenc(source: str) -> None:
    decoder = LatexNodes2Text(math_mode="verbatim", keep_comments=True)
    escaped = re.sub(r"(?<!\\)([%&])", r"\\\1", source)
    try:
        plain = not re.search(r"[\\{}$~%]|--|``|''", source)
        decoded = source if plain else decoder.latex_to_text(escaped)
    except (IndexError, KeyError):  # a command that lacks its arguments, for which the decoder has no text
        reject()
    assert readable(source) == " ".join(decoded.split())
