"""Makes evidence tables: `table`, `agree` on a claim, `contradictions` on a topic; all are stored and resumable."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..citations.export.section_files import free_name, slug, write_texts
from ..citations.html_escaping import inert
from ..documents.chunking import Window
from ..drafts.page_record import few_succeeded
from ..errors import ConfigurationError, InputError
from ..evidence_tables.cells import (
    TableCell,
    agreement_columns,
    agreement_lines,
    agreement_record,
    claim_needs,
    column_summary_lines,
    disagreements,
    format_cell,
    is_stance,
    parse_columns,
    stance_column,
    stances,
    study_name,
)
from ..evidence_tables.extraction import Decision, own_window
from ..evidence_tables.stored_tables import (
    GivenTable,
    cell_record,
    count_line,
    describe_columns,
    find_table,
    give_table,
    id_of_table,
    load_table as _load,
)
from ..evidence_tables.table_files import TABLE_FORMATS, TableFormat, draw_table, render_table
from ..experiment import load_experiment
from ..graph.session import Session
from ..plurals import counted
from ..roles.protocols import Purpose, TableColumn
from ..roles.run_roles import Roles
from ..stores.evidence_table_register import CellChangedError, StoredCell, StoredTable, UnknownTableError
from ..stores.home import written_files
from ..stores.tables import own_id
from ..tools.paper_cards import keys_to_screen, make_cards
from ..tools.scope import Scope, plain_question
from .arguments import one_or_more, require_choice, require_positive, require_writable
from .blocking import blocking, threaded

if TYPE_CHECKING:
    from ..graph.nodes.tabulate import Describe


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
    rests on. Asking the same question again continues its table: only new or changed papers and columns are read.

    Args:
        question: what the rows are ("trials of aspirin for migraine") or a question about papers.
        columns: what to extract from each study, such as "n", "effect:number[%]" or "blinded:yes/no"; the model
            proposes them if omitted.
        papers: keys of the papers in scope, all if omitted.
        experiment: the `exp.json` of the user's own study, which gets the last row ("this study").
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
    """Make or complete a table with `fill_table`, billed to the table's own run; returns its JSON."""
    from ..graph.nodes.tabulate import fill_table  # takes half a second, not needed for lists

    require_writable(session)
    scope = await asyncio.to_thread(Scope.within, session.library, table.plan["papers"])
    await session.require_papers()
    with session.run(run := own_id(table.table_id)):
        made = await fill_table(session, run, table, scope, describe, on_progress, claims, own)
    return {**made, "usage": await session.usage(run)}


make_table = blocking(amake_table)


@threaded
def asave_table(
    session: Session, table_id: str, out: Path | str, formats: Sequence[TableFormat] | str = (), *, force: bool = False
) -> dict[str, Any]:
    """Write a stored table as `.md`, `.json` and the given formats; returns its JSON with `files`.

    Edited files are kept unless `force` is given. Raises `InputError`, and `ExportError` if pandoc fails.
    """
    for name in one_or_more(formats):
        require_choice("format", name, TableFormat)
    table = _load(session.library, session.home.evidence_tables(), table_id)
    wanted: list[Any] = list(dict.fromkeys(["md", *one_or_more(formats)]))
    written = written_files(session.home)
    contents = {target: render_table(table, target) for target in wanted}
    free = free_name(Path(out), slug(table["question"]), (*wanted, "json"), written.has, force=force)

    def as_json(paths: Mapping[str, str]) -> str:
        return json.dumps({**table, "files": dict(paths)}, ensure_ascii=False, indent=2)

    files = write_texts(Path(out), free.stem, contents, as_json, written.note)
    return {**table, "files": files, "warnings": free.notices()}


@threaded
def arender_table(session: Session, table_id: str, target: TableFormat) -> tuple[str, bytes]:
    """Return the file name and content of a stored table in a format; raises what `asave_table` raises."""
    table = _load(session.library, session.home.evidence_tables(), table_id)
    return f"{slug(table['question'])}.{target}", render_table(table, target)


@threaded
def aload_table(session: Session, table_id: str) -> dict[str, Any]:
    """Return the JSON of a stored table; raises `UnknownTableError`."""
    return _load(session.library, session.home.evidence_tables(), table_id)


@threaded
def load_table_named(session: Session, name: str, *, shown: bool) -> GivenTable:
    """Return the table with this id or title in the form that a text cites; raises `UnknownTableError`."""
    register = session.home.evidence_tables()
    return give_table(
        _load(session.library, register, find_table(register, name).table_id), session.library, shown=shown
    )


@threaded
def aedit_cell(
    session: Session, table_id: str, key: str, column: str, value: str, *, study: str = "", revision: int | None = None
) -> dict[str, Any]:
    """Replace a cell's value with a person's own; returns the cell.

    Raises `InputError` for an unknown cell, and `CellChangedError` if it has changed since the given `revision`.
    """
    require_writable(session)
    register = session.home.evidence_tables()
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


@threaded
def alist_tables(session: Session) -> list[StoredTable]:
    """Return all stored tables, the latest first."""
    return session.home.evidence_tables().all()


save_table = blocking(asave_table)


@threaded
def adelete_table(session: Session, table_id: str) -> None:
    """Delete a table; raises `UnknownTableError`."""
    require_writable(session)
    register = session.home.evidence_tables()
    register.delete(register.get(table_id).table_id)


_CARDS: Final = 120  # papers nearest to a survey's topic, from whose cards its claims are taken
_ANY_TOPIC: Final = "what papers find"  # the topic of a survey without one


class NoComparerError(ConfigurationError):
    """Without a chat model, a claim cannot be distinguished from its contradiction."""

    default_help = "Set CITELOOM_JUDGE_MODEL or CITELOOM_CHAT_MODEL (or give --model)."


def id_of_agreement(claim: str, papers: Sequence[str]) -> str:
    """The id of the table in which `agree` stores its result."""
    return id_of_table(claim, papers, "agree")


async def aagree(
    session: Session,
    claim: str,
    *,
    papers: Sequence[str] | str = (),
    on_progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Find out which papers are for a claim, against it, or silent; returns the JSON of `agree --json`.

    Every paper in scope is screened by its card, and those that may bear on the claim are read. Each study gets its
    stance, the condition under which its result holds, and the words that say so; without a chat model, the sentence
    nearest to the claim, not judged. The result is stored as a table, which repeating the call continues.

    Args:
        claim: one sentence, such as "Aspirin relieves migraine better than placebo in adults".
        papers: keys of the papers in scope, all if omitted.
        on_progress: called with one line about each step.

    Raises `InputError`, and `PausedError` when a budget is reached or the endpoint is lost; repeat the call to resume.
    """
    said = plain_question(claim)
    keys: tuple[str, ...] = one_or_more(papers)

    async def columns(_: StoredTable | None, roles: Roles) -> tuple[TableColumn, ...]:
        return agreement_columns(said, judged=roles.stances is not None)

    table = StoredTable(id_of_agreement(said, keys), said, {"papers": list(keys)})
    made = await complete_table(session, table, columns, on_progress, lambda _: (said,))
    return {**agreement_record(made), "run": table.table_id, "usage": made["usage"]}


def agreement_of(table: dict[str, Any]) -> dict[str, Any] | None:
    """Convert the JSON of a table to the JSON of `agree`; None if `agree` did not make it."""
    return agreement_record(table) if table["table_id"].startswith("agree-") else None


async def acontradictions(
    session: Session,
    topic: str = "",
    *,
    papers: Sequence[str] | str = (),
    claims: int = 6,
    on_notice: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Find claims on which papers disagree; returns the JSON of `contradictions --json`.

    The model names claims on which several papers of the topic have results, and each paper is then asked for its
    stance on them, as in `agree`.

    Args:
        topic: the subject on which to compare papers; any subject if omitted.
        papers: keys to compare, all if omitted.
        claims: maximum claims to compare them on.
        on_notice: called with one line about each step.

    Raises `NoComparerError` before anything is searched, `InputError` for a topic without words, an unknown key or a
    single key, and `PausedError` when a budget is reached or the endpoint is lost; repeat the call to resume.
    """
    require_writable(session)
    require_positive("claims", claims)
    keys: tuple[str, ...] = one_or_more(papers)
    if "judge" in session.extractive:
        raise NoComparerError("Without a chat model, a claim cannot be distinguished from its contradiction.")
    if len(keys) == 1:
        raise InputError("A single paper cannot be compared.", help="Name two or more, or none to compare all.")
    about = plain_question(topic) if topic.strip() else _ANY_TOPIC
    scope = await asyncio.to_thread(Scope.within, session.library, keys)

    async def columns(stored: StoredTable | None, roles: Roles) -> tuple[TableColumn, ...]:
        if stored is not None and stored.plan["columns"]:
            return tuple(map(TableColumn.from_dict, stored.plan["columns"]))
        near = await keys_to_screen(session.library, Purpose(about, claim_needs([about])), scope, _CARDS)
        cards = await asyncio.to_thread(make_cards, session.library, frozenset(near))
        found = await roles.stances.propose_claims(about, cards, claims) if roles.stances else ()
        on_notice(f"{counted(len(found), 'claim')} to compare papers on.")
        return tuple(stance_column(claim, f"claim {number}") for number, claim in enumerate(found, 1))

    table = StoredTable(id_of_table(f"{about} {claims}", keys, "contradictions"), about, {"papers": list(keys)})
    made = await complete_table(session, table, columns, on_notice, lambda found: [item.queries[0] for item in found])
    shown = [column for column in made["columns"] if is_stance(column)]
    cells = [row["cells"][column["name"]] for row in made["rows"] for column in shown]
    judged = sum(cell["status"] != "unread" for cell in cells)
    return {
        "topic": topic.strip(),
        "papers": list(keys),
        "table_id": table.table_id,
        "contradictions": disagreements(made),
        "claims": [
            {"claim": inert(column["queries"][0]), "studies": list(stances(made, column["name"]))} for column in shown
        ],
        "judged": judged,
        "unjudged": len(cells) - judged,
        "warnings": few_succeeded("stances of papers", "judged", len(cells), judged),
        "run": table.table_id,
        "usage": made["usage"],
    }


agree = blocking(aagree)
contradictions = blocking(acontradictions)
