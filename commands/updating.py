"""update: which finished texts a changed library concerns, and what they become."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..api.messages import counted
from ..api.run_options import ModelSettings
from ..errors import PAUSED, InputError
from .options import JsonOption, complete_runs, home_session, takes_options
from .output import notice, result, result_json
from .terminal_text import one_line

if TYPE_CHECKING:
    from ..api.text_updating import UpdateItem, UpdateRecord

_POLL_INTERVAL: Final = 5.0  # seconds


@takes_options(settings=ModelSettings)
def update(
    settings: ModelSettings,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids of runs or tables. Default: all tables, and the latest run of each question and experiment.",
            autocompletion=complete_runs,
            show_default=False,
        ),
    ] = None,
    accept: Annotated[str, typer.Option(help="Ids of items to accept: 3f2a90c1,b7e41d55.", show_default=False)] = "",
    accept_all: Annotated[bool, typer.Option("--accept-all", help="Accept all items.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Compare again whenever the library changes.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which sentences, cells and answers a changed library concerns, and what they would become.

    Names what rests on a paper that was removed, retracted or edited, and sentences for which a new paper has nearer or
    opposite words; with a chat model they are judged, within --max-calls. Accepting changes a sentence as shown (its
    run keeps the old one), asks an answer again, or reads a table again. If nothing changed, nothing is done and no
    model is called. Exit code 3 if a limit left sentences unjudged.

    Example: citeloom update --accept 3f2a90c1
    """
    from ..api.text_updating import library_version, update_texts

    if watch and (as_json or accept or accept_all):
        raise InputError("--watch only shows what changed.", help="Leave --json and --accept out.")
    wanted = _ids(accept)
    with home_session(**settings.changes()) as session:
        record = update_texts(session, runs or (), accept=wanted, accept_all=accept_all, on_notice=notice)
        if not as_json:
            _show(record)
        asked = sys.stdin.isatty() and sys.stdout.isatty() and record["items"] and not (watch or as_json or wanted)
        if asked and (given := typer.prompt("Accept which (ids, all, or Enter for none)", default="").strip()):
            chosen = () if given == "all" else _ids(given)
            record = update_texts(session, runs or (), accept=chosen, accept_all=given == "all", on_notice=notice)
            _show({**record, "items": []})
        with suppress(KeyboardInterrupt):
            while watch:
                notice("Watching the library; Ctrl-C ends.")
                version = library_version(session)
                while library_version(session) == version:
                    time.sleep(_POLL_INTERVAL)
                _show(update_texts(session, runs or (), on_notice=notice))
    if as_json:
        result_json(record)
    if not record["complete"]:
        raise typer.Exit(PAUSED)


def _ids(given: str) -> list[str]:
    return given.replace(",", " ").split()


def _show(record: UpdateRecord) -> None:
    last = ""
    for item in record["items"]:
        if item["run"] != last:
            last = item["run"]
            result(one_line(f"{item['kind']} {last}: {item['title']}"))
        _show_item(item)
    for item in record["accepted"]:
        result(one_line(f"Accepted {item['id']}: {item['proposed'] or item['sentence']}"))
    usage = record["usage"]
    calls, reused = counted(usage.get("llm_calls") or 0, "model call"), usage.get("journal_hits") or 0
    looked = f"{counted(record['compared'], 'text')} compared, {record['unchanged']} unchanged since the last time"
    notice(f"{counted(len(record['items']), 'item')} to look at; {looked}; {calls}, {reused} reused.")


def _show_item(item: UpdateItem) -> None:
    judged = "" if item["judged"] or item["kind"] == "table" else ", not judged"
    result(one_line(f"  {item['id']} [{item['reason']}{judged}] {item['section']}: {item['sentence']}"))
    result(one_line(f"     {item['detail']}"))
    if passage := item["passage"]:
        page = "" if passage["page"] is None else f", p. {passage['page']}"
        result(one_line(f"     {passage['key']}{page}: “{passage['shown']}”"))
    if item["kind"] == "research" or item["action"] == "read again":
        result(f"     accepting {'asks it again' if item['kind'] == 'research' else 'reads what changed'}")
    elif item["proposed"]:
        result(one_line(f"     -> {item['proposed']}"))
