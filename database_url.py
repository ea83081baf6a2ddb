"""The address of a PostgreSQL database that holds a library; what it holds of secrets is never shown."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from .errors import InputError
from .key_trust import shown_address

# What is meant as an address must not be shown as the name of a folder: it may hold a password.
_MEANT: Final = re.compile(r"\s*(?:postgres(?:ql)?(?:\+\w+)?:|[a-z][a-z\d+.-]{1,30}:/)", re.IGNORECASE)
_SCHEMES: Final = ("postgresql://", "postgres://")
_SECRET: Final = frozenset({"password", "sslpassword", "passfile", "sslkey"})


class DatabaseUrl:
    """A libpq connection URL; its text and JSON leave out user, password and parameters.

    Args:
        url: with what is secret in it.
        server: the id of the server (`serve`) that connects, which the database refuses once others took it for dead.
    """

    __slots__ = ("secret", "server")

    def __init__(self, url: str, server: str = "") -> None:
        self.secret = url  # for the driver alone
        self.server = server

    def __str__(self) -> str:
        return shown_address(self.secret)

    def __repr__(self) -> str:
        return f"DatabaseUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatabaseUrl) and (other.secret, other.server) == (self.secret, self.server)

    def __hash__(self) -> int:
        return hash((self.secret, self.server))

    @property
    def mark(self) -> str:
        """A name of the database for files and locks; it does not depend on the password."""
        parts = urlsplit(self.secret)
        user, _, host = parts.netloc.rpartition("@")
        rest = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in _SECRET]
        known = f"{user.partition(':')[0]}@{host.lower()}{parts.path}?{sorted(rest)}"
        readable = f"{host or 'local'}-{unquote(parts.path).strip('/') or 'db'}"
        plain = "".join(c if c.isalnum() else "-" for c in readable)
        return f"{plain[:60]}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(
            cls, serialization=core_schema.plain_serializer_function_ser_schema(lambda url: f"{url} ({url.mark})")
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {"type": "string", "format": "uri"}


def home_address(value: Any) -> Any:
    """A database's address for text that is one; any other value as it is. Raises ValueError for a mistyped one."""
    if not isinstance(value, str) or not _MEANT.match(value):
        return value
    if not value.strip().startswith(_SCHEMES):
        raise ValueError("expected an address such as postgresql://USER@HOST/DATABASE")
    return DatabaseUrl(value.strip())


HomeAddress = Path | DatabaseUrl


def home_of(value: str | Path | DatabaseUrl) -> HomeAddress:
    """A home as a user names it: a database's address, or else a folder; raises `InputError` for a mistyped address."""
    if not str(value):
        raise InputError("The address of a home is empty.", help="Name a folder, or a database (postgresql://...).")
    try:
        address = home_address(value)
    except ValueError as error:
        raise InputError(f"home: {error}, got a value that is not shown.") from None
    return address if isinstance(address, DatabaseUrl) else Path(address)
