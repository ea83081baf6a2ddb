"""Citeloom's Python API: everything `citeloom` exports, by topic."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what no other topic imports; type checkers find the others without
    from . import early_loading, model_setup, people, remembering, shown_texts
else:

    def __getattr__(name: str) -> ModuleType:
        """A topic, loaded when it is first used: no command waits for what only another needs."""
        topic = f"{__name__}.{name}"
        try:
            if not name.startswith("_"):
                return import_module(topic)
        except ModuleNotFoundError as error:
            if error.name != topic:
                raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
