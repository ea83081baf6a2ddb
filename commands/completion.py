"""Completes citation keys and the ids of runs and conversations on a shell, from the home of the command."""

from __future__ import annotations

import contextlib
import io

import typer


def complete_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """The citation keys of the library that begin so."""
    return _completed(ctx, incomplete, "papers")


def complete_runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of runs that begin so."""
    return _completed(ctx, incomplete, "runs")


def complete_conversations(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of conversations that begin so."""
    return _completed(ctx, incomplete, "conversations")


def _completed(ctx: typer.Context, incomplete: str, kind: str) -> list[str]:
    """The names that begin so; none where the home cannot be read, since a shell shows no errors here."""
    from ..api.homes import complete_ids, configured_home
    from ..settings.config import load_settings

    outer = ctx.find_root().params.get("home")
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        home = configured_home(load_settings(home=ctx.params.get("home") or outer))
        return [name for name in complete_ids(home, kind) if name.startswith(incomplete)]
    return []
