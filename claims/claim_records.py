"""The records of a check: what `check --json`, `check_text()`, `check_claims()` and the server return.

A claim is one sentence. It is compared with passages of the papers that it cites, or with given passages; its label is
the verdict of all its sources together, and `does` says what each contributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, Required

from typing_extensions import TypedDict

from ..text.words import read_rules

# `overstated`: it says more than the source, or more generally. `indirect`: the source says it, but of another paper's
# work. `unread`: no passage of the paper could be read. `unjudged`: no model judged it; its passages are candidates.
ClaimLabel = Literal[
    "supported", "overstated", "contradicted", "not_found", "indirect", "not_in_library", "unread", "unjudged"
]

# `needs`: it has no citation and needs one. `own`, `common`, `opinion` need none. `other` is not a statement.
SentenceKind = Literal["cited", "needs", "own", "common", "opinion", "other"]

# `error`: certainly wrong. `warning`: very likely wrong. `note`: for the author to decide.
FaultSeverity = Literal["error", "warning", "note"]

Does = Literal["supports", "contradicts", "idle", ""]


class GivenPassage(TypedDict, total=False):
    """A text to compare a claim with, instead of a paper of the library."""

    text: Required[str]
    title: str
    year: int | None
    key: str


class ClaimInput(TypedDict, total=False):
    """A claim to check: against `papers` (keys of the library), or against given `passages`; else the whole library.

    `context` is the sentence before it, which says what "this" and "they" mean. The claim may hold `[@]` where it cites
    these papers, and `[@other]` where it cites others, whose share is ignored.
    """

    claim: Required[str]
    context: str
    papers: list[str]
    passages: list[GivenPassage]


class PassageRecord(TypedDict):
    """Words of a paper: `quote` is `chunk.text[start:end]`, `shown` the quote without markup.

    `similarity` (0-1) is the cosine to the claim. `does` says what the judge found: "supports", "contradicts", "idle",
    or empty if nothing was judged. `sentences` are the sentences that were shown to the judge.
    """

    key: str
    title: str
    year: int | None
    chunk_id: str
    section: str
    page: int | None
    start: int
    end: int
    quote: str
    shown: str
    does: Does
    similarity: float
    sentences: list[str]


class SourceRecord(TypedDict):
    """One work that a sentence cites: as written, the key of its entry, and the library's paper, if it is there.

    `label` is the verdict from this source alone: it supports or contradicts the sentence, was `not_found`, or could
    not be compared. `cites` are the works on which an indirect source relies.
    """

    written: str
    key: str
    paper: str
    label: ClaimLabel
    passages: list[PassageRecord]
    cites: list[str]


class FaultRecord(TypedDict):
    """A fault apart from the verdict: `start:end` are characters of the sentence, None for the whole sentence.

    `rule` is one of `FAULTS`.
    """

    rule: str
    severity: FaultSeverity
    message: str
    start: int | None
    end: int | None


# The severity of each rule, and what it finds.
FAULTS: Final[Mapping[str, tuple[FaultSeverity, str]]] = read_rules(__file__, "check_wordings")["faults"]


def fault(rule: str, message: str, start: int | None = None, end: int | None = None) -> FaultRecord:
    """A fault with the severity of its rule."""
    return {"rule": rule, "severity": FAULTS[rule][0], "message": message, "start": start, "end": end}


class ClaimRecord(TypedDict):
    """A claim with its verdict. `elsewhere` are passages of other papers of the library that say it, or may say it."""

    claim: str
    label: ClaimLabel
    reason: str
    sources: list[SourceRecord]
    elsewhere: list[PassageRecord]


class PlaceRecord(TypedDict):
    """Where a sentence is: file, lines and columns from 1 (text formats), `paragraph` (Word), or `page` (PDF).

    `end_column` is the column after its last character.

    `start` and `end` are character offsets of the file, for text formats.
    """

    file: str
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    paragraph: int | None
    page: int | None
    start: int | None
    end: int | None


class SentenceRecord(ClaimRecord):
    """A sentence of the text; `position` counts from 0, `claim` is its text as read, with markup removed."""

    position: int
    section: str
    place: PlaceRecord
    kind: SentenceKind
    faults: list[FaultRecord]


class ReferenceCheck(TypedDict):
    """An entry of the text's reference list: the library's paper that it names, how often it is cited, its faults."""

    key: str
    text: str
    cited: int
    paper: str
    faults: list[FaultRecord]


class ClaimsResult(TypedDict):
    """The result of `check_claims`; `judged` counts the claims that a model judged."""

    claims: list[ClaimRecord]
    judged: int
    run: str
    usage: dict[str, Any]
    warnings: list[str]


class CheckResult(TypedDict):
    """The result of `check_text`. `complete` is false if a budget ended it: the same call resumes it.

    `counts` has the number of sentences by label and kind, and of faults by rule; `model` is empty if there is none.
    `kept` are the originals of files that comments were put into.
    """

    file: str
    format: str
    words: int
    model: str
    complete: bool
    sentences: list[SentenceRecord]
    references: list[ReferenceCheck]
    counts: dict[str, dict[str, int]]
    run: str
    usage: dict[str, Any]
    warnings: list[str]
    files: NotRequired[dict[str, str]]
    kept: NotRequired[list[str]]


class RemarkedSentence(TypedDict):
    """A sentence that needs attention: what is wrong, and the deciding words."""

    sentence: str
    line: int | None
    label: ClaimLabel
    remarks: list[str]


class RemarkedText(TypedDict):
    """What needs attention in a text; `references` are faults of its list, `complete` is as in `CheckResult`."""

    summary: list[str]
    sentences: list[RemarkedSentence]
    references: list[str]
    warnings: list[str]
    complete: bool
    usage: dict[str, Any]
