"""Declares what the columns of tables hold, and validates every value that is read from them.

A database may be damaged or come from somebody else, and SQLite stores any type in any column: a value is checked like
one from outside, wherever its row is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

_LATEST: Final = 1e11  # seconds, about the year 5100
_LARGEST: Final = 2**62
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_ESCAPED_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_SHOWN: Final = 60  # characters of a wrong value in a message


class WrongValueError(ValueError):
    """A column holds something else than was declared; the message names table, column and row.

    Whoever opened the database raises `DamagedFileError` for it, with the file and its remedy.
    """


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds: `decode` returns the value, or raises ValueError or TypeError; `expected` says it in words.

    `source` is the table and column from which a computed column comes.
    """

    expected: str
    decode: Callable[[Any], Any]
    source: str = ""


@dataclass(frozen=True, slots=True)
class TypedTable:
    """A table with the columns that are read from it; `key` are those that identify a row."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, Column]

    def read(self, cursor: Any) -> list[tuple[Any, ...]]:
        """The decoded rows of a query; raises `WrongValueError`."""
        names = [column[0] for column in cursor.description]
        return self.decode(names, cursor.fetchall())

    def records(self, cursor: Any) -> list[dict[str, Any]]:
        """The same, by column."""
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in self.decode(names, cursor.fetchall())]

    def decode(self, names: list[str], rows: list[Any]) -> list[tuple[Any, ...]]:
        """The decoded values of rows with columns of these names; raises `WrongValueError`."""
        columns = [self.columns[name] for name in names]
        decoded = []
        for column, values in zip(columns, zip(*rows, strict=True), strict=False):
            try:
                decoded.append(list(map(column.decode, values)))
            except (ValueError, TypeError, RecursionError):
                raise self._wrong(names, rows, column, names[len(decoded)]) from None
        return list(zip(*decoded, strict=True))

    def _wrong(self, names: list[str], rows: list[Any], column: Column, name: str) -> WrongValueError:
        place = names.index(name)
        table, _, named = (column.source or f"{self.name}.{name}").rpartition(".")
        for row in rows:
            try:
                column.decode(row[place])
            except (ValueError, TypeError, RecursionError) as error:
                key = " ".join(f"{part}={_shown(row[names.index(part)])}" for part in self.key if part in names)
                reason = f" ({error})" if isinstance(error, ShapeError) else ""
                return WrongValueError(
                    f"table {table}, column {named}, row {key}: expected {column.expected},"
                    f" not {_shown(row[place])}{reason}."
                )
        raise AssertionError("the value was wrong before")


class ShapeError(ValueError):
    """JSON of another shape than was declared; the message says where."""


def strip_nul(text: str) -> str:
    """The text as both SQLite and PostgreSQL hold it: NUL characters and lone surrogates are replaced by U+FFFD.

    The drivers apply it to every parameter of a statement, so that what is read again is the same on each backend.
    """
    return text if text.isascii() and "\0" not in text else _UNSTORABLE.sub("\ufffd", text)


def dump_json(value: Any) -> str:
    """JSON whose texts are stored like others: a reader finds no escaped NUL or lone surrogate in it either."""
    plain = strip_nul(json.dumps(value, ensure_ascii=False))
    return _ESCAPED_NUL.sub("\\1\ufffd", plain) if "\\u0000" in plain else plain


def text_or_bytes(stored: bytes) -> str | bytes:
    """The text factory of SQLite connections: what is no UTF-8 stays bytes, which no text column accepts."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def _shown(value: Any) -> str:
    short = value[:_SHOWN] if isinstance(value, str | bytes) else value
    return f"{short!r}"[: _SHOWN + 3]


def _text(value: Any) -> Any:
    if type(value) is not str:
        raise TypeError
    return value


def _name(value: Any) -> Any:
    if not _text(value):
        raise ValueError
    return value


def _blob(value: Any) -> Any:
    if type(value) is not bytes:
        raise TypeError
    return value


def _moment(value: Any) -> float:
    if (type(value) is not float and type(value) is not int) or not 0 <= value < _LATEST:
        raise ValueError
    return float(value)


def _number(value: Any) -> float:
    if (type(value) is not float and type(value) is not int) or not -_LATEST < value < _LATEST:
        raise ValueError
    return float(value)


def _flag(value: Any) -> bool:
    if value not in (0, 1) or type(value) not in (int, bool):
        raise ValueError
    return bool(value)


def _json(value: Any) -> Any:
    return json.loads(_text(value))


def _object(value: Any) -> Any:
    record = _json(value)
    if type(record) is not dict:
        raise TypeError
    return record


TEXT: Final = Column("text", _text)
NAME: Final = Column("text that is not empty", _name)
BLOB: Final = Column("bytes", _blob)
MOMENT: Final = Column("a time in seconds", _moment)
NUMBER: Final = Column("a number", _number)
FLAG: Final = Column("0 or 1", _flag)
JSON: Final = Column("JSON", _json)
OBJECT: Final = Column("a JSON object", _object)


def integer(low: int = 0, high: int = _LARGEST) -> Column:
    """A whole number between bounds."""

    def decode(value: Any) -> Any:
        if type(value) is not int or not low <= value <= high:
            raise ValueError
        return value

    return Column("a whole number" + (" that is not negative" if low == 0 else ""), decode)


def choice(*values: Any, by: Callable[[Any], Any] | None = None) -> Column:
    """One of these values; `by` converts it."""
    known = {value: value if by is None else by(value) for value in values}

    def decode(value: Any) -> Any:
        if type(value) is bool or value not in known:
            raise ValueError
        return known[value]

    return Column(f"one of {', '.join(map(str, values))}", decode)


def optional(column: Column) -> Column:
    """The same, or NULL."""
    return Column(f"{column.expected} or NULL", lambda value: None if value is None else column.decode(value))


def shaped(expected: str, kind: Any, *, as_record: bool = True) -> Column:
    """JSON of a type that pydantic can check; decoded as that type, or as plain data if not `as_record`."""

    @cache
    def adapter() -> TypeAdapter[Any]:
        return TypeAdapter(kind)

    def decode(value: Any) -> Any:
        plain = _json(value) if not as_record else _text(value)
        try:
            if as_record:
                return adapter().validate_json(plain, strict=True)
            adapter().validate_python(plain, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise ShapeError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")) from None
        return plain

    return Column(expected, decode)
