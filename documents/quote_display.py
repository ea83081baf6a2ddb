"""Formats a quotation for display, with an ellipsis wherever words of the passage are left out.

The span itself stays exact (`chunk.text[start:end] == quote`); only its displayed form is built here. Reference numbers
and keys are removed without an ellipsis.
"""

from __future__ import annotations

import re
from typing import Final

from ..text.sentences import sentence_spans

ELLIPSIS: Final = "…"

_REFERENCE = (
    r"\[(?:-?@|\d)[^\[\]]{0,300}\](?:\([^()\s]{0,200}\))?|\\\[\d[\d\s,;–-]{0,60}\\\]|\^\[?\d[\d,\s–-]{0,60}\]?\^"
    r"|<sup>[^<]{0,60}</sup>"
)
REFERENCES: Final = re.compile(_REFERENCE)
_WORD = re.compile(r"[^\W_]")
# Cross-references within the paper: "Fig. 2a", "Figure @fig:auroc", "{@tbl:all}", "[S1 Text](#s1)".
_POINTER = re.compile(
    rf"""(?:see\ (?:also\ )?|e\.g\.,?\ )?
    (?: \[[^\[\]]{{1,60}}\]\(\#[^()\s]{{0,200}}\) | \{{?@[a-z]+:[\w:.-]{{1,100}}+\}}? | {_REFERENCE}
      | (?:Supp\w*\.?\s)?(?:Figs?|Figures?|Tables?|Sections?|Eqs?|Equations?|Appendix|Box|Panels?|Text|Data)\b\.?\s?
        (?:\{{?@[a-z]+:[\w:.-]{{1,100}}+\}}?|[A-Z]?\d{{1,3}}\w?|[A-Z]\b)
    )
    (?:\s*(?:left|right|top|bottom|middle|center|panels?\ \w|[A-Z]|[a-z]\b|[-–]\ ?\w))*""",
    re.VERBOSE,
)
_SIDE = re.compile(r"(?:left|right|top|bottom|middle|[A-Z]|[a-z])")
_BRACKET = re.compile(r"\((?:[^()]|\([^()]{0,200}\)){1,400}\)")
_PART = re.compile(r"[,;]\s+")


def shown_quote(text: str, start: int, end: int) -> str:
    """The words `text[start:end]` on one line, with ellipses for omitted parts of their sentences."""
    before, after = _left_out(text, start, end)
    quote = without_pointers(" ".join(text[start:end].split()))
    return f"{ELLIPSIS} " * before + quote + f" {ELLIPSIS}" * (after and not quote.endswith(ELLIPSIS))


def without_pointers(words: str) -> str:
    """The words with bracketed cross-references to figures or tables replaced by an ellipsis."""
    return _BRACKET.sub(_unpointed, words)


def _unpointed(bracket: re.Match[str]) -> str:
    parts = [part.strip() for part in _PART.split(bracket[0][1:-1])]
    pointing = [bool(_POINTER.fullmatch(part)) for part in parts]
    if not any(pointing):
        return bracket[0]
    kept = [part for part, points in zip(parts, pointing, strict=True) if not (points or _SIDE.fullmatch(part))]
    return f"({', '.join(kept)}, {ELLIPSIS})" if kept else ELLIPSIS


def _left_out(text: str, start: int, end: int) -> tuple[bool, bool]:
    """Whether the sentence has words before the span, and after it."""
    spans = sentence_spans(text)
    first = max((begin for begin, _ in spans if begin <= start), default=start)
    last = min((stop for _, stop in spans if stop >= end), default=end)
    # A span that ends between two sentences omits nothing.
    inside = any(begin < end <= stop for begin, stop in spans)
    return _has_words(text[first:start]), inside and _has_words(text[end:last])


def _has_words(text: str) -> bool:
    return bool(_WORD.search(REFERENCES.sub("", text)))
