"""How the server is reached and what it permits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from pydantic import SecretStr

from ..errors import ConfigurationError

DEFAULT_PORT = 8765
_MEBIBYTE = 2**20
_MIN_TOKEN = 16  # characters


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Address, token and limits of a server.

    Args:
        host: the address to bind; anything but loopback needs a `token`.
        port: the port; 0 takes a free one.
        token: what a client sends as `Authorization: Bearer`, and a browser once on its sign-in page.
        names: further host names under which the server is reached, for example behind a proxy.
        max_body: bytes of a request that is not an upload.
        max_upload: bytes of an upload.
        max_active: runs, turns and ingests that work at once; further ones wait.
        max_waiting: those that may wait; further ones are refused.
        max_streams: streams of events that are open at once.
        per_minute: requests of one client in a minute.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: SecretStr | None = None
    names: tuple[str, ...] = ()
    max_body: int = 4 * _MEBIBYTE
    max_upload: int = 200 * _MEBIBYTE
    max_active: int = 8
    max_waiting: int = 200
    max_streams: int = 200
    per_minute: int = 1200
    loopback: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loopback", is_loopback(self.host))
        given = self.token.get_secret_value() if self.token is not None else None
        if given is None and not self.loopback:
            raise ConfigurationError(
                f"--host {self.host}: anybody who reaches this address could read the library and spend money.",
                help="Set CITELOOM_SERVER_TOKEN to a secret of at least 16 characters, or serve on 127.0.0.1.",
            )
        if given is not None and (len(given) < _MIN_TOKEN or not given.isascii() or not given.isprintable()):
            raise ConfigurationError(
                "CITELOOM_SERVER_TOKEN: a token has at least 16 printable ASCII characters.",
                help='Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            )

    def host_names(self) -> frozenset[str]:
        """The values of `Host` without port that are accepted, in lower case."""
        own = {"127.0.0.1", "localhost", "[::1]"} if self.loopback else {_in_url(self.host)}
        return frozenset(name.lower() for name in (*own, *self.names))


def is_loopback(host: str) -> bool:
    """True for addresses that only this machine reaches."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
