"""Shows words of a paper on one line: without markup, tables with their rows, quotations with ellipses.

The spans themselves stay exact (`chunk.text[start:end] == quote`); only their displayed form is built here. Every
pattern is bounded or possessive, so that the time is linear in the length of the passage.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..text.sentences import replace_spans, sentence_spans
from ..text.words import unescape_html

TABLE_RULE: Final = re.compile(
    r"\s*+(?:\|?[ \t]*+:?-{2,}+:?(?:(?:[ \t]++(?:[|+][ \t]*+)?|[|+][ \t]*+):?-++:?)*+[ \t]*+\|?"
    r"|\+[-=:+ ]{2,}+|\|[\s|:+=-]*+)\s*+"
)
# Placeholder for code and formulas during processing: a number between two private-use characters.
_OPEN, _CLOSE = "\ue000", "\ue001"
_KEPT = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_PRIVATE: Final = {0xE000: None, 0xE001: None}

_ESCAPED_CITATION = re.compile(r"\\\[(\d[\d\s,;\u2013-]{0,60})\\\]")
_LITERAL = re.compile(
    r"""
      (?<!`)(?P<ticks>`++)(?P<code>[^`]+)`+
    | \$\$(?P<display>[^$]+)\$\$
    | \$(?!\s)(?P<math>[^$]{1,400})(?<!\s)\$(?!\d)
    | \\\((?P<round>[^\\]{0,200}+(?:\\(?![()])[^\\]{0,200}+){0,40}+)\\\)
    | \\(?P<escaped>[!-/:-@\[-`{-~])
    """,
    re.VERBOSE,
)
_LONGEST_COMMENT: Final = 2_000
_QUOTE_MARK = re.compile(r"(?m)^[ \t]{0,3}(?:>[ \t]?){1,5}")
_HEADING_MARK = re.compile(r"(?m)^[ \t]{0,3}#{1,9}[ \t]+")
_DEFINITION = re.compile(r"^\[\^[^\[\]\s]{1,40}\]:\s*")
# The address of a link or image, and perhaps its title.
TARGET = r"\([^()\[\]\s]{0,1000}(?:\([^()\[\]\s]{0,200}\)[^()\[\]\s]{0,200}){0,5}(?:\s\"[^\"]{0,1000}\")?\s?\)"
_IMAGE_END = re.compile(rf"\]{TARGET}")
_LINK = re.compile(rf"!?\[([^\[\]]{{0,600}})\](?:{TARGET}(?:\{{[^{{}}]{{0,200}}\}})?)")
_SPAN = re.compile(r"\[([^\[\]]{1,600})\]\{[^{}]{0,200}\}")
_ATTRIBUTES = re.compile(r"\{(?:[#.][^{}]{0,200}|[a-z-]{1,20}=[^{}]{0,200})\}|\{\s?\}")
_CITED = re.compile(r"\s?\[[^\[\]@]{0,200}@(?!fig|tbl|tab|eq|sec)[^\[\]]{1,2000}\](?:\{[^{}]{0,80}\})?")
_CROSS = re.compile(
    r"(?P<word>\b(?i:fig|figs|figure|figures|table|tables|eqs?|equations?|sections?)\b\.?\s?)?"
    r"[\[{]?@\{?(?P<kind>fig|tbl|tab|eq|sec)[:-][\w:.-]{0,80}\w[}\]]{0,2}"
)
_CROSS_WORD: Final = {"fig": "figure", "tbl": "table", "tab": "table", "eq": "equation", "sec": "section"}
_NAMED = re.compile(r"(?<![\w.])@\{?([A-Za-z][\w:./-]{0,150}\w)\}?")
_NOTE_MARK = re.compile(r"\[\^[^\[\]\s]{1,40}\]")
_NUMBERS = r"\d{1,3}(?:\s?(?:[,;\u2013\u2014-]|--)\s?\d{1,3}){0,40}"
_NUMBERED = re.compile(
    rf"(?P<gap>\s?)\[(?P<numbers>{_NUMBERS})\](?:\s?(?:[,;\u2013\u2014-]|--)?\s?\[{_NUMBERS}\]){{0,20}}"
)
_IS_RANGE = re.compile(r"(?:=|\u2208|\b(?:range|interval|CI|from|between|set|bounds?)\b:?)\s?$")
_RAISED = re.compile(r"(?P<gap>\s?)(?:\^(?P<caret>[^\s^]{1,40})\^|<sup[^<>]{0,80}>(?P<tag>[^<>]{1,80})</sup>)")
_SIGN_MARK = re.compile(r"\^[*\u2020\u2021#\u00a7]{1,4}\^")
_LOWERED = re.compile(r"(?<=[\w)\]*.])~([^\s~]{1,40})~|<sub[^<>]{0,80}>([^<>]{1,80})</sub>")
_NUMERIC = re.compile(r"\[?[\d\s,;\u2013-]+\]?")
_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9-]{0,20}(?:\s+[a-zA-Z:-]{1,30}=[^<>]{0,400})?\s?/?>")
_ADDRESS = re.compile(r"<((?:https?|mailto):[^<>\s]{1,500})>")
_EMPTY = re.compile(
    r"\s?[(\[](?:(?:e\.g\.|i\.e\.|see|cf\.|also|reviewed in|ref\.|refs\.)[\s,]{0,2}){0,2}[\s,;.]{0,6}[)\]]"
)
_BEFORE_MARK = re.compile(r"\s([,.;:!?)\]])(?=[\s)\].,;]|$)")
_LEFT_OVER = re.compile(r"^(?:--+|[\u2013\u2014,;:.)\]]+)(?=\s|$)\s?|^:(?=\w)|^\d{1,2}(?=[A-Z][a-z]+\s)")
_EMPHASIS = re.compile(r"\*+|_+")

_SPACING = re.compile(
    r"\\(?:[,;:!> ]|q?quad\b|(?:left|right|middle|[bB]igg?[lrm]?)(?![a-zA-Z])|displaystyle\b|nonumber\b)"
    r"|\\(?:mspace|hspace|vspace|label|tag)\*?\{[^{}]{0,80}\}"
)
_STYLED = re.compile(
    r"\\(?:math(?:bf|rm|cal|bb|it|sf|frak|scr)|text(?:bf|it|rm|tt)?|operatorname\*?|boldsymbol|bm)\s?\{([^{}]{0,200})\}"
)
_GROUPED = re.compile(r"(?<=[_^])\{(\w|\\[a-zA-Z]+)\}|(?<![\\\w}_^\])])\{(\w+)\}")
_COMMAND = re.compile(
    r"~?\\(?:cite[a-z]{0,10}|ref|eqref|autoref|cref|label|footnotemark|index)\*?(?:\[[^\[\]]{0,80}\]){0,2}\{[^{}]{0,300}\}"
)
_SET = re.compile(r"\\(?:textit|textbf|texttt|textsc|textrm|textsf|emph|underline|mbox|url)\s?\{([^{}]{0,400})\}")
_ITEM = re.compile(r"^\\item\b(?:\[[^\[\]]{0,80}\])?\s*")
_TIE = re.compile(rf"(?<=[\w.,){_CLOSE}])~(?=[\w({_OPEN}])")
_IN_BRACKETS = re.compile(r"(?<!\])\s?[(\[]<?(?:https?://|www\.|doi:|10\.\d{4,9}/)[^\s()]{1,500}[)\]]")
_SUBJECT = re.compile(r"\s[a-z]")
_WORD_BEFORE = re.compile(r"[^\W\d_]{1,30}[)\"\u201d\u2019]?$")  # bounded: 32 characters
_PICTURE_WORDS: Final = 4  # fewer words next to an image are its name
_UNITS: Final = frozenset({"mm", "cm", "km", "nm", "um", "dm", "kg", "ml", "sec", "min", "day", "log", "exp"})


def is_table_rule(line: str) -> bool:
    """Whether a line is the rule between the header and the rows of a table."""
    return "-" in line and TABLE_RULE.fullmatch(line) is not None


def plain_text(passage: str) -> str:
    """`passage` on one line, without emphasis, link targets, heading, citation and footnote marks, and tags."""
    text = _HEADING_MARK.sub("", _QUOTE_MARK.sub("", passage.translate(_PRIVATE)))
    text = _ESCAPED_CITATION.sub(r"[\1]", " ".join(_remove_comments(text).split()))
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        formula = match["display"] or match["math"] or match["round"]
        plain = plain_formula(formula) if formula is not None else match["code"] or match["escaped"]
        kept.append(f"${plain}$" if formula is not None and "\\" in plain else plain)
        return f"{_OPEN}{len(kept) - 1}{_CLOSE}"

    text = _prose(_LITERAL.sub(keep, text))
    text = _KEPT.sub(lambda match: kept[int(match.group(1))], text)
    return " ".join(text.split())


def _remove_comments(text: str) -> str:
    """Replace each comment by a blank, unless it is unclosed or very long."""
    comments: list[tuple[int, int, str]] = []
    start, end = text.find("<!--"), 0
    while start >= 0 and (end := text.find("-->", max(end, start + 4))) >= 0:
        if end - start - 4 <= _LONGEST_COMMENT:
            comments.append((start, end + 3, " "))
        start = text.find("<!--", max(comments[-1][1] if comments else 0, start + 1))
    return replace_spans(text, comments)


def plain_formula(formula: str) -> str:
    """A formula on one line, without spacing and font commands."""
    text = _SPACING.sub(" ", formula)
    for _ in range(3):
        text = _STYLED.sub(r"\1", text)
    text = _GROUPED.sub(lambda match: match.group(1) or match.group(2), text)
    return " ".join(text.split())


def _prose(text: str) -> str:
    text = _DEFINITION.sub("", _IN_BRACKETS.sub("", text))
    if "\\" in text:
        text = _SET.sub(r"\1", _COMMAND.sub("", _ITEM.sub("", text)))
    if "@" in text:
        leads = _CITED.match(text)  # bracketed keys are removed, except one that is the subject of its sentence
        if leads and _SUBJECT.match(text, leads.end()):
            text = leads[0].replace("@", "") + text[leads.end() :]
        text = _CROSS.sub(_reduce_reference, _CITED.sub("", text))
        text = _NAMED.sub(lambda match: match.group(1), text)
    if "]" in text or "{" in text:
        text = _NOTE_MARK.sub("", text)
        for _ in range(2):  # links can occur inside image captions
            text = _LINK.sub(_link_words, text)
        text = _ATTRIBUTES.sub("", _SPAN.sub(r"\1", _IMAGE_END.sub("", text)))
        text = _NUMBERED.sub(_remove_numbers, text)
    text = _remove_emphasis(_SIGN_MARK.sub("", text.replace("![", "")))
    if "^" in text or "~" in text or "<" in text:
        text = _LOWERED.sub(_replace_subscript, _RAISED.sub(_replace_superscript, text))
        text = _TIE.sub(" ", _TAG.sub(" ", _ADDRESS.sub(r"\1", text)))
    text = unescape_html(text)
    if "(" in text or "[" in text:
        text = _EMPTY.sub("", text)
    return _LEFT_OVER.sub("", _BEFORE_MARK.sub(r"\1", " ".join(text.split())))


def _link_words(match: re.Match[str]) -> str:
    words: str = match.group(1)
    if match.group().startswith("!") and len(words.split()) < _PICTURE_WORDS:
        return ""
    bare = _KEPT.sub("", words).strip("*_^ []")
    leads_on = "](#" in match.group()
    if leads_on and (not bare or not any(map(str.isalpha, bare))) and not _KEPT.search(words.strip("*_^ []")[2:]):
        return ""
    return words


def _reduce_reference(match: re.Match[str]) -> str:
    word = (match.group("word") or _CROSS_WORD[match.group("kind")]).rstrip()
    return f"{word} " if match.string[match.end() : match.end() + 1].isalnum() else word


def _remove_numbers(match: re.Match[str]) -> str:
    """Remove reference numbers; ranges and indices stay."""
    before = match.string[max(0, match.start() - 14) : match.start()]
    numbers = re.findall(r"\d+", match.group("numbers"))
    word = re.search(r"[^\W_]+$", before) if not match.group("gap") else None  # bounded: 14 characters
    index = word is not None and len(word.group()) < 3
    return match.group() if "0" in numbers or index or _IS_RANGE.search(before) else ""


def _replace_superscript(match: re.Match[str]) -> str:
    """Keep exponents, and remove superscript marks of references and notes."""
    raised: str = match.group("caret") or match.group("tag")
    gap: str = match.group("gap")
    before = match.string[max(0, match.start() - 32) : match.start()]
    word = _WORD_BEFORE.search(before)
    letters = word.group().strip(')"\u201d\u2019') if word else ""
    if raised in {"th", "st", "nd", "rd"} or gap:
        return gap + raised if not (gap and _NUMERIC.fullmatch(raised)) else gap
    number, ends = bool(_NUMERIC.fullmatch(raised)), before[-1:] in {".", ",", ";", ":", ")", "]", "\u201d", "%"}
    marks = number or len(raised) == 1 or _KEPT.fullmatch(raised) or not any(map(str.isalnum, raised.strip("[]")))
    signed = raised in {"+", "-", "\u2212", "\u2013"}
    if marks and not signed and (ends or (len(letters) > 2 and letters.lower() not in _UNITS) or not before):
        return ""
    return f"^{raised}" if not signed else raised


def _replace_subscript(match: re.Match[str]) -> str:
    lowered: str = match.group(1) or match.group(2)
    return lowered if lowered.isdigit() else f"_{lowered}"


def _remove_emphasis(text: str) -> str:
    waiting: dict[str, list[tuple[int, int]]] = {}
    removed: list[tuple[int, int]] = []
    for match in _EMPHASIS.finditer(text):
        mark, (start, end) = match.group(), match.span()
        before, after = text[start - 1 : start], text[end : end + 1]
        in_word = mark[0] == "_" and after.isalnum()
        if len(mark) > 3 or not (before or after):
            continue
        if before and not before.isspace() and not in_word and waiting.get(mark):
            removed += [waiting[mark].pop(), (start, end)]
        elif after and not after.isspace() and (not before.isalnum() or mark == "**"):
            waiting.setdefault(mark, []).append((start, end))
    return replace_spans(text, ((start, end, "") for start, end in sorted(removed)))


TABLE_CHARACTERS: Final = 2_400  # a table no longer than a chunk is shown whole
_CAPTION_CHARACTERS: Final = 500
_FEWEST = 120  # minimum characters for the rows, however long the caption is

_BAR = re.compile(r"(?<!\\)\|")
_HTML_ROW = re.compile(r"</tr\s?>|<tr\b[^<>]{0,200}>", re.IGNORECASE)
_HTML_CELL = re.compile(r"</t[dh]\s?>", re.IGNORECASE)


def format_table(rows: str, caption: str, *, below: bool) -> str:
    """The table on one line: the rows joined by " / ", with `caption` before or after them."""
    head = _shorten(caption, _CAPTION_CHARACTERS)
    joined = _join_rows(_rows(rows), max(_FEWEST, TABLE_CHARACTERS - len(head)))
    return " / ".join(part for part in ((joined, head) if below else (head, joined)) if part)


def _rows(raw: str) -> list[str]:
    """The rows with their cells joined by " | ", without rules; lines of a grid cell are joined into one row."""
    lowered = raw.lstrip().lower()
    if lowered.startswith("<table") or "<tr" in lowered[:2000]:
        pieces = [[plain_text(cell) for cell in _HTML_CELL.split(row)] for row in _HTML_ROW.split(raw)]
        cells = [[cell for cell in row if cell] for row in pieces]
        return [" | ".join(row) for row in cells if row]
    grid = raw.lstrip().startswith("+")
    rows: list[list[str]] = []
    fresh = True
    for line in raw.splitlines():
        if not line.strip() or TABLE_RULE.fullmatch(line):
            fresh = True
            continue
        found = [cell.strip() for cell in _BAR.split(line.strip().removeprefix("|").removesuffix("|"))]
        if grid and not fresh and rows and len(rows[-1]) == len(found):
            rows[-1] = [f"{above} {below}".strip() for above, below in zip(rows[-1], found, strict=True)]
        else:
            rows.append(found)
        fresh = False
    plain = [[plain_text(cell) for cell in row] for row in rows]
    return [" ".join(" | ".join(row).split()) for row in plain if any(row)]


def _join_rows(rows: Sequence[str], room: int) -> str:
    """The rows, or the header with as many first and last rows as fit, and the number of omitted rows."""
    if len(" / ".join(rows)) <= room:
        return " / ".join(rows)
    head, body = _shorten(rows[0], room // 2), list(rows[1:])
    left, taken = room - len(head), set[int]()
    for place in sorted(range(len(body)), key=lambda place: (min(place, len(body) - 1 - place), place)):  # both ends
        left -= len(body[place]) + 3
        if left < 0:
            break
        taken.add(place)
    if body and not taken:
        body[0], taken = _shorten(body[0], max(left + len(body[0]) + 3, _FEWEST // 2)), {0}
    count = len(body) - len(taken)
    gap = next((place for place in range(len(body)) if place not in taken), len(body))
    omitted = [f"... ({count} more {'row' if count == 1 else 'rows'} left out) ..."] if count else []
    return " / ".join([head, *body[:gap], *omitted, *body[gap + count :]])


def _shorten(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = max(1, (most - 5) // 2)
    return f"{text[:half].rstrip()} ... {text[-half:].lstrip()}"


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


def format_quote(text: str, start: int, end: int) -> str:
    """The words `text[start:end]` on one line, with ellipses for omitted parts of their sentences."""
    spans = sentence_spans(text)
    first = max((begin for begin, _ in spans if begin <= start), default=start)
    last = min((stop for _, stop in spans if stop >= end), default=end)
    before, after = (bool(_WORD.search(REFERENCES.sub("", part))) for part in (text[first:start], text[end:last]))
    # A span that ends between two sentences omits nothing after it.
    after = after and any(begin < end <= stop for begin, stop in spans)
    quote = omit_pointers(" ".join(text[start:end].split()))
    return f"{ELLIPSIS} " * before + quote + f" {ELLIPSIS}" * (after and not quote.endswith(ELLIPSIS))


def omit_pointers(words: str) -> str:
    """The words with bracketed cross-references to figures or tables replaced by an ellipsis."""

    def omit(bracket: re.Match[str]) -> str:
        parts = [part.strip() for part in _PART.split(bracket[0][1:-1])]
        if not any(map(_POINTER.fullmatch, parts)):
            return bracket[0]
        kept = [part for part in parts if not (_POINTER.fullmatch(part) or _SIDE.fullmatch(part))]
        return f"({', '.join(kept)}, {ELLIPSIS})" if kept else ELLIPSIS

    return _BRACKET.sub(omit, words)
