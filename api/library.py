"""The library from Python: open, ingest, search and compare, sync and async."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ..errors import ConfigurationError
from ..graph.session import Session, create_session
from ..settings.addresses import parse_home
from ..settings.config import RetrievalMode, Settings, load_settings
from ..stores.home import configured_home
from ..stores.local.read_only_copy import readable_home
from ..tools.figure_records import listed_figures
from ..tools.paper_search import year_range
from ..tools.retrieval import Retrieval, as_records, retrieve
from ..tools.scope import Scope, require_words
from .arguments import ArgumentError, at_least_one, choice_of, library_first, one_or_more, require_writable
from .blocking import blocking

if TYPE_CHECKING:
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from ..ingestion.ray_cluster import RayRequest

    Given = Path | str | Document | BaseLoader

__all__ = [
    "adescribe_figures",
    "afigures",
    "aingest",
    "aopen_library",
    "asearch",
    "describe_figures",
    "figures",
    "ingest",
    "open_library",
    "search",
]


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


@library_first
async def aingest(
    library: Session,
    paths: Given | Sequence[Given],
    bib: Path | str | None = None,
    *,
    prune: bool = False,
    follow_links: bool = False,
    ray: bool | str = False,
    ray_workers: int | None = None,
) -> dict[str, Any]:
    """Ingest papers; returns the JSON of `ingest --json`.

    Args:
        library: an open library.
        paths: files and folders, and LangChain documents or loaders; one or several. Documents with the same `key`,
            else the same `source`, in their metadata are one paper; a `page` in it is counted from 0.
        bib: the BibTeX file; the only one in a given folder if omitted.
        prune: remove papers whose file is gone from a given folder.
        follow_links: also ingest what links inside a folder point to outside of it.
        ray: read, chunk and embed on the Ray cluster at this address; True uses the one that the program is connected
            to, else starts one on this computer.
        ray_workers: Ray tasks at once; as many as the cluster has CPUs if omitted.

    Raises `InputError`, `PausedError` if the Ray cluster is lost (repeat the call), and what a loader raises.
    """
    from ..ingestion.ingest import ingest as ingest_papers  # a search does without the readers of files
    from ..ingestion.reading import PdfReading

    require_writable(library)
    cluster = _ray_request(ray, ray_workers)
    given = _one_or_more_papers(paths)
    files = [Path(item) for item in given if isinstance(item, Path | str)]
    report = await ingest_papers(
        library.library,
        files,
        documents=await asyncio.to_thread(_documents, given) if len(files) < len(given) else (),
        bib=None if bib is None else Path(bib),
        prune=prune,
        chunk_tokens=library.settings.chunk_tokens,
        chunk_overlap=library.settings.chunk_overlap,
        pdf=PdfReading.of(library.settings),
        follow_links=follow_links,
        ray=cluster,
    )
    return report.as_dict()


@library_first
async def asearch(
    library: Session,
    query: str,
    k: int = 10,
    mode: RetrievalMode = "hybrid",
    papers: Sequence[str] | str | None = None,
    categories: Sequence[str] | str | None = None,
    years: tuple[int, int] | None = None,
    venue: str = "",
    rerank: float = 0.0,
) -> list[dict[str, Any]]:
    """Return the `k` best passages for a query, as the JSON of `search --json`.

    Args:
        library: an open library.
        query: what to look for.
        k: how many passages.
        mode: by vectors and words together, by vectors ("dense"), or by words ("bm25").
        papers: keys to search within.
        categories: kinds of section, such as "method".
        years: first and last year of publication, both included.
        venue: a part of the journal's or book's name, in any case.
        rerank: weight (0-1) of the bundled cross-encoder in the ranking; 0 disables it.

    Raises `InputError` for a query without words, an unknown key, category or venue, and when
    there is no full-text index that can be read.
    """
    require_words(query)
    at_least_one("k", k)
    choice_of("mode", mode, RetrievalMode)
    scope = Scope.within(library.library, one_or_more(papers), one_or_more(categories), _both(years), venue)
    hits = await retrieve(library.library, query, k, scope, Retrieval(mode, rerank=rerank))
    return await asyncio.to_thread(as_records, library.library, query, hits)


@library_first
async def afigures(library: Session, key: str, *, images: bool = False) -> list[dict[str, Any]]:
    """Return the figures and tables of a paper, as the JSON of `papers figures --json`.

    Args:
        library: an open library.
        key: the paper's citation key.
        images: also return the `image` of each as bytes, PNG or JPEG, None where there is none.

    Raises `InputError` for an unknown key.
    """
    records = await asyncio.to_thread(listed_figures, library.library, key)
    if images:
        found = await asyncio.to_thread(library.library.figures, key)
        for record, figure in zip(records, found, strict=True):
            record["image"] = await asyncio.to_thread(library.library.figure_image, figure)
    return records


@library_first
async def adescribe_figures(
    library: Session, papers: Sequence[str] | str = (), *, refresh: bool = False
) -> dict[str, Any]:
    """Have the configured vision model describe figures; returns the JSON of `papers describe --json`.

    Args:
        library: an open library.
        papers: keys, all papers if omitted.
        refresh: also figures that have a description, by another model or prompt.

    Raises `ConfigurationError` without a vision model, `InputError` for an unknown key, and `PausedError`; finished
    descriptions are kept, and repeating the call continues.
    """
    from ..graph.figure_descriptions import describe_papers

    require_writable(library)
    run = f"describe-{secrets.token_hex(6)}"
    return (await describe_papers(library, run, one_or_more(papers) or None, refresh=refresh)).as_dict()


def _ray_request(ray: object, workers: int | None) -> RayRequest | None:
    """The requested cluster, if any; raises `ArgumentError` and `InputError`."""
    from ..ingestion.ray_cluster import RayRequest

    if not isinstance(ray, bool | str):
        raise ArgumentError(f"ray: expected True or the address of a cluster, got {ray!r:.60}.")
    if workers is not None:
        at_least_one("ray_workers", workers)
    if ray is False:
        return None
    return RayRequest(workers=workers) if ray is True else RayRequest(ray, workers)


def _both(years: tuple[int, int] | None) -> tuple[int, int] | None:
    """First and last year; raises `ArgumentError` for anything else."""
    if years is not None and not (
        isinstance(years, Sequence) and len(years) == 2 and all(isinstance(year, int) for year in years)
    ):
        raise ArgumentError(f"years: expected the first and the last year, such as (2018, 2020), got {years!r:.60}.")
    return years and year_range(*years)


def _one_or_more_papers(paths: Given | Sequence[Given]) -> tuple[Given, ...]:
    from langchain_core.documents import Document  # which has a length of its own

    return (paths,) if isinstance(paths, Document) else one_or_more(paths)


def _documents(given: Sequence[Given]) -> list[Document]:
    """The documents among `given`, those that loaders give among them; ConfigurationError for anything else."""
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document

    found: list[Document] = []
    for item in given:
        if isinstance(item, BaseLoader):
            found.extend(item.lazy_load())
        elif isinstance(item, Document):
            found.append(item)
        elif not isinstance(item, Path | str):
            raise ConfigurationError(
                f"Cannot ingest a {type(item).__name__}.", help="Give paths, LangChain documents or loaders."
            )
    return found


ingest = library_first(blocking(aingest))
search = library_first(blocking(asearch))
figures = library_first(blocking(afigures))
describe_figures = library_first(blocking(adescribe_figures))
