"""Starts Ray here, or joins a cluster, for one ingest.

A Ray started here needs the user's token, has no dashboard, reports no usage and leaves no files.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import re
import shutil
import socket
import tempfile
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import InputError
from ..models.embeddings.bundled_models import cores
from ..program import install_hint
from .ray_jobs import RayJobs, one_line

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
# By default Ray reports usage, copies the current folder to every worker under 'uv run', and starts a local Ray for
# calls whose cluster is gone.
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
            raise InputError(
                f"{self.address}: is not the address of a Ray cluster.",
                help="Give host:port, ray://host:port, 'auto' for the cluster of this computer, or none to start one.",
            )


@asynccontextmanager
async def ray_jobs(request: RayRequest) -> AsyncIterator[RayJobs]:
    """The requested cluster, joined or started, and left or stopped at the end.

    If the program is already connected to Ray, that connection is used and kept. Raises `InputError` if Ray is not
    installed, the address does not answer or fit, or the cluster has no CPUs.
    """
    ray = _import_ray()
    own = not ray.is_initialized()
    if not own and request.address not in (LOCAL, AUTO):
        message = f"{request.address}: this program is already connected to a Ray cluster."
        raise InputError(message, help="Pass ray=True to use that one, or call ray.shutdown() first.")
    # Short, since paths of sockets are limited, and readable by this user only.
    folder = Path(tempfile.mkdtemp(prefix="citeloom-ray-", dir=_TEMPORARY if _TEMPORARY.is_dir() else None))
    joined, left, over = Future[None](), Future[None](), threading.Event()

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
            left.set_result(None)

    # The kernel ends a Ray that was started here when the thread that started it ends, so the thread outlives that Ray.
    # As a daemon it cannot keep the program from exiting while Ray hangs.
    threading.Thread(target=stay, name="citeloom-ray", daemon=True).start()
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
        await asyncio.wait([asyncio.wrap_future(left)], timeout=_LEAVE_TIMEOUT)


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
    with _environment(), _hide_habits(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(address=request.address, **options)


@contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ENVIRONMENT}
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _hide_habits() -> Iterator[None]:
    """Hide our command line, which may hold a password, and keep messages of nodes out of stdout, which may be JSON.

    Ray 2.60 has no public way: `init` takes no entry point, and `log_to_driver` turns off other messages only.
    """
    utils: Any = importlib.import_module("ray._private.utils")
    worker: Any = importlib.import_module("ray._private.worker")
    shown, printed = utils.get_entrypoint_name, worker.listen_error_messages
    utils.get_entrypoint_name = lambda: "citeloom ingest"
    worker.listen_error_messages = lambda *_: None
    try:
        yield
    finally:
        utils.get_entrypoint_name, worker.listen_error_messages = shown, printed


def _import_ray() -> Any:
    """The package ray; raises `InputError` if it is not installed."""
    try:
        with _environment():
            ray = importlib.import_module("ray")
            importlib.import_module("ray.util.scheduling_strategies")
    except ImportError as error:
        raise InputError(
            f"Ingest on Ray needs a package that is not installed ({error.name or 'ray'}).",
            help=f"{install_hint('ray')}; or ingest without --ray.",
        ) from error
    return ray
