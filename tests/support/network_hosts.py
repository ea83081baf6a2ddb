"""Computers on one network: Linux network namespaces on a bridge, whose links can be cut."""

from __future__ import annotations

import ipaddress
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_NETWORKS = ipaddress.ip_network("198.18.0.0/15")  # for tests of networks (RFC 2544)
_BITS = 28  # of the network of one bridge


@dataclass(frozen=True)
class Host:
    """A network namespace; `link` is the end of its cable at the bridge."""

    name: str
    link: str
    address: str

    @property
    def prefix(self) -> list[str]:
        """The start of a command line that runs there."""
        return ["ip", "netns", "exec", self.name]

    def cut(self) -> None:
        """Lose every packet from now on."""
        _ip("link", "set", self.link, "down")

    def restore(self) -> None:
        """Carry packets again."""
        _ip("link", "set", self.link, "up")

    def has_unanswered(self) -> bool:
        """Whether it sent something on a connection without an acknowledgement."""
        shown = subprocess.run([*self.prefix, "ss", "-Htn", "state", "established"], capture_output=True, text=True)
        return any(int(line.split()[1]) > 0 for line in shown.stdout.splitlines())


@dataclass(frozen=True)
class Network:
    """Hosts, and the `address` at which they reach this process's own namespace."""

    address: str
    hosts: tuple[Host, ...]


@contextmanager
def network(count: int) -> Iterator[Network]:
    """This many hosts until the end of the block; skips if this user may not create them."""
    for program in ("ip", "ss"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} (iproute2) is not on this machine")
    mark = f"cl{secrets.token_hex(3)}"
    with ExitStack() as stack:
        _made(stack, "link", "add", mark, "type", "bridge", remove=("link", "del", mark))
        own, *others = _addresses(int(Path(f"/sys/class/net/{mark}/ifindex").read_text()))
        _ip("addr", "add", f"{own}/{_BITS}", "dev", mark)
        _ip("link", "set", mark, "up")
        yield Network(own, tuple(_host(stack, mark, number, others[number]) for number in range(count)))


def _host(stack: ExitStack, bridge: str, number: int, address: str) -> Host:
    host = Host(f"{bridge}-{number}", f"{bridge}v{number}", address)
    _made(stack, "netns", "add", host.name, remove=("netns", "del", host.name))
    _made(
        stack,
        *("link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", host.name),
        remove=("link", "del", host.link),
    )
    _ip("link", "set", host.link, "master", bridge, "up")
    _ip("-n", host.name, "addr", "add", f"{address}/{_BITS}", "dev", "eth0")
    for device in ("lo", "eth0"):
        _ip("-n", host.name, "link", "set", device, "up")
    return host


def _addresses(index: int) -> list[str]:
    """The addresses of the network of the bridge with this index, which no other bridge has at the same time."""
    size = 2 ** (32 - _BITS)
    first = int(_NETWORKS.network_address) + index * size % _NETWORKS.num_addresses
    return [str(ipaddress.ip_address(first + place)) for place in range(1, size - 1)]


def _made(stack: ExitStack, *arguments: str, remove: tuple[str, ...]) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no network namespaces here: ip {arguments[0]} {arguments[1]}: {done.stderr.strip()}")
    stack.callback(subprocess.run, ["ip", *remove], capture_output=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
