"""Calls every function that takes text with degenerate texts, and reports those whose time grows faster than the text.

A function is called if each of its required parameters can be made of a text by its annotation. It runs in a process of
its own, `python -m tests.support.collected_functions REPORT LENGTH ROOM...`, in which nothing is written, started,
connected to or removed while a function is called.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import inspect
import os
import signal
import sys
import time
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from citeloom.documents import Chunk, Evidence, Paper
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Source
from tests.support.collected_patterns import ROOT, import_module, source_files
from tests.support.reader_company import chunk, experiment, paper, source

PIECES: Final = (
    "\n",
    " ",
    "<a ",
    "a",
    "a ",
    "1",
    "(",
    "[",
    '"',
    "- ",
    "A. ",
    "<",
    ",",
    ":",
    "/",
    "@",
    "{",
    "\\",
    "a-",
    "=",
)
_GROWTH: Final = 8  # at most, for four times the text; a quadratic function grows by sixteen
_FLOOR: Final = 0.03  # seconds below which growth is not measured
_LIMIT: Final = 20.0
_MARK: Final = "Plain words of a paper."
_ORDINARY: Final[Mapping[Any, Callable[[str], Any]]] = {
    str: lambda text: text,
    bytes: lambda text: text.encode(),
    Any: lambda text: {"title": text, "items": [text, {"name": text}]},
    object: lambda text: {"title": text, "items": [text, {"name": text}]},
    dict: lambda text: {"title": text},
    list: lambda text: [text],
    Paper: paper,
    Experiment: experiment,
    Chunk: chunk,
    Source: source,
    Evidence: lambda text: source(text).evidence,
    AIMessage: AIMessage,
    HumanMessage: HumanMessage,
    BaseMessage: HumanMessage,
    Document: Document,
}
_CONSTANTS: Final[Mapping[Any, Any]] = {bool: True, int: 1, float: 0.5, type(None): None}
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_FORBIDDEN: Final = (
    *("socket.", "subprocess.", "shutil.", "sqlite3.", "signal.", "os.remove", "os.rename", "os.mkdir", "os.rmdir"),
    *(
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "os.kill",
        "os.putenv",
        "os.truncate",
        "os.chmod",
        "os.link",
    ),
)


class _StoppedError(BaseException):
    """A call that takes too long, or does something other than compute."""


class _UnknownTypeError(Exception):
    pass


_calling = False


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
    if _calling and (writes or event.startswith(_FORBIDDEN)):
        raise _StoppedError(event)


def _stop(*_: object) -> None:
    raise _StoppedError


def _made(kind: Any, text: str, depth: int = 3) -> Any:
    """A value of an annotated type with the text in it, wherever one fits."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in _ORDINARY:
        return _ORDINARY[kind](text)
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if origin is typing.Literal:
        return inner[0]
    if origin is typing.Annotated:
        return _made(inner[0], text, depth)
    if origin in (typing.Union, types.UnionType):
        for choice in inner:
            with contextlib.suppress(_UnknownTypeError):
                return _made(choice, text, depth)
    if origin in (list, Sequence, Iterable, Collection):
        return [_made(inner[0], text, depth)]
    if origin in (set, frozenset, Set):
        return frozenset([_made(inner[0], text, depth)])
    if origin is tuple:
        return tuple(_made(part, text, depth) for part in inner if part is not Ellipsis)
    if origin in (dict, Mapping):
        return {"name": _made(inner[1], text, depth)}
    if depth and dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        needed = [item for item in dataclasses.fields(kind) if item.init and item.default is dataclasses.MISSING]
        with contextlib.suppress(Exception):
            return kind(**{item.name: _made(hints[item.name], text, depth - 1) for item in needed})
    raise _UnknownTypeError


def _arguments(function: Callable[..., Any], text: str) -> tuple[list[Any], dict[str, Any]]:
    """The required arguments of a function, made of a text."""
    hints = typing.get_type_hints(inspect.unwrap(function))
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for item in inspect.signature(function).parameters.values():
        if item.default is item.empty and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            value = _made(hints[item.name], text)
            named |= {item.name: value} if item.kind is item.KEYWORD_ONLY else {}
            positional += [] if item.kind is item.KEYWORD_ONLY else [value]
    return positional, named


def _functions(rooms: Collection[str]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of some rooms that take text, by module and name."""
    for path in source_files():
        place = path.relative_to(ROOT)
        module = import_module(path) if place.parts[0] in rooms else None
        for name, value in vars(module).items() if module else ():
            function = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else None
            if not inspect.isfunction(function) or function.__module__ != getattr(module, "__name__", ""):
                continue
            if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
                continue
            with contextlib.suppress(Exception):
                if _MARK in repr(_arguments(value, _MARK)):
                    yield f"{place.as_posix()}: {name}", value


def _seconds(function: Callable[..., Any], text: str) -> float:
    """CPU time of a call; no error matters but that of a limit, which counts as infinity."""
    global _calling
    positional, named = _arguments(function, text)
    getattr(function, "cache_clear", lambda: None)()
    signal.setitimer(signal.ITIMER_VIRTUAL, _LIMIT)
    signal.setitimer(signal.ITIMER_REAL, 10 * _LIMIT)  # for one that waits
    begun, _calling = time.thread_time(), True
    try:
        result = function(*positional, **named)
        for _ in result if inspect.isgenerator(result) else ():
            pass
    except (Exception, SystemExit):  # noqa: BLE001 - an error of any kind is quick
        pass
    except _StoppedError as error:
        return 0.0 if error.args else float("inf")
    finally:
        _calling = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return time.thread_time() - begun


def _grows(function: Callable[..., Any], piece: str, length: int) -> bool:
    """Whether four times the text takes more than eight times as long, or longer than the limit."""
    once = _seconds(function, (piece * length)[:length])
    if once <= _FLOOR:
        return False
    return once == float("inf") or _seconds(function, (piece * 4 * length)[: 4 * length]) > _GROWTH * once


def main(report: Path, length: int, rooms: Collection[str]) -> None:
    """Write how many functions there are, and each that grows too fast, one a line."""
    sys.addaudithook(_refuse)
    signal.signal(signal.SIGVTALRM, _stop)
    signal.signal(signal.SIGALRM, _stop)
    functions = dict(_functions(rooms))
    gc.disable()
    slow = [
        f"{name} on {piece!r}"
        for name, function in functions.items()
        for piece in PIECES
        if all(_grows(function, piece, length) for _ in range(2))
    ]
    report.write_text("\n".join([str(len(functions)), *slow]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
