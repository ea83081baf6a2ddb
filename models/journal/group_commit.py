"""Group commit: one thread owns a database connection and commits queued work in batches.

A sync takes as long for twenty answers as for one. If one piece of a batch fails, each piece is retried alone.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from .journal_database import JournalConnection

ResultT = TypeVar("ResultT")
_Job = tuple[Callable[[JournalConnection], Any], Future[Any]]  # work and the future of its result


class ClosedError(Exception):
    """Work was submitted after `close`."""


class GroupCommit:
    """Runs work on one connection, in order of submission, several pieces per transaction."""

    def __init__(
        self,
        connect: Callable[[], JournalConnection],  # in the thread that will use it; its errors are raised here
        name: str,  # of the thread
        begin: str = "BEGIN IMMEDIATE",  # opens a transaction
        passing: tuple[type[Exception], ...] = (),  # such as a lost connection: the same work is retried once
    ) -> None:
        self._begin = begin
        self._passing = passing
        self._work: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        opened: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, args=(connect, opened), name=name, daemon=True)
        self._thread.start()
        problem = opened.get()
        if problem is not None:
            self._thread.join()
            raise problem

    async def submit(self, work: Callable[[JournalConnection], ResultT]) -> ResultT:
        """The result of `work`, once it is committed to disk.

        `work` is carried out even if the caller is cancelled, so that no answer is lost. It must not return a cursor,
        whose release in the caller's thread would reset a statement in use here. Raises `ClosedError`.
        """
        result: Future[ResultT] = Future()
        result.set_running_or_notify_cancel()  # cannot be cancelled any more
        with self._closing:
            if self._closed:
                raise ClosedError
            self._work.put((work, result))
        return await asyncio.wrap_future(result)

    def close(self) -> None:
        """Finish submitted work, then close the connection; may be called twice."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._work.put(None)
        self._thread.join()

    def _serve(self, connect: Callable[[], JournalConnection], opened: queue.SimpleQueue[Exception | None]) -> None:
        try:
            connection = connect()
        except Exception as error:  # noqa: BLE001 - re-raised by the constructor, in the caller's thread
            opened.put(error)
            return
        opened.put(None)
        try:
            while (job := self._work.get()) is not None:
                batch = [job]
                while not self._work.empty() and (job := self._work.get()) is not None:
                    batch.append(job)
                self._run(connection, batch)
                if job is None:
                    break
        finally:
            connection.close()

    def _run(self, connection: JournalConnection, batch: Sequence[_Job], *, again: bool = True) -> None:
        begun = False
        try:
            connection.execute(self._begin)
            begun = True
            results = [work(connection) for work, _ in batch]
            connection.commit()
        except Exception as error:  # noqa: BLE001 - delivered to its caller
            if begun:
                connection.rollback()
            if again and isinstance(error, self._passing):
                self._run(connection, batch, again=False)
            elif begun and len(batch) > 1:
                for job in batch:
                    self._run(connection, [job])
            else:
                for _, result in batch:
                    result.set_exception(error)
        else:
            for (_, result), value in zip(batch, results, strict=True):
                result.set_result(value)
