"""Proposes windows of papers to read for needs: searched together, fused, capped per paper, without overlap.

Search units are small (chunks), reading units are large (windows). Each query searches the whole scope and, separately,
the papers whose summaries are nearest to it; a paper found by either is proposed. Papers far from all needs are then
dropped, and the hits of each paper are spread out, so that more papers are read. Papers that a reader named for needs
get shares of the reading, larger ones if named for more needs or earlier.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from operator import itemgetter
from types import MappingProxyType
from typing import Final

from ..documents import Chunk, chunk_id, same_section, split_chunk_id
from ..documents.chunking import Window, cuts_sentence
from ..models.concurrency import gather_all
from ..roles.protocols import Need
from ..stores.library import Library, UnknownPaperError
from .retrieval import ALL_PAPERS, DEFAULT_OPTIONS, Retrieval, rank, reciprocal_rank_fusion
from .scope import Scope

_HITS: Final = 40  # per search
_SHARE_OF_TWO: Final = 0.7  # maximum share of the reading per paper if there are two
_AHEAD: Final = 16  # hits whose surroundings are read in one batch
_PAPERS: Final = 6  # papers nearest to a query by summary, searched separately
_CANDIDATE_HITS: Final = 10  # times the number of a need's candidate papers
_MOST_CANDIDATE_HITS: Final = 400


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How much is proposed for reading.

    `tokens` limits all windows together, `window_tokens` is the target size of one window, `hits` limits the found
    chunks in them; `paper_share` (0-1) is the share that one paper may take, 1 for no cap. A paper whose best cosine is
    more than the fraction `paper_margin` below the overall best is left out (0: no limit). Each hit of a paper is moved
    `spread` places back for each earlier hit of that paper. Papers whose keys are `banned` are left out.
    """

    tokens: int = 16_000
    window_tokens: int = 1_200
    hits: int = 400
    paper_share: float = 0.5
    paper_margin: float = 0.0
    spread: int = 0
    banned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A found chunk: its best cosine, and the needs it was found for, best rank first."""

    id: str
    cosine: float
    needs: tuple[str, ...]

    @property
    def key(self) -> str:
        return split_chunk_id(self.id)[0]


async def propose_windows(
    library: Library,
    needs: Sequence[Need],
    scope: Scope = ALL_PAPERS,
    limits: WindowLimits | None = None,
    options: Retrieval = DEFAULT_OPTIONS,
    *,
    known: Collection[str] = (),
    asked: str = "",
    candidates: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Window]:
    """Propose windows for the needs, best first, taking the needs in turn, without `known` chunks.

    A hit's cosine is measured against the query that found it or, if given, `asked`. `candidates` are paper keys by
    need id: each of these papers is searched for its need, and never dropped as too far. Raises what the embedding and
    the stores raise.
    """
    limits = limits or WindowLimits()
    found = await gather_all(
        _rank_for_need(library, need, scope, options, candidates.get(need.id, ())) for need in needs
    )
    # Take the best hit of each need, then the second best; a hit for several needs keeps its best rank.
    needs_of: dict[str, list[str]] = {}
    cosines: dict[str, float] = {}
    for turn in zip_longest(*found):
        for need, hit in zip(needs, turn, strict=True):
            if hit is not None:
                needs_of.setdefault(hit[0], []).append(need.id)
                cosines[hit[0]] = max(hit[1], cosines.get(hit[0], 0.0))
    if asked:
        vector = await library.embedding.embed_query(asked)
        nearness = await asyncio.to_thread(library.cosines, vector, list(needs_of))
        cosines = {name: max(0.0, min(1.0, nearness.get(name, 0.0))) for name in needs_of}
    hits = [FoundChunk(name, cosines[name], tuple(of)) for name, of in needs_of.items()]
    hits = [hit for hit in hits if hit.key not in limits.banned]
    margin = 0.0 if scope.papers else limits.paper_margin
    hits = order_hits(hits, margin, limits.spread, shares_of_named(list(candidates.values())))

    def build() -> list[Window]:
        return add_columns(library, _build_windows(library, hits, limits, frozenset(known)))

    return await asyncio.to_thread(build)


def shares_of_named(named: Sequence[Sequence[str]]) -> dict[str, float]:
    """The share of the reading for each named paper: the sum over needs of 1 for the first, 1/2 for the second ..."""
    shares: dict[str, float] = {}
    for keys in named:
        for place, key in enumerate(dict.fromkeys(keys), 1):
            shares[key] = shares.get(key, 0.0) + 1 / place
    return shares


def order_hits(
    hits: Sequence[FoundChunk], margin: float, spread: int, shares: Mapping[str, float] = MappingProxyType({})
) -> list[FoundChunk]:
    """Drop the hits of far papers, and move each hit back by `spread` for each earlier one of its paper.

    A paper is far if its best cosine is more than the fraction `margin` below the overall best, unless it is named. If
    papers have `shares`, every second hit is of these, taken in proportion to them.
    """
    best = dict(sorted(((hit.key, hit.cosine) for hit in hits), key=itemgetter(1)))  # the highest of a paper stays
    least = (1 - margin) * max(best.values(), default=0.0) if margin else 0.0
    near = [hit for hit in hits if hit.key in shares or best[hit.key] >= least]
    earlier: Counter[str] = Counter()
    usual: list[tuple[float, int, FoundChunk]] = []
    of_named: list[tuple[float, int, FoundChunk]] = []
    for place, hit in enumerate(near):
        usual.append((place + spread * earlier[hit.key], place, hit))
        earlier[hit.key] += 1
        if hit.key in shares:
            of_named.append((earlier[hit.key] / shares[hit.key], place, hit))
    orders = [[hit for *_, hit in sorted(ranked, key=lambda item: item[:2])] for ranked in (of_named, usual)]
    return list({hit.id: hit for turn in zip_longest(*orders) for hit in turn if hit is not None}.values())


async def _rank_for_need(
    library: Library, need: Need, scope: Scope, options: Retrieval, candidates: Sequence[str]
) -> list[tuple[str, float]]:
    """Rank the chunks that the need's searches find, best first, with their best cosine."""
    scopes = await gather_all(_scopes_to_search(library, query, scope) for query in need.queries)
    searches = await gather_all(
        _search(library, query, within, options)
        for query, of_query in zip(need.queries, scopes, strict=True)
        for within in of_query
    )
    if candidates:
        each = await _search_candidates(library, need, replace(scope, papers=tuple(candidates), categories=()), options)
        searches = [*searches, *[each] * len(searches)]  # counts as much as all searches of the whole scope
    cosines = dict(sorted(chain.from_iterable(searches), key=itemgetter(1)))  # the highest of a chunk stays
    return [(name, cosines[name]) for name, _ in reciprocal_rank_fusion(searches)]


async def _search_candidates(library: Library, need: Need, scope: Scope, options: Retrieval) -> list[tuple[str, float]]:
    """Find the best chunk of each paper in scope, then the second best; papers in the order of the scope."""
    most = min(_MOST_CANDIDATE_HITS, _CANDIDATE_HITS * len(scope.papers))
    searches = await gather_all(_search(library, query, scope, options, most) for query in need.queries)
    cosines = {name: cosine for search in searches for name, cosine in search}
    names = [name for name, _ in reciprocal_rank_fusion(searches)]
    return [(name, cosines[name]) for name in take_turns(names, scope.papers)]


def take_turns(names: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Reorder chunk ids, given best first: the best of each paper in the order of `keys`, then the second best."""
    earlier: Counter[str] = Counter()
    placed: list[tuple[int, int, str]] = []
    for name in names:
        key = split_chunk_id(name)[0]
        placed.append((earlier[key], keys.index(key), name))
        earlier[key] += 1
    return [name for *_, name in sorted(placed)]


async def _scopes_to_search(library: Library, query: str, scope: Scope) -> list[Scope]:
    """Return the scopes to search: the whole, and the papers nearest by summary; or each requested paper.

    Requested kinds of section come first, but do not exclude others.
    """
    if scope.categories:
        return [scope, replace(scope, categories=())]
    if len(scope.papers) == 1:
        return [scope]
    if 1 < len(scope.papers) <= _PAPERS:
        return [replace(scope, papers=(key,)) for key in scope.papers]
    vector = await library.embedding.embed_query(query)
    looked_at = _PAPERS if scope == ALL_PAPERS else len(library.papers())
    near = await asyncio.to_thread(library.nearest_papers, vector, looked_at)
    keys = [item.paper.key for item in near if scope.holds(item.paper)][:_PAPERS]
    return [scope, replace(scope, papers=tuple(keys))] if keys else [scope]


async def _search(
    library: Library, query: str, scope: Scope, options: Retrieval, most: int = _HITS
) -> list[tuple[str, float]]:
    ranking, cosines = await rank(library, query, most, scope, options)
    return [(name, min(1.0, max(0.0, cosines[name]))) for name, _ in ranking if name in cosines]


def share_of_paper(papers: int, usual: float) -> float:
    """Return the share of the reading that one of this many papers may take: the fewer papers, the larger."""
    return 1.0 if papers <= 1 else max(usual, _SHARE_OF_TWO) if papers == 2 else usual


def _build_windows(
    library: Library, hits: Sequence[FoundChunk], limits: WindowLimits, known: frozenset[str]
) -> list[Window]:
    """Build windows around the hits in their order, until the tokens are used up; blocks."""
    taken: dict[str, int] = {}  # chunk id -> index of its window
    windows: list[Window] = []
    of_paper: Counter[str] = Counter()
    spent = 0
    most = share_of_paper(len({hit.key for hit in hits}), limits.paper_share)
    hits = [hit for hit in hits if hit.id not in known]
    near: dict[str, Mapping[int, Chunk]] = {}
    held = 0
    for place, hit in enumerate(hits):
        if held >= limits.hits:
            break
        if hit.id in taken:
            window = windows[taken[hit.id]]
            windows[taken[hit.id]] = replace(
                window,
                hits=(*window.hits, hit.id),
                cosines=(*window.cosines, hit.cosine),
                needs=tuple(dict.fromkeys([*window.needs, *hit.needs])),
            )
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
        around = _extend_chunk(near[hit.id], index, limits.window_tokens, taken.keys() | known)
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


def add_columns(library: Library, windows: Sequence[Window]) -> list[Window]:
    """Add a table's column names to windows that begin in its middle; blocks."""
    heads = ((window, library.table_head(window.chunks[0])) for window in windows)
    return [window if head is None else replace(window, columns=head.row) for window, head in heads]


def _surroundings(library: Library, ids: Sequence[str], tokens: int) -> dict[str, Mapping[int, Chunk]]:
    """For each id, load its chunk and the neighbours that may fit into `tokens`, by index; none if it is missing.

    Reads all at once, since each read of the store is expensive.
    """
    reaches = {chunk.id: _reach(chunk, tokens) for chunk in library.chunks(ids)}
    around = {
        name: [chunk_id(key, near) for near in range(max(0, index - reaches[name]), index + reaches[name] + 1)]
        for name, (key, index) in ((name, split_chunk_id(name)) for name in reaches)
    }
    found = {chunk.id: chunk for chunk in library.chunks([near for names in around.values() for near in names])}
    return {name: {found[near].index: found[near] for near in around.get(name, ()) if near in found} for name in ids}


def _reach(chunk: Chunk, tokens: int) -> int:
    return max(1, tokens // max(1, chunk.tokens))


def _extend_chunk(near: Mapping[int, Chunk], at: int, tokens: int, taken: Collection[str]) -> tuple[Chunk, ...]:
    """The chunk at this index with neighbours of its section, alternating sides, as many as fit into `tokens`.

    A neighbour in which a sentence of the chunk begins or goes on is always among them.
    """
    chunk = near[at]
    run = [chunk]
    spent = chunk.tokens
    # Outward, the following chunk first, since an argument runs forward.
    for index in (at + side * step for step in range(1, _reach(chunk, tokens) + 1) for side in (1, -1)):
        neighbour = near.get(index)
        joins = neighbour is not None and neighbour.id not in taken and same_section(neighbour, chunk)
        if neighbour is None or not joins or index not in (run[0].index - 1, run[-1].index + 1):
            continue
        shared = min(neighbour.end, run[-1].end) - max(neighbour.start, run[0].start)
        fresh = neighbour.tokens * (1 - max(0, shared) / max(1, neighbour.end - neighbour.start))
        holds_rest = abs(index - at) == 1 and cuts_sentence(*sorted((chunk, neighbour), key=lambda one: one.index))
        if spent + fresh > tokens and not holds_rest:
            continue
        spent += round(fresh)
        run = [neighbour, *run] if index < run[0].index else [*run, neighbour]
    return tuple(run)
