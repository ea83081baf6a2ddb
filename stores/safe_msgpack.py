"""Deserializes checkpoints as plain values only, since a checkpoint from somebody else could name any function.

LangGraph's own deserializer calls any function that a checkpoint names (even `os.system`) unless it is strict, and even
then it returns the arguments of the refused call. This one rejects every checkpoint that names anything but the few
types of a run's state.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar, Final
from uuid import UUID

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY, JsonPlusSerializer

from ..sqlite import CHECKPOINTS_REMEDY, DamagedFileError

ENCODINGS: Final = frozenset({"null", "bytes", "bytearray", "msgpack"})
# The errors raised when a checkpoint of another shape is read.
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
# The types in a run's state besides plain values, by module; LangGraph adds `Send`, `Interrupt` and `Command`.
_TYPES: Final = {
    **{f"langchain_core.messages.{kind.lower()}": {f"{kind}Message"} for kind in ("AI", "Human", "System", "Tool")},
    "langchain_core.messages.modifier": {"RemoveMessage"},
    "langgraph.types": {"Overwrite", "Send", "Interrupt", "Command"},
    "builtins": {"set", "frozenset"},
    "collections": {"deque"},
    "datetime": {"datetime", "date", "time", "timedelta", "timezone"},
    "uuid": {"UUID"},
}


class PlainCheckpoints(BaseCheckpointSaver[str]):
    """A mixin for LangGraph's savers that reads only valid checkpoints of plain values."""

    place: object
    tables: ClassVar[str]
    remedy: ClassVar[str]

    async def _wrong_row(self, thread_id: str) -> str:
        """The place of a thread's unreadable value, as errors name it."""
        return f"{self.tables}, row thread_id={thread_id!r}"

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names; raises `DamagedFileError` if it is not valid."""
        try:
            if (found := await super().aget_tuple(config)) is not None:
                _require_checkpoint(found)
            return found
        except (*_UNREADABLE, DamagedFileError) as error:
            reason = f"it is not a checkpoint ({error})"
            if isinstance(error, DamagedFileError):
                reason = error.message.removeprefix(f"{self.place}: ").rstrip(".")
            row = await self._wrong_row(config["configurable"]["thread_id"])
            raise DamagedFileError(f"{self.place}: {row}: {reason}.", help=self.remedy) from error


def _require_checkpoint(found: CheckpointTuple) -> None:
    """Raise ValueError for a checkpoint without the parts that LangGraph reads."""
    checkpoint: Any = found.checkpoint
    parts = [checkpoint[part] for part in ("channel_values", "channel_versions", "versions_seen")]
    if not isinstance(checkpoint["id"], str) or not all(
        isinstance(part, dict) for part in (*parts, *checkpoint["versions_seen"].values())
    ):
        raise ValueError("one of its parts has the wrong type")
    if not isinstance(found.metadata, dict):
        raise ValueError("its metadata is not an object")
    if not all(isinstance(task, str) and isinstance(name, str) for task, name, _ in found.pending_writes or ()):
        raise ValueError("one of its writes names no task or channel")


class PlainSerializer(JsonPlusSerializer):
    """Serializes like LangGraph; deserializes only plain values and the types of a run's state."""

    def __init__(self, place: object) -> None:
        super().__init__(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)
        self._path = place  # as messages name it

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value; raises `DamagedFileError` if it names another type or cannot be read."""
        (kind, content), wrong = data, ""
        try:
            if kind not in ENCODINGS:
                wrong = f"has the unsupported encoding {kind!r}"
            elif kind == "msgpack" and (foreign := _foreign_types(content)):
                wrong = f"names {foreign[0][:80]!r}, which no run writes; it was not executed"
            else:
                return super().loads_typed(data)
        except (*_UNREADABLE, MemoryError) as error:
            wrong = f"cannot be read ({error})"
        raise DamagedFileError(f"{self._path}: a checkpoint {wrong}.", help=CHECKPOINTS_REMEDY)


def _foreign_types(content: bytes) -> list[str]:
    """The types that a value names, except those of a run's state."""
    foreign: list[str] = []

    def look(code: int, data: bytes) -> None:
        value = ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
        # Two kinds are plain values without a named type.
        if code not in (EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY) and value[1] not in _TYPES.get(value[0], ()):
            foreign.append(".".join(map(str, value[:2])))

    ormsgpack.unpackb(content, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
    return foreign


NEWEST: Final = "SELECT max(checkpoint_id) FROM checkpoints"


def continue_after(newest: str | None) -> None:
    """Make this process generate checkpoint ids higher than `newest`, whatever its clock says."""
    from langgraph.checkpoint.base import id as ids

    with suppress(ValueError, TypeError, AttributeError):  # no checkpoint yet, or an id that LangGraph did not generate
        made = ids.UUID(hex=UUID(newest).hex)
        if made.version == 6 and made.time > (ids._last_v6_timestamp or 0):
            ids._last_v6_timestamp = made.time  # type: ignore[assignment]
