"""Connections to Milvus or Milvus Lite, and its errors without secrets."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ...errors import ConfigurationError, InputError, PausedError
from ...program import install_hint
from ...settings.addresses import VectorsUrl

if TYPE_CHECKING:
    from pymilvus import MilvusClient

READ_SECONDS: Final = 30.0
WRITE_SECONDS: Final = 300.0
_CONNECT_SECONDS: Final = 10.0
_PORT: Final = 19530
# The client pings every ten seconds, which gRPC servers refuse by default; and a new connection would share the waiting
# time of an earlier one to a server that has been started again.
_GRPC: Final = {
    "grpc.keepalive_time_ms": 60_000,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_reconnect_backoff_ms": 5_000,
}
_LOST: Final = ("Fail connecting to server", "server unavailable", "Retry timeout", "Retry run out")
# A file of Milvus Lite is served by a thread of this process, which lives as long as a library that uses it.
_files: Final[Counter[str]] = Counter()
_files_lock: Final = threading.Lock()


class MilvusError(InputError):
    """Milvus cannot be used in its current state or configuration."""

    default_help = "Check the address in CITELOOM_VECTORS, and the rights of its user."


class MilvusUnavailableError(PausedError):
    """Milvus cannot be reached, or does not answer; what was committed is kept."""

    default_help = "Check that Milvus runs at the address in CITELOOM_VECTORS, then run the same command again."


class MilvusConnection:
    """A client that connects on first use; thread-safe, and opened anew in a forked process."""

    def __init__(self, url: VectorsUrl) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._client: MilvusClient | None = None
        self._process = 0

    @property
    def read_seconds(self) -> float:
        """How long a search may take; Milvus Lite may need minutes where a server needs seconds."""
        return READ_SECONDS if self.url.file is None else WRITE_SECONDS

    def client(self) -> MilvusClient:
        """The connected client; raises `MilvusUnavailableError`, `MilvusError` and `ConfigurationError`."""
        with self._lock:
            if self._client is None or self._process != os.getpid():
                self._client = self._connect()
                self._process = os.getpid()
            return self._client

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None and self._process == os.getpid():
            client.close()
            if self.url.file is not None:
                from milvus_lite import server_manager_instance

                path = str(self.url.file)
                with _files_lock:
                    _files[path] -= 1
                    if _files[path] <= 0:  # no library of this process uses it: another process may open it
                        server_manager_instance.release_server(path)

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Translate the client's errors into ours, naming the address without its secrets."""
        from grpc import RpcError
        from pymilvus.exceptions import MilvusException

        try:
            yield
        except (MilvusException, RpcError) as error:
            details = getattr(error, "details", None)
            said = details() if callable(details) else getattr(error, "message", "")
            lines = str(said or error).strip().splitlines() or [type(error).__name__]
            shown = " ".join(lines[0].split())[:200].rstrip(".")
            for secret in filter(None, (self.url.token, self.url.token.rpartition(":")[2])):
                shown = shown.replace(secret, "***")
            message = f"{self.url}: {shown}."
            # The client reports a gRPC status, or says in its message that no server answered.
            lost = not isinstance(getattr(error, "code", None), int) or any(words in str(error) for words in _LOST)
            raise (MilvusUnavailableError(message) if lost else MilvusError(message)) from None

    def _connect(self) -> MilvusClient:
        _require_extra()
        if self.url.file is not None:
            return self._open_file(str(self.url.file))
        parts = urlsplit(self.url.server)
        usual = 443 if parts.scheme == "https" else _PORT
        try:  # the client would notice only after its timeout
            socket.create_connection((parts.hostname, parts.port or usual), timeout=_CONNECT_SECONDS).close()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise MilvusUnavailableError(f"{self.url}: Milvus cannot be reached ({reason}).") from None
        from pymilvus import MilvusClient

        with self.named_errors():
            return MilvusClient(
                self.url.server,
                token=self.url.token,
                db_name=self.url.database,
                timeout=_CONNECT_SECONDS,
                dedicated=True,
                grpc_options=_GRPC,
            )

    def _open_file(self, path: str) -> MilvusClient:
        from pymilvus import MilvusClient
        from pymilvus.exceptions import MilvusException

        try:
            import_module("milvus_lite")
        except ImportError as error:
            raise ConfigurationError(
                f"A file of Milvus Lite needs more packages ({error.name or error} is missing).",
                help="Install it: pip install 'pymilvus[milvus_lite]'; or name a Milvus server in CITELOOM_VECTORS.",
            ) from error
        try:
            client = MilvusClient(path, timeout=_CONNECT_SECONDS, dedicated=True, grpc_options=_GRPC)
        except (MilvusException, OSError):
            raise MilvusError(
                f"{path}: Milvus Lite cannot open it, perhaps because another process has.",
                help="A file of Milvus Lite serves one process at a time; for several, run a Milvus server.",
            ) from None
        with _files_lock:
            _files[path] += 1
        return client


def _require_extra() -> None:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its C library writes to stderr
    try:
        import_module("pymilvus")
    except ImportError as error:
        raise ConfigurationError(
            f"Vectors in Milvus need more packages ({error.name or error} is missing).",
            help=f"{install_hint('milvus')}.",
        ) from error
    for name in ("pymilvus", "milvus_lite"):  # they print errors that are also raised
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def detail(found: Any, name: str) -> str:
    """A value from a description that Milvus returns as a mapping; enumerations become their names."""
    value = found.get(name, "")
    return str(getattr(value, "name", value))
