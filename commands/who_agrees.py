"""agree and contradictions: which papers are for a claim and which against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ..api.blocking import run_async
from ..api.messages import counted
from ..api.run_options import AgreementOptions, ContradictionOptions, ModelSettings
from ..errors import DONE_WITH_REFUSALS
from .evidence_table import TableFiles
from .options import HomeOption, JsonOption, home_session, takes_options
from .output import notice, result_json
from .searching import place_of, plain_sentence
from .terminal_text import one_line, table


@takes_options(files=TableFiles, options=AgreementOptions, settings=ModelSettings)
def agree(
    claim: Annotated[str, typer.Argument(help="The claim, in one sentence.")],
    as_json: JsonOption = False,
    home: HomeOption = None,
    *,
    files: TableFiles,
    options: AgreementOptions,
    settings: ModelSettings,
) -> None:
    """Show which papers are for a claim, which against it, under which condition, and which say nothing.

    Every paper is screened by its card; those that may bear on the claim are read. Each study has its stance,
    direction, design and n, and the words that decide. A result under another condition is no contradiction. Run the
    same command again to resume, or after adding papers. Without a chat model, the nearest sentence of each near paper
    is shown, not judged.

    Example: citeloom agree "Ensembles are better calibrated than single networks" --out agree --format html
    """
    from ..api.agreement import aagree, agreement_lines

    files.require_folder()
    with home_session(home, **settings.changes()) as session:
        record = run_async(aagree(session, claim, papers=options.papers, on_progress=notice))
        if files.out is not None:
            record["files"] = files.write(session, record["table_id"])["files"]
    if as_json:
        result_json(record)
        return
    _show_studies(record["claim"], record["studies"])
    for item in record["silent"]:
        notice(f"Silent: {item['key']}{': ' if item['reason'] else ''}{item['reason']}")
    for line in filter(None, (*agreement_lines(record), record["notice"])):
        notice(line)
    for file in record.get("files", {}).values():
        notice(f"Wrote {file}")


@takes_options(options=ContradictionOptions, settings=ModelSettings)
def contradictions(
    as_json: JsonOption = False, home: HomeOption = None, *, options: ContradictionOptions, settings: ModelSettings
) -> None:
    """Find claims on which papers disagree.

    The model names claims on which papers have results, and each paper is asked for its stance on them, as by agree.
    Shows both sides with their words. Needs a chat model. What was judged before costs no further call. Exit code 4 if
    nothing could be judged.

    Example: citeloom contradictions --topic "do ensembles improve calibration" --claims 4
    """
    from ..api.agreement import acontradictions

    with home_session(home, **settings.changes()) as session:
        record = run_async(acontradictions(session, **vars(options), on_notice=notice))
        spent = session.spent_now()
    found, unjudged = record["contradictions"], record["unjudged"]
    skipped = f"; {counted(unjudged, 'stance')} without a valid answer of the judge" if unjudged else ""
    cost = f"{counted(spent.llm_calls, 'model call')}, {counted(spent.journal_hits, 'cached answer')}"
    notice(f"Papers disagree on {len(found)} of {counted(len(record['claims']), 'claim')}{skipped}; {cost}.")
    for line in record["warnings"]:
        notice(f"Warning: {line}")
    if as_json:
        result_json(record)
    for item in () if as_json else found:
        _show_studies(item["claim"], item["passages"])
    if not record["judged"]:
        notice("No stance was judged: whether the papers contradict each other is not known.")
        raise typer.Exit(DONE_WITH_REFUSALS)
    if not found:
        notice("No contradiction on the claims that were judged; --claims N judges more.")


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
