"""The contents of a folder, so that a test can assert that nothing was changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def contents(folder: Path) -> dict[str, object]:
    """Every file by path: the rows of a database, otherwise the bytes.

    Excluded are locks, the side files of open databases (`-wal`, `-shm`), tables without rows, and what Chroma writes
    when it is opened for reading.
    """
    state: dict[str, object] = {}
    if not folder.exists():
        return state
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or "locks" in path.parts or name.endswith(("-wal", "-shm", ".bin")):
            continue
        if path.suffix in (".sqlite", ".sqlite3"):
            state |= {f"{name}:{table}": rows for table, rows in _rows(path).items() if rows}
        else:
            state[name] = path.read_bytes()
    return state


def _rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        names = [name for name in names if name != "acquire_write"]
        found: dict[str, list[tuple[object, ...]]] = {}
        for name in names:
            try:
                found[name] = db.execute(f'SELECT * FROM "{name}"').fetchall()
            except sqlite3.OperationalError:  # a virtual table whose module is not loaded here
                continue
        return found
