"""`export` and `verify`: work on existing files of sections, papers and answers, edited or not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..citations.export.pandoc_formats import FORMATS, Format
from ..citations.verification import LibraryReader, is_result, verify as verify_record
from ..documents.exported_text import SUFFIXES, read_exported
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..experiment import parse_experiment
from ..graph.session import Session
from ..runs.edited_text import export_edited, section_of_paper
from ..stores.backends import backend_of
from ..stores.run_register import UnknownRunError
from .arguments import ArgumentError, parse_formats, requires_open
from .blocking import blocking


@requires_open
async def aexport(
    session: Session,
    file: Path | str,
    formats: Sequence[Format] | Format,
    *,
    out: Path | str | None = None,
    csl: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Convert the markdown file of a section or paper, edited or not, to other formats.

    The run's `.json` must be beside the file, and is copied to `out`, where `verify` needs it; no model is called.
    Returns `files`, paths by format, and `warnings`.

    Args:
        session: the open library that the file was written from.
        file: the `.md`.
        formats: `tex`, `docx`, `html`, `pdf` or `zip`.
        out: folder for the files; beside the `.md` if omitted.
        csl: a citation style; default: the run's.
        force: replace exported files that were edited since.

    Raises `InputError`, and `ExportError` if a conversion fails.
    """
    file = Path(file)
    wanted = parse_formats(formats, file.parent)
    if not wanted:
        raise ArgumentError("formats: the file is markdown already.", help="Give tex, docx, html, pdf or zip.")
    if file.suffix != ".md" or not file.is_file():
        raise InputError(f"{file}: is not a markdown file.", help="Give the .md of a section or a paper.")
    record = _find_record(file)
    try:  # the id of the run that wrote the file, and which of its texts the file has
        origin: Any = json.loads(await in_thread(record.read_text, "utf-8"))
        thread_id, section = str(origin["thread_id"]), str(origin["section"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{record}: is not the record of {file.name} ({type(error).__name__}).",
            help="Keep the .json that was written with the .md beside it.",
        ) from error
    run = await in_thread(backend_of(session.home).runs().get, thread_id)
    ordered = [name for name in FORMATS if name in wanted]
    folder = None if out is None else Path(out)
    paths, warnings = await export_edited(
        file, section_of_paper(run, section), ordered, session, out=folder, csl=csl, force=force
    )
    return {"files": {path.suffix[1:]: str(path) for path in paths}, "warnings": warnings}


@requires_open
async def averify(session: Session, file: Path | str) -> dict[str, Any]:
    """Check every citation, quote and number of a result, both in the readable text and in its record.

    Returns `checked`, the counts of the `quotes` and `keys` of citations, of `findings`, cited or not, and of
    `numbers`; `mismatches`, each a `field` and a `problem`; and `lacks`, counts of unchecked items by reason.

    Args:
        session: the open library that the file was written from.
        file: a `.json`; or a `.md`, `.tex`, `.docx` or `.html` that has its `.json` beside it.

    Raises `InputError` for a file that is not a result.
    """
    return await in_thread(_verify, session, Path(file))


export = requires_open(blocking(aexport))
verify = requires_open(blocking(averify))


def _verify(session: Session, file: Path) -> dict[str, Any]:
    if not file.exists():
        raise InputError(
            f"{file}: no such file.", help="Give a file of a section, paper or answer that has its .json beside it."
        )
    place, experiment = _find_record(file), None
    try:
        record: Any = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{place}: cannot be read as JSON ({' '.join(str(error).split())[:120]}).") from error
    if not is_result(record):
        raise InputError(
            f"{place}: is not a result of Citeloom.", help="Give the .json of a section, paper, answer or conversation."
        )
    exported = read_exported(file) if file.suffix in SUFFIXES else None
    with suppress(UnknownRunError):  # the library may not have the run any more
        run = backend_of(session.home).runs().get(str(record.get("thread_id") or ""))
        if isinstance(given := run.request.get("experiment"), dict):
            experiment = parse_experiment(given)
    text, labels = (exported.text, exported.labels) if exported else (None, ())
    found = verify_record(record, LibraryReader(session.library), text, labels, experiment)
    return {
        "file": str(file),
        "checked": {name: getattr(found, name) for name in ("quotes", "keys", "findings", "numbers")},
        "mismatches": [{"field": place, "problem": why} for place, why in found.mismatches],
        "lacks": found.lacks,
    }


def _find_record(file: Path) -> Path:
    """The `.json` that belongs to a file; a numbered one (`paper.2.docx`) may have that of the first."""
    record = file.with_suffix(".json") if file.suffix in SUFFIXES else file
    if not record.is_file() and Path(file.stem).suffix[1:].isdigit():
        record = file.with_name(f"{Path(file.stem).stem}.json")
    if not record.is_file():
        raise InputError(
            f"{file}: is not a result of Citeloom: its record, {file.stem}.json, is not in the same folder.",
            help="Give a file of a section, paper or answer, and keep its .json beside it.",
        )
    return record
