"""The server's token, and the cookie that a browser gets for it."""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from typing import Final

from pydantic import SecretStr
from starlette.requests import cookie_parser

COOKIE: Final = "citeloom_session"
MAX_AGE: Final = 30 * 86_400  # seconds


class Tokens:
    """Compares tokens in constant time. The cookie is signed with the token, so it outlives a restart of the server."""

    def __init__(self, token: SecretStr | None) -> None:
        self._token = token.get_secret_value().encode() if token is not None else None

    @property
    def needed(self) -> bool:
        """True when requests need the token."""
        return self._token is not None

    def valid(self, given: str) -> bool:
        """True for the server's token."""
        return self._token is not None and hmac.compare_digest(given.encode(errors="replace"), self._token)

    def valid_header(self, authorization: str | None) -> bool:
        """True for an `Authorization` header with the token."""
        kind, _, given = (authorization or "").partition(" ")
        return kind.lower() == "bearer" and self.valid(given.strip())

    def cookie(self) -> str:
        """A value for the cookie of a browser that gave the token."""
        until = str(int(time.time()) + MAX_AGE)
        return f"{until}.{self._signature(until)}"

    def valid_cookie(self, header: str | None) -> bool:
        """True for a `Cookie` header with a value of `cookie` that has not expired."""
        until, _, signature = cookie_parser(header or "").get(COOKIE, "").partition(".")
        if not until.isascii() or not until.isdigit() or len(until) > 12:
            return False
        return hmac.compare_digest(signature.encode(), self._signature(until).encode()) and int(until) > time.time()

    def _signature(self, until: str) -> str:
        assert self._token is not None
        return hmac.new(self._token, f"citeloom session until {until}".encode(), sha256).hexdigest()
