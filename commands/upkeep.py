"""doctor, rebuild-index and library copy: check, repair and move a library."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from ..api.messages import command, counted
from ..errors import DONE_WITH_REFUSALS
from .options import JsonOption, command_session, home_session, resolve
from .output import ingest_progress, notice, result, result_json, show_rebuilt, warnings_and_refusals
from .terminal_text import one_line

library_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Move a whole library.")

_SHOWN_ANYWAY: Final = frozenset({"home", "embedding", "library"})  # in the lines about the library and its settings
_FIRST_SETTINGS: Final = frozenset({"chat_model", "chat_base_url", "chat_api_key", "embedding_model"})


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what is found; papers that lost their vectors are embedded again.")
    ] = False,
    mend: Annotated[bool, typer.Option("--mend", hidden=True, help="The earlier name of --repair.")] = False,
    all_settings: Annotated[
        bool, typer.Option("--settings", help="Show every setting in force with its origin.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check the library, and show the settings that you made.

    The LangGraph server opens the same home when it is started in the same folder with the same environment. Exit
    code 1 if a problem remains.
    """
    from ..api.library_upkeep import check_library, library_counts, repair_index, settings_in_force

    settings, found = resolve()
    record: dict[str, Any] = {"home": str(found.name), "settings": settings_in_force(settings), "findings": []}
    repairs = repair or mend
    if found.exists():
        with command_session(settings, found, create=False, reading=not repairs) as session:
            record["library"] = library_counts(session)
            if repairs:
                with ingest_progress() as show:
                    record["findings"], refused = repair_index(session, on_event=show)
                warnings_and_refusals({"warnings": (), "refused": refused})
            record["findings"] += check_library(session)
    if as_json:
        result_json(record)
    else:
        # Problems, library, then settings; findings without a problem and unset settings only on request.
        library = record.get("library")
        findings = sorted(record["findings"], key=lambda finding: finding["level"] == "fine")
        for finding in findings:
            if finding["level"] == "fine" and finding["topic"] in _SHOWN_ANYWAY:
                continue
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
            if all_settings or name in _FIRST_SETTINGS or origin != "default"
        }
        for name, (value, origin) in shown.items():
            result(one_line(f"  {name} = {value}  ({origin})"))
        if len(shown) < len(record["settings"]):
            result(f"All settings: {command('doctor --settings')}")
    if any(finding["level"] == "problem" for finding in record["findings"]):
        raise typer.Exit(1)


def rebuild_index(as_json: JsonOption = False) -> None:
    """Rebuild the index from the files of the indexed papers.

    Keys and metadata stay as they are, and the vectors of unchanged texts are used again; to embed everything again,
    ingest into a new --home. A paper whose file is gone stays as it is while its passages are complete.
    Exit code 4 means that some could not be repaired, each named with its reason.
    """
    from ..api.library_upkeep import rebuild_index as rebuild

    with home_session() as session, ingest_progress() as show:
        record = rebuild(session, on_event=show)
    warnings_and_refusals(record)
    if as_json:
        result_json(record)
    else:
        show_rebuilt(record)
    if record["refused"]:
        raise typer.Exit(DONE_WITH_REFUSALS)


@library_app.callback()
def _group() -> None:
    """Move a whole library."""


@library_app.command("copy")
def copy_library(
    to: Annotated[str, typer.Option(help="The other home: a folder, or a postgresql:// address.")],
    papers_only: Annotated[
        bool,
        typer.Option("--papers-only", help="Copy only the papers, not runs, conversations, the journal or metadata."),
    ] = False,
    to_vectors: Annotated[
        str | None,
        typer.Option(
            help="The Milvus that searches the other home, if that is in PostgreSQL.",
            show_default="CITELOOM_VECTORS, if this home is a folder",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Copy a home to another one, without embedding a text or paying for an answer again.

    Papers, runs with their edits and checkpoints, conversations, the journal and the metadata that services gave
    are copied, and compared at the end; the papers' own files stay where they are. An interrupted copy continues
    when the command is given again. A home that holds anything else is refused.
    """
    from ..api.homes import readable_home
    from ..api.library_upkeep import copy_home_to, target_home

    settings, found = resolve(to_copy=True)
    other = target_home(settings, found, to, to_vectors)
    readable = readable_home(found, notice, library=True, records=not papers_only)
    with command_session(settings, readable, create=False, reading=True) as session:
        record = copy_home_to(session, other, papers_only=papers_only, on_notice=notice)
    if as_json:
        result_json(record)
        return
    held = f"{counted(record['copied'], 'paper')} copied, {record['present']} already there"
    result(f"{held}; {counted(record['chunks'], 'chunk')} compared, version {record['version']}.")
    if records := record["records"]:
        kinds = (("runs", "run"), ("conversations", "conversation"), ("answers", "cached answer"))
        counts = ", ".join(counted(records[name], word) for name, word in kinds)
        result(f"{counts} and {counted(records['checkpoints'], 'checkpoint')} were compared.")
