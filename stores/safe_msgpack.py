"""Deserializes checkpoints as plain values only: a home may come from somebody else and name any function.

LangGraph's own deserializer calls whatever a checkpoint names (even `os.system`) unless it is strict, and even then
returns the arguments of what it refused. Here a checkpoint that names anything but the few types of a run's state is
not read at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import ormsgpack
from aiosqlite import Connection
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY, JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ..sqlite import CHECKPOINTS_REMEDY, DamagedFileError

_KINDS: Final = frozenset({"null", "bytes", "bytearray", "msgpack"})
_MESSAGES: Final = {"ai": "AIMessage", "human": "HumanMessage", "system": "SystemMessage", "tool": "ToolMessage"}
# The types in a run's state besides plain values; LangGraph adds `Send`, `Interrupt` and `Command`.
_TYPES: Final = frozenset(
    {
        *((f"langchain_core.messages.{kind}", name) for kind, name in _MESSAGES.items()),
        ("langchain_core.messages.modifier", "RemoveMessage"),
        *(("langgraph.types", name) for name in ("Overwrite", "Send", "Interrupt", "Command")),
        *(("builtins", name) for name in ("set", "frozenset")),
        ("collections", "deque"),
        *(("datetime", name) for name in ("datetime", "date", "time", "timedelta", "timezone")),
        ("uuid", "UUID"),
    }
)


# Nodes of the graphs by the names under which older runs wait at them.
RENAMED_NODES: Final = {"keep": "store_section"}
_NEXT_NODE: Final = "branch:to:"  # the channel by which LangGraph leads to a node


class PlainSaver(AsyncSqliteSaver):
    """Saver for the file at `path` that reads checkpoints as plain values."""

    def __init__(self, connection: Connection, path: Path) -> None:
        super().__init__(connection, serde=PlainSerializer(path))
        self._path = path

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names; raises `DamagedFileError` if it is not valid."""
        try:
            found = await super().aget_tuple(config)
        except (ValueError, TypeError, RecursionError) as error:
            raise DamagedFileError(
                f"{self._path}: a checkpoint cannot be read ({error}).", help=CHECKPOINTS_REMEDY
            ) from error
        return as_current(found, self._path)

    async def keep_latest(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread but its latest, including those of its subgraphs.

        For long-lived threads: each step writes the whole state again, and finished steps are never resumed from.
        """
        latest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')"
        async with self.lock, self.conn.cursor() as cursor:
            for table in ("writes", "checkpoints"):
                await cursor.execute(
                    f"DELETE FROM {table} WHERE thread_id = :thread"
                    f" AND (checkpoint_ns != '' OR checkpoint_id < {latest})",
                    {"thread": thread_id},
                )
            await self.conn.commit()


def as_current(found: CheckpointTuple | None, place: object) -> CheckpointTuple | None:
    """The checkpoint with the names that nodes have now; raises `DamagedFileError` if it is none."""
    if found is not None and not _is_checkpoint(found.checkpoint):
        raise _damaged(place, "holds a checkpoint that is none")
    return found if found is None else _with_current_names(found)


def _with_current_names(found: CheckpointTuple) -> CheckpointTuple:
    """The checkpoint with the names that nodes have now; one that waits at a renamed node would restart."""
    checkpoint = found.checkpoint
    for old, new in RENAMED_NODES.items():
        before, after = f"{_NEXT_NODE}{old}", f"{_NEXT_NODE}{new}"
        for part in (checkpoint["channel_values"], checkpoint["channel_versions"]):
            if before in part:
                part[after] = part.pop(before)
        for versions in checkpoint["versions_seen"].values():
            if before in versions:
                versions[after] = versions.pop(before)
        updated = checkpoint.get("updated_channels")
        if updated and before in updated:
            checkpoint["updated_channels"] = [after if name == before else name for name in updated]
        if old in checkpoint["versions_seen"]:
            checkpoint["versions_seen"][new] = checkpoint["versions_seen"].pop(old)
    return found


def _damaged(path: object, what: str) -> DamagedFileError:
    return DamagedFileError(f"{path}: {what}.", help=CHECKPOINTS_REMEDY)


def _is_checkpoint(value: Any) -> bool:
    parts = ("channel_values", "channel_versions", "versions_seen")
    return isinstance(value, dict) and "id" in value and all(isinstance(value.get(part), dict) for part in parts)


class PlainSerializer(JsonPlusSerializer):
    """Serializes like LangGraph; deserializes only plain values and the types of a run's state."""

    def __init__(self, place: object) -> None:
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)
        self._path = place  # as messages name it

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value; raises `DamagedFileError` if it names another type or cannot be read."""
        kind, content = data
        if kind not in _KINDS:
            raise DamagedFileError(
                f"{self._path}: a checkpoint has the unsupported encoding {kind!r}.", help=CHECKPOINTS_REMEDY
            )
        try:
            if kind == "msgpack":
                self._require_known_types(content)
            return super().loads_typed(data)
        except (ValueError, TypeError, RecursionError, MemoryError) as error:
            raise DamagedFileError(
                f"{self._path}: a checkpoint cannot be read ({error}).", help=CHECKPOINTS_REMEDY
            ) from error

    def _require_known_types(self, content: bytes) -> None:
        foreign: list[str] = []

        def look(code: int, data: bytes) -> Any:
            value = ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
            if code in (EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY):  # plain values without a named type
                return None
            named = tuple(value[:2])
            if named not in _TYPES:
                foreign.append(".".join(map(str, named)))
            return None

        ormsgpack.unpackb(content, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
        if foreign:
            name = foreign[0][:80]
            raise _damaged(self._path, f"a checkpoint names {name!r}, which no run writes; it was not executed")
