"""Parses, splits and embeds on a Ray cluster, which is joined, or started here, for one ingest.

Workers get bytes, parsed papers and texts, never a setting or key, and need no shared disk. Bibliography, caches,
stores and calls to an embedding endpoint stay here, so its limits hold for the whole cluster. Tasks are bounded in
number and total size, and repeated if a worker or node is lost. A Ray started here needs the user's token, has no
dashboard, reports no usage and leaves no files.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import logging
import os
import re
import shutil
import socket
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..documents import Chunk
from ..documents.bibliography import Refusal
from ..documents.chunking import CHUNKING_VERSION
from ..documents.markdown import ParsedPaper
from ..documents.pdf.ocr import Ocr
from ..documents.safe_files import FileRefusedError, read_regular, require_regular
from ..documents.sandbox import StoppedError, in_thread, raise_if_stopped
from ..errors import CiteloomError, InputError, PausedError, require_packages
from ..models.embeddings.bundled_models import LocalEmbedding, cores, count_tokens_each
from ..models.embeddings.protocol import EmbeddingModel, Vector, Vectors
from ..program import install_hint
from ..stores.tables import split_parts
from . import reading
from .reading import PDF, READING_VERSION, Chunking, ConvertedFiles, IngestExecutor, Texts, parse_file, printable

TRIES: Final = 6  # most workers die for reasons other than their job, and a futile retry costs only time
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
        lost = ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "ObjectLostError")
        self._worker_lost = tuple(getattr(ray.exceptions, name) for name in lost)
        # Ray's own retries are off: they would not be counted, and would repeat for ever after lack of memory.
        self._task = ray.remote(num_cpus=1, max_retries=0)(_stage_task())

    def run(self, jobs: Iterable[RayJob]) -> Iterator[tuple[RayJob, Any]]:
        """Run jobs and yield each with its result as it finishes; None if it was given up.

        A job whose worker was lost is sent again after all others, when the cause may have passed. Raises
        `RayStoppedError`, `InputError` if a worker has other versions, `StoppedError`, and what a stage raises; an
        error cancels the jobs still running.
        """
        waiting, again = iter(jobs), deque[RayJob]()
        running: dict[Any, RayJob] = {}
        try:
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
        except (StoppedError, CiteloomError):
            raise
        except Exception as error:  # any class is possible once the connection is lost
            if not self._ray.is_initialized():
                raise RayStoppedError("Ray stopped: the connection to its cluster was lost.") from error
            if isinstance(error, (self._ray.exceptions.RayError, ConnectionError)):
                raise RayStoppedError(f"Ray stopped: {one_line(error)}.") from error
            raise
        finally:
            try:
                with suppress(Exception):  # any class is possible once the cluster is gone
                    for ref in running:
                        self._ray.cancel(ref, force=True)
            finally:
                for _ in running:
                    self._free.release()

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
            message = f"The Ray node {node} has {there}, this computer has {package} {own[package]}."
            raise InputError(message, help=_INSTALL)
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
    """The message of an error in one line; the last line of a traceback that Ray puts into a message."""
    text = str(error).strip()
    if "Traceback (most recent call last)" in text:
        text = text.splitlines()[-1]
    return " ".join(text.split()).rstrip(".")[:300] or type(error).__name__


def _stage_task() -> Callable[..., Any]:
    def run_stage(wanted: dict[str, str], stage: str, *arguments: Any) -> tuple[str, dict[str, str], Any]:
        """Run a stage if the versions match; nested, so that Ray sends this code by value, whatever the worker has."""
        from importlib import import_module, metadata

        node = import_module("ray").util.get_node_ip_address()
        try:
            tasks = import_module("citeloom.ingestion.ray_executor")
            found = tasks.versions()
        except (ImportError, AttributeError):  # no Citeloom, or one in which `versions` was elsewhere
            try:
                found = {"citeloom": metadata.version("citeloom")}
            except metadata.PackageNotFoundError:
                found = {"citeloom": ""}
        return (node, {}, getattr(tasks, stage)(*arguments)) if found == wanted else (node, found, None)

    return run_stage


LOCAL: Final = "local"
AUTO: Final = "auto"
_TEMPORARY: Final = Path("/tmp")
_ADDRESS: Final = re.compile(r"(?:ray://)?(?P<host>[\w.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):(?P<port>\d{1,5})")
_STORE_BYTES: Final = 200_000_000  # bytes of the object store of a Ray started here
_CONNECT_TIMEOUT: Final = 10.0  # seconds for a connection to the address
_JOIN_TIMEOUT: Final = 60.0  # seconds until Ray has started or joined
_STOP_TIMEOUT: Final = 5.0  # seconds for threads to notice that the ingest is over
_LEAVE_TIMEOUT: Final = 20.0  # seconds until Ray has stopped
_CHECK: Final = "Check address and versions with 'ray status' on the cluster, or start a Ray here with --ray alone."
# By default Ray reports usage, copies the current folder to every worker under 'uv run', and starts a local Ray if the
# cluster of a call is gone.
_ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


@dataclass(frozen=True, slots=True)
class RayRequest:
    """The cluster of an ingest: 'local', 'auto', host:port or ray://host:port; at most `workers` tasks at once."""

    address: str = LOCAL
    workers: int | None = None

    def __post_init__(self) -> None:
        """Raise `InputError` for anything that is not an address."""
        if self.address not in (LOCAL, AUTO) and not _ADDRESS.fullmatch(self.address):
            help_ = "Give host:port, ray://host:port, 'auto' for the cluster of this computer, or nothing to start one."
            raise InputError(f"{self.address} is not the address of a Ray cluster.", help=help_)


@asynccontextmanager
async def ray_jobs(request: RayRequest) -> AsyncIterator[RayJobs]:
    """The requested cluster, joined or started, and left or stopped at the end.

    If the program is already connected to Ray, that connection is used and kept. Raises `InputError` if Ray is not
    installed, the address does not answer or fit, or the cluster has no CPUs.
    """
    with _environment():
        help_ = f"{install_hint('ray')}; or ingest without --ray."
        require_packages("Ingest on Ray needs", "ray", "ray.util.scheduling_strategies", help=help_)
    ray: Any = importlib.import_module("ray")
    own = not ray.is_initialized()
    if not own and request.address not in (LOCAL, AUTO):
        message = f"{request.address}: this program is already connected to a Ray cluster."
        raise InputError(message, help="Pass ray=True to use that one, or call ray.shutdown() first.")
    # Short, since paths of sockets are limited, and readable by this user only.
    folder = Path(tempfile.mkdtemp(prefix="citeloom-ray-", dir=_TEMPORARY if _TEMPORARY.is_dir() else None))
    joined, over = Future[None](), threading.Event()

    def stay() -> None:
        """Join, or start a Ray, and leave it at the end."""
        try:
            if own:
                _connect(ray, request, folder)
            joined.set_result(None)
        except BaseException as error:  # noqa: BLE001  # raised where it is awaited
            joined.set_exception(error)
        over.wait()
        try:
            if own:
                ray.shutdown()  # also ends the tasks that were sent
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # The kernel ends a Ray when the thread that started it ends, so this thread lives until Ray has stopped. As a
    # daemon it cannot keep the program from exiting while Ray hangs.
    thread = threading.Thread(target=stay, name="citeloom-ray", daemon=True)
    thread.start()
    try:
        try:
            async with asyncio.timeout(_JOIN_TIMEOUT):
                await asyncio.shield(asyncio.wrap_future(joined))
        except TimeoutError:
            message = f"Ray ({request.address}) did not answer within {_JOIN_TIMEOUT:g} seconds."
            raise InputError(message, help=_CHECK) from None
        except InputError:
            raise
        except (OSError, RuntimeError, ValueError, AssertionError, ray.exceptions.RayError) as error:
            message = f"Ray ({request.address}) cannot be used: {one_line(error)}."
            raise InputError(message, help=_CHECK) from error
        cpus = int((await asyncio.to_thread(ray.cluster_resources)).get("CPU", 0))
        if cpus < 1:
            help_ = "Add a node with CPUs, or start a Ray on this computer with --ray alone."
            raise InputError(f"The Ray cluster ({request.address}) has no CPUs.", help=help_)
        # Slightly more tasks than there are CPUs, so that none sits idle.
        jobs = RayJobs(ray, min(request.workers, cpus) if request.workers else cpus + max(1, cpus // 4))
        try:
            yield jobs
        finally:
            await asyncio.to_thread(jobs.stop, _STOP_TIMEOUT)
    finally:
        over.set()
        await asyncio.to_thread(thread.join, _LEAVE_TIMEOUT)


def _connect(ray: Any, request: RayRequest, folder: Path) -> None:
    found = _ADDRESS.fullmatch(request.address)
    if found is not None:
        try:
            address = found["host"].strip("[]"), int(found["port"])
            socket.create_connection(address, timeout=_CONNECT_TIMEOUT).close()
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error) or "no answer"
            message = f"{request.address}: no Ray cluster answers there ({reason})."
            raise InputError(message, help=_CHECK) from error
    options: dict[str, Any] = {"namespace": "citeloom", "log_to_driver": False, "logging_level": logging.CRITICAL}
    if request.address == LOCAL:
        options |= {"num_cpus": request.workers or cores(), "object_store_memory": _STORE_BYTES}
        options |= {"include_dashboard": False, "_temp_dir": str(folder / "ray")}
    if not request.address.startswith("ray://"):
        # Otherwise workers would import modules from the folder that we were started in.
        empty = folder / "empty"
        empty.mkdir()
        options["runtime_env"] = {"working_dir": str(empty)}
    # Hides our command line, which may hold a password, and keeps messages of nodes out of stdout, which may be JSON.
    # Ray 2.60 has no public way: `init` takes no entry point, and `log_to_driver` turns off other messages only.
    replaced: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
        (ray._private.utils, "get_entrypoint_name", lambda: "citeloom ingest"),
        (ray._private.worker, "listen_error_messages", lambda *_: None),
    )
    with _environment(), warnings.catch_warnings(action="ignore"), ExitStack() as after:
        for module, name, function in replaced:
            after.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, function)
        ray.init(address=request.address, **options)


@contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ENVIRONMENT}
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        for name in _ENVIRONMENT:
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if value is not None})


MOST_SENT: Final = 64_000_000  # bytes of a file; a larger one is parsed here
_BATCH: Final = 16  # texts embedded by one task: about a second of work


@asynccontextmanager
async def ray_executor(request: RayRequest | None, embedding: EmbeddingModel) -> AsyncIterator[IngestExecutor]:
    """The executor on the requested Ray cluster, or the local one without a request; raises like `ray_jobs`."""
    if request is None:
        yield reading.local_executor(embedding)
        return
    async with ray_jobs(request) as jobs:
        loop = asyncio.get_running_loop()

        async def embed(texts: Texts, on_done: Callable[[int], None]) -> Mapping[str, Vector]:
            if not isinstance(embedding, LocalEmbedding):
                # An endpoint: limits, retries, the journal of paid calls and the key stay in this process.
                return await reading.embed_texts(embedding, texts, on_done)
            return await in_thread(_embed, jobs, texts, lambda count: loop.call_soon_threadsafe(on_done, count))

        at_once = _BATCH * jobs.at_once if isinstance(embedding, LocalEmbedding) else embedding.at_once
        yield IngestExecutor(partial(_parse, jobs), partial(_split, jobs), embed, at_once)


def _parse(
    jobs: RayJobs, files: Sequence[Path], kept: ConvertedFiles | None, ocr: Ocr | None
) -> list[ParsedPaper | Refusal]:
    """Parse files on the cluster, and here those that are cached, too large or cannot be sent."""
    parsed: dict[int, ParsedPaper | Refusal] = {}
    digests: dict[int, str] = {}  # of the bytes sent last; empty if the file could not be read

    def load(number: int) -> tuple[bytes, str, Ocr | None]:
        try:
            data = read_regular(files[number], MOST_SENT)
        except (OSError, FileRefusedError):
            data, digests[number] = b"", ""
        else:
            digests[number] = hashlib.sha256(data).hexdigest()
        return data, str(files[number]), ocr

    def unparsed() -> Iterator[RayJob]:
        for number, file in enumerate(files):
            here = _parse_here(file, kept, ocr)
            if here is not None:
                parsed[number] = here
                continue
            size = file.stat().st_size if file.is_file() else 0  # it may have vanished meanwhile
            yield RayJob(number, "parse", partial(load, number), size)

    for job, result in jobs.run(unparsed()):
        file, digest = files[job.number], digests[job.number]
        if result is None:
            parsed[job.number] = Refusal(str(file), LOST)
        elif not digest:  # it has vanished meanwhile: say why
            parsed[job.number] = parse_file(file, kept, ocr)
        else:
            parsed[job.number], conversion = result
            if kept is not None and conversion is not None:
                kept.put(file, conversion, digest)
    return [parsed[number] for number in range(len(files))]


def _parse_here(file: Path, kept: ConvertedFiles | None, ocr: Ocr | None) -> ParsedPaper | Refusal | None:
    """The parsed paper if no worker is needed; None if the file must be sent."""
    suffix = file.suffix.lower()
    needs_tesseract = ocr is not None and suffix == PDF  # on this computer
    try:
        require_regular(file, MOST_SENT)
        cached = kept is not None and suffix not in reading.MARKDOWN and kept.get(file) is not None
    except (OSError, FileRefusedError):
        return parse_file(file, kept, ocr)
    return parse_file(file, kept, ocr) if needs_tesseract or cached or printable(str(file)) != str(file) else None


def _split(
    jobs: RayJobs, papers: Sequence[tuple[str, ParsedPaper]], chunking: Chunking
) -> list[tuple[Chunk, ...] | str]:
    unsplit = (
        RayJob(number, "split", partial(tuple, (key, parsed, chunking)), 2 * len(parsed.text))
        for number, (key, parsed) in enumerate(papers)
    )
    done = {job.number: LOST if chunks is None else chunks for job, chunks in jobs.run(unsplit)}
    return [done[number] for number in range(len(papers))]


def _embed(jobs: RayJobs, texts: Texts, on_done: Callable[[int], object]) -> dict[str, Vector]:
    """Embed texts in batches; if a worker dies, retry its batch one by one, so that one text cannot fail others."""
    vectors: dict[str, Vector] = {}
    for size, tries in ((_BATCH, 1), (1, TRIES)):
        batches = list(split_parts([name for name in texts if name not in vectors], size))
        unembedded = (
            RayJob(number, "embed", partial(tuple, ([texts[name] for name in batch],)), tries=tries)
            for number, batch in enumerate(batches)
        )
        for job, rows in jobs.run(unembedded):
            if rows is not None:
                vectors.update(zip(batches[job.number], rows, strict=True))
                on_done(len(rows))
    return vectors


def parse(data: bytes, file: str, ocr: Ocr | None) -> tuple[ParsedPaper | Refusal, dict[str, Any] | None]:
    """Parse a file's bytes on a worker; also returns its converted content, if any. Raises OSError without space."""
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        copy, cache = Path(folder, f"paper{Path(file).suffix}"), ConvertedFiles(Path(folder, "converted"))
        copy.write_bytes(data)
        parsed = parse_file(copy, cache, ocr)
        if isinstance(parsed, Refusal):
            reason = parsed.reason.replace(str(copy.resolve()), file).replace(str(copy), file)
            return Refusal(file, reason), None
        return parsed, cache.get(copy)


def split(key: str, parsed: ParsedPaper, chunking: Chunking) -> tuple[Chunk, ...]:
    return next(reading.split_papers(count_tokens_each, [(key, parsed)], chunking))


def embed(texts: list[str]) -> Vectors:
    """The vectors of texts from the bundled model on a worker, [n, d]."""
    model = LocalEmbedding()
    return np.stack([model.embed_text(text) for text in texts])
