"""Checkpoints that somebody else wrote are values: no function that they name is called, and each is named."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_DELTA_SNAPSHOT,
    EXT_METHOD_SINGLE_ARG,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.types import Interrupt, Overwrite, Send

from citeloom.errors import WRONG_INPUT
from citeloom.sqlite import DamagedFileError
from citeloom.stores.local.checkpoints import open_checkpoints
from examples.embed_as_subgraph import PLAIN_VALUES

pytestmark = pytest.mark.attack


def ext(code: int, value: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(code, pack(value))


def pack(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def state(value: Any) -> bytes:
    """A checkpoint whose state holds `value`."""
    parts: dict[str, Any] = {"channel_versions": {}, "versions_seen": {}, "pending_sends": []}
    return pack({"v": 4, "id": "1", "ts": "2026-01-01T00:00:00+00:00", "channel_values": {"text": value}, **parts})


def nested(value: Any, times: int) -> Any:
    for _ in range(times):
        value = ext(EXT_DELTA_SNAPSHOT, value)
    return value


class Pickled:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


# Each is given a shell command that leaves a mark, and gives the kind and bytes of a checkpoint.
ATTACKS: dict[str, Callable[[str], tuple[str, bytes]]] = {
    "os.system": lambda sh: ("msgpack", state(ext(EXT_CONSTRUCTOR_SINGLE_ARG, ("os", "system", sh)))),
    "posix.system": lambda sh: ("msgpack", state(ext(EXT_CONSTRUCTOR_SINGLE_ARG, ("posix", "system", sh)))),
    "eval": lambda sh: ("msgpack", state(ext(0, ("builtins", "eval", f"__import__('os').system({sh!r})")))),
    "subprocess": lambda sh: (
        "msgpack",
        state(ext(EXT_CONSTRUCTOR_POS_ARGS, ("subprocess", "call", (["sh", "-c", sh],)))),
    ),
    "keywords": lambda sh: (
        "msgpack",
        state(ext(EXT_CONSTRUCTOR_KW_ARGS, ("subprocess", "getoutput", {"cmd": sh}))),
    ),
    "method": lambda sh: ("msgpack", state(ext(EXT_METHOD_SINGLE_ARG, ("os", "path", sh, "os.system")))),
    "method-of-a-safe-type": lambda sh: (
        "msgpack",
        state(ext(EXT_METHOD_SINGLE_ARG, ("pathlib", "Path", sh, "read_text"))),
    ),
    "pydantic-1": lambda sh: ("msgpack", state(ext(EXT_PYDANTIC_V1, ("subprocess", "getoutput", {"cmd": sh})))),
    "pydantic-2": lambda sh: ("msgpack", state(ext(EXT_PYDANTIC_V2, ("subprocess", "getoutput", {"cmd": sh}, "x")))),
    "inside-a-message": lambda sh: (
        "msgpack",
        state(
            ext(
                EXT_PYDANTIC_V2,
                ("langchain_core.messages.ai", "AIMessage", {"content": ext(0, ("os", "system", sh))}, "x"),
            )
        ),
    ),
    "inside-a-snapshot": lambda sh: ("msgpack", state(nested(ext(0, ("os", "system", sh)), 3))),
    "as-a-key": lambda sh: ("msgpack", state({1: {"a": [ext(0, ("os", "system", sh))]}})),
    "whole": lambda sh: ("msgpack", pack(ext(0, ("os", "system", sh)))),
    "opens-a-file": lambda _: ("msgpack", state(ext(EXT_CONSTRUCTOR_POS_ARGS, ("builtins", "open", ("mark", "w"))))),
    "imports-a-module": lambda _: ("msgpack", state(ext(0, ("antigravity", "x", "y")))),
    "pattern": lambda _: ("msgpack", state(ext(EXT_CONSTRUCTOR_POS_ARGS, ("re", "compile", ("(a{9999}){9999}", 0))))),
    "path": lambda _: ("msgpack", state(ext(EXT_CONSTRUCTOR_POS_ARGS, ("pathlib", "Path", ("/etc/passwd",))))),
    "pickle": lambda sh: ("pickle", pickle.dumps(Pickled(sh))),
    "json-constructor": lambda sh: (
        "json",
        json.dumps({"lc": 2, "type": "constructor", "id": ["os", "system"], "args": [sh]}).encode(),
    ),
    "json-prompt": lambda _: (
        "json",
        json.dumps({"lc": 1, "type": "constructor", "id": ["langchain_core", "prompts", "load"]}).encode(),
    ),
    "json-secret": lambda _: ("json", b'{"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"]}'),
    "unknown-kind": lambda sh: ("cloudpickle", pickle.dumps(Pickled(sh))),
}
DAMAGE: dict[str, tuple[Any, Any]] = {
    "no-msgpack": ("msgpack", b"\xc1\xc1"),
    "cut-off": ("msgpack", state("x" * 100)[:-40]),
    "huge-array": ("msgpack", b"\xdd\xff\xff\xff\xff"),
    "deep-array": ("msgpack", b"\x91" * 100_000),
    "deep-types": ("msgpack", state(nested("x", 2000))),
    "odd-type": ("msgpack", state(ext(EXT_CONSTRUCTOR_SINGLE_ARG, 7))),
    "no-checkpoint": ("msgpack", pack("text")),
    "no-channels": ("msgpack", pack({"id": "1", "channel_values": []})),
    "array-of-objects": ("msgpack", pack([ext(EXT_NUMPY_ARRAY, ("O", [1], "C", b"12345678"))])),
    "no-kind": (None, None),
}


def write(path: Path, kind: str | None, content: bytes | None, metadata: bytes | str = b"{}") -> None:
    with closing(sqlite3.connect(path)) as db, db:
        row = ("thread", "", "1", None, kind, content, metadata)
        db.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)


async def read(path: Path) -> Any:
    async with open_checkpoints(path) as saver:
        return await saver.aget_tuple({"configurable": {"thread_id": "thread"}})


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """Checkpoints without any."""
    async with open_checkpoints(tmp_path / "checkpoints.sqlite"):
        pass
    return tmp_path / "checkpoints.sqlite"


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_a_function_named_in_a_checkpoint_is_never_called(
    attack: Callable[[str], tuple[str, bytes]], path: Path, tmp_path: Path
) -> None:
    write(path, *attack(f"touch '{tmp_path / 'mark'}'"))
    with pytest.raises(DamagedFileError) as refused:
        await read(path)
    assert str(path) in refused.value.message and "Move it away" in refused.value.help
    assert refused.value.exit_code == WRONG_INPUT
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_a_function_named_in_a_pending_write_is_never_called(
    attack: Callable[[str], tuple[str, bytes]], path: Path, tmp_path: Path
) -> None:
    write(path, "msgpack", state("x"))
    with closing(sqlite3.connect(path)) as db, db:
        row = ("thread", "", "1", "task", "", 0, "text", *attack(f"touch '{tmp_path / 'mark'}'"))
        db.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    with pytest.raises(DamagedFileError, match=r"checkpoints\.sqlite"):
        await read(path)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_example_graph_calls_no_function_named_in_a_checkpoint(
    attack: Callable[[str], tuple[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with suppress(NotImplementedError, ValueError):  # kinds that are not read
        PLAIN_VALUES.loads_typed(attack(f"touch '{tmp_path / 'mark'}'"))
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(("kind", "content"), DAMAGE.values(), ids=DAMAGE)
async def test_a_checkpoint_that_cannot_be_read_is_reported(kind: Any, content: Any, path: Path) -> None:
    write(path, kind, content)
    with pytest.raises(DamagedFileError, match=r"checkpoints\.sqlite") as refused:
        await read(path)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500
    column = "checkpoint" if kind else "type"
    said = (f"table checkpoints, column {column}, row thread_id='thread' checkpoint_id='1'", "it is not a checkpoint")
    assert any(words in refused.value.message for words in said)


async def test_a_write_that_cannot_be_read_is_reported_with_its_column(path: Path) -> None:
    write(path, "msgpack", state("x"))
    with closing(sqlite3.connect(path)) as db, db:
        row = ("thread", "", "1", "task", "", 0, "text", "msgpack", b"\xc1")
        db.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    with pytest.raises(
        DamagedFileError, match="table writes, column value, row thread_id='thread' checkpoint_id='1': "
    ):
        await read(path)


async def test_invalid_metadata_is_reported(path: Path) -> None:
    write(path, "msgpack", state("x"), metadata=b"{")
    with pytest.raises(DamagedFileError, match=r"checkpoints\.sqlite.*it is not a checkpoint"):
        await read(path)


async def test_checkpoints_written_by_langgraph_are_still_read(path: Path) -> None:
    """LangGraph's own writer wrote homes until now; their runs go on."""
    written = {
        "messages": [
            SystemMessage("s", id="0"),
            HumanMessage("h", id="1"),
            AIMessage("a", id="2", tool_calls=[{"name": "search", "args": {"query": "q"}, "id": "c"}]),
            ToolMessage("t", id="3", tool_call_id="c"),
        ],
        "overwritten": Overwrite([1]),
        "sent": [Send("node", {"x": 1})],
        "interrupts": (Interrupt(value="why", id="i"),),
        "collected": [{1, 2}, frozenset({"a"}), deque([1])],
        "when": datetime(2026, 1, 1, tzinfo=UTC),
        "plain": {"text": "é", "number": 1.5, "nothing": None, "list": [1, [2]], 3: True},
    }
    before = JsonPlusSerializer(pickle_fallback=False)
    async with open_checkpoints(path) as saver:
        read = saver.serde.loads_typed(before.dumps_typed(written))
        assert {**read, "interrupts": tuple(read["interrupts"])} == written
        assert saver.serde.dumps_typed(written) == before.dumps_typed(written)
