"""table, tables, agree and contradictions: studies in rows, and their stance on claims, with the words behind each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from .. import api
from ..api import messages, run_options
from ..api.blocking import run_async
from ..errors import DONE, DONE_WITH_REFUSALS, InputError
from .options import command_group, home_session
from .output import Columns, Printed, notice, one_line, table
from .papers import place_of, plain_sentence
from .runs import when
from .sections import OverwriteOption


class TableFiles(OverwriteOption):
    formats: Annotated[tuple[str, ...], run_options.Shown("--format", "md")] = run_options.option(
        "Also write csv, xlsx (with a sheet of the quotes), tex, docx, html (cells link to their quotes), or svg",
        value=(),
    )

    out: Path | None = run_options.option("Folder for the table's files; none are written without it.")

    def require_folder(self) -> None:
        if self.formats and self.out is None:
            raise InputError("--format needs a folder.", help="Name one with --out.")

    def write(self, session: api.homes.Session, table_id: str) -> dict[str, Any]:
        if self.out is None:
            return run_async(api.evidence_tables.aload_table(session, table_id))
        formats: Sequence[Any] = self.formats
        return run_async(api.evidence_tables.asave_table(session, table_id, self.out, formats, force=self.force))


tables_app = command_group("List, show, edit and delete tables.")

IdArgument = Annotated[str, "Id of the table, or a prefix of it."]


def make_table(
    question: Annotated[str, "What the rows are, or what to ask of papers."],
    files: TableFiles,
    options: run_options.TableOptions,
    settings: run_options.ModelSettings,
    experiment: Annotated[Path | None, "Your exp.json, added as a row.", run_options.Shown("--exp")] = None,
) -> Printed:
    """Make a table of the papers that answer a question, a row for each study.

    Every paper is screened by its card; those that may belong are read, and each cell holds a value with the words
    it rests on. "not reported" appears only after a search in that paper. Run the same command again to resume, or
    after adding papers or columns: only what is missing is read.

    Example: citeloom table "trials of aspirin for migraine" --columns "n,dose[mg],pain free:number[%]" --out tables
    """
    files.require_folder()
    with home_session(**settings.changes()) as session:
        record = api.evidence_tables.make_table(
            session, question, columns=options.columns, papers=options.papers, experiment=experiment, on_progress=notice
        )
        if files.out is not None:
            record |= files.write(session, record["table_id"])
    return Printed(record, show)


@tables_app.command("list")
def list_tables() -> Printed:
    """List all tables, the latest first."""
    with home_session(reading=True) as session:
        records = [asdict(item) for item in run_async(api.evidence_tables.alist_tables(session))]
    columns: Columns = {"table": "table_id", "last": lambda record: when(record["updated_at"]), "question": "question"}
    return Printed.listed(records, "table", columns, ("question",))


@tables_app.command("show")
def show_table(table_id: IdArgument, files: TableFiles) -> Printed:
    """Show a stored table, and write its files with --out; no model is called."""
    files.require_folder()
    with home_session(reading=files.out is None) as session:
        record = files.write(session, table_id)
    return Printed(record, show)


@tables_app.command("edit")
def edit_table(
    table_id: IdArgument,
    key: Annotated[str, "Citation key of the paper.", run_options.Shown(completes="papers")],
    column: Annotated[str, "Name of the column."],
    value: Annotated[str, "Your value."],
    study: Annotated[str, "Name of the study, if the paper reports several."] = "",
) -> None:
    """Set a cell to your own value; later readings do not replace it."""
    with home_session() as session:
        run_async(api.evidence_tables.aedit_cell(session, table_id, key, column, value, study=study))
    notice(f"{key}, {column}: {value}")


@tables_app.command("delete")
def delete_tables(table_ids: Annotated[list[str], "Ids of the tables."]) -> None:
    """Delete tables, including your edits; cached model answers stay in the journal."""
    with home_session() as session:
        for table_id in table_ids:
            run_async(api.evidence_tables.adelete_table(session, table_id))
            notice(f"Deleted {table_id}.")


def show(record: dict[str, Any]) -> None:
    """Print a table, its counts, and why borderline papers were left out."""
    names = [column["name"] for column in record["columns"]]

    def text_of(name: str) -> Callable[[dict[str, Any]], str]:
        return lambda row: plain_sentence(api.evidence_tables.format_cell(row["cells"][name]))

    columns: Columns = {
        "study": lambda row: one_line(api.evidence_tables.study_name(row)) + ("*" if row["changed"] else ""),
        "year": "year",
        **{name: text_of(name) for name in names},
    }
    table(record["question"], record["rows"], columns, prose=names)
    notice(*(f"Left out: {item['key']}: {item['reason']}" for item in record["left_out"]))
    notice(api.evidence_tables.count_line(record), *api.evidence_tables.column_summary_lines(record))
    if any(row["changed"] for row in record["rows"]):
        notice("* The paper has changed since it was read; run the same command to read it again.")
    notice(*filter(None, (record["notice"], *record.get("warnings", ()))))
    notice(*(f"Wrote {file}" for file in record.get("files", {}).values()))
    if not record["rows"]:
        notice("No paper was included. Rephrase the question in the papers' terms, or name papers with --papers KEY.")
    elif not record.get("files"):
        notice("To see the words behind the cells, add --out FOLDER, and --format html for a single page.")


def agree(
    claim: Annotated[str, "The claim, in one sentence."],
    files: TableFiles,
    options: run_options.AgreementOptions,
    settings: run_options.ModelSettings,
) -> Printed:
    """Show which papers are for a claim, which against it, under which condition, and which say nothing.

    Every paper is screened by its card; those that may bear on the claim are read. Each study is shown with its stance,
    direction, design and n, and the words that decide. A result under another condition is not a contradiction. Run the
    same command again to resume, or after adding papers. Without a chat model, the nearest sentence of each near paper
    is shown, not judged.

    Example: citeloom agree "Ensembles are better calibrated than single networks" --out agree --format html
    """
    files.require_folder()
    with home_session(**settings.changes()) as session:
        record = run_async(api.evidence_tables.aagree(session, claim, papers=options.papers, on_progress=notice))
        if files.out is not None:
            record["files"] = files.write(session, record["table_id"])["files"]

    def show_stances(record: dict[str, Any]) -> None:
        _show_studies(record["claim"], record["studies"])
        notice(*(f"Silent: {item['key']}{': ' if item['reason'] else ''}{item['reason']}" for item in record["silent"]))
        notice(*filter(None, (*api.evidence_tables.agreement_lines(record), record["notice"])))
        notice(*(f"Wrote {file}" for file in record.get("files", {}).values()))

    return Printed(record, show_stances)


def contradictions(options: run_options.ContradictionOptions, settings: run_options.ModelSettings) -> Printed:
    """Find claims on which papers disagree.

    The model proposes claims on which papers have results, and determines each paper's stance on them, as for agree.
    Shows both sides with their words. Needs a chat model. Stances judged before cost no further call. Exit code 4 if
    nothing could be judged.

    Example: citeloom contradictions --topic "do ensembles improve calibration" --claims 4
    """
    with home_session(**settings.changes()) as session:
        record = run_async(api.evidence_tables.acontradictions(session, **vars(options), on_notice=notice))
        spent = session.spent_now()
    found, unjudged = record["contradictions"], record["unjudged"]
    skipped = f"; for {messages.counted(unjudged, 'stance')} the judge gave no valid answer" if unjudged else ""
    cost = f"{messages.counted(spent.llm_calls, 'model call')}, {messages.counted(spent.journal_hits, 'cached answer')}"
    notice(f"Papers disagree on {len(found)} of {messages.counted(len(record['claims']), 'claim')}{skipped}; {cost}.")
    notice(*(f"Warning: {line}" for line in record["warnings"]))
    if not record["judged"]:
        notice("No stance was judged, so it is not known whether the papers contradict each other.")
    elif not found:
        notice("No contradiction on the judged claims; --claims N judges more.")

    def show_sides(record: dict[str, Any]) -> None:
        for item in record["contradictions"]:
            _show_studies(item["claim"], item["passages"])

    return Printed(record, show_sides, DONE if record["judged"] else DONE_WITH_REFUSALS)


def _show_studies(claim: str, studies: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        {
            "study": one_line(f"{item['key']} {item['study']}".strip()),
            "stance": item["stance"],
            "condition": one_line(item["condition"]),
            "direction": one_line(item["direction"]),
            "design, n": one_line(", ".join(filter(None, (item["design"], item["n"])))),
            "words": one_line(f"{plain_sentence(item['quote'])} {f'({place})' if (place := place_of(item)) else ''}"),
        }
        for item in studies
    ]
    columns = {name: name for name in ("study", *(rows[0] if rows else ())) if any(row[name] for row in rows)}
    table(one_line(claim), rows, columns, prose=[name for name in columns if name != "stance"])
