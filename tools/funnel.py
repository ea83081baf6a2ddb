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
from citeloom.models.embedding import Vector
from citeloom.models.roles import Candidate
from citeloom.stores.library import Library
from citeloom.tools.retrieval import EVERYTHING, varied
from citeloom.tools.routing import Route
from citeloom.tools.scope import Scope


class ChunkSearch(Protocol):
    """Finds up to `k` chunks of a scope for a query, best first."""

    def __call__(self, query: str, k: int, scope: Scope) -> Awaitable[Sequence[Candidate]]:
        """Search; raises whatever the embedding or the stores raise."""
        ...


PAPERS: Final = 8
CHUNKS: Final = 15
_POOL: Final = 4  # papers that are looked at, for one that is shortlisted
WHOLE_LIBRARY: Final = Route("survey")


@dataclass(frozen=True, slots=True)
class FunnelLimits:
    """How many papers are shortlisted and how many chunks are taken from them together; `mmr` as in `shortlist`."""

    papers: int = PAPERS
    chunks: int = CHUNKS
    mmr: float | None = None


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


async def shortlist(
    library: Library, question: str, k: int = PAPERS, within: Scope = EVERYTHING, mmr: float | None = None
) -> list[Shortlisted]:
    """The `k` papers of a scope whose summaries, or the user's notes on them, are nearest; empty for an empty library.

    With `mmr`, the part (0-1) that nearness has against variety, a paper like one before it stands further down.
    """
    vector = await library.embedding.embed_query(question)
    return await asyncio.to_thread(_near, library, vector, k, within, mmr)


def _near(library: Library, vector: Vector, k: int, within: Scope, mmr: float | None) -> list[Shortlisted]:
    limited = within.papers or within.years or within.venue
    asked = len(library.papers()) if limited else _POOL * k if mmr is not None else k
    near = {item.paper.key: item for item in library.nearest_papers(vector, asked) if within.holds(item.paper)}
    keys = list(near)
    if mmr is not None:
        vectors = library.store.summary_vectors(keys)
        ranking = [(key, near[key].score) for key in keys if key in vectors]
        keys = [key for key, _ in varied(ranking, vectors, k, mmr)] if ranking else []
    return [Shortlisted(near[key].paper, near[key].summary, near[key].score, near[key].note) for key in keys[:k]]


async def funnel(
    library: Library,
    search: ChunkSearch,
    question: str,
    route: Route = WHOLE_LIBRARY,
    limits: FunnelLimits | None = None,
    within: Scope = EVERYTHING,
) -> Funnelled:
    """The chunks that bear on a question, from the papers it is about; a shortlist holds papers of `within` only.

    Papers that the route names are looked into instead of a shortlist, each for its share of the chunks, so
    that a comparison sees both sides. Keys that are not in the library raise `UnknownPaperError`.
    """
    limits = limits or FunnelLimits()
    if route.papers:
        papers = await asyncio.to_thread(_named, library, route.papers)
    else:
        papers = await shortlist(library, question, limits.papers, within, limits.mmr)
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
