"""Which names a server answers to."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from citeloom.errors import ConfigurationError
from citeloom.server.server_options import ServerOptions

TOKEN = SecretStr("a-token-of-enough-characters")
HOSTS = [
    # bound to, named, the header, accepted
    ("127.0.0.1", (), "127.0.0.1:8765", True),
    ("127.0.0.1", (), "localhost", True),
    ("::1", (), "[::1]:8765", True),
    ("127.0.0.1", (), "LOCALHOST:1", True),
    ("127.0.0.1", (), "192.168.0.7", False),
    ("127.0.0.1", (), "localhost.", False),
    ("127.0.0.1", (), "[::1", False),
    ("127.0.0.1", (), "::1", False),
    ("127.0.0.1", (), "localhost:port", False),
    ("127.0.0.1", (), "localhost:123456", False),
    ("127.0.0.1", (), "user@localhost", False),
    ("127.0.0.1", (), "localhost/path", False),
    ("127.0.0.1", (), "localhost\t", False),
    ("127.0.0.1", (), "ｌocalhost", False),
    ("127.0.0.1", (), "", False),
    ("127.0.0.1", ("papers.example",), "Papers.Example", True),
    ("127.0.0.1", ("papers.example",), "evil.papers.example", False),
    ("192.168.0.7", (), "192.168.0.7:8765", True),
    ("192.168.0.7", (), "localhost", False),
    ("0.0.0.0", (), "192.168.0.7:8765", True),
    ("::", (), "[2001:db8::1]:8765", True),
    ("0.0.0.0", (), "localhost", True),
    ("0.0.0.0", (), "rebound.example", False),
]


@pytest.mark.parametrize(("bound", "names", "given", "accepted"), HOSTS)
def test_a_host_header_must_name_the_server(bound: str, names: tuple[str, ...], given: str, accepted: bool) -> None:
    assert ServerOptions(bound, token=TOKEN, names=names).accepts_host(given) is accepted


def test_only_loopback_needs_no_token() -> None:
    assert ServerOptions("127.0.0.1").loopback and ServerOptions("::1").loopback and ServerOptions("localhost").loopback
    with pytest.raises(ConfigurationError, match="anybody who reaches this address"):
        ServerOptions("127.0.0.1.example.org")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("::1", "http://[::1]:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("library.example", "http://library.example:8000"),
    ],
)
def test_a_server_has_an_address_that_a_browser_can_open(host: str, address: str) -> None:
    assert ServerOptions(host, 8000, token=TOKEN).address == address
