"""State shared by the servers of one library: jobs, events, keys, uploads, and which servers are alive."""

from __future__ import annotations

from ..graph.session import Session, open_session
from ..models.http.failures import EndpointUnreachableError
from ..models.journal.single_flight import CallLocks
from ..runs.execution import RunUnderWayError
from ..stores.home import Home, Listener, ServerRegistry
from ..stores.library import UnknownPaperError
from ..stores.postgres.database import ConnectionLostError, DatabaseError, LeaseLostError
from ..stores.server_jobs import (
    ACTIVE,
    EventBatch,
    JobEntry,
    JobKind,
    JobOrder,
    JobState,
    RecentEndings,
    ServerJobs,
)
from ..stores.uploads import Uploads
