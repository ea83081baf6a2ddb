"""A full disk is reported as such, and nothing else is."""

from __future__ import annotations

import errno
from pathlib import Path

from citeloom.commands.options import disk_full
from citeloom.errors import InputError


class StoreError(Exception):
    """An error as libraries raise it."""


def test_a_full_disk_is_recognised_behind_later_errors() -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "journal.sqlite")
        except OSError as error:
            raise InputError("journal.sqlite: cannot be written.") from error
    except InputError as error:
        assert "disk is full" in (disk_full(error, []) or "")
    assert disk_full(StoreError("database or disk is full"), [])
    assert disk_full(ExceptionGroup("two failed", [ValueError("no"), StoreError("database or disk is full")]), [])


def test_other_errors_are_not_mistaken_for_a_full_disk(tmp_path: Path) -> None:
    assert disk_full(InputError("exp.json: field results: expected text."), [tmp_path / "not" / "there"]) is None
    assert disk_full(OSError(errno.EACCES, "Permission denied", "out"), [tmp_path]) is None
