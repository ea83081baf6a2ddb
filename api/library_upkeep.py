"""Maintains a library: status, settings, `doctor` checks and repairs, rebuilding the index, and copying."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from ..documents.pdf.ocr import choose_ocr, find_ocr, tesseract_version
from ..errors import InputError
from ..graph.session import Session
from ..ingestion.doctor import DoctorFinding, Level, examine, rebuild, repair_library
from ..ingestion.home_copy import copy_home, copy_library
from ..ingestion.ingest_events import IngestEvent
from ..runs.result_record import retraction_problems
from ..settings.addresses import DatabaseUrl, parse_home, parse_vectors
from ..settings.config import Settings
from ..settings.key_trust import shown_address
from ..stores.folder_home import find_home
from ..stores.home import Home
from ..stores.library import Library
from .blocking import threaded

if TYPE_CHECKING:
    from .results import FindingOfDoctor, LibraryCounts, LibraryStatus


def describe_settings(settings: Settings) -> dict[str, tuple[str, str]]:
    """Return every setting's value and origin; API keys are masked, empty values shown as "not set"."""
    shown: dict[str, tuple[str, str]] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if name.endswith("_api_key"):
            value = "set" if value else "not set"
        elif name.endswith("_base_url") and value is not None:
            value = shown_address(value)
        shown[name] = ("not set" if value in (None, "", {}, []) else str(value), settings.origin(name))
    return shown


@threaded
def alibrary_counts(session: Session) -> LibraryCounts:
    """Return how many papers and chunks a library has, its embedding model and its version."""
    library = session.library
    return {
        "papers": len(library.papers()),
        "chunks": library.chunk_count(),
        "embedding": library.embedding.name,
        "version": library.version(),
    }


@threaded
def acheck_library(session: Session) -> list[FindingOfDoctor]:
    """Check a library, its papers and OCR without changing anything; returns findings, good and bad."""
    retracted = retraction_problems(session.home, session.library, allowed=session.settings.cite_retracted)
    found = (*examine(session.library), *retracted, _check_ocr(session.settings))
    return [cast("FindingOfDoctor", asdict(finding)) for finding in found]  # the fields are the same


@threaded
def alibrary_status(session: Session) -> LibraryStatus:
    """Return a library's size and years, and the problems that `doctor` finds, one line each."""
    library, papers = session.library, session.library.papers()
    years = [paper.year for paper in papers if paper.year is not None]
    problems = [finding for finding in examine(session.library) if finding.level == "problem"]
    return {
        "home": str(session.home.name),
        "papers": len(papers),
        "passages": library.chunk_count(),
        "first_year": min(years, default=None),
        "last_year": max(years, default=None),
        "embedding": library.embedding.name,
        "version": library.version(),
        "chat_models": not session.extractive,
        "problems": [f"{item.topic}: {item.message}. {item.remedy}".strip() for item in problems],
    }


async def arepair_library(
    session: Session, *, on_event: Callable[[IngestEvent], None] = lambda _: None
) -> tuple[list[FindingOfDoctor], list[dict[str, str]]]:
    """Repair a library and reindex incomplete papers; returns repairs, and refused files with reasons.

    Raises any error of the embedding model; finished papers are kept.
    """
    settings = session.settings
    chunking = (settings.chunk_tokens, settings.chunk_overlap)
    done, refused = await repair_library(
        session.library, on_event=on_event, chunking=chunking, ocr=choose_ocr(settings)
    )
    named = [{"path": item.path, "reason": item.reason} for item in refused]
    return [cast("FindingOfDoctor", asdict(problem)) for problem in done], named


async def arebuild_index(
    session: Session, *, on_event: Callable[[IngestEvent], None] = lambda _: None
) -> dict[str, Any]:
    """Index all papers again from their files; returns the JSON of `rebuild-index --json`.

    Raises `InputError` if the library used another embedding model, and any error of the model.
    """
    settings = session.settings
    chunking = (settings.chunk_tokens, settings.chunk_overlap)
    report = await rebuild(session.library, on_event=on_event, chunking=chunking, ocr=choose_ocr(settings))
    record = {name: value for name, value in report.as_dict().items() if not name.startswith("papers_")}
    return {"papers_rebuilt": len(report.updated), **record}


def _check_ocr(settings: Settings) -> DoctorFinding:
    """Check whether scanned pages can be read; fine if OCR is off, only a notice if 'auto' finds no program."""
    try:
        found = find_ocr(settings.ocr_languages)
        version = tesseract_version(found.program)
    except InputError as error:
        if settings.ocr == "off":
            return DoctorFinding("fine", "OCR", f"off, and not available ({error.message.rstrip('.')})")
        level: Level = "problem" if shutil.which("tesseract") else "notice"
        return DoctorFinding(level, "OCR", error.message.rstrip("."), error.help)
    state = "on" if settings.ocr == "auto" else "off unless 'ingest --ocr' or CITELOOM_OCR=auto asks for it"
    return DoctorFinding("fine", "OCR", f"{version} with {found.languages}; {state}")


def target_home(settings: Settings, home: Home, to: str, to_vectors: str | None) -> Home:
    """Find the home to copy to; raises `InputError` if it is the same home, or a folder with `to_vectors`.

    `to_vectors` is the copy's Milvus; if `home` is a folder, it defaults to the one in the settings.
    """
    vectors = parse_vectors(to_vectors) or (None if isinstance(home.address, DatabaseUrl) else settings.vectors)
    address = parse_home(to)
    in_database = isinstance(address, DatabaseUrl)
    if to_vectors and not in_database:
        raise InputError(f"--to-vectors: {to} is a folder.", help="Leave out --to-vectors: Milvus needs a database.")
    other = find_home(address, vectors=vectors if in_database else None)
    if other.address == home.address:
        raise InputError(f"{to} is the same home.", help="Give another one as --to.")
    home.require_library()
    return other


async def acopy_library(
    session: Session, to: Home, *, papers_only: bool = False, on_notice: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Copy a library to another home, including runs, conversations and journal unless `papers_only`.

    Returns the JSON of `library copy --json`. Continues an interrupted copy. Raises `InputError` if the other home
    holds anything else, or if the copy differs.
    """
    source, records = session.library, dict[str, int]()
    opened = await asyncio.to_thread(lambda: Library.open(to, source.embedding, on_notice=on_notice))
    with closing(opened) as target:
        if papers_only:
            report = await copy_library(source, target, lambda key: on_notice(f"  copied {key}"))
        else:
            report, records = await copy_home(source, target, lambda line: on_notice(f"  {line}"))
    return {**asdict(report), "to": str(to.name), "records": records}
