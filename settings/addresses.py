"""Addresses of the databases that may hold a home: PostgreSQL, optionally with Milvus. Secrets are never shown."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from ..errors import InputError
from .key_trust import shown_address

# A mistyped address must not be shown as a folder name, since it may hold a password.
_INTENDED_ADDRESS: Final = re.compile(r"\s*(?:postgres(?:ql)?(?:\+\w+)?:|[a-z][a-z\d+.-]{1,30}:/)", re.IGNORECASE)
_DATABASE_SCHEMES: Final = ("postgresql://", "postgres://")
_SECRET_PARAMETERS: Final = frozenset({"password", "sslpassword", "passfile", "sslkey"})
_MILVUS_SERVER: Final = re.compile(r"https?://\S+\Z", re.IGNORECASE)
_MILVUS_FILE: Final = re.compile(r"(?!\w+:/)[^\x00]+\.db\Z")


class SecretUrl:
    """An address whose text and JSON leave out user, password and parameters; `secret` is for the driver alone."""

    __slots__ = ("secret",)

    def __init__(self, url: str) -> None:
        self.secret = url

    def __str__(self) -> str:
        return shown_address(self.secret)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._identity() == self._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[str, ...]:
        return (self.secret,)

    def to_json(self) -> str:
        """The address as JSON shows it."""
        return str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        serializer = core_schema.plain_serializer_function_ser_schema(lambda url: url.to_json())
        return core_schema.is_instance_schema(cls, serialization=serializer)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {"type": "string", "format": "uri"}


class DatabaseUrl(SecretUrl):
    """A libpq connection URL; `server` is the id of a connecting server, which the database rejects once evicted."""

    __slots__ = ("server",)

    def __init__(self, url: str, server: str = "") -> None:
        super().__init__(url)
        self.server = server

    def _identity(self) -> tuple[str, ...]:
        return (self.secret, self.server)

    def to_json(self) -> str:
        """The address with its mark, which distinguishes databases whose addresses differ only in hidden parts."""
        return f"{self} ({self.mark})"

    @property
    def mark(self) -> str:
        """A name of the database for files and locks, independent of the password."""
        parts = urlsplit(self.secret)
        user, _, host = parts.netloc.rpartition("@")
        rest = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in _SECRET_PARAMETERS]
        known = f"{user.partition(':')[0]}@{host.lower()}{parts.path}?{sorted(rest)}"
        readable = f"{host or 'local'}-{unquote(parts.path).strip('/') or 'db'}"
        plain = "".join(c if c.isalnum() else "-" for c in readable)
        return f"{plain[:60]}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"


class VectorsUrl(SecretUrl):
    """`http(s)://USER:PASSWORD@HOST:PORT/DATABASE` of Milvus, or a file of Milvus Lite."""

    __slots__ = ()

    def __str__(self) -> str:
        return shown_address(self.secret) if self.file is None else self.secret

    @property
    def file(self) -> Path | None:
        """The file of Milvus Lite; None for a server."""
        return None if _MILVUS_SERVER.match(self.secret) else Path(self.secret).expanduser().absolute()

    @property
    def server(self) -> str:
        """The server's address without user, token and database."""
        parts = urlsplit(self.secret)
        return urlunsplit((parts.scheme.lower(), parts.netloc.rpartition("@")[2], "", "", ""))

    @property
    def token(self) -> str:
        """A token, or USER:PASSWORD; empty if there is none."""
        return unquote(urlsplit(self.secret).netloc.rpartition("@")[0])

    @property
    def database(self) -> str:
        """The name of the database in Milvus; empty for its default."""
        return unquote(urlsplit(self.secret).path.strip("/"))


HomeAddress = Path | DatabaseUrl


def absolute_path(path: Path) -> Path:
    """The absolute path without `..`, which means the parent of a link's target."""
    parts = path.absolute().parts
    last = max((place for place, part in enumerate(parts, 1) if part == ".."), default=0)
    return Path(*parts[:last]).resolve().joinpath(*parts[last:])


def home_address(value: Any) -> Any:
    """Parse a database address; returns other values unchanged. Raises ValueError for a mistyped address."""
    if not isinstance(value, str) or not _INTENDED_ADDRESS.match(value):
        return value
    if not value.strip().startswith(_DATABASE_SCHEMES):
        raise ValueError("expected an address such as postgresql://USER@HOST/DATABASE")
    return DatabaseUrl(value.strip())


def parse_home(value: str | Path | DatabaseUrl) -> HomeAddress:
    """Parse a home given by a user, a database address or a folder; raises `InputError` for a mistyped address."""
    if not str(value):
        raise InputError("The address of a home is empty.", help="Name a folder, or a database (postgresql://...).")
    try:
        address = home_address(value)
    except ValueError as error:
        raise InputError(f"home: {error}; the given value is not shown.") from None
    return address if isinstance(address, DatabaseUrl) else Path(address)


def vectors_url(value: Any) -> Any:
    """Parse text as an address of Milvus; returns other values unchanged. Raises ValueError if it is not one."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        readable = bool(_MILVUS_SERVER.match(text) and urlsplit(text).hostname and (urlsplit(text).port or True))
    except ValueError:
        readable = False
    if not readable and not _MILVUS_FILE.match(text):
        raise ValueError("expected an address such as https://USER:PASSWORD@HOST:19530, or a file of Milvus Lite (.db)")
    return VectorsUrl(text)


def parse_vectors(value: str | None) -> VectorsUrl | None:
    """Parse the Milvus address given by a user, if any; raises `InputError` if it is invalid."""
    try:
        url: VectorsUrl | None = vectors_url(value)
    except ValueError as error:
        raise InputError(f"vectors: {error}; the given value is not shown.") from None
    return url
