"""Runs jobs as Ray tasks: a bounded number and size at once, and again where a worker or its node is lost."""

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

TRIES: Final = 6  # of a job whose worker ends: most end for another reason, and a job repeated in vain costs only time
LOST: Final = f"ended {TRIES} Ray workers that were busy with it, perhaps for lack of memory"
_MOST_BYTES: Final = 64_000_000  # of files sent and not yet done; the object store holds them
_PAUSE: Final = 1.0  # seconds between looking for Ctrl-C
_WITHOUT_CPU: Final = 30.0  # seconds
# They decide what is read from a paper and what its vectors are.
_PACKAGES: Final = ("citeloom", "pdf-oxide", "pypandoc_binary", "onnxruntime", "tokenizers", "numpy")
_INSTALL: Final = "Install the same version on every node of the cluster."


class RayStoppedError(PausedError):
    """The Ray cluster was lost, or cannot hold what it is sent; finished papers are in the library."""

    default_help = "Finished papers are in the library; run the same command to ingest the others."


@dataclass(slots=True)
class Job:
    """One call of a function of `ray_executor`; `load` makes its arguments each time it is sent, `size` is in bytes.

    It is given up when `tries` workers have ended with it.
    """

    number: int
    stage: str
    load: Callable[[], tuple[Any, ...]]
    size: int = 0
    tries: int = TRIES


class RayJobs:
    """Runs jobs on the cluster that `ray` is connected to, `at_once` of them over all threads."""

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

    def require_same_versions(self, seconds: float) -> None:
        """Raise `InputError` if a node has other versions than this computer; one that does not answer is ignored.

        So is a node that Ray still lists though it is gone.
        """
        with self._pausing():
            probes = self._probes()
            answered, silent = self._ray.wait(probes, num_returns=len(probes), timeout=seconds)
            for probe in silent:
                self._ray.cancel(probe, force=True)
            for probe in answered:
                with suppress(*self._worker_lost, self._ray.exceptions.TaskUnschedulableError):
                    self._result(probe)

    def _probes(self) -> list[Any]:
        """A task on each node with CPUs that compares versions."""
        on = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        return [
            self._task.options(num_cpus=0, scheduling_strategy=on(node["NodeID"], soft=False)).remote(versions(), "")
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU")
        ]

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Any]]:
        """The jobs as they are done, each with its result; None for a job that was given up.

        A job whose worker was lost is sent again after all others, when what ended the worker may be over.
        Raises `RayStoppedError`, `InputError` if a worker has other versions, `StoppedError`, and what a stage raises.
        The jobs that still run are then cancelled.
        """
        waiting, again = iter(jobs), deque[Job]()
        running: dict[Any, Job] = {}
        try:
            with self._pausing():
                while True:
                    self._send(waiting, again, running)
                    if not running:
                        return
                    for ref in self._finished(list(running)):
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
            self._cancel(list(running))

    @contextmanager
    def _pausing(self) -> Iterator[None]:
        """Raise `RayStoppedError` for an error of the cluster, which is of any class once the connection is lost."""
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

    def _send(self, waiting: Iterator[Job], again: deque[Job], running: dict[Any, Job]) -> None:
        """Send jobs while there is room; waits for it if none runs."""
        while sum(job.size for job in running.values()) < _MOST_BYTES:
            raise_if_stopped()
            if not self._free.acquire(timeout=0 if running else _PAUSE):
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

    def _finished(self, refs: list[Any]) -> list[Any]:
        """Wait until one of the tasks is done; raises `RayStoppedError` if the cluster has had no CPU for long."""
        since = time.monotonic()
        while True:
            raise_if_stopped()
            done, _ = self._ray.wait(refs, num_returns=1, timeout=_PAUSE)
            if done:
                return list(done)
            if self._ray.cluster_resources().get("CPU", 0) >= 1:
                since = time.monotonic()
            elif time.monotonic() - since > _WITHOUT_CPU:
                raise RayStoppedError("Ray stopped: its nodes with CPUs are gone.")

    def _result(self, ref: Any) -> Any:
        """The result of a task; raises what the stage raised, and `InputError` for a worker of other versions."""
        try:
            node, other, result = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, CiteloomError):
                raise error.cause from error
            if isinstance(error.cause, OSError):
                raise self._ray.exceptions.WorkerCrashedError from error  # such as a full disk there
            if isinstance(error.cause, ImportError):
                raise InputError(f"A Ray worker lacks a package: {one_line(error.cause)}.", help=_INSTALL) from error
            raise
        if other:
            raise InputError(_difference(node, other), help=_INSTALL)
        return result

    def stop(self, seconds: float) -> None:
        """Wait until the threads that run jobs have let go of Ray, which must not be left while they call it."""
        deadline = time.monotonic() + seconds
        for _ in range(self.at_once):
            if not self._free.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return

    def _cancel(self, refs: list[Any]) -> None:
        """Cancel tasks whose results nobody wants any more."""
        try:
            with suppress(Exception):  # of any class if there is no cluster any more
                for ref in refs:
                    self._ray.cancel(ref, force=True)
        finally:
            for _ in refs:
                self._free.release()


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """The versions on which the result of a stage depends; empty for a package that is not installed."""
    found = {"reading": READING_VERSION, "chunking": str(CHUNKING_VERSION)}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = ""
    return found


def _difference(node: str, other: dict[str, str]) -> str:
    """What a node has other than this computer, in one line."""
    own = versions()
    package = next(name for name in own if name in ("citeloom", *own) and other.get(name, "") != own[name])
    there = f"{package} {other[package]}" if other.get(package) else f"no {package}"
    return f"The Ray node {node} has {there}, this computer has {package} {own[package]}."


def one_line(error: BaseException) -> str:
    """The message of an error in one line; of a traceback that Ray puts into one, its last line."""
    text = str(error).strip()
    if "Traceback (most recent call last)" in text:
        text = text.splitlines()[-1]
    return " ".join(text.split()).rstrip(".")[:300] or type(error).__name__


def _stage_task() -> Callable[..., Any]:
    def run_stage(wanted: dict[str, str], stage: str, *arguments: Any) -> tuple[str, dict[str, str], Any]:
        """Run a stage, or without one compare versions only.

        Nested, so that Ray sends its code by value: the worker may have another Citeloom, or none.
        """
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
        return node, {}, getattr(tasks, stage)(*arguments) if stage else None

    return run_stage
