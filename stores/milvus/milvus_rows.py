"""The two collections of a library in Milvus: chunks with vectors and words, and the vectors of summaries and notes.

A row belongs to a version of a paper, so that the rows of a change can be written before it is committed. Its id is the
version and the place within the paper, so writing a change again replaces its rows. Texts are not stored in Milvus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...documents import Chunk
from ...models.embeddings.protocol import Vector
from ..search_records import VectorStoreError
from .milvus_connection import READ_SECONDS, WRITE_SECONDS, MilvusConnection, MilvusError, detail

if TYPE_CHECKING:
    from pymilvus import MilvusClient


Sparse = dict[int, float]
_PLACES: Final = 1 << 20  # more than a paper has chunks
VECTOR, WORDS = "vector", "words"
SUMMARY, PASSAGE = 0, 1
Row = dict[str, Any]


def index_chunk(version: int, chunk: Chunk, text_hash: str, vector: Vector, words: Sparse) -> Row:
    """The row by which a chunk is searched."""
    place = {"id": row_id(version, chunk.index), "paper": version, "category": int(chunk.category)}
    return {**place, "hash": fingerprint(text_hash), VECTOR: vector, WORDS: words}


def index_texts(version: int, summary: Vector, passages: Iterable[Vector]) -> list[Row]:
    """The rows by which the summary of a paper and the passages of its note are searched."""
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
        client = self._connection.client()
        with self._connection.named_errors():
            there = set(client.list_collections(timeout=self._connection.read_seconds))
        return [name for name in self._names.values() if name not in there]

    def drop(self) -> None:
        client = self._connection.client()
        with self._connection.named_errors():
            for name in self._names.values():
                client.drop_collection(name, timeout=WRITE_SECONDS)

    def create(self, dimension: int) -> None:
        """Create the collections that are missing, and load them."""
        client = self._connection.client()
        missing = self.missing()
        with self._connection.named_errors():
            for kind, name in self._names.items():
                if name in missing:
                    _create(client, name, kind, dimension)

    def put(self, kind: str, rows: Sequence[Row]) -> None:
        """Write rows, replacing those with the same ids."""
        client = self._connection.client()

        def put(start: int) -> None:
            with self._connection.named_errors():
                batch = list(rows[start : start + _ROWS_AT_ONCE])
                client.upsert(self._names[kind], batch, timeout=WRITE_SECONDS)

        with ThreadPoolExecutor(_WRITES_AT_ONCE) as pool:
            list(pool.map(put, range(0, len(rows), _ROWS_AT_ONCE)))  # re-raises errors of the writes

    def delete(self, versions: Sequence[int]) -> None:
        client = self._connection.client()
        for batch in _batches(versions):
            with self._connection.named_errors():
                for name in self._names.values():
                    client.delete(name, filter=in_filter("paper", batch), timeout=WRITE_SECONDS)

    def search(self, kind: str, field: str, query: Any, limit: int, scope: str) -> list[Found]:
        """Rows near a vector, or with words of a query, within a filter expression."""
        client = self._connection.client()

        def search() -> list[Any]:
            with self._connection.named_errors():
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
        client = self._connection.client()
        with self._connection.named_errors():
            released = [name for name in self._names.values() if _load_state(client, name) != LOADED]
            for name in released:
                client.load_collection(name, timeout=WRITE_SECONDS)
        return bool(released)

    def stored(self, kind: str, versions: Sequence[int] | None = None) -> Iterator[tuple[int, int, int]]:
        """Version, place and fingerprint (0 for papers) of all rows, or of the rows of these versions.

        Raises `VectorStoreError` if there are no collections.
        """
        self._load()
        client = self._connection.client()
        for scope in [""] if versions is None else (in_filter("paper", batch) for batch in _batches(versions)):
            with self._connection.named_errors():
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
        client = self._connection.client()
        self._load()
        wrong = []
        with self._connection.named_errors():
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


def _create(client: MilvusClient, collection: str, kind: str, dimension: int) -> None:
    from pymilvus import DataType

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
    client.create_collection(collection, schema=schema, consistency_level="Strong", timeout=WRITE_SECONDS)
    client.create_index(collection, indexes, timeout=WRITE_SECONDS, sync=False)  # an index without rows
    client.load_collection(collection, timeout=WRITE_SECONDS)


def in_filter(field: str, values: Iterable[int]) -> str:
    return f"{field} in {list(values)}"


def _batches(versions: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(versions), _VERSIONS_AT_ONCE):
        yield list(versions[start : start + _VERSIONS_AT_ONCE])
