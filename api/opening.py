"""Opens a library with the models that read and write: the argument of every other call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ..graph.session import Session, create_session
from ..settings.addresses import parse_home
from ..settings.config import Settings, load_settings
from ..stores.home import Home, configured_home
from ..stores.local.read_only_copy import readable_home

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

__all__ = ["Home", "Session", "aopen_library", "open_library", "readable_home"]


class OpenOptions(TypedDict, total=False):
    """Options of `open_library`."""

    settings: Settings | None
    chat_model: BaseChatModel | None
    embeddings: Embeddings | None


def open_library(
    home: Path | str | None = None,
    *,
    settings: Settings | None = None,
    chat_model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
) -> Session:
    """Open the library of a home, with the models that read and write.

        with citeloom.open_library() as library:  # closed at the end
            citeloom.research(library, "How are graph genomes used to genotype structural variants?")

        library = citeloom.open_library()  # until library.close(), or as long as the program runs

    Args:
        home: its folder; found like on the command line if omitted.
        settings: all settings; read from the environment if omitted.
        chat_model: any LangChain chat model, overriding the one in the settings.
        embeddings: any LangChain embeddings, overriding those in the settings.

    A home that can only be read is opened as a private copy, deleted when it is closed: it can be searched and listed,
    and what has to write raises `ReadOnlyLibraryError`.

    Raises `InputError` when home, store or settings cannot be used.
    """
    used = settings or load_settings()
    found = configured_home(used, None if home is None else parse_home(home))
    readable = readable_home(found, lambda _: None, library=True, records=True)
    return create_session(used, readable, chat_model, embeddings)


class _Opening:
    """A library being opened: `await` returns it, `async with` closes it at the end."""

    def __init__(self, opened: Callable[[], Session]) -> None:
        self._open = opened
        self._bench: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return asyncio.to_thread(self._open).__await__()

    async def __aenter__(self) -> Session:
        self._bench = await self
        return self._bench

    async def __aexit__(self, *_: object) -> None:
        assert self._bench is not None
        await asyncio.to_thread(self._bench.close)


def aopen_library(home: Path | str | None = None, **options: Unpack[OpenOptions]) -> _Opening:
    """`open_library` for async code: `async with aopen_library() as library`, or `library = await aopen_library()`."""
    return _Opening(lambda: open_library(home, **options))
