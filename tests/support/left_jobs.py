"""Jobs that a killed server has left in a folder."""

from __future__ import annotations

from pathlib import Path

from citeloom.stores.home_tables import SERVER_TABLES
from citeloom.stores.local.file_tables import FileTables
from citeloom.stores.server_jobs import SERVERS, JobOrder, RegisteredJobs, unfinished_jobs


def leave_job(home: Path, order: JobOrder) -> None:
    """Register a job of a server that is gone."""
    _register(home).begin(order, "e")


def left_jobs(home: Path) -> set[str]:
    """The ids of jobs that have not ended."""
    return unfinished_jobs(_tables(home))


def _register(home: Path) -> RegisteredJobs:
    return RegisteredJobs(_tables(home), "gone")


def _tables(home: Path) -> FileTables:
    return FileTables(home / "server.sqlite", (SERVERS, *SERVER_TABLES))
