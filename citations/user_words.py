"""Decides which of the user's own words a draft may repeat although they read as a citation."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from ..documents.marker_escaping import as_written
from ..text.sentences import sentence_spans
from ..text.words import is_stop, one_line, split_words
from .markers import MARKER, CitedSentence, sentences

if TYPE_CHECKING:
    from .checks.foreign_citations import Foreign

_BARE_NUMBERS: Final = frozenset(
    {"numeric", "superscript", "footnote"}
)  # kinds that do not identify a work by themselves
_LONGEST_NAME: Final = 60
_LEADING_WORDS: Final = 3
_FEWEST_WORDS: Final = 2  # at the beginning of a sentence, before a number
_LONGEST_LEAD: Final = 400  # characters


class OwnWords:
    """Lookup in the user's own text. A bare number must be preceded by the same words there; with `word_for_word`, a
    citation that names a work needs its whole sentence to be the user's.
    """

    def __init__(self, text: str, draft: str, *, word_for_word: bool) -> None:
        self._text = f" {one_line(text)} "
        self._own_text = text
        self._draft = draft
        self._word_for_word = word_for_word
        self._known: dict[str, bool] = {}

    def has(self, text: str, item: Foreign) -> bool:
        """Whether a citation is allowed at its position."""
        if not self.holds(text, item):
            return False
        if item.kind in _BARE_NUMBERS:
            return self._leads_up_to(item) or self._repeats(item)
        return not (self._word_for_word and _names_a_work(item, text)) or self._repeats(item)

    def _repeats(self, item: Foreign) -> bool:
        """Whether the sentence around a citation is verbatim the user's."""
        around = self._around(item)
        return around is not None and _bare(around.text) in _own_sentences(self._own_text)

    def _leads_up_to(self, item: Foreign) -> bool:
        """Whether the user's text has the same words before a number: up to the last three content words, or all from
        the beginning of the sentence.
        """
        around = self._around(item)
        begins = max(around.start if around else 0, item.start - _LONGEST_LEAD)
        before = self._draft[begins : item.start]
        words = split_words(before)
        if len(words) < _FEWEST_WORDS:
            return False
        content_words = [word for word in words if not is_stop(word)]
        lead = before[content_words[-_LEADING_WORDS].start :] if len(content_words) >= _LEADING_WORDS else before
        return self._said_as(one_line(MARKER.sub(" ", as_written(lead + self._draft[item.start : item.end]))))

    def _around(self, item: Foreign) -> CitedSentence | None:
        """The sentence of the draft that contains a citation."""
        place = bisect_right(self._sentences, item.start, key=lambda one: one.start) - 1
        found = self._sentences[place] if place >= 0 else None
        return found if found and item.start < found.end else None

    @cached_property
    def _sentences(self) -> list[CitedSentence]:
        return sentences(self._draft)

    def holds(self, text: str, item: Foreign) -> bool:
        """Whether the user's text contains a citation anywhere."""
        words = one_line(as_written(text[item.start : item.end]))
        if not self._text.strip() or not words:
            return False
        if item.kind in _BARE_NUMBERS:
            # A longer word is only matched by its end, which cannot occur by chance.
            near = text[max(0, item.start - _LONGEST_NAME) : item.start]
            before = near.split()[-1:]
            if not before:
                return False
            words = before[0] + (" " if near[-1:].isspace() else "") + words
        return self._said_as(words)

    def _said_as(self, words: str) -> bool:
        if words not in self._known:
            self._known[words] = self._says(words)
        return self._known[words]

    def _says(self, words: str) -> bool:
        """Whether the words occur in the text with no letter or digit on either side."""
        start = self._text.find(words)
        while start >= 0:
            end = start + len(words)
            if not _is_letter(self._text[start - 1]) and not _is_letter(self._text[end]):
                return True
            start = self._text.find(words, start + 1)
        return False


def _names_a_work(item: Foreign, text: str) -> bool:
    bracketed = item.kind == "key" and text[item.start] in "(["
    return bracketed or item.kind in ("author-year", "pandoc", "latex")


@lru_cache(maxsize=8)
def _own_sentences(text: str) -> frozenset[str]:
    """The sentences of the user's text, reduced to their words."""
    return frozenset(_bare(text[start:end]) for start, end in sentence_spans(text))


@lru_cache(maxsize=8)
def _bare(sentence: str) -> str:
    """A sentence without its markers, final stop and line prefix; cached, since it may have thousands of citations."""
    return one_line(MARKER.sub(" ", as_written(sentence))).strip(" .;:,!?*_|>#").replace(" .", ".").replace(" ,", ",")


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
