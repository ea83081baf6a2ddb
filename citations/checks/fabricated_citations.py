"""Detects citations that the model wrote itself, in any form; they must never reach the output.

A writer cites by marker only. Everything else that reads like a citation is fabricated: `(Smith et al., 2021)`,
`[@made_up]`, `\\cite{x}`, `[12]`, a DOI, a key. There are two exceptions: text repeated verbatim from the user's
experiment, and an author named in a sentence that cites that author's paper by marker. In doubt a string counts as a
citation: a reader can remove an unneeded mark, but cannot recognise an invented source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate
from typing import Final

from ...documents.marker_escaping import unescape
from ...text.sentences import sentence_spans
from ...text.words import is_stop, one_line, split_words
from ..citation_patterns import CitationForm, NamesAt, citation_forms
from ..markers import MARKER, SpanSet, sentence_at
from .unicode_folding import Folded, fold

NEEDED = "[citation needed]"
_APART = "\n\n|\n\n"  # separates texts that are searched together

_LONGEST_NAME = 60
_LINK_TARGET = re.compile(r"\([^()\s]*(?:\s\"[^\"]*\")?\)|\[[^\[\]]*\]")


@dataclass(frozen=True, slots=True)
class FabricatedCitation:
    """A fabricated citation at `start:end` of the text; `keep` spans words in it that are not a citation.

    `of_user` marks a citation from the user's own text that is now next to words that are not the user's.
    """

    kind: CitationForm
    start: int
    end: int
    keep: tuple[int, int] | None = None
    of_user: bool = False


def find_fabricated(
    text: str,
    known_keys: Collection[str] = (),
    allowed_text: str = "",
    *,
    names_at: NamesAt | None = None,
    word_for_word: bool = False,
) -> list[FabricatedCitation]:
    """The fabricated citations of `text`, in order, without overlap.

    Args:
        text: a draft with normalised markers.
        known_keys: the keys of the library, which are fabricated if the model writes them itself.
        allowed_text: the user's own text, which may be repeated verbatim.
        word_for_word: the user's citations may only be repeated in the user's own sentences, not with other claims.
        names_at: the sources that the sentence at a position of `text` cites, whose authors it may name.
    """
    view = fold(text)
    found = [
        _extend(FabricatedCitation(kind, *view.span(start, end)), text)
        for kind, start, end in citation_forms(view, known_keys, names_at)
    ]
    found += _links(view, found)
    found += _in_hidden(view, text, known_keys)
    allowed = UserText(allowed_text, text, word_for_word=word_for_word)
    foreign: list[FabricatedCitation] = []
    for item in sorted(found, key=lambda item: (item.start, -item.end)):
        if allowed.has(text, item):
            continue
        last = foreign[-1] if foreign else None
        if last and item.start < last.end:  # words are kept only if every match keeps them
            keep = last.keep if item.end <= last.end else None
            foreign[-1] = FabricatedCitation(last.kind, last.start, max(last.end, item.end), keep)
        else:
            foreign.append(item)
    return [replace(item, of_user=allowed.holds(text, item)) for item in foreign]


def _in_hidden(view: Folded, text: str, known_keys: Collection[str]) -> list[FabricatedCitation]:
    """Comments and tags that contain a citation, searched together since there may be thousands."""
    inners = [text[start:end].strip("<!->/") for start, end in view.hidden]
    if not any(inners):
        return []
    ends = list(accumulate(len(inner) + len(_APART) for inner in inners))
    cited = SpanSet((item.start, item.end) for item in find_fabricated(_APART.join(inners), known_keys=known_keys))
    return [
        FabricatedCitation("identifier", start, end)
        for (start, end), inner, stop in zip(view.hidden, inners, ends, strict=True)
        if inner and cited.meets(stop - len(_APART) - len(inner), stop - len(_APART))
    ]


def _extend(item: FabricatedCitation, text: str) -> FabricatedCitation:
    """Extend the span by the brackets, emphasis and link target that belong to it."""
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
    return FabricatedCitation(item.kind, start, end)


def _links(view: Folded, found: Sequence[FabricatedCitation]) -> list[FabricatedCitation]:
    """Links whose address was found; their words stay unless they are a citation themselves."""
    links = []
    cited_places = SpanSet((item.start, item.end) for item in found)
    for match in re.finditer(r"!?\[([^\[\]]*)\]\s?\(([^()]*)\)", view.text):
        start, end = view.span(match.start(), match.end())
        target = view.starts[match.start(2)] if match[2] else end
        if not cited_places.meets(target, max(end, target + 1)):
            continue
        words = view.span(*match.span(1)) if match[1] else None
        cited = words is None or cited_places.meets(*words)
        links.append(FabricatedCitation("identifier", start, end, None if cited else words))
    return links


# Kinds that do not identify a work by themselves.
_BARE_NUMBERS: Final = frozenset({"numeric", "superscript", "footnote"})
_LEADING_WORDS: Final = 3
_FEWEST_WORDS: Final = 2  # at the beginning of a sentence, before a number
_LONGEST_LEAD: Final = 400  # characters


class UserText:
    """Lookup in the user's own text. A bare number must be preceded by the same words there; with `word_for_word`, a
    citation that names a work needs its whole sentence to be the user's.
    """

    def __init__(self, text: str, draft: str, *, word_for_word: bool) -> None:
        self._own_text, self._draft, self._word_for_word = text, draft, word_for_word
        # A draft may repeat a citation thousands of times. The cache goes with this object: texts may be megabytes.
        self._has_words = lru_cache(maxsize=1024)(partial(_occurs, f" {one_line(text)} "))

    def has(self, text: str, item: FabricatedCitation) -> bool:
        """Whether a citation is allowed at its position."""
        if not self.holds(text, item):
            return False
        around = sentence_at(self._draft, item.start)
        around = around if around and item.start < around.end else None
        in_brackets = item.kind == "key" and text[item.start] in "(["
        names_a_work = item.kind in ("author-year", "pandoc", "latex") or in_brackets
        if item.kind in _BARE_NUMBERS:
            alone = self._leads_up_to(item, around.start if around else 0)
        else:
            alone = not (self._word_for_word and names_a_work)
        return alone or (around is not None and _bare(around.text) in _own_sentences(self._own_text))

    def _leads_up_to(self, item: FabricatedCitation, sentence_start: int) -> bool:
        """Whether the user's text has the same words before a number: up to the last three content words, or all from
        the beginning of the sentence.
        """
        begins = max(sentence_start, item.start - _LONGEST_LEAD)
        before = self._draft[begins : item.start]
        words = split_words(before)
        if len(words) < _FEWEST_WORDS:
            return False
        content_words = [word for word in words if not is_stop(word)]
        lead = before[content_words[-_LEADING_WORDS].start :] if len(content_words) >= _LEADING_WORDS else before
        return self._has_words(one_line(MARKER.sub(" ", unescape(lead + self._draft[item.start : item.end]))))

    def holds(self, text: str, item: FabricatedCitation) -> bool:
        """Whether the user's text contains a citation anywhere."""
        words = one_line(unescape(text[item.start : item.end]))
        if not self._own_text.strip() or not words:
            return False
        if item.kind in _BARE_NUMBERS:
            # A longer word is only matched by its end, which cannot occur by chance.
            near = text[max(0, item.start - _LONGEST_NAME) : item.start]
            before = near.split()[-1:]
            if not before:
                return False
            words = before[0] + (" " if near[-1:].isspace() else "") + words
        return self._has_words(words)


def _occurs(text: str, words: str) -> bool:
    """Whether words occur in a text, which begins and ends with a blank, with no letter or digit on either side."""
    start = text.find(words)  # a pattern would take twenty times as long
    while start >= 0 and any(side.isalnum() or side == "_" for side in (text[start - 1], text[start + len(words)])):
        start = text.find(words, start + 1)
    return start >= 0


@lru_cache(maxsize=8)
def _own_sentences(text: str) -> frozenset[str]:
    return frozenset(_bare(text[start:end]) for start, end in sentence_spans(text))


@lru_cache(maxsize=8)
def _bare(sentence: str) -> str:
    """A sentence without its markers, final stop and line prefix; cached, since it may have thousands of citations."""
    return one_line(MARKER.sub(" ", unescape(sentence))).strip(" .;:,!?*_|>#").replace(" .", ".").replace(" ,", ",")
