"""Passages of different papers that disagree on one claim, as the judge says; each quote sliced from its paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from citeloom.citations.inert import inert
from citeloom.errors import ConfigurationError, InputError
from citeloom.graph.fitting import fitted
from citeloom.graph.tried import Tried, coverage_warnings
from citeloom.graph.workbench import Workbench
from citeloom.models.concurrency import all_settled
from citeloom.models.identity import key_of
from citeloom.models.paying import paid_by
from citeloom.models.roles import Comparison, ContradictionJudge, Statement
from citeloom.plurals import counted
from citeloom.tools.pairing import StatementPair, statement_pairs
from citeloom.tools.retrieval import Retrieval
from citeloom.tools.scope import Scope, require_words


class NoComparerError(ConfigurationError):
    """The judge works without a chat model and cannot tell a claim from its contradiction."""

    default_help = "Set CITELOOM_JUDGE_MODEL or CITELOOM_CHAT_MODEL (or give --model)."


@dataclass(frozen=True, slots=True)
class ContradictionRequest:
    """What is compared: passages on `topic`, or without one the papers' main statements; `pairs` judged at most."""

    topic: str = ""
    papers: tuple[str, ...] = ()
    pairs: int = 20


def _ignore(_: str) -> None:
    return None


async def find_contradictions(
    request: ContradictionRequest, bench: Workbench, *, on_notice: Callable[[str], None] = _ignore
) -> dict[str, Any]:
    """The contradictions as plain data, those of the nearest pairs first: the JSON of `contradictions --json`.

    Raises `NoComparerError` before anything is searched, `InputError` for a topic without words, an unknown key or
    one alone, and `PausedError` when a budget is reached or the endpoint is lost; the same request then goes on.
    """
    run = f"contradictions-{key_of([request.topic, sorted(request.papers)])[:12]}"
    if "judge" in bench.extractive:
        raise NoComparerError("The extractive judge cannot tell a claim from its contradiction.")
    if request.topic:
        require_words(request.topic)
    scope = Scope.within(bench.library, request.papers)
    if len(request.papers) == 1:
        raise InputError("One paper alone has nothing to be compared with.", help="Name two or more, or none for all.")
    await bench.require_papers()
    how = Retrieval(bench.settings.retrieval_mode, rerank=bench.settings.rerank)
    with paid_by(run, bench.budget(run)):
        pairs = await statement_pairs(bench.library, request.topic, scope, request.pairs, how)
        on_notice(f"{counted(len(pairs), 'pair')} of passages to judge.")
        verdicts = await fitted(bench, run, lambda: _all_compared(pairs, run, bench))
    found = [
        _record(pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True) if verdict.label == "contradict"
    ]
    unjudged = sum(verdict.label == "unjudged" for verdict in verdicts)
    return {
        "topic": request.topic,
        "papers": list(request.papers),
        "contradictions": found,
        "pairs": len(pairs),
        "judged": len(pairs) - unjudged,
        "unjudged": unjudged,
        "warnings": coverage_warnings(Tried("pairs of passages", "judged", len(pairs), len(pairs) - unjudged)),
        "run": run,
        "usage": await bench.usage(run),
    }


async def _compared(judge: ContradictionJudge, pair: StatementPair) -> Comparison:
    return await judge.compare(pair.first, pair.second)


async def _all_compared(pairs: Sequence[StatementPair], run: str, bench: Workbench) -> list[Comparison]:
    judge = (await bench.roles_of(run)).comparer
    return [] if judge is None else await all_settled(_compared(judge, pair) for pair in pairs)


def _record(pair: StatementPair, verdict: Comparison) -> dict[str, Any]:
    return {
        "claim": inert(verdict.claim),
        "reason": inert(verdict.reason),
        "similarity": round(pair.similarity, 4),
        "passages": [_passage(pair.first, verdict.first), _passage(pair.second, verdict.second)],
    }


def _passage(statement: Statement, place: int) -> dict[str, Any]:
    """One side as plain data; the quote is sliced here and nowhere else."""
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
