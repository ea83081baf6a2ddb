"""What all integration tests share: the answers of the bundled models, and short waits for servers that are busy."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import pytest

from citeloom.api import people
from citeloom.metadata import services
from citeloom.models.http import limiter
from tests.support import forked_python
from tests.support.cached_models import cache_models

_PAGES = {"pages", "test_report_in_browser.py"}
_ENGINES = {"postgres", "milvus", "cluster", "ray"}  # folders, or backends as parameters


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need PostgreSQL, Milvus, Ray or a browser."""
    for item in items:
        folders = item.nodeid.partition("::")[0].split("/")
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if "integration" in folders and _ENGINES & {*folders, *(value for value in given if isinstance(value, str))}:
            item.add_marker("engines")
        if _PAGES & set(folders):
            item.add_marker("pages")


@pytest.fixture(scope="session", autouse=True)
def _models_asked_and_packages_imported_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(forked_python.SHARED, str(shared / "models.sqlite"))
        cache_models(patch.setattr)
        patch.setattr(subprocess, "Popen", forked_python.Popen)
        yield


@pytest.fixture(scope="module", autouse=True)
def _short_waits() -> Iterator[None]:
    """Failed calls are repeated at once; tests with their own clock check the waits. Password hashes are weak."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limiter, "FIRST_WAIT", 0.01)
        patch.setattr(services, "_INTERVALS", dict.fromkeys(services._INTERVALS, 0.0))
        for name in ("_POLITE", "_IMPOLITE"):
            patch.setattr(services, name, 0.0)
        with suppress(ImportError):  # without the extra there are no passwords
            from argon2 import PasswordHasher

            patch.setattr(people, "_hasher", cache(lambda: PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)))
        yield
