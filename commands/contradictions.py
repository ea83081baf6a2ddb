"""contradictions: find passages in different papers that disagree."""

from __future__ import annotations

from typing import Any

import typer

from ..api.blocking import run_async
from ..api.messages import counted
from ..api.run_options import ContradictionOptions, ModelSettings
from ..errors import DONE_WITH_REFUSALS
from .options import HomeOption, JsonOption, home_session, takes_options
from .output import notice, result_json
from .searching import place_of, plain_sentence
from .terminal_text import Columns, one_line, table


@takes_options(options=ContradictionOptions, settings=ModelSettings)
def contradictions(
    as_json: JsonOption = False, home: HomeOption = None, *, options: ContradictionOptions, settings: ModelSettings
) -> None:
    """Find passages of different papers that disagree.

    Shows both quotes. Needs a chat model: the extractive judge cannot detect a contradiction. Pairs already
    judged cost no further call. Exit code 4 if no pair could be judged.

    Example: citeloom contradictions --topic "do ensembles improve calibration" --pairs 40
    """
    from ..api.contradiction_search import acontradictions

    with home_session(home, **settings.changes()) as session:
        record = run_async(acontradictions(session, **vars(options), on_notice=notice))
        spent = session.spent_now()
    found, unjudged = record["contradictions"], record["unjudged"]
    skipped = f"; {unjudged} without a valid answer of the judge" if unjudged else ""
    cost = f"{counted(spent.llm_calls, 'model call')}, {counted(spent.journal_hits, 'cached answer')}"
    notice(f"{len(found)} of {counted(record['pairs'], 'pair')} contradict{skipped}; {cost}.")
    for line in record["warnings"]:
        notice(f"Warning: {line}")
    if as_json:
        result_json(record)
    elif found:
        columns: Columns = {
            "": "",
            "claim": lambda item: one_line(item["claim"]),
            "one side": lambda item: _side(item["passages"][0]),
            "the other side": lambda item: _side(item["passages"][1]),
            "reason": lambda item: one_line(item["reason"]),
        }
        table(counted(len(found), "contradiction"), found, columns, prose=[*columns][1:])
    elif record["judged"]:
        notice("No contradiction among the pairs that were judged; --pairs N judges more.")
    else:
        tried = "no valid answer came for any of them" if record["pairs"] else "there were none to compare"
        notice(f"No pair was judged ({tried}): whether the papers contradict each other is not known.")
    if not record["judged"]:
        raise typer.Exit(DONE_WITH_REFUSALS)


def _side(passage: dict[str, Any]) -> str:
    place = place_of(passage)
    return one_line(f"{passage['key']}{f' ({place})' if place else ''}: {plain_sentence(passage['quote'])}")
