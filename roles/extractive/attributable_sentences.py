"""Selects the words of a source that can be quoted in an answer, where each quotation is attributed.

More is quotable than in a section: what the authors did and found themselves, the beginning of a long sentence up to
the end of a clause, and a sentence without the "However" that links it to the one before. The words are always one run
of the source. A clause that may qualify what precedes it ("after accounting for ...", "but not in ...") is never cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...documents.quote_display import ELLIPSIS, REFERENCES, without_pointers
from ...text.sentences import sentence_spans
from .quotable_sentences import MAX_ATTRIBUTED, QuotablePassage, is_quotable, quotable_passages

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
# Openings that limit the scope of the sentence: quoted with it.
_SCOPE = re.compile(r"(?:On average|In general|Overall|In particular),", re.IGNORECASE)
# A sentence can be cut before these. Brackets count only where the clause ends with them; bounded: 1,000 characters.
_END_OF_CLAUSE = re.compile(r"\s*[;:]\s|,\s|\s[–—]\s|\s*(?:\((?:[^()]|\([^()]*\))*\)|\\?\[[^\[\]]*\])(?=\s*[.,;:])")
# A beginning that requires a further clause, and a last part that depends on one: neither stands without the rest.
_PROMISES = re.compile(
    r"(?:While|Although|Though|Even|Because|Since|When|Whenever|Where|If|Unless|Until|Once|As|Using|Given|To|In|On|At|By|For|From"
    r"|With|Without|Within|After|Before|During|Despite|Due|Based|Through|Under|Among|Across|Unlike|Like|Rather|Both|Not)\b",
    re.IGNORECASE,
)
_HANGS = re.compile(
    r"(?:even|although|though|while|whereas|which|who|whose|where|when|that|because|since|if|unless|as|such|including|like|with|for"
    r"|in|on|at|by|to|from|of|using|based|given|despite|after|before|both|either|not)\b"
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|could|may|might|will|would|should|must|do|does|did|\w{2,}ed|found|made|led|gave"
    r"|became|gives?|finds?|shows?|suggests?|indicates?|provides?|reveals?|includes?|uses?|makes?|improves?|leads?|allows?"
    r"|requires?|explains?|depends?|increases?|decreases?|represents?|produces?|contains?|needs?|tends?|remains?|detects?"
    r"|differs?|var(?:y|ies)|combines?|describes?|affects?|enables?|achieves?|performs?|exhibits?|captures?|predicts?|learns?"
    r"|identif(?:y|ies)|arises?|occurs?|shares?|offers?|supports?|helps?|reduces?|causes?|drives?|links?|consists?|begins?)\b"
)
_LOOSE_END = re.compile(
    r"\b(?:if|that|which|and|or|but|the|a|an|of|to|in|on|for|with|by|as|than|from|into|such|is|are|was|were)$"
)
# How a clause begins that merely continues the statement, and words by which any clause may limit it.
_GOES_ON = re.compile(
    r"[\s,;:–—]*(?:\(|\\?\[|;|(?:and|which|who|whose|where|including|such as|as well as)\b)", re.IGNORECASE
)
_QUALIFIES = re.compile(
    r"\b(?:after|although|though|while|whereas|but|however|yet|if|unless|until|when|whenever|once|only|except|excluding|not|no"
    r"|nor|never|neither|without|cannot|rather|despite|because|since|provided|assuming|given|under|within|among|for|in|at"
    r"|by|to|with|account\w*|adjust\w*|control\w*|condition\w*|correct\w*|limit\w*|restrict\w*|less|fewer|few|rare\w*"
    r"|may|might|could|perhaps|possibl\w*|partly|suggest\w*)\b",
    re.IGNORECASE,
)
# Two sentences taken for one, and a list of abbreviations.
_NO_SENTENCE = re.compile(r"[a-z]\. [A-Z]|^[\w-]+, [a-z][^;]*; [\w-]+, [a-z]")
# What was done or intended: the answer to "how", and to little else.
_DOING = re.compile(
    r"""(?:\w+ly\ )?(?:we|our\ \w+|the\ (?:aim|goal|purpose)\b.*?)\ (?:\w+ly\ |then\ |also\ |thus\ |first\ |next\ )?
    (?:is\ to\b | was\ to\b | used?\b | chose\b | choose\b | studied | sought | seek
      | (?:aim|examin|focus|consider|collect|investigat|want|design|analy[sz]|isolat|simulat|evaluat|train|test|address
          |assum|compar|perform|appli|apply|measur|comput|calculat|introduc|present)\w*)""",
    re.VERBOSE | re.IGNORECASE,
)
_FEWEST_WORDS: Final = 9
_MOST_CHARACTERS: Final = 1_000  # within which a quotation ends


def attributable_passages(chunk_text: str) -> list[QuotablePassage]:
    """The runs of words that can be quoted, in order; none starts inside another."""
    whole = {passage.start: passage for passage in quotable_passages(chunk_text, attributed=True)}
    found: list[QuotablePassage] = []
    for start, end in sentence_spans(chunk_text):
        part = whole.get(start) or next(_parts(chunk_text, start, end), None)
        if part is not None and not _NO_SENTENCE.search(" ".join(part.text.split())):
            found.append(part)
    return found


def tells_of_doing(words: str) -> bool:
    """True when a sentence says what its authors did or meant to do, rather than what they found."""
    return bool(_DOING.match(words))


def _parts(text: str, start: int, end: int) -> Iterator[QuotablePassage]:
    """The beginnings of a sentence that can be quoted, longest first."""
    tie = _TIE.match(text, start, end)
    opening = tie.end() if tie else start
    first = start if _SCOPE.match(text, start) else opening
    whole = end
    if end - first > _MOST_CHARACTERS:
        end = first + _MOST_CHARACTERS
        closing = -1
    else:
        closing = len(text[first:end].rstrip().rstrip(".")) + first
    stops = [match.start() for match in _END_OF_CLAUSE.finditer(text, opening, end)]
    for stop in [*([closing] if closing >= 0 else []), *reversed(stops)]:
        body = text[first:stop].rstrip(" .,")
        words = " ".join(text[opening:stop].rstrip(" .,").split())
        # "the" in place of "However, the": quoted verbatim, judged as if it opened the sentence.
        judged = words[:1].upper() + words[1:]
        fits = _FEWEST_WORDS <= len(words.split()) <= MAX_ATTRIBUTED and "\n\n" not in body
        stands = stop == closing or (_stands_alone(words) and _may_be_left_out(text[stop:whole]))
        if fits and stands and is_quotable(judged, attributed=True):
            yield QuotablePassage(body, first, first + len(body))


def _may_be_left_out(rest: str) -> bool:
    """True when the rest of the sentence continues the statement and contains nothing that could limit it."""
    if len(rest) > _MOST_CHARACTERS:
        return False
    words = without_pointers(REFERENCES.sub("", rest)).replace(ELLIPSIS, "")
    return not any(map(str.isalnum, words)) or bool(_GOES_ON.match(words) and not _QUALIFIES.search(words))


def _stands_alone(words: str) -> bool:
    """True when the beginning of a sentence has its main clause: a verb, and no part that depends on the rest."""
    parts = re.split(r"[,;:]\s", words)
    # A sentence that opens with "While ..." makes its statement after the comma.
    main = parts[1:] if _PROMISES.match(words) else parts
    if not main or _LOOSE_END.search(words):
        return False
    return bool(_FINITE.search(" ".join(main))) and not any(_HANGS.match(part) for part in main[-1:] if len(parts) > 1)
