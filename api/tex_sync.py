"""`sync-tex`: sections of runs in a LaTeX project, such as a git clone of an Overleaf project."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import TypedDict

from ..documents.edited_documents import EditedDocument, read_latex
from ..documents.pandoc import PandocError
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..graph.session import Session
from ..runs.edited_text import edited_record
from ..runs.result_record import stored
from ..runs.sentence_check import load_editable
from ..runs.tex_project import (
    Side as Side,
    SyncedRegion as SyncedRegion,
    TexProject,
    TexSection,
    synchronize,
)
from ..stores.home import written_files
from ..stores.run_register import UnknownRunError
from .arguments import ArgumentError, one_or_more, require_choice, require_writable, requires_open
from .blocking import blocking, run_async
from .files import keep_imported


class TexSync(TypedDict):
    """What became of each region of a LaTeX project, and lines about what was added or could not be done."""

    folder: str
    regions: list[SyncedRegion]
    notices: list[str]
    problems: list[str]


@requires_open
async def async_tex(
    session: Session, folder: Path | str, *, runs: Sequence[str] | str = (), side: Side = ""
) -> TexSync:
    """Bring the sections of finished runs in a LaTeX project up to date, with the entries that they cite.

    Only marked regions are rewritten, and a `.bib` only grows. No model is called.

    Args:
        session: the open library that the runs were written from.
        folder: the project, such as a git clone from Overleaf.
        runs: ids of sections or papers; those that the project has already, if omitted.
        side: what becomes of a region that a person edited: `ours` (overwritten, the file copied before), `theirs` (the
            run takes their text) or "" (it stays, and the difference is returned).

    Raises `InputError` for marks that do not pair up, and `NotEditableError` for an answer or an unfinished run.
    """
    require_writable(session)
    require_choice("side", side, Side)
    place = await in_thread(Path(folder).resolve)
    lock = f"tex-{hashlib.sha256(str(place).encode()).hexdigest()[:16]}"
    async with session.home.lock_of_run(lock).held():
        project = await in_thread(TexProject.read, place)
        given: tuple[str, ...] = one_or_more(runs)
        named = given or tuple(dict.fromkeys(region.run for _, region in project.regions() if region.run))
        if not named:
            raise ArgumentError(f"{place}: has no section of Citeloom yet.", help="Name a run with --run (runs list).")
        sections: list[TexSection] = []
        for name in named:
            try:
                sections += await _sections(session, name)
            except UnknownRunError as error:
                if given:
                    raise
                project.problems.append(f"{place}: {error.message} Its regions stay as they are.")

        def take(section: TexSection, theirs: str) -> TexSection:
            try:
                document = EditedDocument(read_latex(theirs), f"{section.run} {section.kind}")
            except PandocError as error:
                raise InputError(f"{section.kind}: cannot be read ({' '.join(str(error).split())[:160]}).") from error
            project.notices.extend(keep_imported(session, place, document)["warnings"])
            return next(item for item in run_async(_sections(session, section.run)) if item.kind == section.kind)

        latest = {section.kind: section for section in sections}
        done = await in_thread(synchronize, project, latest, side, written_files(session.home), take)
    return {"folder": str(place), "regions": done, "notices": project.notices, "problems": project.problems}


async def _sections(session: Session, run_id: str) -> list[TexSection]:
    text = await in_thread(load_editable, session.home, run_id)
    record = await edited_record(text, session) if text.edits else stored(text.run.result or {})
    return await in_thread(TexSection.all_of, text.run.thread_id, record, session.home)


sync_tex = requires_open(blocking(async_tex))
