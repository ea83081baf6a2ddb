"""Citeloom's Python API: everything `citeloom` exports, by topic."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # topics that no other topic imports; type checkers find the rest by themselves
    from . import early_loading, model_setup, people, remembering, shown_texts
else:

    def __getattr__(name: str) -> ModuleType:
        """Load a topic on first use, so that no command waits for imports that only another needs."""
        topic = f"{__name__}.{name}"
        try:
            if not name.startswith("_"):
                return import_module(topic)
        except ModuleNotFoundError as error:
            if error.name != topic:
                raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
