"""doctor, rebuild-index and library copy: check, repair and move a library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from ..api.blocking import run_async
from ..api.messages import command, counted
from ..errors import DONE, DONE_WITH_REFUSALS
from .options import command_session, home_session, resolve
from .output import Printed, ingest_progress, notice, show_rebuilt, warnings_and_refusals
from .terminal_text import one_line

library_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Move a whole library.")

_SHOWN_ANYWAY: Final = frozenset({"home", "embedding", "library"})  # in the lines about the library and its settings
_FIRST_SETTINGS: Final = frozenset({"chat_model", "chat_base_url", "chat_api_key", "embedding_model"})


def doctor(
    repair: Annotated[bool, "Repair what is found; papers that lost their vectors are embedded again."] = False,
    mend: Annotated[bool, typer.Option("--mend", hidden=True, help="The earlier name of --repair.")] = False,
    all_settings: Annotated[
        bool, typer.Option("--settings", help="Show every setting in force with its origin.")
    ] = False,
) -> Printed:
    """Check the library, and show the settings that you made.

    The LangGraph server opens the same home when it is started in the same folder with the same environment. Exit
    code 1 if a problem remains.
    """
    from ..api.library_upkeep import acheck_library, alibrary_counts, arepair_library, settings_in_force

    settings, found = resolve()
    record: dict[str, Any] = {"home": str(found.name), "settings": settings_in_force(settings), "findings": []}
    repairs = repair or mend
    if found.exists():
        with command_session(settings, found, create=False, reading=not repairs) as session:
            record["library"] = run_async(alibrary_counts(session))
            if repairs:
                with ingest_progress() as show:
                    record["findings"], refused = run_async(arepair_library(session, on_event=show))
                warnings_and_refusals({"warnings": (), "refused": refused})
            record["findings"] += run_async(acheck_library(session))
    failed = any(finding["level"] == "problem" for finding in record["findings"])
    return Printed(record, lambda record: _doctor_lines(record, all_settings=all_settings), int(failed))


def _doctor_lines(record: dict[str, Any], *, all_settings: bool) -> Iterator[str]:
    """Problems, library, then settings; findings without a problem and unset settings only on request."""
    for finding in sorted(record["findings"], key=lambda finding: finding["level"] == "fine"):
        if finding["level"] == "fine" and finding["topic"] in _SHOWN_ANYWAY:
            continue
        remedy = f" {finding['remedy']}" if finding["remedy"] else ""
        yield one_line(f"  {finding['level']}: {finding['topic']}: {finding['message']}.{remedy}")
    if library := record.get("library"):
        held = f"{counted(library['papers'], 'paper')}, {counted(library['chunks'], 'chunk')}"
        yield f"Library: {held}, embedding {library['embedding']}"
    else:
        yield f"There is no library here yet: {command('ingest PAPERS --bib FILE')}."
    shown = {
        name: (value, origin)
        for name, (value, origin) in record["settings"].items()
        if all_settings or name in _FIRST_SETTINGS or origin != "default"
    }
    yield from (one_line(f"  {name} = {value}  ({origin})") for name, (value, origin) in shown.items())
    if len(shown) < len(record["settings"]):
        yield f"All settings: {command('doctor --settings')}"


def rebuild_index() -> Printed:
    """Rebuild the index from the files of the indexed papers.

    Keys and metadata stay as they are, and the vectors of unchanged texts are used again; to embed everything again,
    ingest into a new --home. A paper whose file is gone stays as it is while its passages are complete.
    Exit code 4 means that some could not be repaired, each named with its reason.
    """
    from ..api.library_upkeep import arebuild_index

    with home_session() as session, ingest_progress() as show:
        record = run_async(arebuild_index(session, on_event=show))
    warnings_and_refusals(record)
    return Printed(record, show_rebuilt, DONE_WITH_REFUSALS if record["refused"] else DONE)


@library_app.callback()
def _group() -> None:
    """Move a whole library."""


@library_app.command("copy")
def copy_library(
    to: Annotated[str, typer.Option(help="The other home: a folder, or a postgresql:// address.")],
    papers_only: Annotated[bool, "Copy only the papers, not runs, conversations, the journal or metadata."] = False,
    to_vectors: Annotated[
        str | None,
        typer.Option(
            help="The Milvus that searches the other home, if that is in PostgreSQL.",
            show_default="CITELOOM_VECTORS, if this home is a folder",
        ),
    ] = None,
) -> Printed:
    """Copy a home to another one, without embedding a text or paying for an answer again.

    Papers, runs with their edits and checkpoints, conversations, the journal and the metadata that services gave
    are copied, and compared at the end; the papers' own files stay where they are. An interrupted copy continues
    when the command is given again. A home that holds anything else is refused.
    """
    from ..api.homes import readable_home
    from ..api.library_upkeep import acopy_library, target_home

    settings, found = resolve(to_copy=True)
    other = target_home(settings, found, to, to_vectors)
    readable = readable_home(found, notice, library=True, records=not papers_only)
    with command_session(settings, readable, create=False, reading=True) as session:
        record = run_async(acopy_library(session, other, papers_only=papers_only, on_notice=notice))
    held = f"{counted(record['copied'], 'paper')} copied, {record['present']} already there"
    lines = [f"{held}; {counted(record['chunks'], 'chunk')} compared, version {record['version']}."]
    if records := record["records"]:
        kinds = (("runs", "run"), ("conversations", "conversation"), ("answers", "cached answer"))
        counts = ", ".join(counted(records[name], word) for name, word in kinds)
        lines.append(f"{counts} and {counted(records['checkpoints'], 'checkpoint')} were compared.")
    return Printed(record, lambda _: lines)
