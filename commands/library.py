"""ingest and papers: fill, list and edit the library."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DONE_WITH_REFUSALS, CiteloomError, PausedError
from ..models.concurrency import run_async
from ..plurals import counted
from .completion import complete_keys
from .escaping import one_line
from .layout import table
from .options import (
    HomeOption,
    JsonOption,
    MaxCallsOption,
    MaxCostOption,
    MaxTokensOption,
    command_here,
    command_session,
    resolve,
)
from .output import (
    ingest_progress,
    name_refused_figures,
    notice,
    notice_command,
    result,
    result_json,
    warnings_and_refusals,
)
from .ray_option import RayCommand, RayOption, RayWorkersOption, ray_request

if TYPE_CHECKING:
    from ..ingestion.ray_cluster import RayRequest
    from ..ingestion.reading import PdfReading
    from ..ingestion.sources import Sources
    from ..stores.home import Home

papers_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Papers, their figures and metadata.")


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("ingest", cls=RayCommand, rich_help_panel="Library")(ingest)
    app.add_typer(papers_app, name="papers", rich_help_panel="Library")


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Papers (PDF, markdown, docx, LaTeX, JATS, HTML, epub), or folders to walk.", show_default=False
        ),
    ],
    bib: Annotated[
        Path | None,
        typer.Option("--bib", help="BibTeX file; its keys are kept verbatim. Default: the only .bib in the folder."),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove papers whose files are gone.")] = False,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Also ingest what links inside a folder point to outside of it.")
    ] = False,
    ocr: Annotated[
        bool, typer.Option("--ocr", help="Read pages of PDFs that hold no text by OCR; needs tesseract.")
    ] = False,
    summarize: Annotated[
        bool,
        typer.Option("--summarize", help="Summarize each new paper with the summarizer model (costs calls)."),
    ] = False,
    describe: Annotated[
        bool,
        typer.Option(
            "--describe/--no-describe",
            help="Have the vision model, if one is configured, describe the figures of new papers (costs calls).",
        ),
    ] = True,
    ray: RayOption = None,
    ray_workers: RayWorkersOption = None,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Index papers and embed what is new.

    A second ingest embeds nothing; an edited file embeds what changed. A paper is matched to its BibTeX entry by
    file name, 'file' field, DOI or title; one without an entry is indexed with a warning. Exit code 4 means
    that some files or entries were refused, each named with its reason; the others are indexed.
    KEY.notes.md beside a paper is your note on it: 'find' sees it, and it is never cited.
    --ocr reads scanned pages by tesseract, in the languages of CITELOOM_OCR_LANGUAGES; what it read is marked so.
    The limits count the requests of this ingest, embeddings among it; given again, the command starts counting again.
    With CITELOOM_VISION_MODEL, figures are described once the papers are ready; what cannot be described is named, and
    'papers describe' continues.
    --ray spreads reading, chunking and embedding over a Ray cluster; the library is the same as without it.

    Example: citeloom ingest my-library/ --bib my-library/library.bib
    """
    limits = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    switches = {"prune": prune, "summarize": summarize, "follow_links": follow_links, "ocr": ocr, "describe": describe}
    cluster = ray_request(ray, ray_workers)
    record, stopped = run_async(_ingest(paths, bib, home, limits, cluster=cluster, **switches))
    if as_json:
        result_json(record)
    else:
        result(
            f"{counted(record['papers_added'], 'paper')} added, {record['papers_updated']} updated, "
            f"{record['papers_unchanged']} unchanged, {record['papers_removed']} removed; "
            f"{counted(record['chunks_embedded'], 'chunk')} embedded in {record['seconds']:.1f} s."
        )
        if "figures" in record:
            result(f"{counted(record['figures']['described'], 'figure')} described.")
    if stopped is not None:
        notice(f"The papers are ingested, but not all figures are described: {stopped}")
        notice_command("Continue with:", command_here("papers describe"))
    if record["refused"] or stopped is not None or record.get("figures", {}).get("refused"):
        raise typer.Exit(stopped.exit_code if isinstance(stopped, PausedError) else DONE_WITH_REFUSALS)


async def _ingest(
    paths: list[Path],
    bib: Path | None,
    home: str | None,
    limits: dict[str, Any],
    *,
    prune: bool,
    summarize: bool,
    follow_links: bool,
    ocr: bool,
    describe: bool,
    cluster: RayRequest | None,
) -> tuple[dict[str, Any], CiteloomError | None]:
    """The report, and what kept figures from being described."""
    from ..graph.figure_descriptions import describe_papers
    from ..graph.prompt_fitting import summarized
    from ..ingestion.ingest import ingest as ingest_papers
    from ..ingestion.ingest import refused_report
    from ..ingestion.reading import PdfReading
    from ..models.journal.budget import bill_to

    settings, found = resolve(home, **limits)
    pdf = PdfReading.of(settings, ocr=ocr)
    sources = None
    if cluster is None and not found.exists():
        sources = await _first_reading(found, paths, bib, pdf, follow_links=follow_links)
        if not sources.found:
            report = refused_report(sources)
            warnings_and_refusals(report)
            return report.as_dict(), None
    run = f"ingest-{secrets.token_hex(6)}"
    with command_session(settings, found) as session:
        summarizer = partial(summarized, session, run) if summarize else None
        with ingest_progress() as show, bill_to(run, session.budget(run)):
            report = await ingest_papers(
                session.library,
                paths,
                sources=sources,
                bib=bib,
                prune=prune,
                summarize=summarizer,
                on_event=show,
                chunk_tokens=settings.chunk_tokens,
                chunk_overlap=settings.chunk_overlap,
                pdf=pdf,
                follow_links=follow_links,
                ray=cluster,
            )
            record = report.as_dict()
            warnings_and_refusals(report)
            if not (describe and settings.describes_figures):
                return record, None
            try:
                figures = await describe_papers(session, run, [*report.added, *report.updated], on_event=show)
            except CiteloomError as error:
                return record, error
    name_refused_figures(figures)
    return {**record, "figures": figures.as_dict()}, None


async def _first_reading(
    home: Home, paths: list[Path], bib: Path | None, pdf: PdfReading, *, follow_links: bool
) -> Sources:
    """Read the papers of a home that does not exist, so that none is made for nothing; raises like `read_sources`."""
    from ..documents.sandbox import in_thread
    from ..ingestion.reading import ConvertedFiles
    from ..ingestion.sources import read_sources

    home.require_place()
    return await in_thread(read_sources, paths, bib, (), ConvertedFiles(home.converted), pdf, follow_links=follow_links)


@papers_app.command("list")
def list_papers(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """List the papers with their keys."""
    from ..tools.paper_records import listed_papers

    settings, found = resolve(home)
    with command_session(settings, found, create=False, reading=True) as session:
        records = listed_papers(session.library)
    if as_json:
        result_json(records)
        return
    rows = [
        [
            one_line(record["key"]),
            one_line(_first(record["authors"])),
            str(record["year"] or ""),
            one_line(f"{record['status'].upper()}: {record['title']}" if record["status"] else record["title"]),
            str(record["chunks"]),
        ]
        for record in records
    ]
    table(counted(len(rows), "paper"), ["key", "authors", "year", "title", "chunks"], rows, prose=["authors", "title"])


@papers_app.command("show")
def show_paper(
    key: Annotated[
        str,
        typer.Argument(
            help="Citation key.",
            autocompletion=complete_keys,
        ),
    ],
    text: Annotated[bool, typer.Option("--text", help="Print the text that is searched, by section.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show one paper: metadata, summary, your note, and the tree of its sections with their chunks and pages.

    What 'papers enrich' found is shown with who said it: retractions and corrections, what your .bib lacks, and what
    differs from it.

    Example: citeloom papers show smith2024quantum --text
    """
    from ..metadata.enriching import stored_metadata
    from ..tools.figure_records import counted_kinds
    from ..tools.outline import indexed_text, outline
    from ..tools.paper_records import paper_details
    from .paper_view import paper_lines, text_lines

    settings, found = resolve(home)
    with command_session(settings, found, create=False, reading=True) as session:
        library = session.library
        paper = library.paper(key)
        if as_json:
            result_json(paper_details(library, key, text=text))
            return
        if text:
            shown = text_lines(paper, indexed_text(library, key))
        else:
            shown = paper_lines(
                paper,
                library.summary(key),
                library.note(key),
                outline(library, key),
                stored_metadata(session.metadata, paper),
                counted_kinds([figure.kind for figure in library.figures(key)]),
            )
        for line in shown:
            result(line)


@papers_app.command("remove")
def remove_papers(
    keys: Annotated[list[str], typer.Argument(help="Citation keys.", autocompletion=complete_keys)],
    home: HomeOption = None,
) -> None:
    """Remove papers from the library; their files stay where they are, but those that Citeloom stored are deleted."""
    from ..ingestion.ingest import remove

    settings, found = resolve(home)
    with command_session(settings, found, create=False) as session:
        library = session.library
        for key in keys:
            library.paper(key)
        for key in keys:
            run_async(remove(library, key))
            result(one_line(f"Removed {key}."))


def _first(authors: list[str]) -> str:
    return "" if not authors else authors[0] if len(authors) == 1 else f"{authors[0]} and {len(authors) - 1} more"
