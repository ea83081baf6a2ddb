"""Completes citation keys and the ids of runs and conversations on a shell, from the home of the command."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..stores.home import Home


def complete_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """The citation keys of the library that begin so."""
    return _completed(ctx, incomplete, _keys)


def complete_runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of runs that begin so."""
    return _completed(ctx, incomplete, _runs)


def complete_conversations(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of conversations that begin so."""
    return _completed(ctx, incomplete, _conversations)


def _keys(home: Home) -> Iterable[str]:
    from ..stores.backends import backend_of

    catalog = backend_of(home).open_catalog()
    try:
        return sorted(catalog.records())
    finally:
        catalog.close()


def _runs(home: Home) -> Iterable[str]:
    from ..stores.backends import backend_of

    return [run.thread_id for run in backend_of(home).runs().heads()]


def _conversations(home: Home) -> Iterable[str]:
    from ..stores.backends import backend_of

    return [entry.thread_id for entry in backend_of(home).conversations().all()]


def _completed(ctx: typer.Context, incomplete: str, names: Callable[[Home], Iterable[str]]) -> list[str]:
    """The names that begin so; none where the home cannot be read, since a shell shows no errors here."""
    from ..settings.config import load_settings
    from ..stores.home import configured_home

    outer = ctx.find_root().params.get("home")
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        home = configured_home(load_settings(home=ctx.params.get("home") or outer))
        if home.exists():
            return [name for name in names(home) if name.startswith(incomplete)]
    return []
