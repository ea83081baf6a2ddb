"""The records of a server's jobs and idempotency keys, whatever the backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from ..table_columns import choice

JobKind = Literal["run", "turn", "ingest"]
JobState = Literal["waiting", "working", "finished", "paused", "failed"]
ACTIVE: frozenset[JobState] = frozenset({"waiting", "working"})
JOB_KIND: Final = choice(*get_args(JobKind))
JOB_STATE: Final = choice(*get_args(JobState))


@dataclass(frozen=True, slots=True)
class JobOrder:
    """A job that was started; `request` is all it needs to be started again."""

    id: str
    kind: JobKind
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job as it is registered; `epoch` is that of its events."""

    order: JobOrder
    epoch: str
    state: JobState
    events: int = 0

    @property
    def active(self) -> bool:
        """True while it waits or works."""
        return self.state in ACTIVE

    def record(self) -> dict[str, Any]:
        """The state as JSON."""
        return {"id": self.order.id, "kind": self.order.kind, "state": self.state, "events": self.events}


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive events of a job, each its name and its data as JSON; the first has the number `first`."""

    job_id: str
    epoch: str
    first: int
    events: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class EventPage:
    """The events of a job that a reader has not seen, and the job's state; of another epoch all that are there."""

    epoch: str
    state: JobState
    events: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The request that an idempotency key was first used for, and the order of its job once that was started."""

    request: str
    order: dict[str, Any] | None
