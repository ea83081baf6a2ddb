"""Milvus or Milvus Lite: the connection, and the two collections of a library.

One holds chunks with vectors and words, the other the vectors of summaries and notes. A row belongs to a version of a
paper, so that the rows of a change can be written before it is committed. A row's id combines the version and the place
in the paper, so writing a change again replaces its rows. Milvus stores no texts, and errors show no secrets.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ...documents import Chunk
from ...errors import InputError, PausedError, require_packages
from ...models.embeddings.protocol import Vector
from ...program import install_hint
from ...settings.addresses import VectorsUrl
from ..store_protocols import VectorStoreError
from ..tables import split_parts

if TYPE_CHECKING:
    from pymilvus import MilvusClient

READ_SECONDS: Final = 30.0
WRITE_SECONDS: Final = 300.0
_CONNECT_SECONDS: Final = 10.0
_PORT: Final = 19530
# The client pings every ten seconds, which gRPC servers refuse by default. A new connection to a restarted server would
# inherit the waiting time of an earlier connection.
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
    """A client that connects on first use, and again in a forked process; thread-safe."""

    def __init__(self, url: VectorsUrl) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._client: MilvusClient | None = None
        self._process = 0

    @property
    def read_seconds(self) -> float:
        """How long a search may take; Milvus Lite may need minutes where a server needs seconds."""
        return READ_SECONDS if self.url.file is None else WRITE_SECONDS

    @contextmanager
    def client(self) -> Iterator[MilvusClient]:
        """The connected client; raises `MilvusUnavailableError`, `MilvusError` and `ConfigurationError`."""
        with self._lock:
            if self._client is None or self._process != os.getpid():
                self._client = self._connect()
                self._process = os.getpid()
            client = self._client
        with self.translate_errors():
            yield client

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
    def translate_errors(self) -> Iterator[None]:
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
            # The client reports a gRPC status, or only a message that no server answered.
            lost = not isinstance(getattr(error, "code", None), int) or any(words in str(error) for words in _LOST)
            raise (MilvusUnavailableError(message) if lost else MilvusError(message)) from None

    def _connect(self) -> MilvusClient:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its C library writes to stderr
        require_packages("Vectors in Milvus need", "pymilvus", help=f"{install_hint('milvus')}.")
        for name in ("pymilvus", "milvus_lite"):  # they print errors that are also raised
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        if self.url.file is not None:
            return self._open_file(str(self.url.file))
        parts = urlsplit(self.url.server)
        usual = 443 if parts.scheme == "https" else _PORT
        try:  # else the client would fail only after its timeout
            socket.create_connection((parts.hostname, parts.port or usual), timeout=_CONNECT_SECONDS).close()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise MilvusUnavailableError(f"{self.url}: Milvus cannot be reached ({reason}).") from None
        from pymilvus import MilvusClient

        with self.translate_errors():
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

        help_ = "Install it: pip install 'pymilvus[milvus_lite]'; or name a Milvus server in CITELOOM_VECTORS."
        require_packages("A file of Milvus Lite needs", "milvus_lite", help=help_)
        try:
            client = MilvusClient(path, timeout=_CONNECT_SECONDS, dedicated=True, grpc_options=_GRPC)
        except (MilvusException, OSError):
            raise MilvusError(
                f"{path}: Milvus Lite cannot open it, perhaps because another process has it open.",
                help="A file of Milvus Lite serves one process at a time; for several, run a Milvus server.",
            ) from None
        with _files_lock:
            _files[path] += 1
        return client


def detail(found: Any, name: str) -> str:
    """A value of a description that Milvus returns as a mapping; an enumeration becomes its name."""
    value = found.get(name, "")
    return str(getattr(value, "name", value))


Sparse = dict[int, float]
_PLACES: Final = 1 << 20  # more than a paper has chunks
VECTOR, WORDS = "vector", "words"
SUMMARY, PASSAGE = 0, 1
Row = dict[str, Any]


def index_chunk(version: int, chunk: Chunk, text_hash: str, vector: Vector, words: Sparse) -> Row:
    """The row for searching a chunk."""
    place = {"id": row_id(version, chunk.index), "paper": version, "category": int(chunk.category)}
    return {**place, "hash": fingerprint(text_hash), VECTOR: vector, WORDS: words}


def index_texts(version: int, summary: Vector, passages: Iterable[Vector]) -> list[Row]:
    """The rows for searching the summary of a paper and the passages of its note."""
    kinds = [(SUMMARY, summary), *((PASSAGE, vector) for vector in passages)]
    return [
        {"id": row_id(version, place), "paper": version, "kind": kind, VECTOR: vector}
        for place, (kind, vector) in enumerate(kinds)
    ]


@dataclass(frozen=True, slots=True)
class Found:
    """A row that a search found."""

    version: int
    place: int
    score: float


def row_id(version: int, place: int) -> int:
    return version * _PLACES + place


def fingerprint(text_hash: str) -> int:
    """The first 64 bits of a text's hash, as an integer for Milvus."""
    return int.from_bytes(bytes.fromhex(text_hash[:16]), "big", signed=True)


MOST_RESULTS: Final = 16_384  # of one search, by Milvus's default quota
_ROWS_AT_ONCE: Final = 1000
_WRITES_AT_ONCE: Final = 2  # the client packs rows while the server writes others
_VERSIONS_AT_ONCE: Final = 1000
CHUNKS, PAPERS = "chunks", "papers"
LOADED: Final = "Loaded"
# Milvus's suggested graph parameters; an administrator may build another index instead.
_HNSW: Final = {"M": 16, "efConstruction": 200}


class MilvusRows:
    """The collections of one library, named so that several libraries can share a Milvus."""

    def __init__(self, connection: MilvusConnection, name: str) -> None:
        self._connection = connection
        self._index_types: dict[str, str] = {}
        self.name = name
        self._names = {kind: f"citeloom_{name}_{kind}" for kind in (CHUNKS, PAPERS)}

    def missing(self) -> list[str]:
        with self._connection.client() as client:
            there = set(client.list_collections(timeout=self._connection.read_seconds))
        return [name for name in self._names.values() if name not in there]

    def drop(self) -> None:
        with self._connection.client() as client:
            for name in self._names.values():
                client.drop_collection(name, timeout=WRITE_SECONDS)

    def create(self, dimension: int) -> None:
        """Create the collections that are missing, and load them."""
        from pymilvus import DataType

        missing = self.missing()
        for kind, name in self._names.items():
            if name not in missing:
                continue
            with self._connection.client() as client:
                schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
                schema.add_field("id", DataType.INT64, is_primary=True)
                schema.add_field("paper", DataType.INT64)
                schema.add_field("category" if kind == CHUNKS else "kind", DataType.INT8)
                schema.add_field(VECTOR, DataType.FLOAT_VECTOR, dim=dimension)
                indexes = client.prepare_index_params()
                indexes.add_index(VECTOR, index_name=VECTOR, index_type="HNSW", metric_type="COSINE", params=_HNSW)
                indexes.add_index("paper", index_name="paper", index_type="INVERTED")
                if kind == CHUNKS:
                    schema.add_field("hash", DataType.INT64)
                    schema.add_field(WORDS, DataType.SPARSE_FLOAT_VECTOR)
                    indexes.add_index(WORDS, index_name=WORDS, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
                client.create_collection(name, schema=schema, consistency_level="Strong", timeout=WRITE_SECONDS)
                client.create_index(name, indexes, timeout=WRITE_SECONDS, sync=False)  # an index without rows
                client.load_collection(name, timeout=WRITE_SECONDS)

    def put(self, kind: str, rows: Sequence[Row]) -> None:
        """Write rows, replacing those with the same ids."""

        def put(batch: list[Row]) -> None:
            with self._connection.client() as client:
                client.upsert(self._names[kind], batch, timeout=WRITE_SECONDS)

        with ThreadPoolExecutor(_WRITES_AT_ONCE) as pool:
            list(pool.map(put, split_parts(rows, _ROWS_AT_ONCE)))  # re-raises errors of the writes

    def delete(self, versions: Sequence[int]) -> None:
        for batch in split_parts(versions, _VERSIONS_AT_ONCE):
            with self._connection.client() as client:
                for name in self._names.values():
                    client.delete(name, filter=in_filter("paper", batch), timeout=WRITE_SECONDS)

    def search(self, kind: str, field: str, query: Any, limit: int, scope: str) -> list[Found]:
        """The rows nearest to a vector, or with words of a query, within a filter expression."""

        def search() -> list[Any]:
            with self._connection.client() as client:
                params = self._search_params(client, kind, limit) if field == VECTOR else {}
                found = client.search(
                    self._names[kind],
                    [query],
                    anns_field=field,
                    limit=limit,
                    filter=scope,
                    output_fields=["id"],
                    search_params={"params": params},
                    consistency_level="Strong",
                    timeout=self._connection.read_seconds,
                )
            return list(found[0])

        try:
            hits = search()
        except MilvusError:
            if not self._load():
                raise
            hits = search()
        return [Found(*divmod(int(hit["id"]), _PLACES), float(hit["distance"])) for hit in hits]

    def _search_params(self, client: MilvusClient, kind: str, limit: int) -> dict[str, int]:
        """Parameters that set the recall of a vector search, for whatever index type is in use."""
        if kind not in self._index_types:
            found = client.describe_index(self._names[kind], VECTOR, timeout=self._connection.read_seconds)
            self._index_types[kind] = detail(found or {}, "index_type")
        wide = min(32_768, max(128, 2 * limit))
        if self._index_types[kind].startswith("HNSW"):
            return {"ef": wide}
        if self._index_types[kind] == "DISKANN":
            return {"search_list": wide}
        return {"nprobe": 64} if self._index_types[kind].startswith("IVF") else {}

    def _load(self) -> bool:
        """Load released collections (always the case after opening a Milvus Lite file); returns whether any was.

        Raises `VectorStoreError` if collections are missing.
        """
        if missing := self.missing():
            raise VectorStoreError(
                f"{self._connection.url}: Milvus does not hold this library ({missing[0]} is missing).",
                help="Run '{citeloom} doctor --repair': it is rebuilt from the database without embedding anything.",
            )
        with self._connection.client() as client:
            released = [name for name in self._names.values() if _load_state(client, name) != LOADED]
            for name in released:
                client.load_collection(name, timeout=WRITE_SECONDS)
        return bool(released)

    def stored_rows(self, kind: str, versions: Sequence[int] | None = None) -> Iterator[tuple[int, int, int]]:
        """Version, place and fingerprint (0 for papers) of the rows of these versions, or of all rows.

        Raises `VectorStoreError` if there are no collections.
        """
        self._load()
        batches = split_parts(versions or (), _VERSIONS_AT_ONCE)
        for scope in [""] if versions is None else (in_filter("paper", batch) for batch in batches):
            with self._connection.client() as client:
                pages = client.query_iterator(
                    self._names[kind],
                    batch_size=_ROWS_AT_ONCE,
                    filter=scope,
                    output_fields=["id", "hash"] if kind == CHUNKS else ["id"],
                    consistency_level="Strong",
                    timeout=self._connection.read_seconds,
                )
                with closing(pages):
                    while page := pages.next():
                        for row in page:
                            yield *divmod(int(row["id"]), _PLACES), int(row.get("hash", 0))

    def state(self) -> tuple[str, list[str]]:
        """The version of Milvus, the type of its vector index, and any problems with the collections."""
        self._load()
        wrong = []
        with self._connection.client() as client:
            version = client.get_server_version(timeout=self._connection.read_seconds)
            for kind, fields in ((CHUNKS, (VECTOR, WORDS)), (PAPERS, (VECTOR,))):
                collection = self._names[kind]
                if (state := _load_state(client, collection)) != LOADED:
                    wrong.append(f"{collection} is not loaded ({state})")
                indexes = set(client.list_indexes(collection, timeout=READ_SECONDS))
                for field in fields:
                    if field not in indexes:
                        wrong.append(f"{collection} has no index of {field}")
                    elif detail(client.describe_index(collection, field, timeout=READ_SECONDS), "state") == "Failed":
                        wrong.append(f"the index of {field} in {collection} has failed")
            index = client.describe_index(self._names[CHUNKS], VECTOR, timeout=self._connection.read_seconds) or {}
        return f"{version}, index {index.get('index_type', 'missing')}", wrong


def _load_state(client: MilvusClient, collection: str) -> str:
    return detail(client.get_load_state(collection, timeout=READ_SECONDS), "state")


def in_filter(field: str, values: Iterable[int]) -> str:
    return f"{field} in {list(values)}"
