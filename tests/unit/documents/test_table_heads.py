"""The column names of a table that a chunk border cuts."""

from __future__ import annotations

import pytest

from citeloom.documents.passages import continues_table, open_table_head

HEAD = "| Arm | Patients | Events |\n|---|---:|---|\n"
ROWS = "| Drug | 112 | 4% |\n| None | 108 | 9% |"


@pytest.mark.parametrize(
    ("text", "inside"), [(ROWS, True), (HEAD + ROWS, False), (f"Words.\n\n{ROWS}", False), ("", False)]
)
def test_a_passage_that_starts_inside_a_table_is_recognised(text: str, inside: bool) -> None:
    assert continues_table(text) is inside


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (f"Table 2. Events.\n\n{HEAD}{ROWS}\n", "Arm | Patients | Events"),
        (f"{HEAD}{ROWS}\n\nAnd so on.", None),
        (ROWS, None),
    ],
)
def test_a_continued_table_gets_its_column_names(text: str, row: str | None) -> None:
    head = open_table_head("p:00001", text)
    assert (head and head.row) == row
    assert head is None or text[head.start : head.end] == HEAD.splitlines()[0]
