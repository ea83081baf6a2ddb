"""memory: what every text should respect, and what edits suggest for it."""

from __future__ import annotations

from typing import Annotated, Any, Final

from .. import api
from ..api.blocking import run_async
from ..api.messages import counted
from ..api.run_options import Shown
from .options import command_group, resolve
from .output import Columns, Printed, notice, one_line

memory_app = command_group("Preferences and facts that every text should respect; none is learnt unless you accept it.")
IdArgument = Annotated[str, "Id, or a prefix of it."]
SharedOption = Annotated[bool, "For all users of this library, not only for you."]
_EFFECTS: Final = {
    "ban": "never cited",
    "term": "shown to the writer, and checked",
    "spelling": "shown to the writer, and checked",
    "note": "shown to the writer",
}


@memory_app.command("list")
def list_lines() -> Printed:
    """List the lines, yours first."""
    records: list[Any] = run_async(api.remembering.alist_memory(*resolve()))
    columns: Columns = {
        "id": "id",
        "of": lambda record: "everyone" if record["shared"] else "you",
        "effect": lambda record: _EFFECTS[record["kind"]],
        "line": "text",
    }
    return Printed.listed(records, "line", columns, ("line",))


@memory_app.command("add")
def add_line(
    text: Annotated[str, "A line: 'participants, not subjects', 'British spelling', 'never cite KEY' ..."],
    shared: SharedOption = False,
) -> None:
    """Add a line."""
    _say(run_async(api.remembering.aremember(*resolve(), text, shared=shared)))


@memory_app.command("edit")
def edit_line(line_id: IdArgument, text: Annotated[str, "The new line."]) -> None:
    """Replace a line."""
    _say(run_async(api.remembering.aremember(*resolve(), text, note_id=line_id)))


@memory_app.command("delete")
def delete_line(line_id: IdArgument) -> None:
    """Delete a line."""
    notice(f"Deleted: {one_line(run_async(api.remembering.aforget(*resolve(), line_id))['text'])}")


@memory_app.command("proposals")
def list_proposals() -> Printed:
    """List what your edits of finished texts suggest; accept or decline each."""
    records: list[Any] = run_async(api.remembering.apropose_memory(*resolve()))

    lines = [
        one_line(line)
        for record in records
        for line in (
            f"{record['id']}  {record['text']}  ({counted(record['edits'], 'edit')})",
            *(f"    {sign} {words}" for sign, words in zip("-+", record["examples"][0], strict=True)),
        )
    ]
    return Printed({"proposals": records}, lambda _: lines or ["Your edits suggest nothing new."])


@memory_app.command("accept")
def accept_proposal(
    proposal_id: IdArgument,
    text: Annotated[str, "Another wording of the line.", Shown("--as")] = "",
    shared: SharedOption = False,
) -> None:
    """Put a proposal into the memory."""
    line = run_async(api.remembering.aanswer_proposal(*resolve(), proposal_id, accept=True, text=text, shared=shared))
    if line is not None:
        _say(line)


@memory_app.command("decline")
def decline_proposal(proposal_id: IdArgument) -> None:
    """Never propose this again."""
    run_async(api.remembering.aanswer_proposal(*resolve(), proposal_id, accept=False))
    notice(f"{proposal_id} will not be proposed again.")


def _say(line: Any) -> None:
    notice(f"{line['id']}: {one_line(line['text'])} ({_EFFECTS[line['kind']]})")
