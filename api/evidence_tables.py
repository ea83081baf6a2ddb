"""Evidence tables: `table`, which screens all papers of a scope and fills a row for each that belongs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..citations.export.section_files import slug, write_texts
from ..documents.chunking import Window
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..evidence_tables.cells import TableCell, cell_text as cell_text, study_name as study_name
from ..evidence_tables.column_specs import parse_columns
from ..evidence_tables.column_values import sum_lines as sum_lines
from ..evidence_tables.extraction import Decision, own_window
from ..evidence_tables.given_tables import GivenTable, give_table
from ..evidence_tables.stored_tables import (
    cell_record,
    count_line as count_line,
    describe_columns,
    find_table,
    id_of_table as id_of_table,
    load_table as _load,
)
from ..evidence_tables.table_files import (
    TABLE_FORMATS as TABLE_FORMATS,
    TableFormat as TableFormat,
    render_table,
)
from ..evidence_tables.table_plots import draw_table as draw_table
from ..experiment import load_experiment
from ..graph.session import Session
from ..roles.cell_protocols import TableColumn
from ..roles.run_roles import Roles
from ..runs.output_files import free_file_name
from ..stores.evidence_table_register import (
    CellChangedError as CellChangedError,
    EvidenceTableRegister,
    StoredCell,
    StoredTable as StoredTable,
    UnknownTableError as UnknownTableError,
)
from ..stores.home import written_files
from ..tools.scope import Scope, plain_question
from .arguments import one_or_more, require_choice, require_writable, requires_open
from .blocking import blocking

if TYPE_CHECKING:
    from ..graph.nodes.tabulate import Describe


@requires_open
async def amake_table(
    session: Session,
    question: str,
    *,
    columns: Sequence[str] | str = (),
    papers: Sequence[str] | str = (),
    experiment: Path | str | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Make or complete the table that answers a question; returns the JSON of `table --json`.

    Every paper in scope is screened by its card; those that may belong are read, and every cell holds the words it
    rests on. The same question continues its table: only rows of new or changed papers, and cells of new or changed
    columns, are read.

    Args:
        session: an open library.
        question: what the rows are ("trials of aspirin for migraine") or a question about papers.
        columns: what to extract from each study, such as "n", "effect:number[%]" or "blinded:yes/no"; the model
            proposes them if omitted.
        papers: keys of the papers in scope, all if omitted.
        experiment: the `exp.json` of the user's own study, which gets a row ("this study") after the papers'.
        on_progress: called with one line about each step.

    Raises `InputError`, and `PausedError` when a budget is reached or the endpoint is lost; repeat the call to resume.
    """
    own = None if experiment is None else own_window(await asyncio.to_thread(load_experiment, Path(experiment)))
    asked = plain_question(question)
    keys: tuple[str, ...] = one_or_more(papers)
    wanted = parse_columns(one_or_more(columns))
    table_id = id_of_table(asked, keys)

    async def describe(stored: StoredTable | None, roles: Roles) -> tuple[TableColumn, ...]:
        return await describe_columns(session.library, stored, roles.cells, asked, wanted)

    return await complete_table(
        session, StoredTable(table_id, asked, {"papers": list(keys)}), describe, on_progress, own=own
    )


async def complete_table(
    session: Session,
    table: StoredTable,
    describe: Describe,
    on_progress: Callable[[str], None],
    claims: Callable[[Sequence[TableColumn]], Sequence[str]] = lambda _: (),
    own: Window | None = None,
) -> dict[str, Any]:
    """Make or complete a table, as `fill_table` does, with a budget and costs of its own; returns its JSON."""
    from ..graph.nodes.tabulate import fill_table  # half a second, which a list of tables need not wait for

    require_writable(session)
    scope = await asyncio.to_thread(Scope.within, session.library, table.plan["papers"])
    await session.require_papers()
    with session.run(table.table_id):
        made = await fill_table(session, table.table_id, table, scope, describe, on_progress, claims, own)
    return {**made, "usage": await session.usage(table.table_id)}


make_table = requires_open(blocking(amake_table))


@requires_open
async def asave_table(
    session: Session, table_id: str, out: Path | str, formats: Sequence[TableFormat] | str = (), *, force: bool = False
) -> dict[str, Any]:
    """Write a stored table as `.md`, `.json` and the given formats; returns its JSON with `files`.

    Files that a person edited are kept, unless `force`. Raises `InputError`, and `ExportError` if pandoc fails.
    """
    for name in one_or_more(formats):
        require_choice("format", name, TableFormat)
    table = await aload_table(session, table_id)
    wanted: list[Any] = list(dict.fromkeys(["md", *one_or_more(formats)]))

    def save() -> dict[str, Any]:
        written = written_files(session.home)
        contents = {target: render_table(table, target) for target in wanted}
        free = free_file_name(Path(out), slug(table["question"]), (*wanted, "json"), written, force=force)
        files = write_texts(
            Path(out),
            free.stem,
            contents,
            lambda paths: json.dumps({**table, "files": dict(paths)}, ensure_ascii=False, indent=2),
            written.note,
        )
        return {**table, "files": files, "warnings": free.notices()}

    return await in_thread(save)


@requires_open
async def arender_table(session: Session, table_id: str, target: TableFormat) -> tuple[str, bytes]:
    """Return the file name and the content of a stored table in a format; raises as `asave_table` does."""
    table = await aload_table(session, table_id)
    return f"{slug(table['question'])}.{target}", await in_thread(render_table, table, target)


@requires_open
async def aload_table(session: Session, table_id: str) -> dict[str, Any]:
    """The JSON of a stored table; raises `UnknownTableError`."""
    return await asyncio.to_thread(_load, session.library, _register(session), table_id)


async def load_table_named(session: Session, name: str, *, shown: bool) -> GivenTable:
    """The table of this id or title, as a text may cite it; raises `UnknownTableError`."""

    def load() -> GivenTable:
        register = _register(session)
        table_id = find_table(register, name).table_id
        return give_table(_load(session.library, register, table_id), session.library, shown=shown)

    return await asyncio.to_thread(load)


def _register(session: Session) -> EvidenceTableRegister:
    return session.home.evidence_tables()


@requires_open
async def aedit_cell(
    session: Session, table_id: str, key: str, column: str, value: str, *, study: str = "", revision: int | None = None
) -> dict[str, Any]:
    """Replace a cell's value with a person's own; returns the cell.

    Raises `InputError` for an unknown cell, and `CellChangedError` if it has changed since the given `revision`.
    """
    require_writable(session)

    def edit() -> dict[str, Any]:
        register = _register(session)
        table = register.get(table_id)
        paper = register.papers(table.table_id).get(key)
        studies = Decision(**paper.decision).studies if paper else ()
        if study not in studies or column not in [item["name"] for item in table.plan["columns"]]:
            raise InputError(f"{table.table_id} has no cell for {key!r}, {study!r}, {column!r}.")
        kept = {(item.key, item.study, item.column_name): item for item in register.cells(table.table_id)}
        shown = kept.get((key, study, column), StoredCell(key, study, column, "", TableCell().as_dict()))
        cell = {**shown.cell, "value": value, "unit": "", "status": "edited", "formula": "", "converted": ""}
        at = shown.revision if revision is None else revision
        return cell_record(register.edit_cell(table.table_id, replace(shown, cell=cell, revision=at)))

    return await asyncio.to_thread(edit)


@requires_open
async def alist_tables(session: Session) -> list[StoredTable]:
    """All stored tables, the latest first."""
    return await asyncio.to_thread(lambda: _register(session).all())


save_table = requires_open(blocking(asave_table))


@requires_open
async def adelete_table(session: Session, table_id: str) -> None:
    """Delete a table; raises `UnknownTableError`."""
    require_writable(session)
    register = _register(session)
    await asyncio.to_thread(lambda: register.delete(register.get(table_id).table_id))
