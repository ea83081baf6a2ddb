"""verify: checks a result, and the text of its files, against its record and the library."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DONE_WITH_REFUSALS, InputError
from .escaping import one_line
from .options import HomeOption, JsonOption, command_session, resolve
from .output import notice, result, result_json

if TYPE_CHECKING:
    from ..documents import Paper
    from ..stores.library import Library


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("verify", rich_help_panel="Library")(verify_file)


def verify_file(
    file: Annotated[
        Path,
        typer.Argument(
            help="A section, a paper or an answer as .json, .md, .tex, .docx or .html, or a conversation's .json."
        ),
    ],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Check every citation, quote and number of a result.

    Compares the text that a person reads, and its record, with the library. For .md, .tex, .docx and .html the record
    is the .json beside it; sentences that you edited may cite what the run found. Each failure is listed as
    FILE:FIELD. Exit code 0 if all are correct, 4 if not, 2 if the file is not a result of Citeloom.

    Example: citeloom verify paper/discussion.docx
    """
    from ..citations.verification import verify
    from ..documents.exported_text import SUFFIXES, read_exported

    exported = read_exported(_existing(file)) if file.suffix in SUFFIXES else None
    record = _read(file.with_suffix(".json") if exported else file)
    settings, found = resolve(home)
    with command_session(settings, found, create=False) as session:
        shelf = _Held(session.library)
        verified = verify(record, shelf, exported.text, exported.labels) if exported else verify(record, shelf)
    counts = f"{verified.quotes} quotes, {verified.keys} cited keys and {verified.numbers} numbers were checked"
    for what, count in verified.lacks.items():
        notice(f"Not checked: {count} {what}.")
    wrong = len(verified.mismatches)
    notice(f"{counts}; {wrong} {'does' if wrong == 1 else 'do'} not hold." if wrong else f"{counts}; all hold.")
    if as_json:
        mismatches = [{"field": place, "problem": why} for place, why in verified.mismatches]
        checked = {"quotes": verified.quotes, "keys": verified.keys, "numbers": verified.numbers}
        result_json({"file": str(file), "checked": checked, "mismatches": mismatches, "lacks": verified.lacks})
    else:
        for place, why in verified.mismatches:
            result(one_line(f"{file}:{place}: {why}"))
    if wrong:
        raise typer.Exit(DONE_WITH_REFUSALS)


def _read(file: Path) -> dict[str, Any]:
    """Read the record; raises `InputError` if it is not a result."""
    from ..citations.verification import is_result

    _existing(file)
    try:
        record: Any = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read as JSON ({' '.join(str(error).split())[:120]}).") from error
    if not is_result(record):
        raise InputError(
            f"{file}: is not a result of Citeloom.", help="Give the .json of a section, paper, answer or conversation."
        )
    return dict(record)


def _existing(file: Path) -> Path:
    if not file.exists():
        raise InputError(
            f"{file}: no such file.", help="Give a file of a section, paper or answer that has its .json beside it."
        )
    return file


class _Held:
    """The library lookups that verification needs."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._papers = {paper.key: paper for paper in library.papers()}

    def keys(self) -> Collection[str]:
        return self._papers.keys()

    def paper(self, key: str) -> Paper | None:
        return self._papers.get(key)

    def passages(self, key: str) -> list[str]:
        return [chunk.text for chunk in self._library.paper_chunks(key)] if key in self._papers else []

    def chunk(self, chunk_id: str) -> tuple[str, str] | None:
        chunks = self._library.chunks([chunk_id])
        return (chunks[0].key, chunks[0].text) if chunks else None
