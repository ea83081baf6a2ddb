"""Finds homes from the settings, opens their libraries with models, or inspects them without opening."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ..settings.addresses import parse_home
from ..settings.config import Settings, load_settings
from ..settings.key_trust import shown_address
from ..stores.folder_home import configured_home, find_home, readable_home
from ..stores.home import Home

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from ..graph.session import Session


def records_home(home: Home, on_notice: Callable[[str], None]) -> Home:
    """Return the home to read runs, conversations and journal from: a temporary copy if it is read-only. Blocks."""
    home.require_library()
    return readable_home(home, on_notice, library=False, records=True)


@contextmanager
def open_home(
    settings: Settings, home: Home, on_notice: Callable[[str], None], *, create: bool = True, reading: bool = False
) -> Iterator[Session]:
    """Open library, models and journal of a home until the end of the block; raises `InputError`.

    Set `reading` if nothing will be changed: then a read-only home is opened as a copy.
    """
    from ..graph.session import open_session  # slow import, not needed for lists

    if reading:
        home = readable_home(home, on_notice, library=True)
    with open_session(settings, home, create=create, on_notice=on_notice) as session:
        yield session


def require_writable_home(home: Home) -> None:
    """Raise `InputError` unless the home (for a copy, its original) is writable; blocks."""
    (home if home.copy_of is None else find_home(home.copy_of)).prepare()


def chunk_counts(home: Home) -> dict[str, int]:
    """Count the chunks of each paper by key, from the catalog alone (0.1 s, not 2 s); empty if there is no library.

    Blocks. Raises `InputError` for an unreadable catalog.
    """
    home.require_place()
    if not home.exists():
        return {}
    home.prepare()  # conversations are stored: fail first if the home is not writable
    with closing(home.open_catalog()) as catalog:
        return {key: record.chunk_count for key, record in catalog.records().items()}


def complete_ids(home: Home, kind: str) -> list[str]:
    """Return all ids for shell completion of "papers" (keys), "runs" or "conversations". Blocks."""
    if not home.exists():
        return []
    if kind == "papers":
        with closing(home.open_catalog()) as catalog:
            return sorted(catalog.records())
    return [entry.thread_id for entry in (home.runs().heads() if kind == "runs" else home.conversations().all())]


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
    """Open a home's library, with its chat and embedding models.

        with citeloom.open_library() as library:  # closed at the end
            citeloom.research(library, "How are graph genomes used to genotype structural variants?")

        library = citeloom.open_library()  # until library.close(), or as long as the program runs

    Args:
        home: its folder; if omitted, found as on the command line.
        settings: all settings; read from the environment if omitted.
        chat_model: any LangChain chat model, overriding the one in the settings.
        embeddings: any LangChain embeddings, overriding those in the settings.

    A read-only home is opened as a private copy that is deleted on closing: it can be searched and listed, but calls
    that write raise `ReadOnlyLibraryError`.

    Raises `InputError` when home, store or settings cannot be used.
    """
    from ..graph.session import open_session

    used = settings or load_settings()
    found = configured_home(used, None if home is None else parse_home(home))
    readable = readable_home(found, lambda _: None, library=True, records=True)
    return open_session(used, readable, chat_model, embeddings)


class _Opening:
    """Opens a library: `await` returns it, `async with` also closes it."""

    def __init__(self, opened: Callable[[], Session]) -> None:
        self._open = opened
        self._session: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return asyncio.to_thread(self._open).__await__()

    async def __aenter__(self) -> Session:
        self._session = await self
        return self._session

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await asyncio.to_thread(self._session.close)


def aopen_library(home: Path | str | None = None, **options: Unpack[OpenOptions]) -> _Opening:
    """`open_library` for async code: `async with aopen_library() as library`, or `library = await aopen_library()`."""
    return _Opening(lambda: open_library(home, **options))
