"""A run that is stopped in the middle of a checkpoint leaves the file to the run that resumes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from citeloom.stores.local.checkpoints import open_checkpoints


async def test_an_interrupted_write_does_not_keep_the_file_locked(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    insert = "INSERT INTO writes (thread_id, checkpoint_id, task_id, idx, channel) VALUES ('t', 'c', 'a', ?, 'q')"
    async with open_checkpoints(path) as saver:
        await saver.conn.executemany(insert, [(1,), (2,)])
        await saver.conn.commit()
        # As the traceback of a cancelled task keeps them: a cursor with rows left, and a write that is not committed.
        reading = await saver.conn.execute("SELECT idx FROM writes")
        await reading.fetchone()
        await saver.conn.execute(insert, (3,))

    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT count(*) FROM writes").fetchall() == [(2,)]
