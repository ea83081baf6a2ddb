"""table and tables: one row for each study of a kind, every cell with the words it rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.blocking import run_async
from ..api.messages import counted
from ..api.run_options import ModelSettings, Shown, TableOptions, option
from ..errors import InputError
from .options import HomeOption, JsonOption, complete_keys, home_session, takes_options
from .output import notice, result_json
from .runs import when
from .searching import plain_sentence
from .sections import OverwriteOption
from .terminal_text import Columns, one_line, table

if TYPE_CHECKING:
    from ..api.homes import Session


@dataclass(frozen=True, kw_only=True)
class TableFiles(OverwriteOption):
    """Which files of a table are written."""

    formats: Annotated[tuple[str, ...], Shown("--format", "md")] = option(
        "Also write csv, xlsx (with a sheet of the words), tex, docx, html whose cells open to their words, or svg",
        value=(),
    )

    out: Path | None = option(  # noqa: RUF009 - it makes a field
        "Folder for the table's files; none are written without it."
    )

    def require_folder(self) -> None:
        """Raise `InputError` for formats without a folder."""
        if self.formats and self.out is None:
            raise InputError("--format needs a folder.", help="Name one with --out.")

    def write(self, session: Session, table_id: str) -> dict[str, Any]:
        """Write the files, if a folder is given; returns the table."""
        from ..api.evidence_tables import load_table, save_table

        if self.out is None:
            return load_table(session, table_id)
        formats: Sequence[Any] = self.formats
        return save_table(session, table_id, self.out, formats, force=self.force)


tables_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, show, edit and delete tables.")

IdArgument = Annotated[str, typer.Argument(help="Id of the table, or a prefix of it.", show_default=False)]


@takes_options(files=TableFiles, options=TableOptions, settings=ModelSettings)
def make_table(
    question: Annotated[str, typer.Argument(help="What the rows are, or what to ask of papers.", show_default=False)],
    experiment: Annotated[
        Path | None, typer.Option("--exp", help="Your exp.json, as a row of its own.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
    *,
    files: TableFiles,
    options: TableOptions,
    settings: ModelSettings,
) -> None:
    """Make a table of the papers that answer a question, a row for each study.

    Every paper is screened by its card; those that may belong are read, and each cell holds a value with the words
    it rests on. "not reported" is said only after a search in that paper. Run the same command again to resume, or
    after adding papers or columns: only what is missing is read.

    Example: citeloom table "trials of aspirin for migraine" --columns "n,dose[mg],pain free:number[%]" --out tables
    """
    from ..api.evidence_tables import make_table as make

    files.require_folder()
    with home_session(home, **settings.changes()) as session:
        record = make(
            session, question, columns=options.columns, papers=options.papers, experiment=experiment, on_progress=notice
        )
        if files.out is not None:
            record |= files.write(session, record["table_id"])
    result_json(record) if as_json else show(record)


@tables_app.command("list")
def list_tables(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """List all tables, the latest first."""
    from ..api.evidence_tables import list_tables as list_stored

    with home_session(home, reading=True) as session:
        found = list_stored(session)
    if as_json:
        result_json([asdict(item) for item in found])
        return
    columns: Columns = {
        "table": lambda item: item.table_id,
        "last": lambda item: when(item.updated_at),
        "question": lambda item: one_line(item.question),
    }
    table(counted(len(found), "table"), found, columns, prose=("question",))


@tables_app.command("show")
@takes_options(files=TableFiles)
def show_table(
    table_id: IdArgument,
    as_json: JsonOption = False,
    home: HomeOption = None,
    *,
    files: TableFiles,
) -> None:
    """Show a table as it is stored, and write its files with --out; nothing is asked of a model."""
    files.require_folder()
    with home_session(home, reading=files.out is None) as session:
        record = files.write(session, table_id)
    result_json(record) if as_json else show(record)


@tables_app.command("edit")
def edit_table(
    table_id: IdArgument,
    key: Annotated[str, typer.Argument(help="Citation key of the paper.", autocompletion=complete_keys)],
    column: Annotated[str, typer.Argument(help="Name of the column.")],
    value: Annotated[str, typer.Argument(help="Your value.")],
    study: Annotated[str, typer.Option("--study", help="Name of the study, if the paper reports several.")] = "",
    home: HomeOption = None,
) -> None:
    """Write a value of your own into a cell; no reading replaces it."""
    from ..api.evidence_tables import edit_cell

    with home_session(home) as session:
        edit_cell(session, table_id, key, column, value, study=study)
    notice(f"{key}, {column}: {value}")


@tables_app.command("delete")
def delete_tables(
    table_ids: Annotated[list[str], typer.Argument(help="Ids of the tables.")], home: HomeOption = None
) -> None:
    """Delete tables with your edits; cached model answers stay in the journal."""
    from ..api.evidence_tables import adelete_table

    with home_session(home) as session:
        for table_id in table_ids:
            run_async(adelete_table(session, table_id))
            notice(f"Deleted {table_id}.")


def show(record: dict[str, Any]) -> None:
    """Print a table, its counts, and why near cases were left out."""
    from ..api.evidence_tables import cell_text, count_line, study_name, sum_lines

    names = [column["name"] for column in record["columns"]]

    def text_of(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda row: plain_sentence(cell_text(row["cells"][name]))

    columns: Columns = {
        "study": lambda row: one_line(study_name(row)) + ("*" if row["changed"] else ""),
        "year": "year",
        **{name: text_of(name) for name in names},
    }
    table(record["question"], record["rows"], columns, prose=names)
    for item in record["left_out"]:
        notice(f"Left out: {item['key']}: {item['reason']}")
    for line in (count_line(record), *sum_lines(record)):
        notice(line)
    if any(row["changed"] for row in record["rows"]):
        notice("* The paper was changed since it was read; the same command reads it again.")
    for line in filter(None, (record["notice"], *record.get("warnings", ()))):
        notice(line)
    for file in record.get("files", {}).values():
        notice(f"Wrote {file}")
    if not record["rows"]:
        notice("No paper was included. Ask in words of the papers, or name some with --papers KEY.")
    elif not record.get("files"):
        notice("The words behind the cells: the same command with --out FOLDER, and --format html for one page.")
