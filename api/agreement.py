"""Who agrees: `agree` on one claim, and `contradictions` over a topic; both are stored, continued evidence tables."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..citations.html_escaping import inert
from ..drafts.completeness import few_succeeded
from ..errors import ConfigurationError, InputError
from ..evidence_tables.stances import (
    agreement_columns,
    agreement_lines as agreement_lines,
    agreement_record,
    claim_needs,
    disagreements,
    is_stance,
    stance_column,
    stances,
)
from ..graph.session import Session
from ..plurals import counted
from ..roles.cell_protocols import TableColumn
from ..roles.protocols import Purpose
from ..roles.run_roles import Roles
from ..stores.evidence_table_register import StoredTable
from ..tools.paper_cards import keys_to_screen, make_cards
from ..tools.scope import Scope, plain_question
from .arguments import at_least_one, one_or_more, require_writable, requires_open
from .blocking import blocking
from .evidence_tables import complete_table, id_of_table

_CARDS: Final = 120  # papers whose cards a survey's claims are taken from, the nearest to its topic
_ANY_TOPIC: Final = "what papers find"  # the topic of a survey without one


class NoComparerError(ConfigurationError):
    """Without a chat model, a claim cannot be distinguished from its contradiction."""

    default_help = "Set CITELOOM_JUDGE_MODEL or CITELOOM_CHAT_MODEL (or give --model)."


def id_of_agreement(claim: str, papers: Sequence[str]) -> str:
    """The id of the table that says who agrees with a claim."""
    return id_of_table(claim, papers, "agree")


@requires_open
async def aagree(
    session: Session,
    claim: str,
    *,
    papers: Sequence[str] | str = (),
    on_progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Find out which papers are for a claim, against it, or silent; returns the JSON of `agree --json`.

    Every paper in scope is screened by its card, and those that may bear on the claim are read. Each study has its
    stance, the condition under which its result holds, and the words that say so; without a chat model, the sentence
    nearest to the claim, not judged. What is known is stored as a table, which the same call continues.

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
    """The JSON of `agree` from that of its table; None for another table."""
    return agreement_record(table) if table["table_id"].startswith("agree-") else None


@requires_open
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
        topic: what to compare papers on; whatever they find if omitted.
        papers: keys to compare, all if omitted.
        claims: maximum claims to compare them on.
        on_notice: called with one line about each step.

    Raises `NoComparerError` before anything is searched, `InputError` for a topic without words, an unknown key or a
    single key, and `PausedError` when a budget is reached or the endpoint is lost; repeat the call to resume.
    """
    require_writable(session)
    at_least_one("claims", claims)
    keys: tuple[str, ...] = one_or_more(papers)
    if "judge" in session.extractive:
        raise NoComparerError("Without a chat model, a claim cannot be distinguished from its contradiction.")
    if len(keys) == 1:
        raise InputError("One paper alone has nothing to be compared with.", help="Name two or more, or none for all.")
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

    def claims_of(columns: Sequence[TableColumn]) -> list[str]:
        return [column.queries[0] for column in columns]

    table = StoredTable(id_of_table(f"{about} {claims}", keys, "contradictions"), about, {"papers": list(keys)})
    made = await complete_table(session, table, columns, on_notice, claims_of)
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


agree = requires_open(blocking(aagree))
contradictions = requires_open(blocking(acontradictions))
