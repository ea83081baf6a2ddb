"""Server options (address, token, limits), and checks of tokens."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from starlette.requests import cookie_parser

from ..errors import ConfigurationError

DEFAULT_PORT = 8765
_MEBIBYTE = 2**20
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::\d{1,5})?")
_MIN_TOKEN = 16  # characters


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Address, token and limits of a server."""

    host: str = "127.0.0.1"  # to bind; anything but loopback needs a token
    port: int = DEFAULT_PORT  # 0 picks a free port
    token: SecretStr | None = None  # sent as `Authorization: Bearer`, and by a browser once on its sign-in page
    names: tuple[str, ...] = ()  # further host names of the server, for example behind a proxy
    max_body: int = 4 * _MEBIBYTE  # per request, except uploads
    max_upload: int = 200 * _MEBIBYTE
    max_active: int = 64  # runs, turns and ingests working at once; others wait
    max_waiting: int = 200  # others are refused
    max_streams: int = 200  # open at once
    per_minute: int = 1200  # requests of a client
    people: bool = False  # whether people sign in with accounts of the home instead

    def __post_init__(self) -> None:
        given = self.token.get_secret_value() if self.token is not None else None
        if given is None and not self.loopback and not self.people:
            raise ConfigurationError(
                f"--host {self.host}: anybody who reaches this address could read the library and spend money.",
                help="Set CITELOOM_SERVER_TOKEN to a secret of at least 16 characters, invite people (people invite), "
                "or serve on 127.0.0.1.",
            )
        if given is not None and (len(given) < _MIN_TOKEN or not given.isascii() or not given.isprintable()):
            raise ConfigurationError(
                "CITELOOM_SERVER_TOKEN: a token has at least 16 printable ASCII characters.",
                help='Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            )

    def accepts_host(self, given: str) -> bool:
        """Whether a `Host` header names this server.

        Anybody may point an unknown name at this machine; that is not possible with addresses.
        """
        if (found := _HOST.fullmatch(given)) is None:
            return False
        name = (found["address"] or found["name"]).lower()
        own = {"127.0.0.1", "localhost", "::1"} if self.loopback or self._wildcard else {self.host.strip("[]").lower()}
        return (
            name in own
            or name in {known.lower().strip("[]") for known in self.names}
            or (self._wildcard and _address(name) is not None)
        )

    @property
    def loopback(self) -> bool:
        """True if only this machine reaches it."""
        address = _address(self.host)
        return self.host.lower() == "localhost" if address is None else address.is_loopback

    @property
    def local_only(self) -> bool:
        """Whether the server is reached from this machine alone, also through no proxy."""
        return self.loopback and not self.names

    @property
    def address(self) -> str:
        """Where a browser on this machine finds the server."""
        host = "127.0.0.1" if self._wildcard else self.host.strip("[]")
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def _wildcard(self) -> bool:
        address = _address(self.host)
        return address is not None and address.is_unspecified


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def token_from_environment(name: str = "CITELOOM_SERVER_TOKEN") -> SecretStr | None:
    """Read a secret, such as the server's token, from the variable `name`, or from the file that `NAME_FILE` names (for
    example a container secret); raises `ConfigurationError` if the file is unreadable."""
    token, file = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if file and not token:
        try:
            token = Path(file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not ASCII"
            message = f"{name}_FILE: {file}: cannot be read ({reason})."
            raise ConfigurationError(message, help="Name a file that holds it.") from error
    return SecretStr(token) if token else None


COOKIE: Final = "citeloom_session"
SIGN_IN_LASTS: Final = 600  # seconds until a browser must be back from the identity provider


class Tokens:
    def __init__(self, token: SecretStr | None) -> None:
        self._token = token.get_secret_value().encode() if token is not None else None

    @property
    def needed(self) -> bool:
        return self._token is not None

    def valid(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(errors="replace"), self._token)

    def valid_header(self, authorization: str | None) -> bool:
        kind, _, given = (authorization or "").partition(" ")
        return kind.lower() == "bearer" and self.valid(given.strip())

    @cached_property
    def fingerprint(self) -> str:
        """A hash to store instead of the token; slow, so that short tokens cannot be guessed."""
        return hashlib.scrypt(self._token or b"", salt=b"citeloom sessions", n=2**14, r=8, p=1).hex()


def session_cookie(cookies: str | None) -> str:
    """The session that a `Cookie` header names; "" if it names none."""
    return cookie_parser(cookies or "").get(COOKIE, "")
