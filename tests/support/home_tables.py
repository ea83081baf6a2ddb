"""The tables of a folder's files, by the path of the file."""

from __future__ import annotations

from pathlib import Path

from citeloom.stores.home import RUN_TABLES
from citeloom.stores.metadata_store import METADATA_REMEDY, METADATA_TABLES
from citeloom.stores.tables import FileTables


def run_tables(path: Path) -> FileTables:
    """The registers of runs, conversations and written files in the file at `path`."""
    return FileTables(path, RUN_TABLES)


def metadata_tables(path: Path) -> FileTables:
    """The tables of metadata from services, in the file at `path`."""
    return FileTables(path, METADATA_TABLES, METADATA_REMEDY)
