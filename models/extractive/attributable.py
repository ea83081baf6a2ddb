"""Which words of a source can be quoted in an answer, where a sentence says whose words they are.

More than in a section: what the authors did and found themselves, the beginning of a long sentence up to the end of a
clause, and a sentence without the "However" that ties it to the one before. The words are always one run of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from citeloom.documents.sentences import sentence_spans
from citeloom.models.extractive.quotable import MAX_WORDS, Passage, is_quotable, quotable_passages

_TIE = re.compile(
    r"""(?:
        However | Moreover | Furthermore | Additionally | Finally | Lastly | Therefore | Thus | Hence | Similarly
      | Likewise | Specifically | Overall | Notably | Importantly | Interestingly | Remarkably | Surprisingly
      | Unfortunately | Indeed | Consequently | Accordingly | Nevertheless | Conversely | Instead | Alternatively
      | Also | First | Second | Third | By\ contrast | For\ (?:example|instance) | On\ average | To\ this\ end
      | In\ (?:addition|contrast|particular|general|summary|conclusion|fact) | As\ (?:a\ result|expected)
    ),\s+""",
    re.VERBOSE,
)
# Where a clause may end: before these a sentence can be broken off.
_END_OF_CLAUSE = re.compile(r"\s*[;:]\s|,\s|\s\(|\s[–—]\s|\s*(?:\\?\[)")
_FEWEST_WORDS: Final = 9


def attributable_passages(chunk_text: str) -> list[Passage]:
    """The runs of words that can be quoted, in order, none of which begins inside another."""
    whole = {passage.start: passage for passage in quotable_passages(chunk_text, attributed=True)}
    found: list[Passage] = []
    for start, end in sentence_spans(chunk_text):
        if start in whole:
            found.append(whole[start])
            continue
        part = next(_parts(chunk_text, start, end), None)
        if part is not None:
            found.append(part)
    return found


def is_broken_off(text: str, end: int) -> bool:
    """Whether the sentence goes on behind the place where a quote of `text` ends."""
    rest = re.sub(r"^(?:\s*(?:\\?\[[^\]]*\]|\([^()]*\)))+", "", text[end:])
    return bool(rest.strip()) and not re.match(r"\s*(?:[.!?]|\n\s*\n)", rest)


def _parts(text: str, start: int, end: int) -> Iterator[Passage]:
    """The beginnings of a sentence that can be quoted, the longest first."""
    tie = _TIE.match(text, start, end)
    first = tie.end() if tie else start
    stops = [match.start() for match in _END_OF_CLAUSE.finditer(text, first, end)]
    closing = len(text[first:end].rstrip().rstrip(".")) + first
    for stop in [closing, *reversed(stops)]:
        body = text[first:stop].rstrip(" .,")
        words = " ".join(body.split())
        # "the" in the place of "However, the": quoted as it stands, judged as if it opened the sentence.
        judged = words[:1].upper() + words[1:]
        fits = _FEWEST_WORDS <= len(words.split()) <= MAX_WORDS and "\n\n" not in body
        if fits and is_quotable(judged, attributed=True):
            yield Passage(body, first, first + len(body))
