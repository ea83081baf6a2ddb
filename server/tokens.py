"""The server's token, and the sessions of browsers that gave it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from functools import cached_property
from typing import Final

from pydantic import SecretStr
from starlette.requests import cookie_parser

from ..api.serving import SignInSessions

COOKIE: Final = "citeloom_session"


class Tokens:
    """Compares tokens in constant time."""

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

    @cached_property
    def fingerprint(self) -> str:
        """Stands for the token in a home; slow to compute, so that a short token is not guessed from it."""
        return hashlib.scrypt(self._token or b"", salt=b"citeloom sessions", n=2**14, r=8, p=1).hex()


class BrowserSessions:
    """The sessions that belong to the server's token."""

    def __init__(self, tokens: Tokens, register: SignInSessions) -> None:
        self._tokens = tokens
        self._register = register

    async def end_outdated(self) -> None:
        """End the sessions of an earlier token."""
        if self._tokens.needed:
            token = await asyncio.to_thread(lambda: self._tokens.fingerprint)
            await asyncio.to_thread(self._register.end_all, token)

    async def begin(self) -> str:
        """The value for the cookie of a browser that gave the token."""
        session = secrets.token_urlsafe(32)
        await asyncio.to_thread(self._register.begin, session, self._tokens.fingerprint)
        return session

    async def is_active(self, cookies: str | None) -> bool:
        """True for a `Cookie` header with a session that has neither ended nor expired."""
        session = session_cookie(cookies)
        return bool(session) and await asyncio.to_thread(self._register.is_active, session, self._tokens.fingerprint)

    async def end(self, cookies: str | None) -> None:
        """End the session of a `Cookie` header."""
        if session := session_cookie(cookies):
            await asyncio.to_thread(self._register.end, session)

    async def end_all(self) -> None:
        """End all sessions."""
        await asyncio.to_thread(self._register.end_all)


def session_cookie(cookies: str | None) -> str:
    """The session that a `Cookie` header names; "" if it names none."""
    return cookie_parser(cookies or "").get(COOKIE, "")
