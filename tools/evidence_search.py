"""Reads windows for a purpose in waves, best first, until each need is met or exhausted, or nothing is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Final

from ..documents import Category
from ..documents.chunking import Window
from ..models.concurrency import gather_all
from ..roles.protocols import EvidenceReader, Findings, Need, PassageFinding, Purpose
from ..stores.library import Library
from .found_evidence import STRONG, EvidenceLimits, FoundEvidence, SearchResult, limit_findings, meets
from .scope import Scope
from .window_search import propose_windows

OnFindings = Callable[[Sequence[PassageFinding]], None]


@dataclass(frozen=True, slots=True)
class FurtherSearch:
    """A second search, prepared while the first wave is read, for needs that the first wave leaves open or thin.

    `needs` are the purpose's needs with other queries; a need with fewer than `enough` findings is thin. `by_cards`
    finds windows in papers other than the given ones, and is called if no finding meets a need.
    """

    needs: Sequence[Need]
    windows: Callable[[], Awaitable[Sequence[Window]]]
    by_cards: Callable[[Collection[str]], Awaitable[Sequence[Window]]]
    enough: int

    def unmet_needs(self, found: Sequence[FoundEvidence]) -> tuple[str, ...]:
        """Return the ids of the needs for which the findings are not enough."""
        scores = {need.id: [item.finding.score for item in found if need.id in item.needs] for need in self.needs}
        return tuple(name for name, of in scores.items() if not meets(of) or len(of) < self.enough)

    def attribute(self, item: FoundEvidence, wanted: Sequence[str]) -> FoundEvidence:
        """Attribute a finding of a further window to the search for its need."""
        need = next((need for need in self.needs if need.id in item.needs and need.id in wanted), None)
        return item if need is None else replace(item, query=need.search)


_PLENTY_IN_ALL: Final = 30  # strong findings, divided among the needs if they are few


def _build_result(
    found: Sequence[FoundEvidence], proposed: Sequence[Window], shown: Sequence[Window], unreadable: frozenset[str]
) -> SearchResult:
    lost = sum(not unreadable.isdisjoint(chunk.id for chunk in window.chunks) for window in shown)
    return SearchResult(tuple(found), chunk_ids(shown), len(proposed), len(shown), lost)


async def search_each(
    library: Library,
    reader: EvidenceReader,
    purpose: Purpose,
    searches: Sequence[tuple[Need, Scope]],
    limits: EvidenceLimits,
    *,
    known: Sequence[str] = (),
) -> list[SearchResult]:
    """Find the best windows for each search, excluding `known` chunks, and read them together, each once."""
    read = list(known)
    proposed: list[list[Window]] = []
    for need, scope in searches:
        most = limits.windows(limits.search_tokens)
        proposed.append(await propose_windows(library, [need], scope, most, limits.retrieval, known=read))
        read += chunk_ids(proposed[-1])
    everything = [window for windows in proposed for window in windows]
    all_of_it = replace(limits, top_k_final=None, per_paper=None)
    found, unreadable = await read_windows(reader, purpose, everything, all_of_it, [])
    searched: list[SearchResult] = []
    for (need, _), windows in zip(searches, proposed, strict=True):
        own = frozenset(chunk_ids(windows))
        mine = [replace(item, query=need.search) for item in found if item.finding.spans[0][0].id in own]
        searched.append(_build_result(limit_findings(mine, limits), windows, windows, unreadable))
    return searched


async def read_in_waves(
    reader: EvidenceReader,
    purpose: Purpose,
    windows: Sequence[Window],
    limits: EvidenceLimits,
    library: Library | None = None,
    *,
    further: FurtherSearch | None = None,
    on_findings: OnFindings | None = None,
) -> SearchResult:
    """Read windows best first, skipping those whose needs are met, exhausted, or well served by the same paper.

    The last wave has `further` windows. `on_findings` receives findings as soon as they are read.

    With a `library`, the last wave also reads the abstracts of the papers that helped most, unless already read: an
    abstract states a paper's main findings, but ranks below passages with details.
    """
    found: list[FoundEvidence] = []
    read: list[Window] = []
    unreadable: frozenset[str] = frozenset()
    prepared: Sequence[Window] = ()
    again: tuple[str, ...] = ()
    # The first half, then the rest in equal parts.
    first = len(windows) if limits.waves <= 1 else -(-len(windows) // 2)
    size = max(1, -(-(len(windows) - first) // max(1, limits.waves - 1)))
    waves = [windows[:first], *(windows[start : start + size] for start in range(first, len(windows), size))]
    waves += [()] if further is not None and len(waves) == 1 else []
    for number, wave in enumerate(waves, 1):
        open_needs = {need.id for need in purpose.needs} - _settled_needs(purpose, read, found, limits)
        strong = Counter((item.finding.paper.key, need) for item in found for need in item.needs if _is_strong(item))
        wanted = [
            window
            for window in wave
            if not window.needs
            or any(
                limits.of_paper is None or strong[window.paper.key, need] < limits.of_paper
                for need in open_needs.intersection(window.needs)
            )
        ]
        last, more = number == len(waves) > 1, list[Window]()
        if last and further is not None:
            again = further.unmet_needs(found)
            more = [window for window in prepared if not set(again).isdisjoint(window.needs)]
            if not meets([item.finding.score for item in found]):
                more += await further.by_cards({window.paper.key for window in (*windows, *more)})
        searched_for = frozenset(chunk_ids(more))
        if last and library is not None:
            more += await asyncio.to_thread(_abstract_windows, library, found, [*read, *wanted, *more], limits)
        wanted, windows = [*wanted, *more], [*windows, *more]
        reading = read_windows(reader, purpose, wanted, limits, purpose.needs, on_findings=on_findings)
        if number == 1 and further is not None:
            preparing = asyncio.ensure_future(further.windows())  # while the first wave is read
            try:
                (new, lost), prepared = await reading, await preparing
            finally:
                preparing.cancel()
        else:
            new, lost = await reading
        if further is not None:
            new = [
                further.attribute(item, again) if item.finding.spans[0][0].id in searched_for else item for item in new
            ]
        found, read, unreadable = [*found, *new], [*read, *wanted], unreadable | lost
    return replace(_build_result(limit_findings(found, limits), windows, read, unreadable), again=again)


def _abstract_windows(
    library: Library, found: Sequence[FoundEvidence], read: Sequence[Window], limits: EvidenceLimits
) -> list[Window]:
    """Return windows on the unread abstracts of the papers with the most strong findings; blocks."""
    papers = Counter(item.finding.paper.key for item in found if _is_strong(item))
    known = set(chunk_ids(read))
    windows: list[Window] = []
    for key, _ in sorted(papers.items(), key=lambda item: (-item[1], item[0]))[: limits.abstracts]:
        rows = library.catalog.chunk_rows(keys=[key], categories=[Category.ABSTRACT])
        chunks = tuple(library.chunks([row.id for row in rows if row.id not in known]))
        best = max(item.finding.vector_score for item in found if item.finding.paper.key == key)
        if chunks:
            windows.append(Window(library.paper(key), chunks[:1], (chunks[0].id,), (best,)))
    return windows


async def read_windows(
    reader: EvidenceReader,
    purpose: Purpose,
    windows: Sequence[Window],
    limits: EvidenceLimits,
    searched_for: Sequence[Need],
    *,
    on_findings: OnFindings | None = None,
) -> tuple[list[FoundEvidence], frozenset[str]]:
    """Read windows; returns the useful findings, best first, and the ids of unreadable chunks.

    Neighbouring papers share a call. A finding is assigned to the search for its need if that need was `searched_for`,
    otherwise to the first search.
    """

    async def read(group: Sequence[Window]) -> list[PassageFinding]:
        findings = await reader.read(purpose, group)
        if on_findings is not None:
            on_findings(findings)
        return findings

    readings = await gather_all(read(group) for group in group_windows(windows, limits.call_tokens))
    searches = {need.id: need.search for need in searched_for}
    first = searched_for[0].search if searched_for else ""
    found = [
        FoundEvidence(
            finding,
            limits.vector_weight * finding.vector_score + limits.llm_weight * finding.score,
            searches.get(finding.need, first),
        )
        for reading in readings
        for finding in reading
    ]
    lost = (reading.unreadable for reading in readings if isinstance(reading, Findings))
    return limit_findings(found, limits), frozenset(name for names in lost for name in names)


def group_windows(windows: Sequence[Window], tokens: int) -> list[list[Window]]:
    """Group windows into few calls of about `tokens` each (first-fit decreasing), ordered by paper within a call.

    A paper's windows share a call if they fit, so that its findings are weighed against each other.
    """
    keys = sorted({window.paper.key for window in windows})
    of_papers = ([[window] for window in windows if window.paper.key == key] for key in keys)
    pieces = [piece for own in of_papers for piece in _pack(own, tokens)]
    return [
        sorted(group, key=lambda window: (window.paper.key, window.chunks[0].index)) for group in _pack(pieces, tokens)
    ]


def _pack(pieces: Sequence[Sequence[Window]], tokens: int) -> list[list[Window]]:
    """Pack pieces into bins of up to `tokens`, largest first, each into the first bin it fits."""
    groups: list[list[Window]] = []
    rooms: list[int] = []
    sized = [(sum(window.tokens for window in piece), piece) for piece in pieces]
    for size, piece in sorted(sized, key=lambda item: (-item[0], item[1][0].id)):
        place = next((place for place, room in enumerate(rooms) if room >= size), len(rooms))
        if place == len(rooms):
            groups.append([])
            rooms.append(tokens)
        groups[place] += piece
        rooms[place] -= size
    return groups


def chunk_ids(windows: Sequence[Window]) -> tuple[str, ...]:
    """Return the ids of all chunks of windows, each once."""
    return tuple(dict.fromkeys(chunk.id for window in windows for chunk in window.chunks))


async def nearest_chunks(library: Library, queries: Sequence[str], chunk_ids: Sequence[str], k: int) -> list[str]:
    """Return the `k` chunks nearest to any of the queries, best first; missing chunks are left out."""
    if not chunk_ids:
        return []
    vectors = await gather_all(map(library.embedding.embed_query, queries))
    found = [(await asyncio.to_thread(library.cosines, vector, chunk_ids)).items() for vector in vectors]
    nearness = dict(sorted(chain.from_iterable(found), key=itemgetter(1)))
    return sorted(nearness, key=lambda name: (-nearness[name], name))[:k]


def _is_strong(item: FoundEvidence) -> bool:
    return item.finding.score >= STRONG


def _settled_needs(
    purpose: Purpose, read: Sequence[Window], found: Sequence[FoundEvidence], limits: EvidenceLimits
) -> set[str]:
    """Return the needs for which further reading is not worth the calls."""
    strong = [item for item in found if _is_strong(item)]
    many = Counter(need for item in strong for need in item.needs)
    papers = {need.id: {item.finding.paper.key for item in strong if need.id in item.needs} for need in purpose.needs}
    several = len({window.paper.key for window in read}) > 1
    holding = {(chunk.id, need) for item in strong for chunk, _, _ in item.finding.spans for need in item.needs}
    plenty = max(limits.plenty, _PLENTY_IN_ALL // max(1, len(purpose.needs)))
    settled: set[str] = set()
    for need in purpose.needs:
        windows = [window for window in read if need.id in window.needs]
        latest = windows[-limits.dry :]
        dry = len(latest) == limits.dry and not any(
            (chunk.id, need.id) in holding for window in latest for chunk in window.chunks
        )
        if dry or (many[need.id] >= plenty and (len(papers[need.id]) > 1 or not several)):
            settled.add(need.id)
    return settled
