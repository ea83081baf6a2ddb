"""doctor: shows home and settings, checks and repairs the library; rebuild-index: rebuilds it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DONE_WITH_REFUSALS
from ..models.concurrency import run_async
from ..plurals import counted
from ..program import command
from .escaping import one_line
from .options import HomeOption, JsonOption, command_session, resolve
from .output import notice, result, result_json, warnings_and_refusals

if TYPE_CHECKING:
    from ..ingestion.doctor import DoctorFinding
    from ..settings.config import Settings
    from ..stores.library import Library


_FIRST_SETTINGS = frozenset({"chat_model", "chat_base_url", "chat_api_key", "embedding_model"})


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("doctor", rich_help_panel="Library")(doctor)
    app.command("rebuild-index", rich_help_panel="Library")(rebuild_index)


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what is found; papers that lost their vectors are embedded again.")
    ] = False,
    mend: Annotated[bool, typer.Option("--mend", hidden=True, help="The earlier name of --repair.")] = False,
    all_settings: Annotated[
        bool, typer.Option("--settings", help="Show every setting in force with its origin.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Check the library, and show the settings that were made.

    The LangGraph server opens the same home when it is started in the
    same folder with the same environment. Exit code 1 if a problem remains.
    """
    from ..api.doctor_record import findings, library_counts, settings_in_force

    repair = repair or mend
    settings, found = resolve(home)
    record: dict[str, Any] = {"home": str(found.name), "settings": settings_in_force(settings), "findings": []}
    if found.exists():
        with command_session(settings, found, create=False, reading=not repair) as session:
            library = session.library
            record["library"] = library_counts(library)
            done = run_async(_repaired(library, settings)) if repair else []
            record["findings"] = [*map(asdict, done), *findings(library, settings)]
    if as_json:
        result_json(record)
    else:
        _show(record, every_setting=all_settings)
    if any(finding["level"] == "problem" for finding in record["findings"]):
        raise typer.Exit(1)


async def _repaired(library: Library, settings: Settings) -> list[DoctorFinding]:
    from ..ingestion.doctor import repair_library
    from ..ingestion.reading import PdfReading
    from .output import ingest_progress

    with ingest_progress() as show:
        done, refused = await repair_library(
            library,
            on_event=show,
            chunk_tokens=settings.chunk_tokens,
            chunk_overlap=settings.chunk_overlap,
            pdf=PdfReading.of(settings),
        )
    for refusal in refused:
        notice(f"Refused: {refusal.path}: {refusal.reason}")
    return done


def rebuild_index(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Rebuild the index from the files of the indexed papers.

    Keys and metadata stay as they are, and vectors that are there are used again; to embed everything again, delete the
    folder 'chroma' of the home before. A paper whose file is gone stays as it is while its passages are whole.
    Exit code 4 means that some could not be repaired, each named with its reason.
    """
    from ..ingestion.doctor import rebuild
    from ..ingestion.reading import PdfReading
    from .output import ingest_progress

    settings, found = resolve(home)
    with command_session(settings, found, create=False) as session, ingest_progress() as show:
        report = run_async(
            rebuild(
                session.library,
                on_event=show,
                chunk_tokens=settings.chunk_tokens,
                chunk_overlap=settings.chunk_overlap,
                pdf=PdfReading.of(settings),
            )
        )
    warnings_and_refusals(report)
    if as_json:
        result_json({"papers_rebuilt": len(report.updated), **_without_counts(report.as_dict())})
    else:
        embedded = f"{counted(report.chunks_embedded, 'chunk')} embedded in {report.seconds:.1f} s"
        result(f"{counted(len(report.updated), 'paper')} indexed again, {embedded}.")
    if report.refused:
        raise typer.Exit(DONE_WITH_REFUSALS)


def _without_counts(record: dict[str, Any]) -> dict[str, Any]:
    """The part of an ingest report that applies to a rebuild."""
    return {name: value for name, value in record.items() if not name.startswith("papers_")}


def _show(record: dict[str, Any], *, every_setting: bool) -> None:
    """Problems, then the library, then the settings; what is fine and what is not set only with `every_setting`."""
    library = record.get("library")
    findings = sorted(record["findings"], key=lambda finding: finding["level"] == "fine")
    for finding in findings:
        remedy = f" {finding['remedy']}" if finding["remedy"] else ""
        result(one_line(f"  {finding['level']}: {finding['topic']}: {finding['message']}.{remedy}"))
    if library is None:
        result(f"There is no library here yet: {command('ingest PAPERS --bib FILE')}.")
    else:
        held = f"{counted(library['papers'], 'paper')}, {counted(library['chunks'], 'chunk')}"
        result(f"Library: {held}, embedding {library['embedding']}")
    shown = {
        name: (value, origin)
        for name, (value, origin) in record["settings"].items()
        if every_setting or name in _FIRST_SETTINGS or origin != "default"
    }
    for name, (value, origin) in shown.items():
        result(one_line(f"  {name} = {value}  ({origin})"))
    if len(shown) < len(record["settings"]):
        result(f"All settings: {command('doctor --settings')}")
