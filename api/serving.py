"""What servers of one library share, for the server: jobs and their events, keys, uploads, and who is alive."""

from __future__ import annotations

from ..graph.session import Session, create_session
from ..models.http.failures import EndpointUnreachableError
from ..models.journal.single_flight import CallLocks
from ..runs.execution import RunUnderWayError
from ..stores.backends import backend_of
from ..stores.home import Home
from ..stores.job_records import (
    ACTIVE,
    EventBatch,
    EventPage,
    JobEntry,
    JobKind,
    JobOrder,
    JobState,
    KeyUse,
)
from ..stores.library import UnknownPaperError
from ..stores.local.server_register import UnregisteredJobs
from ..stores.postgres.database import ConnectionLostError, DatabaseError, LeaseLostError
from ..stores.recent_endings import RecentEndings
from ..stores.server_protocols import Listener, Membership, RequestKeys, ServerJobs, Uploads
from ..stores.sign_in_sessions import MAX_AGE, SignInSessions

__all__ = [
    "ACTIVE",
    "MAX_AGE",
    "CallLocks",
    "ConnectionLostError",
    "DatabaseError",
    "EndpointUnreachableError",
    "EventBatch",
    "EventPage",
    "JobEntry",
    "JobKind",
    "JobOrder",
    "JobState",
    "KeyUse",
    "LeaseLostError",
    "Listener",
    "Membership",
    "RecentEndings",
    "RequestKeys",
    "RunUnderWayError",
    "ServerJobs",
    "Session",
    "SignInSessions",
    "UnknownPaperError",
    "UnregisteredJobs",
    "Uploads",
    "create_session",
    "join_servers",
]


def join_servers(home: Home) -> Membership:
    """Enter a prepared home as one of its servers; blocks. Raises `InputError` if a folder has a server already."""
    return backend_of(home.prepare()).join_servers()
