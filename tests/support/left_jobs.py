"""Jobs that a killed server has left in a folder."""

from __future__ import annotations

from pathlib import Path

from citeloom.stores.server_jobs import SERVER_TABLES, SERVERS, JobOrder, ServerJobs
from citeloom.stores.tables import FileTables


def leave_job(home: Path, order: JobOrder) -> None:
    """Register a job of a server that is gone."""
    _register(home).begin(order, "e")


def left_jobs(home: Path) -> set[str]:
    """The ids of jobs that have not ended."""
    return _register(home).unfinished()


def _register(home: Path) -> ServerJobs:
    return ServerJobs(FileTables(home / "server.sqlite", (SERVERS, *SERVER_TABLES)), "gone")
