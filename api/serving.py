"""State shared by the servers of one library: jobs, events, keys, uploads, and which servers are alive."""

from __future__ import annotations

from ..graph.session import Session, create_session
from ..models.http.failures import EndpointUnreachableError
from ..models.journal.single_flight import CallLocks
from ..runs.execution import RunUnderWayError
from ..stores.backends import Listener, ServerRegistry, Uploads, backend_of
from ..stores.home import Home
from ..stores.library import UnknownPaperError
from ..stores.postgres.database import ConnectionLostError, DatabaseError, LeaseLostError
from ..stores.server_jobs import (
    ACTIVE,
    EventBatch,
    EventPage,
    JobEntry,
    JobKind,
    JobOrder,
    JobState,
    KeyUse,
    RequestKeys,
    ServerJobs,
)
from ..stores.server_sessions import MAX_AGE, RecentEndings, SignInSessions

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
    "RecentEndings",
    "RequestKeys",
    "RunUnderWayError",
    "ServerJobs",
    "ServerRegistry",
    "Session",
    "SignInSessions",
    "UnknownPaperError",
    "Uploads",
    "create_session",
    "join_servers",
]


def join_servers(home: Home) -> ServerRegistry:
    """Register as a server of a prepared home; blocks. Raises `InputError` if a folder already has one."""
    return backend_of(home.prepare()).join_servers()
