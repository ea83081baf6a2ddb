"""Finds passages in different papers that the judge considers contradictory.

Each quote is an exact slice of its paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..citations.html_escaping import inert
from ..drafts.completeness import Tried, coverage_warnings
from ..errors import ConfigurationError, InputError
from ..graph.prompt_fitting import fitted
from ..graph.session import Session
from ..models.concurrency import gather_all
from ..models.http.endpoints import hash_key
from ..plurals import counted
from ..roles.protocols import Comparison, Statement
from ..tools.contradiction_candidates import statement_pairs
from ..tools.retrieval import Retrieval
from ..tools.scope import Scope, require_words
from .arguments import at_least_one, one_or_more, require_writable, requires_open
from .blocking import blocking


class NoComparerError(ConfigurationError):
    """Without a chat model, the judge cannot tell a claim from its contradiction."""

    default_help = "Set CITELOOM_JUDGE_MODEL or CITELOOM_CHAT_MODEL (or give --model)."


@requires_open
async def acontradictions(
    session: Session,
    topic: str = "",
    *,
    papers: Sequence[str] | str = (),
    pairs: int = 20,
    on_notice: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Find passages of different papers that disagree; returns the JSON of `contradictions --json`.

    Args:
        session: an open library.
        topic: what to compare papers on; their abstracts and conclusions if omitted.
        papers: keys to compare, all if omitted.
        pairs: maximum pairs of passages to judge, one model call each.
        on_notice: called with one line about the work ahead.

    Nearest pairs come first. Raises `NoComparerError` before anything is searched, `InputError` for a topic without
    words, an unknown key or a single key, and `PausedError` when a budget is reached or the endpoint is lost; repeat
    the call to resume.
    """
    require_writable(session)
    at_least_one("pairs", pairs)
    keys: tuple[str, ...] = one_or_more(papers)
    topic = topic.strip()
    run = f"contradictions-{hash_key([topic, sorted(keys)])[:12]}"
    if "judge" in session.extractive:
        raise NoComparerError("The extractive judge cannot tell a claim from its contradiction.")
    if topic:
        require_words(topic)
    scope = Scope.within(session.library, keys)
    if len(keys) == 1:
        raise InputError("One paper alone has nothing to be compared with.", help="Name two or more, or none for all.")
    await session.require_papers()
    how = Retrieval(session.settings.retrieval_mode, rerank=session.settings.rerank)
    with session.run(run):
        found = await statement_pairs(session.library, topic, scope, pairs, how)
        on_notice(f"{counted(len(found), 'pair')} of passages to judge.")

        async def compare() -> list[Comparison]:
            judge = (await session.roles_of(run)).comparer
            return [] if judge is None else await gather_all(judge.compare(item.first, item.second) for item in found)

        verdicts = await fitted(session, run, compare)
    unjudged = sum(verdict.label == "unjudged" for verdict in verdicts)
    return {
        "topic": topic,
        "papers": list(keys),
        "contradictions": [
            {
                "claim": inert(verdict.claim),
                "reason": inert(verdict.reason),
                "similarity": round(pair.similarity, 4),
                "passages": [_passage(pair.first, verdict.first), _passage(pair.second, verdict.second)],
            }
            for pair, verdict in zip(found, verdicts, strict=True)
            if verdict.label == "contradict"
        ],
        "pairs": len(found),
        "judged": len(found) - unjudged,
        "unjudged": unjudged,
        "warnings": coverage_warnings(Tried("pairs of passages", "judged", len(found), len(found) - unjudged)),
        "run": run,
        "usage": await session.usage(run),
    }


def _passage(statement: Statement, place: int) -> dict[str, Any]:
    """One side as plain data; cuts out the quote."""
    chunk, (start, end) = statement.chunk, statement.spans[place]
    return {
        "key": chunk.key,
        "title": statement.paper.title,
        "year": statement.paper.year,
        "chunk_id": chunk.id,
        "section": chunk.section,
        "page": chunk.page_at(start),
        "start": start,
        "end": end,
        "quote": chunk.text[start:end],
    }


contradictions = requires_open(blocking(acontradictions))
