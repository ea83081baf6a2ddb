"""The records of runs, conversations and edited sentences, whatever the backend."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..errors import InputError
from ..section_kinds import SECTION_KINDS
from ..table_columns import FLAG, MOMENT, NAME, OBJECT, TEXT, TypedTable, choice, integer, optional, shaped

RunStatus = Literal["running", "paused", "failed", "finished"]
PLOT_SET: Final = re.compile(r"plots-[0-9a-f]{24}")  # a set of uploaded plots, as requests of runs name it
PLOTS_KEPT: Final = 86_400.0  # seconds that such a set stays without a run


class _Citation(TypedDict):
    key: str
    quote: str
    evidence_id: str


class _Result(TypedDict):
    """What every reader of a finished text relies on; other versions have more or less besides."""

    text: str
    citations: list[_Citation]
    evidence: list[dict[str, Any]]
    references: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    usage: dict[str, Any]
    warnings: list[str]


RESULT: Final = shaped("the record of a finished text", _Result, as_record=False)
RUNS: Final = TypedTable(
    "runs",
    ("thread_id",),
    {
        "thread_id": NAME,
        "fingerprint": TEXT,
        "section": choice(*SECTION_KINDS, "paper", "research"),
        "title": TEXT,
        "request": OBJECT,
        "library_version": TEXT,
        "fresh": FLAG,
        "status": choice(*get_args(RunStatus)),
        "detail": TEXT,
        "started_at": MOMENT,
        "updated_at": MOMENT,
        "result": optional(RESULT),
    },
)
CONVERSATIONS: Final = TypedTable(
    "conversations",
    ("thread_id",),
    {
        "thread_id": NAME,
        "begun_at": MOMENT,
        "updated_at": MOMENT,
        "turns": integer(),
        "title": replace(TEXT, source="turns.asked"),
    },
)
TURNS: Final = TypedTable(
    "turns",
    ("thread_id", "number"),
    {
        "thread_id": NAME,
        "number": integer(),
        "asked": TEXT,
        "question": TEXT,
        "answered": FLAG,
        "answered_at": MOMENT,
        "record": RESULT,
    },
)


class UnknownRunError(InputError):
    """No run has the requested id."""

    default_help = "See '{citeloom} runs list' for the ids."


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run that begins; `request` holds everything needed to repeat it."""

    thread_id: str
    fingerprint: str
    section: str
    title: str
    request: dict[str, Any]
    library_version: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class RunHead:
    """One run as lists show it."""

    thread_id: str
    section: str
    title: str
    status: RunStatus
    detail: str
    library_version: str
    fresh: bool
    started_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of a section; `request` holds everything needed to repeat it."""

    thread_id: str
    fingerprint: str
    section: str
    title: str
    request: dict[str, Any]
    library_version: str
    fresh: bool
    status: RunStatus
    detail: str
    started_at: float
    updated_at: float
    result: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class CitingRun:
    """A run whose text cites a given paper."""

    thread_id: str
    section: str
    title: str
    updated_at: float


class UnknownConversationError(InputError):
    """No conversation has the requested id."""

    default_help = "See '{citeloom} conversations list' for the ids."


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A conversation in the list; `title` is its first question, empty before the first answer."""

    thread_id: str
    title: str
    turns: int
    begun_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A finished turn; `record` is the answer's full JSON record, in the form of a run's result.

    `answered` is true if it cites anything, even if only passages that may be relevant.
    """

    number: int
    asked: str
    question: str
    answered: bool
    answered_at: float
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CitingTurn:
    """A turn whose answer cites a given paper."""

    thread_id: str
    number: int
    asked: str
    answered_at: float


def new_thread_id() -> str:
    """A unique id for a new conversation."""
    return f"chat-{secrets.token_hex(6)}"


@dataclass(frozen=True, slots=True)
class EditedSentence:
    """The user's words in place of the sentence at `position`; empty words remove it.

    `checked` is what the check of these words found, empty if they were not checked.
    """

    position: int
    text: str
    checked: dict[str, Any] = field(default_factory=dict)
    updated_at: float = 0.0
