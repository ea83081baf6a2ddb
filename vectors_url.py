"""The address of Milvus, which may hold vectors and words beside a PostgreSQL database; its token is never shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from .errors import InputError
from .key_trust import shown_address

_SERVER: Final = re.compile(r"https?://\S+\Z", re.IGNORECASE)
_FILE: Final = re.compile(r"(?!\w+:/)[^\x00]+\.db\Z")


class VectorsUrl:
    """`http(s)://USER:PASSWORD@HOST:PORT/DATABASE` or a file of Milvus Lite; text and JSON leave out what is secret."""

    __slots__ = ("secret",)

    def __init__(self, url: str) -> None:
        self.secret = url

    def __str__(self) -> str:
        return shown_address(self.secret) if self.file is None else self.secret

    def __repr__(self) -> str:
        return f"VectorsUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VectorsUrl) and other.secret == self.secret

    def __hash__(self) -> int:
        return hash(self.secret)

    @property
    def file(self) -> Path | None:
        """The file of Milvus Lite; None for a server."""
        return None if _SERVER.match(self.secret) else Path(self.secret).expanduser().absolute()

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

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(cls, serialization=core_schema.plain_serializer_function_ser_schema(str))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        return {"type": "string", "format": "uri"}


def vectors_url(value: Any) -> Any:
    """The address for text; any other value as it is. Raises ValueError for text that is not an address of Milvus."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        readable = bool(_SERVER.match(text) and urlsplit(text).hostname and (urlsplit(text).port or True))
    except ValueError:
        readable = False
    if not readable and not _FILE.match(text):
        raise ValueError("expected an address such as https://USER:PASSWORD@HOST:19530, or a file of Milvus Lite (.db)")
    return VectorsUrl(text)


def vectors_of(value: str | None) -> VectorsUrl | None:
    """The address that a user names, if any; raises `InputError` for text that is not one."""
    try:
        url: VectorsUrl | None = vectors_url(value)
    except ValueError as error:
        raise InputError(f"vectors: {error}, got a value that is not shown.") from None
    return url
