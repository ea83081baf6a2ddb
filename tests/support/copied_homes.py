"""Homes that tests copy from a template: folders, or databases of a PostgreSQL server."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

Address = Path | str  # a folder, or the URL of a database


def new_database(server: str, template: str = "template1") -> str:
    """The URL of a new database on a server; `template` must not be in use meanwhile."""
    import psycopg

    name = f"home_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


def copied(template: Address, folder: Path) -> Address:
    """A copy of a home; that of a folder is in `folder`."""
    if isinstance(template, str):
        url = urlsplit(template)
        return new_database(urlunsplit(url._replace(path="/postgres")), url.path.lstrip("/"))
    shutil.copytree(template, folder / ".citeloom")
    return folder / ".citeloom"


def answers(home: Address) -> int:
    """The number of answers in the journal of a home."""
    query = "SELECT count(*) FROM answers"
    if isinstance(home, str):
        import psycopg

        with psycopg.connect(home) as connection:
            return int(connection.execute(query).fetchone()[0])  # type: ignore[index]
    with closing(sqlite3.connect(home / "journal.sqlite")) as db:
        return int(db.execute(query).fetchone()[0])
