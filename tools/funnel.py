"""From a question to passages in two steps: the papers it is about first, then the chunks of those papers.

The summaries are few and dense, so a short list of papers is found fast; the chunks are then searched within it,
where a stray chunk of an unrelated paper cannot push out a good one. Which papers and sections a question names
(`Route`) narrows both steps.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from citeloom.documents import Paper
from citeloom.models.concurrency import all_settled
from citeloom.models.roles import Candidate
from citeloom.stores.library import Library
from citeloom.tools.routing import Route
from citeloom.tools.scope import Scope


class ChunkSearch(Protocol):
    """Finds up to `k` chunks of a scope for a query, best first."""

    def __call__(self, query: str, k: int, scope: Scope) -> Awaitable[Sequence[Candidate]]:
        """Search; raises whatever the embedding or the stores raise."""
        ...


PAPERS: Final = 8
CHUNKS: Final = 15
WHOLE_LIBRARY: Final = Route("survey")


@dataclass(frozen=True, slots=True)
class FunnelLimits:
    """How many papers are shortlisted and how many chunks are taken from them together."""

    papers: int = PAPERS
    chunks: int = CHUNKS


@dataclass(frozen=True, slots=True)
class Shortlisted:
    """A paper with its summary and the cosine (-1 to 1) of what is near of it; None when it was named.

    `note` is the passage of the user's note that is nearer to the question than the summary.
    """

    paper: Paper
    summary: str
    score: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Funnelled:
    """The papers looked into, and the chunks found in them, best first.

    `widened` tells that the kinds of section asked for held too little, so that whole papers were searched;
    what the asked sections gave still comes first.
    """

    papers: tuple[Shortlisted, ...]
    chunks: tuple[Candidate, ...]
    widened: bool = False


async def shortlist(library: Library, question: str, k: int = PAPERS) -> list[Shortlisted]:
    """The `k` papers whose summaries, or the user's notes on them, are nearest; empty for an empty library."""
    vector = await library.embedding.embed_query(question)
    near = await asyncio.to_thread(library.nearest_papers, vector, k)
    return [Shortlisted(item.paper, item.summary, item.score, item.note) for item in near]


async def funnel(
    library: Library,
    search: ChunkSearch,
    question: str,
    route: Route = WHOLE_LIBRARY,
    limits: FunnelLimits | None = None,
) -> Funnelled:
    """The chunks that bear on a question, from the papers it is about.

    Papers that the route names are looked into instead of a shortlist, each for its share of the chunks, so
    that a comparison sees both sides. Keys that are not in the library raise `UnknownPaperError`.
    """
    limits = limits or FunnelLimits()
    if route.papers:
        papers = await asyncio.to_thread(_named, library, route.papers)
    else:
        papers = await shortlist(library, question, limits.papers)
    if not papers:
        return Funnelled((), ())
    keys = tuple(item.paper.key for item in papers)
    scope = Scope(papers=keys, categories=route.categories)
    chunks = await _search(search, question, scope, limits.chunks, each=bool(route.papers))
    if not route.categories or len(chunks) >= limits.chunks:
        return Funnelled(tuple(papers), tuple(chunks))
    wider = await _search(search, question, replace(scope, categories=()), limits.chunks, each=bool(route.papers))
    have = {candidate.chunk.id for candidate in chunks}
    more = [candidate for candidate in wider if candidate.chunk.id not in have][: limits.chunks - len(chunks)]
    return Funnelled(tuple(papers), (*chunks, *more), widened=bool(more))


def _named(library: Library, keys: Sequence[str]) -> list[Shortlisted]:
    return [Shortlisted(library.paper(key), library.summary(key), None) for key in keys]


async def _search(search: ChunkSearch, question: str, scope: Scope, k: int, *, each: bool) -> list[Candidate]:
    """Up to `k` chunks of the scope; with `each` about as many of every paper, taken in turns."""
    if not each or len(scope.papers) == 1:
        return list(await search(question, k, scope))
    share = math.ceil(k / len(scope.papers))
    found = await all_settled(search(question, share, replace(scope, papers=(key,))) for key in scope.papers)
    turns = [of_paper[turn] for turn in range(share) for of_paper in found if turn < len(of_paper)]
    return turns[:k]
