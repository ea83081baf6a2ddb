"""State shared by the servers of one library: jobs, events, keys, uploads, and which servers are alive."""

from __future__ import annotations

from ..graph.session import Session as Session, open_session as open_session
from ..models.http.failures import EndpointUnreachableError as EndpointUnreachableError
from ..models.journal.single_flight import CallLocks as CallLocks
from ..runs.execution import RunUnderWayError as RunUnderWayError
from ..stores.home import Home, Listener as Listener, ServerRegistry as ServerRegistry
from ..stores.library import UnknownPaperError as UnknownPaperError
from ..stores.postgres.database import (
    ConnectionLostError as ConnectionLostError,
    DatabaseError as DatabaseError,
    LeaseLostError as LeaseLostError,
)
from ..stores.server_jobs import (
    ACTIVE as ACTIVE,
    EventBatch as EventBatch,
    JobEntry as JobEntry,
    JobKind as JobKind,
    JobOrder as JobOrder,
    JobState as JobState,
    RecentEndings as RecentEndings,
    RequestKeys as RequestKeys,
    ServerJobs as ServerJobs,
)
from ..stores.uploads import Uploads as Uploads


def join_servers(home: Home, address: str = "") -> ServerRegistry:
    """Register as a server of a prepared home, at `address`; blocks. Raises `InputError` if a folder has one."""
    return home.prepare().join_servers(address)
