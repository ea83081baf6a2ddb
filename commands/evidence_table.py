"""table: one row for each paper of a kind, every cell with the words it rests on."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..api.blocking import run_async
from ..api.run_options import ModelSettings
from .options import HomeOption, JsonOption, command_session, resolve, takes_options
from .output import notice, result_json
from .research import PapersOption
from .searching import plain_sentence, split_names
from .sections import ForceOption
from .terminal_text import one_line, table

OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for the table's files; none are written without it.", show_default=False),
]


class TableFileFormat(StrEnum):
    """Formats of a table, as command-line values."""

    MD = "md"
    CSV = "csv"
    XLSX = "xlsx"
    TEX = "tex"
    DOCX = "docx"
    HTML = "html"


TableFormatOption = Annotated[
    list[TableFileFormat] | None,
    typer.Option(
        "--format",
        help="Also write CSV, Excel (with a sheet of the words), LaTeX, Word, or HTML whose cells open to their words; "
        "can be repeated.",
        show_default="md",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("table", rich_help_panel="Ask")(make_table)


@takes_options(settings=ModelSettings)
def make_table(
    question: Annotated[str, typer.Argument(help="What the rows are, or what to ask of papers.", show_default=False)],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            help="What to know of each study, separated by commas or repeated: n, 'effect:number[%]', "
            "blinded:yes/no, 'design:RCT|cohort'. Proposed if omitted.",
            show_default=False,
        ),
    ] = None,
    papers: PapersOption = None,
    formats: TableFormatOption = None,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    *,
    settings: ModelSettings,
) -> None:
    """Make a table of the papers that answer a question, a row for each study.

    Every paper is screened by a card of it; those that may belong are read, and each cell holds a value with the words
    it rests on. "not reported" is said only after a search in that paper. Run the same command again to resume, or
    after adding papers or columns: only what is missing is read.

    Example: citeloom table "trials of aspirin for migraine" --columns "n,dose[mg],pain free:number[%]" --out tables
    """
    record = run_async(_make(question, split_names("--columns", columns), papers, formats, out, force, home, settings))
    result_json(record) if as_json else show(record)


async def _make(
    question: str,
    columns: list[str],
    papers: list[str] | None,
    formats: list[TableFileFormat] | None,
    out: Path | None,
    force: bool,
    home: str | None,
    given: ModelSettings,
) -> dict[str, Any]:
    from ..api.evidence_tables import amake_table, asave_table

    settings, found = resolve(home, **given.changes())
    keys = split_names("--papers", papers)
    with command_session(settings, found, create=False) as session:
        made = await amake_table(session, question, columns=columns, papers=keys, on_progress=notice)
        if out is None:
            return made
        wanted: Any = [item.value for item in formats or ()]
        return {**made, **await asave_table(session, made["table_id"], out, wanted, force=force)}


def show(record: dict[str, Any]) -> None:
    """Print a table, its counts, and why near cases were left out."""
    from ..api.evidence_tables import cell_text, count_line, study_name

    names = [column["name"] for column in record["columns"]]
    rows = [
        [
            one_line(study_name(row)) + ("*" if row["changed"] else ""),
            str(row["year"] or ""),
            *(one_line(plain_sentence(cell_text(row["cells"][name]))) for name in names),
        ]
        for row in record["rows"]
    ]
    table(one_line(record["question"]), ["study", "year", *names], rows, prose=names)
    for item in record["left_out"]:
        notice(f"Left out: {item['key']}: {item['reason']}")
    notice(count_line(record))
    if any(row["changed"] for row in record["rows"]):
        notice("* The paper was changed since it was read; the same command reads it again.")
    for line in filter(None, (record["notice"], *record.get("warnings", ()))):
        notice(line)
    for file in record.get("files", {}).values():
        notice(f"Wrote {file}")
    if not record.get("files"):
        notice("The words behind the cells: the same command with --out FOLDER, or --format html for one page.")
