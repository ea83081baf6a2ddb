"""The events that a run emits, for command line, Studio and parent graphs; `docs/events.md` shows one of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Unpack, cast

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..roles.protocols import PassageFinding

Stage = Literal[
    "queries",
    "needs",
    "rewritten",
    "routed",
    "shortlisted",
    "found",
    "searched",
    "planning",
    "writing",
    "checked",
    "judged",
    "repairing",
    "kept",
    "rendered",
]


class ProgressCounts(TypedDict, total=False):
    """Counts for a progress bar; `section` names the paper's section that was started, and its number."""

    done: int
    total: int
    passages: int
    section: str | None


class _Event(TypedDict):
    source: Literal["citeloom"]


class _PassageEvent(_Event):
    key: str
    page: int | None
    section: str


class ProgressEvent(_Event, ProgressCounts):
    """One step of a run; `text` is a line for people."""

    kind: Literal["stage"]
    stage: Stage
    text: str


class EvidenceEvent(_PassageEvent):
    """A relevant passage was found for a query; drafts cite it by its `id`."""

    kind: Literal["evidence"]
    id: str
    query: str


class FindingEvent(_PassageEvent):
    """A passage was read; `text` is what it says. The finding may still be dropped, and gets its id later."""

    kind: Literal["finding"]
    text: str


class TokenEvent(_Event):
    """The draft continues with `text`, in the citation style of the run."""

    kind: Literal["token"]
    text: str


class CitationEvent(_PassageEvent):
    """The text that follows cites a piece of evidence for the first time; `number` is its paper's number."""

    kind: Literal["citation"]
    number: int
    evidence_id: str


class RestartedEvent(_Event):
    """The draft starts over: earlier tokens and citations are void."""

    kind: Literal["restarted"]


class DoneEvent(_Event):
    """The run ended: the checked text without its references, and whether it differs from the streamed tokens.

    `answered` is False for a question that no passage answers; `result` is the JSON of the command.
    """

    kind: Literal["done"]
    text: str
    differs: bool
    answered: bool | None
    result: Mapping[str, Any]


Event = ProgressEvent | FindingEvent | EvidenceEvent | TokenEvent | CitationEvent | RestartedEvent | DoneEvent
OnEvent = Callable[[Event], None]


def progress(stage: Stage, text: str, **counts: Unpack[ProgressCounts]) -> ProgressEvent:
    given = {name: value for name, value in counts.items() if value is not None}
    return cast(ProgressEvent, {"source": "citeloom", "kind": "stage", "stage": stage, "text": text, **given})


def emit_findings(emit: Callable[[Any], None], findings: Sequence[PassageFinding]) -> None:
    """Emit an event for each finding."""
    for finding in findings:
        chunk, said = finding.spans[0][0], finding.statement
        place: dict[str, Any] = {"key": finding.paper.key, "page": chunk.page, "section": chunk.section}
        emit({"source": "citeloom", "kind": "finding", "text": said, **place})


class EventRecorder:
    """Forwards events and records the streamed draft, to report at the end whether the final text differs."""

    def __init__(self, emit: OnEvent) -> None:
        self._emit = emit
        self._tokens: list[str] = []

    def __call__(self, event: Event) -> None:
        if event["kind"] == "token":
            self._tokens.append(event["text"])
        elif event["kind"] == "restarted":
            self._tokens.clear()
        self._emit(event)

    def emit_done(self, result: Mapping[str, Any]) -> None:
        """Emit the final event of a run; `result` is the run's JSON."""
        text = str(result["text"])
        differs, answered = "".join(self._tokens).strip() != text.strip(), result.get("answered", bool(text))
        done = {"source": "citeloom", "kind": "done", "text": text, "differs": differs, "answered": answered}
        self._emit(cast(DoneEvent, {**done, "result": result}))
