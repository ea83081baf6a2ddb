"""Proposes windows of papers to read for needs: searched together, fused, capped per paper, without overlap.

Search units are small (chunks), reading units are large (windows). Each query searches the whole scope and, separately,
the papers whose summaries are nearest to it: both propose papers, and neither can exclude one that the other finds.
Papers far from all needs are then left out, and the hits of one paper are spread out, so that the right papers are
read.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Final

from ..documents import Chunk, chunk_id, split_chunk_id
from ..documents.chunking import Window
from ..models.concurrency import gather_all
from ..roles.protocols import Need
from ..stores.library import Library, UnknownPaperError
from .retrieval import EVERYTHING, USUAL, Retrieval, by_rank, rank
from .scope import Scope

_HITS: Final = 40  # per search
_SHARE_OF_TWO: Final = 0.7  # of what is read, for each paper when there are two
_AHEAD: Final = 16  # hits whose surroundings are read at once
_PAPERS: Final = 6  # nearest to a query by summary, searched separately
_CANDIDATE_HITS: Final = 10  # for each paper that was named for a need, of all of them together
_MOST_CANDIDATE_HITS: Final = 400


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How much is proposed for reading.

    `tokens` limits all windows together, `window_tokens` is the target size of one, `hits` limits how many found chunks
    they hold; `paper_share` (0-1) is the part that one paper may take, 1 for no cap. A paper whose best cosine is below
    the overall best by more than the fraction `paper_margin` of it is left out, 0 for no limit. Each hit of a paper is
    moved `spread` places back for each earlier hit of that paper.
    """

    tokens: int = 16_000
    window_tokens: int = 1_200
    hits: int = 400
    paper_share: float = 0.5
    paper_margin: float = 0.0
    spread: int = 0


@dataclass(frozen=True, slots=True)
class _Hit:
    """A chunk found by searches: its best cosine, and the needs it was found for, best rank first."""

    id: str
    cosine: float
    needs: tuple[str, ...]


async def propose_windows(
    library: Library,
    needs: Sequence[Need],
    scope: Scope = EVERYTHING,
    limits: WindowLimits | None = None,
    how: Retrieval = USUAL,
    *,
    known: Collection[str] = (),
    asked: str = "",
    candidates: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Window]:
    """Windows for the needs, best first, taking the needs in turn; none contains a chunk of `known`, read before.

    A hit's cosine is that to the query which found it or, if given, to `asked`. `candidates` are keys of papers by the
    id of a need: each of them is searched for it, and none is left out for being far. Raises whatever the embedding or
    the stores raise.
    """
    limits = limits or WindowLimits()
    found = await gather_all(_ranked(library, need, scope, how, candidates.get(need.id, ())) for need in needs)
    hits = _interleaved([need.id for need in needs], found)
    if asked:
        vector = await library.embedding.embed_query(asked)
        cosines = await asyncio.to_thread(library.cosines, vector, [hit.id for hit in hits])
        hits = [replace(hit, cosine=max(0.0, min(1.0, cosines.get(hit.id, 0.0)))) for hit in hits]
    if not scope.papers:
        hits = _of_near_papers(hits, limits.paper_margin, {key for keys in candidates.values() for key in keys})
    hits = _spread(hits, limits.spread)
    return await asyncio.to_thread(_windows, library, hits, limits, frozenset(known))


async def _ranked(
    library: Library, need: Need, scope: Scope, how: Retrieval, candidates: Sequence[str]
) -> list[tuple[str, float]]:
    """The chunks that the need's searches found, best first, with their best cosine."""
    scopes = await gather_all(_scopes(library, query, scope) for query in need.queries)
    searches = await gather_all(
        _search(library, query, within, how)
        for query, of_query in zip(need.queries, scopes, strict=True)
        for within in of_query
    )
    if candidates:
        each = await _search_candidates(library, need, replace(scope, papers=tuple(candidates), categories=()), how)
        searches = [*searches, *[each] * len(searches)]  # counts as much as all searches of the whole scope
    cosines: dict[str, float] = {}
    for search in searches:
        for name, cosine in search:
            cosines[name] = max(cosine, cosines.get(name, 0.0))
    return [(name, cosines[name]) for name, _ in by_rank(searches)]


async def _search_candidates(library: Library, need: Need, scope: Scope, how: Retrieval) -> list[tuple[str, float]]:
    """The best chunk of each paper in scope, then the second of each ..., the papers in the order of their best."""
    most = min(_MOST_CANDIDATE_HITS, _CANDIDATE_HITS * len(scope.papers))
    searches = await gather_all(_search(library, query, scope, how, most) for query in need.queries)
    cosines = {name: cosine for search in searches for name, cosine in search}
    earlier: Counter[str] = Counter()
    placed: list[tuple[int, str]] = []
    for name, _ in by_rank(searches):
        key = split_chunk_id(name)[0]
        placed.append((earlier[key], name))
        earlier[key] += 1
    return [(name, cosines[name]) for _, name in sorted(placed, key=lambda item: item[0])]


async def _scopes(library: Library, query: str, scope: Scope) -> list[Scope]:
    """The scope, and within it the papers nearest to the query by summary, or each paper that was requested.

    Requested kinds of section come first and exclude none.
    """
    if scope.categories:
        return [scope, replace(scope, categories=())]
    if len(scope.papers) == 1:
        return [scope]
    if 1 < len(scope.papers) <= _PAPERS:
        return [replace(scope, papers=(key,)) for key in scope.papers]
    vector = await library.embedding.embed_query(query)
    looked_at = _PAPERS if scope == EVERYTHING else len(library.papers())
    near = await asyncio.to_thread(library.nearest_papers, vector, looked_at)
    keys = [item.paper.key for item in near if scope.holds(item.paper)][:_PAPERS]
    return [scope, replace(scope, papers=tuple(keys))] if keys else [scope]


async def _search(
    library: Library, query: str, scope: Scope, how: Retrieval, most: int = _HITS
) -> list[tuple[str, float]]:
    ranking, cosines = await rank(library, query, most, scope, how)
    return [(name, min(1.0, max(0.0, cosines[name]))) for name, _ in ranking if name in cosines]


def _interleaved(ids: Sequence[str], found: Sequence[Sequence[tuple[str, float]]]) -> list[_Hit]:
    """All hits, the best of each need first, then the second of each; a hit of several needs keeps its best rank."""
    needs: dict[str, list[str]] = {}
    cosines: dict[str, float] = {}
    for turn in zip_longest(*found):
        for need, hit in zip(ids, turn, strict=True):
            if hit is not None:
                needs.setdefault(hit[0], []).append(need)
                cosines[hit[0]] = max(hit[1], cosines.get(hit[0], 0.0))
    return [_Hit(name, cosines[name], tuple(of)) for name, of in needs.items()]


def _of_near_papers(hits: list[_Hit], margin: float, kept: Collection[str] = ()) -> list[_Hit]:
    """The hits without those of papers that are far from the needs compared with the nearest paper, unless `kept`."""
    best: dict[str, float] = {}
    for hit in hits:
        key = split_chunk_id(hit.id)[0]
        best[key] = max(hit.cosine, best.get(key, 0.0))
    if not margin or not best:
        return hits
    least = (1 - margin) * max(best.values())
    return [hit for hit in hits if (key := split_chunk_id(hit.id)[0]) in kept or best[key] >= least]


def _spread(hits: Sequence[_Hit], places: int) -> list[_Hit]:
    """The hits, each moved back by `places` for each earlier hit of its paper."""
    earlier: Counter[str] = Counter()
    ranks: list[int] = []
    for place, hit in enumerate(hits):
        key = split_chunk_id(hit.id)[0]
        ranks.append(place + places * earlier[key])
        earlier[key] += 1
    return [hits[place] for place in sorted(range(len(hits)), key=lambda place: (ranks[place], place))]


def _share(papers: int, usual: float) -> float:
    """The part that one of this many papers may take: the fewer papers, the larger."""
    return 1.0 if papers <= 1 else max(usual, _SHARE_OF_TWO) if papers == 2 else usual


def _windows(library: Library, hits: Sequence[_Hit], limits: WindowLimits, known: frozenset[str]) -> list[Window]:
    """Windows around the hits in their order, until the tokens are used up; blocks."""
    taken: dict[str, int] = {}  # chunk id -> index of its window
    windows: list[Window] = []
    of_paper: Counter[str] = Counter()
    spent = 0
    most = _share(len({split_chunk_id(hit.id)[0] for hit in hits}), limits.paper_share)
    hits = [hit for hit in hits if hit.id not in known]
    near: dict[str, Mapping[int, Chunk]] = {}
    held = 0
    for place, hit in enumerate(hits):
        if held >= limits.hits:
            break
        if hit.id in taken:
            windows[taken[hit.id]] = _joined(windows[taken[hit.id]], hit)
            held += 1
            continue
        key, index = split_chunk_id(hit.id)
        if spent >= limits.tokens or of_paper[key] >= most * limits.tokens:
            continue
        if hit.id not in near:
            ahead = [other.id for other in hits[place : place + _AHEAD] if other.id not in taken]
            near |= _surroundings(library, ahead, limits.window_tokens)
        if index not in near[hit.id]:
            continue  # another process is changing the paper
        around = _around(near[hit.id], index, limits.window_tokens, taken.keys() | known)
        try:
            figures = library.described.of(around)
            window = Window(library.paper(key), around, (hit.id,), (hit.cosine,), hit.needs, figures)
        except UnknownPaperError:
            continue
        taken |= {member.id: len(windows) for member in around}
        of_paper[key] += window.tokens
        spent += window.tokens
        held += 1
        windows.append(window)
    return windows


def _joined(window: Window, hit: _Hit) -> Window:
    needs = tuple(dict.fromkeys([*window.needs, *hit.needs]))
    return replace(window, hits=(*window.hits, hit.id), cosines=(*window.cosines, hit.cosine), needs=needs)


def _surroundings(library: Library, ids: Sequence[str], tokens: int) -> dict[str, Mapping[int, Chunk]]:
    """For each id, its chunk and the neighbours that `tokens` may hold, by index; empty for a chunk that is gone.

    Reads all of them at once: a read of the store costs more than a chunk.
    """
    reaches = {chunk.id: _reach(chunk, tokens) for chunk in library.chunks(ids)}
    around = {
        name: [chunk_id(key, near) for near in range(max(0, index - reaches[name]), index + reaches[name] + 1)]
        for name, (key, index) in ((name, split_chunk_id(name)) for name in reaches)
    }
    found = {chunk.id: chunk for chunk in library.chunks([near for names in around.values() for near in names])}
    return {name: {found[near].index: found[near] for near in around.get(name, ()) if near in found} for name in ids}


def _reach(chunk: Chunk, tokens: int) -> int:
    """How many chunks of this size fit into `tokens`, at least one."""
    return max(1, tokens // max(1, chunk.tokens))


def _around(near: Mapping[int, Chunk], at: int, tokens: int, taken: Collection[str]) -> tuple[Chunk, ...]:
    """The chunk at this index with neighbours of its section, alternating sides, as many as fit into `tokens`."""
    chunk = near[at]
    run = [chunk]
    spent = chunk.tokens
    for index in _outward(at, _reach(chunk, tokens)):
        neighbour = near.get(index)
        joins = neighbour is not None and neighbour.id not in taken and _same_section(neighbour, chunk)
        if neighbour is None or not joins or index not in (run[0].index - 1, run[-1].index + 1):
            continue
        fresh = neighbour.tokens * _fresh_share(neighbour, run)
        if spent + fresh > tokens:
            continue
        spent += round(fresh)
        run = [neighbour, *run] if index < run[0].index else [*run, neighbour]
    return tuple(run)


def _outward(index: int, reach: int) -> Iterator[int]:
    """The indices around one, the following first, since an argument runs forward."""
    for distance in range(1, reach + 1):
        yield from (index + distance, index - distance)


def _fresh_share(chunk: Chunk, run: Sequence[Chunk]) -> float:
    """The part of a neighbour's text that the run does not contain yet."""
    shared = min(chunk.end, run[-1].end) - max(chunk.start, run[0].start)
    return 1 - max(0, shared) / max(1, chunk.end - chunk.start)


def _same_section(one: Chunk, other: Chunk) -> bool:
    return (one.section, one.parent, one.level) == (other.section, other.parent, other.level)
