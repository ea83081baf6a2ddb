"""verify: checks quotes, keys and numbers of a result against its file and the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DONE_WITH_REFUSALS, InputError
from .escaping import one_line
from .options import HomeOption, JsonOption, command_session, resolve
from .output import notice, result, result_json

if TYPE_CHECKING:
    from ..stores.library import Library


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("verify", rich_help_panel="Library")(verify_file)


def verify_file(
    file: Annotated[Path, typer.Argument(help="The .json of a section, a paper, an answer or a conversation.")],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Check quotes, keys and numbers of a result.

    Compares them with the library and with the file itself. Each failure is listed as FILE:FIELD. Exit code 0 if all
    are correct, 4 if not, 2 if the file is not a result of Citeloom. Fields missing from older results are reported.

    Example: citeloom verify paper/discussion.json
    """
    from ..citations.verification import verify

    record = _read(file)
    settings, found = resolve(home)
    with command_session(settings, found, create=False) as session:
        verified = verify(record, _Held(session.library))
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

    if not file.exists():
        raise InputError(f"{file}: no such file.", help="Give the .json of a section, paper, answer or conversation.")
    try:
        record: Any = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read as JSON ({' '.join(str(error).split())[:120]}).") from error
    if not is_result(record):
        raise InputError(
            f"{file}: is not a result of Citeloom.", help="Give the .json of a section, paper, answer or conversation."
        )
    return dict(record)


class _Held:
    """The library lookups that verification needs."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._keys = {paper.key for paper in library.papers()}

    def has_paper(self, key: str) -> bool:
        return key in self._keys

    def chunk(self, chunk_id: str) -> tuple[str, str] | None:
        chunks = self._library.chunks([chunk_id])
        return (chunks[0].key, chunks[0].text) if chunks else None
