"""Citations that the model wrote itself, in whatever dress: these may never reach the output.

A writer cites by marker only. Everything else that reads as a citation is foreign: `(Smith et al., 2021)`,
`[@made_up]`, `\\cite{x}`, `[12]`, a DOI, a key. Two things are not: what the user's own experiment says word
for word, and an author named in a sentence that cites that author's paper by marker. Where a string may be
either, it is taken for a citation: a reader can remove a mark too many, but cannot see an invented source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from ..spans import SpanSet
from ..user_words import OwnWords
from .author_year_patterns import NamedSource, name_patterns, only_dates, split_authors, year_of
from .unicode_folding import Folded, fold

ForeignKind = Literal["pandoc", "latex", "author-year", "numeric", "superscript", "footnote", "identifier", "key"]
NamesAt = Callable[[int], Sequence[NamedSource]]

NEEDED = "[citation needed]"
_APART = "\n\n|\n\n"  # between texts that are looked at together

_KEY_CHARACTERS = r"(?:\{[^{}\s]*\}|[^\W][\w:.#$%&+?<>~/-]*)"
_AT = rf"(?<!\w)-?@(?!\d++(?![\w:.#$%&+?<>~/-]*[^\W\d])){_KEY_CHARACTERS}"
_PANDOC = re.compile(
    rf"\[(?=[^\[\]]*+\])[^\[\]]*(?<!\w)@[\w{{][^\[\]]*+\]|\(\s*(?:see\s|cf\.?\s|e\.g\.,?\s)?-?@[^\s()]+[^()]{{0,40}}\)|{_AT}"
)
_LATEX = re.compile(r"\\(?:[A-Za-z]*cite[A-Za-z]*|bibitem)\*?(?:(?:\s?\[[^\[\]]*\]){0,2}\s?\{[^{}]*\})*", re.IGNORECASE)

_NUMBER = r"#?\d{1,3}[a-d]?(?!\w)"
_NUMERIC = re.compile(
    rf"\[\s*(?:refs?\.?\s*|references?\s*|nos?\.?\s*)?(?P<body>{_NUMBER}(?:\s*(?:[,;-]|and|to|&)+\s*{_NUMBER})*)"
    r"(?:\s*[,:]\s*(?:pp?|chap|sec|fig|table|eq)\w*\.?\s*\d+(?:-\d+)?)?\s*+[,;.]?\s*+\]"
    r"|\((?:see\s+)?(?:refs?\b\.?|references?\b)\s*\d(?:[\d\s,;&-]|and|to)*\)",
    re.IGNORECASE,
)
_INTERVAL_BEFORE = re.compile(
    r"(?:\b(?:CI|CIs|CrI|HDI|intervals?|ranges?|ranged|ranging|bounds?|bounded|domain|uniform(?:ly)?|support)\b|∈|\\in\b|95\s?%)"
)
_INDEXED = re.compile(r"(?:^|[^\w'])[^\W\d_]$")  # x[3]: one letter before the bracket
_SUPERSCRIPT = re.compile(
    r"\^[\[({]?\s*(?P<caret>\d{1,3}(?:\s?[,;-]\s?\d{1,3})*)\s*[\])}]?\^"
    r"|\\textsuperscript\s*\{\s*(?P<tex>\d[\d\s,;-]*)\}"
    r"|\$\s*+\{?\}?\s*+\^\s*(?P<math>\d|\{\s*\d{1,3}(?:\s?[,;-]+\s?\d{1,3})*\s*\})\s*\$"
    r"|(?P<small>[⁰¹²³⁴⁵⁶⁷⁸⁹]+(?:[⁻,;⁃·ʼ˒-]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)*)"
)
_BASE = re.compile(
    r"(?:(?<!\d)\d{1,2}|(?<![^\W_])(?!of|in|it|is|as|by|to|on|at|we|or|if|so|an|be|no)[^\W\d_]{1,2}|\b(?:chi|nmol|mol|min|sec)|[)\]}])$"
)
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]+\]:?")
_IDENTIFIER = re.compile(
    r"(?:https?|ftp)\s?:\s?//[^\s<>\"\])}]*|\bwww\.[^\s<>\"\])}]+|\b(?:dx\.)?doi\.org/[^\s<>\"\])}]+"
    r"|\bdoi\s?[:=]?\s?10\.\d{3,9}/[^\s<>\"\])}]+|\b10\.\d{4,9}/[^\s<>\"\])}]+"
    r"|\barXiv\s?[:.]?\s?(?:\d{4}\.\d{4,5}|[a-z.-]{1,40}/\d{7})(?:v\d+)?|\bPM(?:ID|CID)\s?:?\s?(?:PMC)?\d+|\bPMC\d{4,}"
    r"|\bISBN(?:-1[03])?\s?:?\s?[\d-]{9,17}X?|\bISSN\s?:?\s?\d{4}-\d{3}[\dX]",
    re.IGNORECASE,
)
# smith2021deep, smith_2020, smithDeep2021: how reference managers make keys.
_KEY_SHAPE = re.compile(
    r"(?<![\w@-])(?:[^\W\d_A-Z][^\W\d](?:[^\W\d]|['-]){0,80}(?:1[89]|20)\d\d(?:_?[^\W\d_]\w*)?"
    r"|[A-Z][^\W\d_]+_?(?:1[89]|20)\d\d_?[^\W\d_]{2,}\w*"
    r"|[^\W\d_A-Z]+[A-Z]\w*(?:1[89]|20)\d\d[a-z]?)(?![\w-])"
)
_BRACKETED_SHAPE = re.compile(r"[A-Z][^\W\d_]+[_:-]?(?:1[89]|20)\d\d[a-z]?")
_ALPHA_LABEL = re.compile(r"\[\s*[A-Z][A-Za-z]{1,3}\+?\d\d[a-z]?(?:\s*[,;]\s*[A-Z][A-Za-z]{1,3}\+?\d\d[a-z]?)*\s*\]")
_GROUP = re.compile(r"\((?:[^()\[\]\n]|\[[^\[\]\n]*\]|\n(?!\s*\n)){1,400}\)|\[(?:[^\[\]\n]|\n(?!\s*\n)){1,400}\]")
_OTHERS_ALONE = re.compile(
    r"\bet\.?\s?al\b\.?(?:,?\s?[(\[]?(?:1[5-9]|20)\d\d[a-z]?\b[)\]]?)?|\bibid\b\.?|\b(?:op|loc)\.\s?cit\.|等人",
    re.IGNORECASE,
)
# "see Ioannidis 2005", without brackets
_SEEN_IN = re.compile(
    r"\b(?:[Ss]ee|[Cc]f\.?|[Ss]ee also)\s(?P<authors>[A-Z][^\W\d_]+(?:\s(?:and|&)\s[A-Z][^\W\d_]+)?),?\s"
    r"(?:1[5-9]|20)\d\d[a-z]?\b"
)
_LONGEST_NAME = 60
_NAME_BEFORE = re.compile(r"(?<![\w'-])[^\W\d_][\w'-]*+,?\s\Z")
_WHOLE_GROUP = 160  # a longer parenthesis says more than a citation, and keeps its other words
_LINK_TARGET = re.compile(r"\([^()\s]*(?:\s\"[^\"]*\")?\)|\[[^\[\]]*\]")


@dataclass(frozen=True, slots=True)
class Foreign:
    """A foreign citation at `start:end` of the text; `keep` spans words in it that are no citation.

    `of_user` tells one that the user's own words hold, where it stands beside other words than the user's.
    """

    kind: ForeignKind
    start: int
    end: int
    keep: tuple[int, int] | None = None
    of_user: bool = False


def find_foreign(
    text: str,
    *,
    known_keys: Collection[str] = (),
    allowed_text: str = "",
    names_at: NamesAt | None = None,
    word_for_word: bool = False,
) -> list[Foreign]:
    """The foreign citations of `text`, in order, without overlap.

    Args:
        text: a draft with normalised markers.
        known_keys: the keys of the library, which are foreign when the model writes them itself.
        allowed_text: the user's own words; what stands there verbatim may be repeated.
        word_for_word: what the user cites may be repeated in the user's own sentences only, not beside other claims.
        names_at: the sources that the sentence at a position of `text` cites, whose authors it may name.
    """
    view = fold(text)
    found = [
        _outward(Foreign(kind, *view.span(start, end)), text)
        for kind, start, end in _in_view(view, known_keys, names_at)
    ]
    found += _links(view, found)
    found += _in_hidden(view, text, known_keys)
    allowed = OwnWords(allowed_text, text, word_for_word=word_for_word)
    foreign = [item for item in found if not allowed.has(text, item)]
    return [replace(item, of_user=allowed.holds(text, item)) for item in _merged(foreign)]


def _in_hidden(view: Folded, text: str, known_keys: Collection[str]) -> list[Foreign]:
    """Comments and tags that hold a citation; they are looked at together, since there may be thousands."""
    inners = [text[start:end].strip("<!->/") for start, end in view.hidden]
    if not any(inners):
        return []
    ends = list(accumulate(len(inner) + len(_APART) for inner in inners))
    cited = SpanSet((item.start, item.end) for item in find_foreign(_APART.join(inners), known_keys=known_keys))
    return [
        Foreign("identifier", start, end)
        for (start, end), inner, stop in zip(view.hidden, inners, ends, strict=True)
        if inner and cited.meets(stop - len(_APART) - len(inner), stop - len(_APART))
    ]


def _in_view(
    view: Folded, known_keys: Collection[str], names_at: NamesAt | None
) -> Iterator[tuple[ForeignKind, int, int]]:
    seen = view.text
    for match in _PANDOC.finditer(seen):
        yield "pandoc", match.start(), match.start() + len(match[0].rstrip(".,:;?"))
    for match in _LATEX.finditer(seen):
        yield "latex", *match.span()
    yield from _numbers(view)
    for match in _FOOTNOTE.finditer(seen):
        if not view.in_code(view.starts[match.start()]):
            yield "footnote", *match.span()
    for match in _IDENTIFIER.finditer(seen):
        yield "identifier", match.start(), match.start() + len(match[0].rstrip(".,:;?!'*_"))
    yield from _keys(seen, known_keys)
    yield from _authors(view, names_at)


def _numbers(view: Folded) -> Iterator[tuple[ForeignKind, int, int]]:
    """`[12]` and superscripts, but no interval, index or exponent."""
    seen = view.text
    for match in _NUMERIC.finditer(seen):
        if not _is_interval_or_index(view, match):
            yield "numeric", *match.span()
    for match in _SUPERSCRIPT.finditer(seen):
        body = (match["caret"] or match["tex"] or match["math"] or match["small"]).strip("{} ")
        base = _BASE.search(seen, max(0, match.start() - 12), match.start())
        exponent = base and re.fullmatch(r"\d+|[⁰¹²³⁴⁵⁶⁷⁸⁹]+", body)
        isotope = seen[match.end() : match.end() + 1].isalpha()  # ^125^I
        if not (exponent or isotope or seen.endswith("⁻", 0, match.start())):
            yield "superscript", *match.span()


def _is_interval_or_index(view: Folded, match: re.Match[str]) -> bool:
    seen, body = view.text, match["body"]
    if body is None:
        return False
    numbers = re.findall(r"\d+", body)
    before = seen[max(0, match.start() - 60) : match.start()]
    if len(numbers) == 2 and "0" in numbers and re.fullmatch(r"\d+\s*[,;-]\s*\d+", body):
        return True  # no reference has the number 0
    if len(numbers) == 2 and _INTERVAL_BEFORE.search(re.split(r"[.;!?]\s", before)[-1]):
        return True
    if view.in_code(view.starts[match.start()]):
        return before[-1:].isalnum() or before.rstrip()[-1:] in {"_", "]", "=", "(", ","}
    return len(numbers) == 1 and _INDEXED.search(before) is not None


def _keys(seen: str, known_keys: Collection[str]) -> Iterator[tuple[ForeignKind, int, int]]:
    """Keys of the library, and words made like one."""
    for match in _KEY_SHAPE.finditer(seen):
        yield "key", *match.span()
    for match in _ALPHA_LABEL.finditer(seen):
        yield "key", *match.span()
    yield from (("key", start, end) for start, end in _known_keys(seen, known_keys))
    known = set(known_keys)
    for group in _GROUP.finditer(seen):
        items = [item.strip() for item in re.split(r"[;,]", group[0][1:-1])]
        if any(item in known or _KEY_SHAPE.fullmatch(item) or _BRACKETED_SHAPE.fullmatch(item) for item in items):
            yield "key", *group.span()


def _known_keys(seen: str, known_keys: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where keys of the library stand: glued to something else each is the key still, up to the ends of the word."""
    lowered = _lowered(seen)
    for key in known_keys:
        if len(key) < 6 or not re.search(r"\d", key) or not re.search(r"[^\W\d_]", key):
            continue
        literal = _lowered(key)
        start = lowered.find(literal)
        while start >= 0:
            end = start + len(literal)
            while start > 0 and _in_word(seen[start - 1]):
                start -= 1
            while end < len(seen) and _in_word(seen[end]):
                end += 1
            yield start, end
            start = lowered.find(literal, end)


def _lowered(text: str) -> str:
    """The text in lower case, every character at its place."""
    lowered = text.lower()
    return (
        lowered if len(lowered) == len(text) else "".join(one if len(one.lower()) > 1 else one.lower() for one in text)
    )


def _in_word(character: str) -> bool:
    return character.isalnum() or character in "_-"


def _authors(view: Folded, names_at: NamesAt | None) -> Iterator[tuple[ForeignKind, int, int]]:
    """Citations by author and year, in brackets or in the sentence."""
    seen = view.text
    patterns = name_patterns()
    passed: list[tuple[int, int]] = []
    for group in _GROUP.finditer(seen):
        for match in patterns.enclosed.finditer(group[0][1:-1]):
            if only_dates(match["authors"], match["others"] or ""):
                continue
            offset = group.start() + 1
            whole = len(group[0]) <= _WHOLE_GROUP
            span = group.span() if whole else (offset + match.start(), offset + match.end())
            yield "author-year", *span
    for match in patterns.narrative.finditer(seen):
        others = match["others"] or ""
        if match["pair"] and not re.search(r"\band\b|&", match["authors"]):
            continue  # "the Cancer Genome Atlas, 2018" dates a release
        if only_dates(match["authors"], others):
            continue
        sources = names_at(view.starts[match.start()]) if names_at else ()
        authors = split_authors(match["authors"])
        # "On LASSO, Sanou et al." begins with no author.
        while len(authors) > 1 and authors[0].isupper() and len(authors[0]) > 2:
            authors = authors[1:]
        if any(source.is_named(authors, bool(others), year_of(match)) for source in sources):
            passed.append(match.span())
        else:
            yield "author-year", match.start(), match.end()
    for match in _SEEN_IN.finditer(seen):
        if not only_dates(match["authors"], ""):
            yield "author-year", match.start("authors"), match.end()
    named = SpanSet(passed)
    for match in _OTHERS_ALONE.finditer(seen):
        start = _name_before(seen, match.start()) if match[0][:1] in "eE" else match.start()
        if not named.meets(start, match.end()):
            yield "author-year", start, match.end()


def _name_before(seen: str, start: int) -> int:
    """Where the name before "et al." begins; `start` when there is none."""
    name = _NAME_BEFORE.search(seen, max(0, start - _LONGEST_NAME), start)
    return name.start() if name else start


def _outward(item: Foreign, text: str) -> Foreign:
    """The span with the brackets, emphasis and link target that belong to it."""
    start, end = item.start, item.end
    while start > 0 and end < len(text) and text[start - 1] == text[end] and text[end] in "*_`":
        start, end = start - 1, end + 1
    while end < len(text) and text[end] in "*_" and text.count(text[end], start, end) % 2 == 1:
        end += 1  # emphasis that began inside ends with it
    if start > 0 and end < len(text) and text[start - 1] + text[end] in ("()", "[]"):
        start, end = start - 1, end + 1
    if text[end - 1] in "]\uff3d":
        target = _LINK_TARGET.match(text, end)
        if target and not re.fullmatch(r"\[E\d+\]", target[0]):
            end = target.end()
    return Foreign(item.kind, start, end)


def _links(view: Folded, found: Sequence[Foreign]) -> list[Foreign]:
    """Links with an address that was found: the words stay, unless they are a citation themselves."""
    links = []
    cited_places = SpanSet((item.start, item.end) for item in found)
    for match in re.finditer(r"!?\[([^\[\]]*)\]\s?\(([^()]*)\)", view.text):
        start, end = view.span(match.start(), match.end())
        target = view.starts[match.start(2)] if match[2] else end
        if not cited_places.meets(target, max(end, target + 1)):
            continue
        words = view.span(*match.span(1)) if match[1] else None
        cited = words is None or cited_places.meets(*words)
        links.append(Foreign("identifier", start, end, None if cited else words))
    return links


def _merged(found: list[Foreign]) -> list[Foreign]:
    """Overlapping finds as one; words are kept only when every find leaves them."""
    merged: list[Foreign] = []
    for item in sorted(found, key=lambda item: (item.start, -item.end)):
        if merged and item.start < merged[-1].end:
            last = merged[-1]
            keep = last.keep if item.end <= last.end else None
            merged[-1] = Foreign(last.kind, last.start, max(last.end, item.end), keep)
        else:
            merged.append(item)
    return merged
