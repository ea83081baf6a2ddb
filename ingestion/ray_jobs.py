"""Runs jobs as Ray tasks: bounded in number and total size, and repeated if a worker or node is lost."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Any, Final

from ..documents.chunking import CHUNKING_VERSION
from ..documents.sandbox import StoppedError, raise_if_stopped
from ..errors import CiteloomError, InputError, PausedError
from .reading import READING_VERSION

TRIES: Final = 6  # most workers die for reasons other than the job, and a vain retry costs only time
LOST: Final = f"crashed {TRIES} Ray workers, perhaps for lack of memory"
_MAX_BYTES: Final = 64_000_000  # bytes of files in flight, which the object store holds
_POLL_INTERVAL: Final = 1.0  # seconds between checks for Ctrl-C
_NO_CPU_TIMEOUT: Final = 30.0  # seconds
# These packages determine what is read from a paper, and its vectors.
_PACKAGES: Final = ("citeloom", "pdf-oxide", "pypandoc_binary", "onnxruntime", "tokenizers", "numpy")
_INSTALL: Final = "Install the same version on every node of the cluster."


class RayStoppedError(PausedError):
    """The Ray cluster was lost, or ran out of room for what it was sent; finished papers are in the library."""

    default_help = "Finished papers are in the library; run the same command to ingest the others."


@dataclass(slots=True)
class RayJob:
    """One call of a function of `ray_executor`; `load` creates its arguments each time it is sent; `size` is in bytes.

    The job is given up once `tries` workers have died while running it.
    """

    number: int
    stage: str
    load: Callable[[], tuple[Any, ...]]
    size: int = 0
    tries: int = TRIES


class RayJobs:
    """Runs jobs on the cluster that `ray` is connected to, at most `at_once` at a time across all threads."""

    def __init__(self, ray: Any, at_once: int) -> None:
        self.at_once = at_once
        self._ray = ray
        self._free = threading.Semaphore(at_once)
        errors = ray.exceptions
        self._worker_lost = (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
        )
        # Ray's own retries are off: they would not be counted, and would repeat for ever after lack of memory.
        self._task = ray.remote(num_cpus=1, max_retries=0)(_stage_task())

    def run(self, jobs: Iterable[RayJob]) -> Iterator[tuple[RayJob, Any]]:
        """Run jobs and yield each with its result as it finishes; None if it was given up.

        A job whose worker was lost is resent after all others, when the cause may have passed. Raises
        `RayStoppedError`, `InputError` if a worker has other versions, `StoppedError`, and what a stage raises. Jobs
        still running are then cancelled.
        """
        waiting, again = iter(jobs), deque[RayJob]()
        running: dict[Any, RayJob] = {}
        try:
            with self._pause_on_errors():
                while True:
                    self._send(waiting, again, running)
                    if not running:
                        return
                    for ref in self._wait_for_one(list(running)):
                        job = running.pop(ref)
                        self._free.release()
                        try:
                            yield job, self._result(ref)
                        except self._worker_lost:
                            job.tries -= 1
                            if job.tries:
                                again.append(job)
                            else:
                                yield job, None
        finally:
            try:
                with suppress(Exception):  # of any class once the cluster is gone
                    for ref in running:
                        self._ray.cancel(ref, force=True)
            finally:
                for _ in running:
                    self._free.release()

    @contextmanager
    def _pause_on_errors(self) -> Iterator[None]:
        """Raise `RayStoppedError` for cluster errors, which can be of any class once the connection is lost."""
        try:
            yield
        except (StoppedError, CiteloomError):
            raise
        except Exception as error:
            if not self._ray.is_initialized():
                raise RayStoppedError("Ray stopped: the connection to its cluster was lost.") from error
            if isinstance(error, (self._ray.exceptions.RayError, ConnectionError)):
                raise RayStoppedError(f"Ray stopped: {one_line(error)}.") from error
            raise

    def _send(self, waiting: Iterator[RayJob], again: deque[RayJob], running: dict[Any, RayJob]) -> None:
        """Send jobs while there is room; if no job is running, wait for room."""
        while sum(job.size for job in running.values()) < _MAX_BYTES:
            raise_if_stopped()
            if not self._free.acquire(timeout=0 if running else _POLL_INTERVAL):
                if running:
                    return
                continue
            ref = None
            try:
                job = next(waiting, None) or (again.popleft() if again else None)
                if job is None:
                    return
                task = self._task.options(name=f"citeloom {job.stage}")
                ref = task.remote(versions(), job.stage, *job.load())
                running[ref] = job
            finally:
                if ref is None:
                    self._free.release()

    def _wait_for_one(self, refs: list[Any]) -> list[Any]:
        """Wait until one of the tasks is done; raises `RayStoppedError` if the cluster has had no CPU for long."""
        since = time.monotonic()
        while True:
            raise_if_stopped()
            done, _ = self._ray.wait(refs, num_returns=1, timeout=_POLL_INTERVAL)
            if done:
                return list(done)
            if self._ray.cluster_resources().get("CPU", 0) >= 1:
                since = time.monotonic()
            elif time.monotonic() - since > _NO_CPU_TIMEOUT:
                raise RayStoppedError("Ray stopped: its nodes with CPUs are gone.")

    def _result(self, ref: Any) -> Any:
        """The result of a task; raises what the stage raised, and `InputError` for a worker of other versions."""
        try:
            node, other, result = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, CiteloomError):
                raise error.cause from error
            if isinstance(error.cause, OSError):
                raise self._ray.exceptions.WorkerCrashedError from error  # such as a full disk on the node
            if isinstance(error.cause, ImportError):
                raise InputError(f"A Ray worker lacks a package: {one_line(error.cause)}.", help=_INSTALL) from error
            raise
        if other:
            own = versions()
            package = next(name for name in own if other.get(name, "") != own[name])
            there = f"{package} {other[package]}" if other.get(package) else f"no {package}"
            raise InputError(
                f"The Ray node {node} has {there}, this computer has {package} {own[package]}.", help=_INSTALL
            )
        return result

    def stop(self, seconds: float) -> None:
        """Wait until no thread that runs jobs uses Ray, since disconnecting during their calls is unsafe."""
        deadline = time.monotonic() + seconds
        for _ in range(self.at_once):
            if not self._free.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """The package versions on which the result of a stage depends; empty if a package is not installed."""
    found = {"reading": READING_VERSION, "chunking": str(CHUNKING_VERSION)}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = ""
    return found


def one_line(error: BaseException) -> str:
    """The message of an error in one line; of a traceback that Ray puts into one, its last line."""
    text = str(error).strip()
    if "Traceback (most recent call last)" in text:
        text = text.splitlines()[-1]
    return " ".join(text.split()).rstrip(".")[:300] or type(error).__name__


def _stage_task() -> Callable[..., Any]:
    def run_stage(wanted: dict[str, str], stage: str, *arguments: Any) -> tuple[str, dict[str, str], Any]:
        """Run a stage of the same versions; nested, so that Ray sends the code by value, whatever the worker has."""
        from importlib import import_module, metadata

        node = import_module("ray").util.get_node_ip_address()
        try:
            tasks = import_module("citeloom.ingestion.ray_executor")
            found = import_module("citeloom.ingestion.ray_jobs").versions()
        except ImportError:
            try:
                found = {"citeloom": metadata.version("citeloom")}
            except metadata.PackageNotFoundError:
                found = {"citeloom": ""}
        if found != wanted:
            return node, found, None
        return node, {}, getattr(tasks, stage)(*arguments)

    return run_stage
