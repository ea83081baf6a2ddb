"""LangGraph checkpoints on SQLite, from which a killed run resumes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ...models.concurrency import LoopLocal
from ...sqlite import CHECKPOINTS_REMEDY, DamagedFileError, naming_damage, require_plain_schema, write_ahead
from ...table_columns import BLOB, TEXT, Column, ShapeError, TypedTable, choice, integer, optional, text_or_bytes
from ..safe_msgpack import (
    ENCODINGS,
    NEWEST,
    UNREADABLE,
    PlainSerializer,
    continue_after,
    is_checkpoint,
    require_checkpoint,
)


def _metadata(value: Any) -> Any:
    if type(value) is not bytes and value is not None:
        raise TypeError
    if type(value) is bytes and not isinstance(json.loads(value), dict):
        raise TypeError
    return value


# The tables of checkpoints, named in errors about unreadable values.
_STEP: Final = {"thread_id": TEXT, "checkpoint_ns": TEXT, "checkpoint_id": TEXT}
_ENCODING: Final = choice(*ENCODINGS)
CHECKPOINTS: Final = TypedTable(
    "checkpoints",
    tuple(_STEP),
    _STEP
    | {
        "parent_checkpoint_id": optional(TEXT),
        "type": _ENCODING,
        "checkpoint": BLOB,
        "metadata": Column("a JSON object", _metadata),
    },
)
WRITES: Final = TypedTable(
    "writes",
    (*_STEP, "task_id", "idx"),
    _STEP | {"task_id": TEXT, "idx": integer(low=-100), "channel": TEXT, "type": _ENCODING, "value": BLOB},
)


class PlainSaver(AsyncSqliteSaver):
    """Saver for the file at `path` that reads checkpoints as plain values."""

    def __init__(self, connection: aiosqlite.Connection, path: Path) -> None:
        super().__init__(connection, serde=PlainSerializer(path))
        self._path = path

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names; raises `DamagedFileError` if it is not valid."""
        try:
            found = await super().aget_tuple(config)
            return require_checkpoint(found)
        except (*UNREADABLE, DamagedFileError) as error:
            with naming_damage(self._path, CHECKPOINTS_REMEDY):
                await self._name_wrong_value(config)
            if isinstance(error, DamagedFileError):
                raise
            raise DamagedFileError(
                f"{self._path}: a checkpoint cannot be read ({error}).", help=CHECKPOINTS_REMEDY
            ) from error

    async def _name_wrong_value(self, config: RunnableConfig) -> None:
        """Raise `WrongValueError` for the first value of the thread that cannot be read."""
        for table in (CHECKPOINTS, WRITES):
            query = f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE thread_id = ?"
            async with self.conn.execute(query, (str(config["configurable"]["thread_id"]),)) as cursor:
                names = [column[0] for column in cursor.description]
                rows = list(await cursor.fetchall())
            table.decode(names, rows)
            blob, kind = "checkpoint" if table is CHECKPOINTS else "value", names.index("type")
            for row in rows:
                decode = partial(self._decode_value, row[kind], checkpoint=table is CHECKPOINTS)
                replace(table, columns={**table.columns, blob: Column("a value of a run", decode)}).decode(names, [row])

    def _decode_value(self, kind: str, content: bytes, *, checkpoint: bool) -> Any:
        try:
            value = self.serde.loads_typed((kind, content))
        except DamagedFileError as error:
            raise ShapeError(error.message.removeprefix(f"{self._path}: ").rstrip(".")) from None
        if checkpoint and not is_checkpoint(value):
            raise ShapeError("it is not a checkpoint")
        return value

    async def keep_latest(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread but its latest, including those of its subgraphs."""
        latest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')"
        async with self.lock, self.conn.cursor() as cursor:
            for table in ("writes", "checkpoints"):
                await cursor.execute(
                    f"DELETE FROM {table} WHERE thread_id = :thread"
                    f" AND (checkpoint_ns != '' OR checkpoint_id < {latest})",
                    {"thread": thread_id},
                )
            await self.conn.commit()


_turns: LoopLocal[dict[Path, asyncio.Lock]] = LoopLocal(dict)


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[PlainSaver]:
    """Open a saver on the file at `path`, creating the file if it is missing.

    `synchronous=FULL`: a step reported as done survives a power cut. Checkpoints are read as plain values
    (`stores/safe_msgpack.py`). Savers of one event loop write in turn: SQLite's lock is not fair, so some of many
    waiting connections would starve. Raises `DamagedFileError`, now or on a later read, for unreadable data.
    """

    def prepare() -> None:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            write_ahead(connection)
            require_plain_schema(connection, path, CHECKPOINTS_REMEDY)

    with naming_damage(path, CHECKPOINTS_REMEDY):
        await asyncio.to_thread(prepare)
        async with aiosqlite.connect(path, timeout=30) as connection:
            try:
                connection.text_factory = text_or_bytes
                await connection.execute("PRAGMA synchronous=FULL")
                saver = PlainSaver(connection, path)
                saver.lock = _turns.get().setdefault(path, saver.lock)
                await saver.setup()
                async with connection.execute(NEWEST) as cursor:
                    found = await cursor.fetchone()
                continue_after(found[0] if found else None)
                yield saver
            finally:
                in_its_thread: Any = connection._execute
                await in_its_thread(_roll_back_and_close, connection._conn)


def _roll_back_and_close(connection: sqlite3.Connection) -> None:
    """Close the connection for good, in one step of its thread.

    A write that was cancelled before its commit would otherwise keep the file locked until Python deletes the cursor,
    which the traceback of the cancelled task still holds.
    """
    connection.rollback()
    connection.close()
