"""What servers of one library share: their jobs with events, idempotency keys, sessions of browsers and uploaded files.

A folder has one server, so what others would need is trivial there. Servers of one database find out from the
`Membership` which of them lives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..models.journal.single_flight import CallLocks
from .home import Home
from .job_records import EventBatch, EventPage, JobEntry, JobOrder, JobState, KeyUse
from .recent_endings import RecentEndings
from .sign_in_sessions import SignInSessions


class ServerJobs(Protocol):
    """The register of jobs; blocking and thread-safe."""

    @property
    def shared(self) -> bool:
        """Whether other servers may work on these jobs."""
        ...

    def begin(self, order: JobOrder, epoch: str, key: str = "") -> JobEntry | None:
        """Register a job as this server's, with the epoch of its events; returns None.

        An idempotency `key` that this server has claimed names the job from the same moment. While another living
        server works on the job with this id, nothing changes and its entry is returned.
        """
        ...

    def append(self, batches: Sequence[EventBatch]) -> None:
        """Store events of this server's jobs for the other servers; those of a job that it lost are dropped."""
        ...

    def end(self, job_id: str, state: JobState, last: EventBatch) -> None:
        """Register the end of a job of this server, with the events that were not stored yet."""
        ...

    def entry(self, job_id: str) -> JobEntry | None:
        """A job that is active on another server, or that ended there a short while ago."""
        ...

    def entries(self) -> list[JobEntry]:
        """All such jobs."""
        ...

    def events(self, job_id: str, epoch: str, seen: int) -> EventPage | None:
        """The events of a job after the first `seen` of this epoch; None once they are deleted."""
        ...

    def request_stop(self, job_id: str) -> None:
        """Have the server that works on a job stop it."""
        ...

    def claim_orphaned(self, most: int, busy: Collection[str]) -> list[JobOrder]:
        """Make up to this many unfinished jobs of servers that are gone this server's own, and return them.

        So are its own that it has let go without being able to register their end; those are not among `busy`.
        """
        ...

    def release(self, job_id: str) -> None:
        """Leave a job that was taken up to whichever server can start it."""
        ...


class RequestKeys(Protocol):
    """Idempotency keys, kept for a day; a claim ends with its server unless it was settled. Blocking, thread-safe."""

    def claim(self, key: str, request: str) -> KeyUse | None:
        """Claim a key for a request and return None; returns the use of another claim that is settled or alive."""
        ...

    def settle(self, key: str, order: dict[str, Any]) -> None:
        """Store the order of the job that was started under a claimed key."""
        ...

    def release(self, key: str) -> None:
        """Forget a claimed key whose request was refused."""
        ...


class Uploads(Protocol):
    """The files of papers or plots that were uploaded to a server, by upload; blocking and thread-safe."""

    def folder(self, upload: str) -> Path:
        """The folder on this computer in which the files of an upload are read."""
        ...

    def publish(self, upload: str) -> None:
        """Make the files in the folder of an upload available to all servers; doing so again renews their age."""
        ...

    def fetch(self, upload: str) -> None:
        """Write the files of an upload that another server has taken into its folder here."""
        ...

    def place_of(self, source: str) -> tuple[str, str] | None:
        """Upload and name of a file; None if it was not uploaded."""
        ...

    def reference(self, file: Path) -> str:
        """How a record names a file in the folder of an upload, whichever computer reads it: see `file`."""
        ...

    def file(self, source: str) -> Path:
        """The file of a paper or plot on this computer, fetched if another server has taken it; it may be missing."""
        ...

    def names(self, upload: str) -> list[str]:
        """The names of the files of an upload."""
        ...

    def files(self, among: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        """The size of each stored file in bytes, by upload and name; of all uploads, or of those `among` these."""
        ...

    def remove(self, upload: str, names: Collection[str]) -> None:
        """Delete files of an upload, and its folder when nothing is left in it."""
        ...

    def unfinished(self) -> set[str]:
        """The uploads that a job works on, or that one will resume."""
        ...

    def idle(self) -> list[str]:
        """The uploads without such a job that may have been abandoned: on a database, none of the last hour."""
        ...


@dataclass(frozen=True, slots=True)
class Listener:
    """What a server does about news of the others; called in any thread.

    Args:
        changed: a job of another server has new events.
        stop: another server was asked to stop these jobs of this one.
        orphans: there are jobs whose server is gone.
        lost: this server was taken for dead, and others work on its jobs.
    """

    changed: Callable[[str], None]
    stop: Callable[[Sequence[str]], None]
    orphans: Callable[[], None]
    lost: Callable[[], None]


class Membership(Protocol):
    """A server's place among those of a library, until it leaves."""

    @property
    def home(self) -> Home:
        """The home through which this server works; a database refuses it once the server was taken for dead."""
        ...

    @property
    def jobs(self) -> ServerJobs:
        """The register of jobs."""
        ...

    @property
    def keys(self) -> RequestKeys:
        """The idempotency keys."""
        ...

    @property
    def sessions(self) -> SignInSessions:
        """The sessions of browsers."""
        ...

    @property
    def endings(self) -> RecentEndings:
        """What requests to any server deleted or withdrew a moment ago."""
        ...

    @property
    def locks(self) -> CallLocks | None:
        """Locks against the other servers; None where there are none."""
        ...

    @property
    def uploads(self) -> Uploads:
        """The uploaded files."""
        ...

    def watch(self, listener: Listener) -> None:
        """Tell of the other servers from now on."""
        ...

    def leave(self) -> None:
        """Leave; unfinished jobs are taken up by another server, or by the next one."""
        ...
