"""Citeloom's Python API: everything `citeloom` exports, by topic."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for annotations; what is called is found without
    from . import checking, conversation, homes, ingesting, paper_lookup, people, results, running, text_updating  # noqa: F401


def __getattr__(name: str) -> ModuleType:
    """A topic, loaded when it is first used: no command waits for what only another needs."""
    if name.startswith("_"):
        raise AttributeError(name)
    return import_module(f"{__name__}.{name}")
