"""Ingests papers from files, documents and uploads, and has a vision model describe their figures."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents import Paper
from ..documents.bibliography import Refusal, has_own_entry, read_bibliography
from ..documents.pdf.ocr import choose_ocr
from ..documents.sandbox import in_thread
from ..errors import CiteloomError, ConfigurationError
from ..graph.session import Session
from ..ingestion.ingest import remove_orphans
from ..ingestion.ingest_events import Described, Embedded, IngestEvent, IngestReport, Planned, Stored, Waiting
from ..ingestion.paper_matching import matching_entries, update_metadata
from ..ingestion.reading import ENDINGS, ConvertedFiles
from ..ingestion.sources import Sources, merge_text_with_pdf, read_as, read_sources, require_paths
from ..models.journal.budget import bill_to
from ..settings.config import Settings
from ..stores.home import Home
from ..stores.library import Library
from ..stores.uploads import UPLOAD, Uploads
from .arguments import ArgumentError, one_or_more, require_positive, require_writable
from .blocking import blocking, threaded
from .run_options import IngestOptions

if TYPE_CHECKING:
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document

    from ..ingestion.describing import DescribeReport
    from ..ingestion.ray_executor import RayRequest

    Given = Path | str | Document | BaseLoader


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """The reports on an ingest and on described figures, and the error that stopped the describing, if any."""

    report: IngestReport
    figures: DescribeReport | None = None
    stopped: CiteloomError | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `ingest --json`."""
        return {**self.report.as_dict(), **({"figures": asdict(self.figures)} if self.figures else {})}


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
        paths: one or several files, folders, LangChain documents or loaders. Documents whose metadata have the same
            `key`, else the same `source`, form one paper; a `page` there is counted from 0.
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
    # LangChain's documents have a length, as if they were collections.
    given: tuple[Given, ...] = (paths,) if isinstance(paths, Document) else one_or_more(paths)
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
    return (await aingest_papers(session, files, options, documents=documents, ray=cluster)).as_dict()


def ray_request(ray: object, workers: int | None) -> RayRequest | None:
    """Validate a requested cluster; raises `ArgumentError` and `InputError`."""
    from ..ingestion.ray_executor import RayRequest

    if not isinstance(ray, bool | str):
        raise ArgumentError(f"ray: expected True or the address of a cluster, got {ray!r:.60}.")
    if workers is not None:
        require_positive("ray_workers", workers)
    if ray is False:
        return None
    return RayRequest(workers=workers) if ray is True else RayRequest(ray, workers)


async def aread_for_new_home(
    settings: Settings, home: Home, paths: Sequence[Path], options: IngestOptions, ray: RayRequest | None
) -> Sources | None:
    """Read papers before their home exists, so that a failed ingest leaves none; None if a cluster will read them.

    Raises `InputError` for a missing path or `.bib`, or if the home cannot be created.
    """

    home.require_place()
    if ray is not None:
        require_paths(paths)
        if options.bib is not None:
            await asyncio.to_thread(read_bibliography, options.bib)
        return None
    converted, ocr = ConvertedFiles(home.converted), choose_ocr(settings, required=options.ocr)
    return await in_thread(read_sources, paths, options.bib, (), converted, ocr, follow_links=options.follow_links)


def refused_record(sources: Sources) -> dict[str, Any]:
    """Return the JSON of `ingest --json` when no paper was readable."""
    refused = (*sources.refused, *sources.refused_entries)
    return IngestReport(refused=refused, warnings=sources.warnings).as_dict()


async def aingest_papers(
    session: Session,
    paths: Sequence[Path],
    options: IngestOptions,
    *,
    documents: Sequence[Document] = (),
    ray: RayRequest | None = None,
    sources: Sources | None = None,
    on_event: Callable[[IngestEvent], None] = lambda _: None,
    on_report: Callable[[dict[str, Any]], None] = lambda _: None,
    run: str = "",
) -> IngestOutcome:
    """Ingest papers and, if requested, describe new figures; papers stay ingested if that fails.

    `sources` are papers already read; `on_report` is called before figures are described. All calls are billed to
    `run`, by default a new one. Raises what `aingest` raises.
    """
    from ..graph.prompt_fitting import describe_papers, summarize_fitted
    from ..ingestion.ingest import ingest as ingest_files

    settings, run = session.settings, run or f"ingest-{secrets.token_hex(6)}"
    with bill_to(run, session.budget(run)):
        report = await ingest_files(
            session.library,
            paths,
            documents=documents,
            sources=sources,
            bib=options.bib,
            prune=options.prune,
            summarize=partial(summarize_fitted, session, run) if options.summarize else None,
            on_event=on_event,
            chunking=(settings.chunk_tokens, settings.chunk_overlap),
            ocr=choose_ocr(settings, required=options.ocr),
            follow_links=options.follow_links,
            ray=ray,
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
    descriptions are kept, and repeating the call resumes.
    """
    from ..graph.prompt_fitting import describe_papers

    require_writable(session)
    keys: tuple[str, ...] = one_or_more(papers)
    for key in keys:
        await asyncio.to_thread(session.library.paper, key)
    run = f"describe-{secrets.token_hex(6)}"
    return asdict(await describe_papers(session, run, keys or None, refresh=refresh, on_event=on_event))


def event_record(event: IngestEvent) -> dict[str, Any]:
    """Convert an event to plain data, with its `kind`."""
    return {"kind": type(event).__name__.lower(), **asdict(event)}


ingest = blocking(aingest)
describe_figures = blocking(adescribe_figures)


PAPER_SUFFIXES = tuple(ENDINGS)
UPLOAD_ID = UPLOAD
# The made-up papers of the README's demo, with their `.bib`.
SAMPLE_FILES = tuple(sorted((Path(__file__).parents[1] / "examples" / "library").glob("*.*")))


async def aingest_upload(
    session: Session,
    upload_id: str,
    files: Sequence[Path],
    bib: Path | None,
    uploads: Uploads,
    *,
    replaces: bool,
    on_event: Callable[[IngestEvent], None],
) -> IngestReport:
    """Ingest uploaded files, billed to the upload; existing papers get metadata from the `.bib`.

    A file whose key belongs to a different paper is refused unless it `replaces` that paper. Figures of new papers are
    described if a vision model is configured. Raises what `aingest` raises.
    """
    sources = Sources((), (), (), ())
    if files or bib is None:
        converted = ConvertedFiles(session.home.converted)
        sources = await in_thread(read_sources, files, bib, (), converted, choose_ocr(session.settings))
    sources, known = await asyncio.to_thread(_select_new, sources, session, uploads, replaces=replaces)
    outcome = await aingest_papers(session, (), IngestOptions(), sources=sources, on_event=on_event, run=upload_id)
    report = outcome.report
    updated, problems = await _update_entries(session.library, bib, known, report) if bib else ([], [])
    refused = outcome.figures.refused if outcome.figures else ()
    undescribed = [f"{item.key}, {item.figure} is not described: {item.reason}." for item in refused]
    if outcome.stopped is not None:
        undescribed.append(f"Not all figures are described: {outcome.stopped}")
    return replace(
        report,
        updated=(*report.updated, *updated),
        unchanged=tuple(key for key in (*report.unchanged, *known) if key not in updated),
        warnings=(*report.warnings, *problems, *undescribed),
    )


def _select_new(
    sources: Sources, session: Session, uploads: Uploads, *, replaces: bool
) -> tuple[Sources, dict[str, Paper]]:
    """Split sources into new ones and papers already in the library; with `replaces`, an upload may replace a paper."""
    records = session.library.records()
    present = {
        record.paper.content_hash: key
        for key, record in records.items()
        if uploads.place_of(record.paper.source) or Path(record.paper.source).is_file()
    }
    found, refused = [], list(sources.refused)
    known: dict[str, Paper] = {}
    for source in sources.found:
        key = source.paper.key
        same = present.get(source.paper.content_hash)
        if same is not None and not (replaces and same == key):
            known[same] = source.paper
        elif key in records and not replaces and records[key].paper.content_hash != source.paper.content_hash:
            # A text and a PDF of the same paper are merged.
            stored, converted = records[key].paper, ConvertedFiles(session.home.converted)
            read = read_as(Path(stored.source), stored, converted, choose_ocr(session.settings))
            both = None if isinstance(read, Refusal) else merge_text_with_pdf(read, source)
            if both is None:
                refused.append(Refusal(str(source.path), f"the library has another paper with the key {key}"))
            else:
                found.append(both)
        else:
            found.append(source)
    return replace(sources, found=tuple(found), refused=tuple(refused)), known


async def _update_entries(
    library: Library, bib: Path, known: Mapping[str, Paper], report: IngestReport
) -> tuple[list[str], list[str]]:
    """Update papers already in the library (`known`) from the `.bib`; returns the keys that changed, and warnings."""
    bibliography = await asyncio.to_thread(read_bibliography, bib)
    entries = await asyncio.to_thread(matching_entries, library, bibliography)
    entries |= {key: paper for key, paper in known.items() if has_own_entry(paper)}
    updated = await update_metadata(library, {key: entry for key, entry in entries.items() if key not in report.added})
    problems = [f"{item.path}: {item.reason}." for item in bibliography.refused if item not in report.refused]
    if not entries and not report.added:
        problems.append(f"{bib}: no entry matches a paper in the library.")
    return [key for key in updated if key not in report.updated], problems


@threaded
def apaper_sources(session: Session) -> dict[str, str]:
    """Return the file of each paper by its key."""
    return {paper.key: paper.source for paper in session.library.papers()}


@threaded
def aremove_orphans(session: Session, uploads: Uploads, among: Collection[str]) -> None:
    """Delete those files of the given uploads that belong to no paper."""
    remove_orphans(session.library, uploads, among)


def stored_bytes(session: Session, *, without: Collection[str] = ()) -> int:
    """Return the total size of uploaded and fetched files, leaving out the uploads in `without`; blocks."""
    home = session.home
    stored = {**home.uploads().files(), **home.plots().files()}
    uploaded = sum(sum(files.values()) for upload, files in stored.items() if upload not in without)
    return uploaded + sum(file.stat().st_size for file in session.home.added.rglob("*") if file.is_file())
