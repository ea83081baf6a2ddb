"""Citeloom from Python: open a library, take papers in, write a section or a paper; each with a twin for async code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from citeloom.citations.export import prepare_folder
from citeloom.citations.formats import Format
from citeloom.config import RetrievalMode, Settings, load_settings
from citeloom.errors import ConfigurationError
from citeloom.experiment import Experiment, SectionKind, load_experiment, parse_experiment
from citeloom.graph.events import OnEvent
from citeloom.graph.identity import RunKind
from citeloom.graph.run import SectionRequest, run_section
from citeloom.graph.saving import public_record, save
from citeloom.graph.workbench import Workbench, open_workbench
from citeloom.models.concurrency import run_to_end
from citeloom.stores.home import find_home
from citeloom.stores.ingest import ingest as ingest_papers
from citeloom.tools.retrieval import Retrieval, as_records, retrieve
from citeloom.tools.scope import Scope, require_words

if TYPE_CHECKING:
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

Result = TypeVar("Result")

__all__ = [
    "aingest",
    "aopen_library",
    "asearch",
    "awrite_paper",
    "awrite_section",
    "ingest",
    "open_library",
    "search",
    "write_paper",
    "write_section",
]


@contextmanager
def open_library(
    home: Path | str | None = None,
    *,
    settings: Settings | None = None,
    chat_model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
) -> Iterator[Workbench]:
    """The library of a home with the models that read and write over it, closed at the end.

    Args:
        home: its folder; found as on the command line when left out.
        settings: all settings; from the environment when left out.
        chat_model: any LangChain chat model, in place of the one that the settings name.
        embeddings: any LangChain embeddings, in place of those that the settings name.

    Raises `InputError` when home, store or settings cannot be used.
    """
    used = settings or load_settings()
    found = find_home(Path(home) if home is not None else used.home)
    with open_workbench(used, found, chat_model=chat_model, embeddings=embeddings) as bench:
        yield bench


@asynccontextmanager
async def aopen_library(home: Path | str | None = None, **options: Any) -> AsyncIterator[Workbench]:
    """`open_library` for async code."""
    manager = open_library(home, **options)
    bench = await asyncio.to_thread(manager.__enter__)
    try:
        yield bench
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)


async def aingest(
    library: Workbench,
    paths: Sequence[Path | str | Document | BaseLoader],
    bib: Path | str | None = None,
    *,
    prune: bool = False,
) -> dict[str, Any]:
    """Take papers in; the result is the JSON of `ingest --json`.

    Args:
        library: an open library.
        paths: files and folders, and LangChain documents or loaders. Documents with the same `key`, else the same
            `source`, in their metadata are one paper; a `page` in it is counted from 0.
        bib: the BibTeX file; the only one inside a given folder when left out.
        prune: remove papers whose file is gone from a given folder.

    Raises `InputError`, and what a loader raises.
    """
    files = [Path(item) for item in paths if isinstance(item, Path | str)]
    report = await ingest_papers(
        library.library,
        files,
        documents=await asyncio.to_thread(_documents, paths) if len(files) < len(paths) else (),
        bib=None if bib is None else Path(bib),
        prune=prune,
        chunk_tokens=library.settings.chunk_tokens,
        chunk_overlap=library.settings.chunk_overlap,
        pdf_reader=library.settings.pdf_reader,
    )
    return report.as_dict()


async def asearch(
    library: Workbench,
    query: str,
    k: int = 10,
    mode: RetrievalMode = "hybrid",
    papers: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
    years: tuple[int, int] | None = None,
    venue: str = "",
    rerank: float = 0.0,
) -> list[dict[str, Any]]:
    """The `k` passages that fit a query best; the result is the JSON of `search --json`.

    Args:
        library: an open library.
        query: what to look for.
        k: how many passages.
        mode: by vectors and words together, by vectors ("dense"), or by words ("bm25").
        papers: keys to search within.
        categories: kinds of section, such as "method".
        years: first and last year of publication, both included.
        venue: a part of the journal's or book's name, in any case.
        rerank: part (0-1) that the bundled cross-encoder has in the order; 0 leaves it out.

    Raises `InputError` for a query without words, an unknown key, category or venue, and when
    there is no full-text index that can be read.
    """
    require_words(query)
    scope = Scope.within(library.library, papers or (), categories or (), years, venue)
    hits = await retrieve(library.library, query, k, scope, Retrieval(mode, rerank=rerank))
    return await asyncio.to_thread(as_records, library.library, query, hits)


async def awrite_section(
    kind: SectionKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] = (),
    fresh: bool = False,
    strict: bool | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Write a section, or go on with it; the result is the section's JSON.

    Args:
        kind: the section type.
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        library: an open library.
        out: folder for the files; none are written when left out.
        formats: `tex`, `docx` and `html`, written beside the markdown.
        fresh: write anew, without answers of earlier runs.
        strict: leave out sentences that fail a check, instead of marking them; as the settings say when left out.
        on_event: told of each step, as `docs/events.md` says; `done` is what is returned.

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _written(kind, experiment, library, out, formats, fresh, strict, on_event)


async def awrite_paper(
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] = (),
    fresh: bool = False,
    strict: bool | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Write all six sections of a paper as one run, or go on with it; the result is the JSON of `paper --json`.

    Args:
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        library: an open library.
        out: folder for the files of the paper and of each section; none are written when left out.
        formats: `tex`, `docx` and `html`, written of the whole paper beside the markdown.
        fresh: write anew, without answers of earlier runs.
        strict: leave out sentences that fail a check, instead of marking them; as the settings say when left out.
        on_event: told of each step.

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _written("paper", experiment, library, out, formats, fresh, strict, on_event)


async def _written(
    kind: RunKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    out: Path | str | None,
    formats: Sequence[Format],
    fresh: bool,
    strict: bool | None,
    on_event: OnEvent | None,
) -> dict[str, Any]:
    given, source = _experiment(experiment)
    if out is not None:
        await asyncio.to_thread(prepare_folder, Path(out))
    if strict is not None:
        library = replace(library, settings=library.settings.model_copy(update={"strict": strict}))
    request = SectionRequest(kind, given, source, fresh)
    finished = await (run_section(request, library, on_event=on_event) if on_event else run_section(request, library))
    if out is None:
        return public_record(finished.record)
    return await save(finished.record, Path(out), formats)


def _documents(given: Sequence[Path | str | Document | BaseLoader]) -> list[Document]:
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


def ingest(
    library: Workbench,
    paths: Sequence[Path | str | Document | BaseLoader],
    bib: Path | str | None = None,
    *,
    prune: bool = False,
) -> dict[str, Any]:
    """`aingest` for code without an event loop."""
    return run_blocking(aingest(library, paths, bib, prune=prune), "aingest")


def search(
    library: Workbench,
    query: str,
    k: int = 10,
    mode: RetrievalMode = "hybrid",
    papers: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
    years: tuple[int, int] | None = None,
    venue: str = "",
    rerank: float = 0.0,
) -> list[dict[str, Any]]:
    """`asearch` for code without an event loop."""
    return run_blocking(asearch(library, query, k, mode, papers, categories, years, venue, rerank), "asearch")


def write_section(
    kind: SectionKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] = (),
    fresh: bool = False,
    strict: bool | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """`awrite_section` for code without an event loop."""
    work = awrite_section(
        kind, experiment, library, out=out, formats=formats, fresh=fresh, strict=strict, on_event=on_event
    )
    return run_blocking(work, "awrite_section")


def write_paper(
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] = (),
    fresh: bool = False,
    strict: bool | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """`awrite_paper` for code without an event loop."""
    work = awrite_paper(experiment, library, out=out, formats=formats, fresh=fresh, strict=strict, on_event=on_event)
    return run_blocking(work, "awrite_paper")


def run_blocking(work: Coroutine[Any, Any, Result], twin: str) -> Result:
    """What the coroutine gives; raises `ConfigurationError` where a loop runs, naming the twin to await."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_to_end(work)
    work.close()
    raise ConfigurationError("An event loop is running here.", help=f"Use 'await citeloom.{twin}(...)'.")


def _experiment(given: Experiment | dict[str, Any] | Path | str) -> tuple[Experiment, str]:
    if isinstance(given, Experiment):
        return given, "experiment"
    if isinstance(given, dict):
        return parse_experiment(given), "experiment"
    return load_experiment(given), str(given)
