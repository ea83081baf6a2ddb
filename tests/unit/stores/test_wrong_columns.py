"""Values that a column can hold but no reader can use are wrong too."""

from __future__ import annotations

import pytest

from citeloom.stores.run_register import CONVERSATIONS, RUNS, TURNS
from citeloom.stores.uploads import UPLOADS
from citeloom.table_columns import TypedTable, WrongValueError


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (RUNS, "thread_id", ""),
        (CONVERSATIONS, "thread_id", ""),
        (TURNS, "thread_id", ""),
        (UPLOADS, "name", "[" * 300),
        (UPLOADS, "name", "\u00e9" * 128),
        (UPLOADS, "name", ".."),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_an_invalid_name_is_a_wrong_value(table: TypedTable, column: str, value: str) -> None:
    with pytest.raises(WrongValueError, match=f"table {table.name}, column {column}"):
        table.decode([column], [(value,)])


def test_the_longest_name_of_a_file_is_read() -> None:
    name = "a" * 252 + ".md"
    assert UPLOADS.decode(["name"], [(name,)]) == [(name,)]
