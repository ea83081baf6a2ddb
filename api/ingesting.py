"""Ingests papers from files, documents and uploads, and has a vision model describe their figures."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents.bibliography import read_bibliography
from ..documents.sandbox import in_thread
from ..errors import CiteloomError, ConfigurationError
from ..graph.session import Session
from ..ingestion.ingest_events import (
    Described as Described,
    Embedded as Embedded,
    IngestEvent as IngestEvent,
    IngestReport,
    Planned as Planned,
    Stored as Stored,
    Waiting as Waiting,
)
from ..models.journal.budget import bill_to
from ..settings.config import Settings
from ..stores.home import Home
from .arguments import ArgumentError, at_least_one, one_or_more, require_writable, requires_open
from .blocking import blocking
from .run_options import IngestOptions

if TYPE_CHECKING:
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document

    from ..ingestion.describing import DescribeReport
    from ..ingestion.ray_jobs import RayRequest
    from ..ingestion.sources import Sources

    Given = Path | str | Document | BaseLoader


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """Papers to ingest, and how; see `aingest`."""

    paths: Sequence[Path]
    options: IngestOptions
    documents: Sequence[Document] = ()
    ray: RayRequest | None = None


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """Reports on an ingest and on its figures if described, and the error that stopped the description."""

    report: IngestReport
    figures: DescribeReport | None = None
    stopped: CiteloomError | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `ingest --json`."""
        return {**self.report.as_dict(), **({"figures": asdict(self.figures)} if self.figures else {})}


@requires_open
async def aingest(
    session: Session,
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
        paths: one or several files, folders, LangChain documents or loaders. Documents with the same `key`,
            else the same `source`, in their metadata are one paper; a `page` in it is counted from 0.
        bib: the BibTeX file; the only one in a given folder if omitted.
        prune: remove papers whose file is gone from a given folder.
        follow_links: follow links out of a given folder.
        ray: read, chunk and embed on the Ray cluster at this address; True uses the connected cluster or starts a
            local one.
        ray_workers: Ray tasks at once; as many as the cluster has CPUs if omitted.

    Raises `InputError`, `PausedError` if the Ray cluster is lost (repeat the call), and any loader's error.
    """
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document

    require_writable(session)
    cluster = ray_request(ray, ray_workers)
    given: tuple[Given, ...] = (paths,) if isinstance(paths, Document) else one_or_more(paths)  # it has a length
    files = [Path(item) for item in given if isinstance(item, Path | str)]

    def load() -> Iterator[Document]:
        for item in given:
            if isinstance(item, BaseLoader):
                yield from item.lazy_load()
            elif isinstance(item, Document):
                yield item
            elif not isinstance(item, Path | str):
                raise ConfigurationError(
                    f"Cannot ingest a {type(item).__name__}.", help="Give paths, LangChain documents or loaders."
                )

    documents = await asyncio.to_thread(lambda: list(load())) if len(files) < len(given) else ()
    options = IngestOptions(
        bib=None if bib is None else Path(bib), prune=prune, follow_links=follow_links, describe=False
    )
    return (await aingest_papers(session, IngestRequest(files, options, documents, cluster))).as_dict()


def ray_request(ray: object, workers: int | None) -> RayRequest | None:
    """Validate a requested cluster; raises `ArgumentError` and `InputError`."""
    from ..ingestion.ray_jobs import RayRequest

    if not isinstance(ray, bool | str):
        raise ArgumentError(f"ray: expected True or the address of a cluster, got {ray!r:.60}.")
    if workers is not None:
        at_least_one("ray_workers", workers)
    if ray is False:
        return None
    return RayRequest(workers=workers) if ray is True else RayRequest(ray, workers)


async def aread_for_new_home(settings: Settings, home: Home, request: IngestRequest) -> Sources | None:
    """Read papers before their home exists, so that a failed ingest leaves none; None if a cluster will read them.

    Raises `InputError` for a missing path or `.bib`, or if the home cannot be created.
    """
    from ..documents.pdf.ocr import choose_ocr
    from ..ingestion.reading import ConvertedFiles
    from ..ingestion.sources import read_sources, require_paths

    home.require_place()
    options = request.options
    if request.ray is not None:
        require_paths(request.paths)
        if options.bib is not None:
            await asyncio.to_thread(read_bibliography, options.bib)
        return None
    converted, ocr = ConvertedFiles(home.converted), choose_ocr(settings, required=options.ocr)
    return await in_thread(
        read_sources, request.paths, options.bib, (), converted, ocr, follow_links=options.follow_links
    )


def refused_record(sources: Sources) -> dict[str, Any]:
    """The JSON of `ingest --json` if no paper was readable."""
    refused = (*sources.refused, *sources.refused_entries)
    return IngestReport(refused=refused, warnings=sources.warnings).as_dict()


async def aingest_papers(
    session: Session,
    request: IngestRequest,
    *,
    sources: Sources | None = None,
    on_event: Callable[[IngestEvent], None] = lambda _: None,
    on_report: Callable[[dict[str, Any]], None] = lambda _: None,
    run: str = "",
) -> IngestOutcome:
    """Ingest papers and, if requested, describe new figures; papers stay ingested if that fails.

    `sources` are those already read; `on_report` is called with the report before figures are described. All calls
    are billed to `run`, by default a new one. Raises as `aingest` does.
    """
    from ..documents.pdf.ocr import choose_ocr
    from ..graph.prompt_fitting import describe_papers, summarized
    from ..ingestion.ingest import ingest as ingest_files

    settings, options, run = session.settings, request.options, run or f"ingest-{secrets.token_hex(6)}"
    with bill_to(run, session.budget(run)):
        report = await ingest_files(
            session.library,
            request.paths,
            documents=request.documents,
            sources=sources,
            bib=options.bib,
            prune=options.prune,
            summarize=partial(summarized, session, run) if options.summarize else None,
            on_event=on_event,
            chunking=(settings.chunk_tokens, settings.chunk_overlap),
            ocr=choose_ocr(settings, required=options.ocr),
            follow_links=options.follow_links,
            ray=request.ray,
        )
        on_report(report.as_dict())
        new = [*report.added, *report.updated]
        if not (options.describe and settings.describes_figures):
            return IngestOutcome(report)
        try:
            figures = await describe_papers(session, run, new, on_event=on_event)
        except CiteloomError as error:
            return IngestOutcome(report, stopped=error)
    return IngestOutcome(report, figures)


@requires_open
async def adescribe_figures(
    session: Session,
    papers: Sequence[str] | str = (),
    *,
    refresh: bool = False,
    on_event: Callable[[IngestEvent], None] = lambda _: None,
) -> dict[str, Any]:
    """Have the configured vision model describe figures; returns the JSON of `papers describe --json`.

    Args:
        papers: keys, all papers if omitted.
        refresh: also redo descriptions by another model or prompt.
        on_event: called with the progress.

    Raises `ConfigurationError` without a vision model, `InputError` for an unknown key, and `PausedError`; finished
    descriptions are kept, and repeating the call continues.
    """
    from ..graph.prompt_fitting import describe_papers

    require_writable(session)
    keys: tuple[str, ...] = one_or_more(papers)
    for key in keys:
        await asyncio.to_thread(session.library.paper, key)
    run = f"describe-{secrets.token_hex(6)}"
    return asdict(await describe_papers(session, run, keys or None, refresh=refresh, on_event=on_event))


def event_record(event: IngestEvent) -> dict[str, Any]:
    """An event as plain data, with its `kind`."""
    return {"kind": type(event).__name__.lower(), **asdict(event)}


ingest = requires_open(blocking(aingest))
describe_figures = requires_open(blocking(adescribe_figures))
