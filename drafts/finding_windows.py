"""Sources of a text: each finding with the sentences that carry it, and the window of its section around them.

A writer is shown the sentences that carry a finding. What only their context says (a country, a cell type, a condition,
what "it" means) is in the window, which a judge and a repair can be shown. The opening of the paper is part of every
window: it says where, on whom and how the study was done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..documents import Chunk, Evidence, Paper, chunk_id, same_section, split_chunk_id
from ..documents.chunking import Window
from ..documents.passages import TableHead, readable_units
from ..roles.protocols import PassageSentence, Source
from ..text.sentences import is_context_dependent

_FIRST_ROWS = 40  # characters before the first rows of a chunk that begins inside a table
_OPENING = 2  # chunks at the beginning of a paper: its abstract
_Placed = tuple[int, PassageSentence]  # its start in the paper, and the sentence


def near_chunks(name: str) -> tuple[str, ...]:
    """The id of a chunk, those of its neighbours in the paper, and of the paper's opening."""
    try:
        key, index = split_chunk_id(name)
    except ValueError:  # a record from a file that was edited
        return (name,)
    near = dict.fromkeys((index - 1, index + 1, *range(_OPENING)))
    return (name, *(chunk_id(key, place) for place in near if place >= 0 and place != index))


def source_of(item: Evidence, paper: Paper, chunk: Chunk, chunks: Mapping[str, Chunk]) -> Source:
    """The source for a finding whose first words are in `chunk`; `chunks` are it and others near its words, by id."""
    passage = passage_of(item, chunk, chunks)
    window = _window_of(paper, chunk, passage, chunks)
    return Source(item, paper, chunk.text, chunk.category, passage, chunk.parent, window)


def with_columns(source: Source, head: TableHead | None) -> Source:
    """The source; if its chunk begins inside a table, with the table's column names before its first rows."""
    first = source.passage[0] if source.passage else None
    if head is None or first is None or first.start > _FIRST_ROWS:
        return source
    names = PassageSentence(head.chunk_id, head.start, head.end, head.row, False)
    window = tuple(item for item in source.window if item.chunk_id != head.chunk_id or item.end <= head.start)
    return replace(source, passage=(names, *source.passage), window=(names, *(window or source.passage)))


def passage_of(item: Evidence, chunk: Chunk, chunks: Mapping[str, Chunk]) -> tuple[PassageSentence, ...]:
    """The sentences that support a finding, and the one before if they depend on it; changed text is left out."""
    shown: list[_Placed] = []
    for span in item.spans:
        holder = chunk if span.chunk_id == item.chunk_id else chunks.get(span.chunk_id)
        if holder is None or holder.text[span.start : span.end] != span.quote:
            continue
        units = readable_units(holder.text)
        inside = [place for place, unit in enumerate(units) if unit.start < span.end and span.start < unit.end]
        if inside and inside[0] and is_context_dependent(units[inside[0]].text):
            inside = [inside[0] - 1, *inside]
        for place in inside:
            unit = units[place]
            sentence = PassageSentence(holder.id, unit.start, unit.end, unit.text, unit.end > span.start)
            shown.append((holder.start + unit.start, sentence))
    return _in_order(_each_once(shown))


def _window_of(
    paper: Paper, chunk: Chunk, passage: Sequence[PassageSentence], chunks: Mapping[str, Chunk]
) -> tuple[PassageSentence, ...]:
    """The passage with the rest of its chunks and their neighbours, in order; the paper's opening comes last."""
    known = {**chunks, chunk.id: chunk}
    holders = dict.fromkeys([chunk.id, *(item.chunk_id for item in passage)])
    near = {name: known[name] for holder in holders for name in near_chunks(holder) if name in known}
    own = [known[name] for name in holders]
    joined = [item for item in near.values() if item.id in holders or same_section(item, chunk)]
    opening = [item for item in near.values() if item.index < _OPENING and item not in joined]
    shown = [(known[item.chunk_id].start + item.start, item) for item in passage]
    for group in (own, joined):
        shown += _not_shown(paper, group, shown)
    return (*_in_order(shown), *_in_order(_not_shown(paper, opening, shown)))


def _not_shown(paper: Paper, chunks: Sequence[Chunk], shown: Sequence[_Placed]) -> list[_Placed]:
    ordered = sorted(chunks, key=lambda chunk: chunk.index)
    units = Window(paper, tuple(ordered), hits=(), cosines=()).sentences()
    placed = [
        (unit.chunk.start + unit.start, PassageSentence(unit.chunk.id, unit.start, unit.end, unit.text, False))
        for unit in units
    ]
    return [item for item in placed if not _overlaps(item, shown)]


def _in_order(shown: Sequence[_Placed]) -> tuple[PassageSentence, ...]:
    return tuple(sentence for _, sentence in sorted(shown, key=lambda at: at[0]))


def _each_once(shown: Sequence[_Placed]) -> list[_Placed]:
    """Drop sentences that overlap, since chunks share borders; those that support, then longer ones, stay."""
    kept: list[_Placed] = []
    for placed in sorted(shown, key=lambda at: (not at[1].carries, at[1].start - at[1].end)):
        if not _overlaps(placed, kept):
            kept.append(placed)
    return kept


def _overlaps(placed: _Placed, others: Sequence[_Placed]) -> bool:
    begin, sentence = placed
    end = begin + sentence.end - sentence.start
    return any(begin < other + item.end - item.start and other < end for other, item in others)
