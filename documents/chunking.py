"""Splits a paper's searchable sections into chunks for embedding, and joins chunks into windows for reading.

Every chunk is a slice of the paper's text. Chunks of a section are about equally long, overlap by whole sentences and
never cross into the next section; formulas, code and tables with their captions stay whole unless they are much longer
than a chunk, since the embedding reads only 512 tokens. An argument is longer than a chunk: a window joins the chunks
around a hit within their section and shows every sentence once, each with its position in a chunk.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

from ..text.sentences import sentence_spans, trim_span
from .figure_search import find_figures
from .figures import PaperFigure
from .markdown import Block, ParsedPaper
from .passages import readable_units
from .plain_text import plain_text
from .types import Chunk, Note, Paper, Section, Span, chunk_id

# Chunks of another version are recomputed when their paper is ingested.
CHUNKING_VERSION = "3"

_WORD = re.compile(r"\S+")
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")
_PICTURE = re.compile(r"!\[\]\([^()]*\)(?:\{[^{}]*\})?")  # without a caption
_GAP = re.compile(r"[\s*_-]*")
_MOST = 1.25  # times the target: the maximum length of a chunk that is not one whole block
_WHOLE = 2.0  # times the target: the maximum length of a block that stays whole

CountTokens = Callable[[Sequence[str]], Sequence[int]]  # of each text
_CHARACTERS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class _Piece:
    """The smallest unit of a chunk; only one that `overlaps` may be in two chunks. `tokens` is 0 until counted."""

    start: int
    end: int
    overlaps: bool
    tokens: int = 0


def chunk_paper(
    key: str, paper: ParsedPaper, count_tokens: CountTokens, *, target: int = 400, overlap: int = 100
) -> list[Chunk]:
    """Split all searchable sections into chunks with indices 0, 1, 2 ...; `chunk.text == paper.text[start:end]`.

    `count_tokens` counts by the embedding's tokenizer, and is called once with all sentences of the paper. Only a whole
    block may exceed 1.25 times the `target` in tokens; neighbouring chunks of a section share about `overlap` tokens.
    """
    text = paper.text
    tables = [each.figure.span for each in find_figures(paper) if each.figure.body and each.figure.span]
    runs = [(section, run) for section in paper.sections if section.searchable for run in _runs(paper, section, tables)]
    counts = iter(count_tokens([text[part.start : part.end] for _, run in runs for part in run]))
    chunks: list[Chunk] = []
    for section, run in runs:
        pieces = [piece for part in run for piece in _pieces(text, part, next(counts), count_tokens, target)]
        for first, last in _spans(pieces, target, overlap):
            tokens = sum(piece.tokens for piece in pieces[first : last + 1])
            start, end = pieces[first].start, pieces[last].end
            if not any(map(str.isalnum, _PICTURE.sub("", text[start:end]))):
                continue  # images without text
            name = (chunk_id(key, len(chunks)), key, len(chunks), text[start:end], section.title, section.parent)
            breaks = tuple(begin - start for begin in paper.page_starts if start < begin < end)
            place = (section.category, section.level, paper.page_at(start), start, end)
            chunks.append(Chunk(*name, *place, tokens, breaks))
    return chunks


def _runs(paper: ParsedPaper, section: Section, tables: Sequence[Span]) -> Iterator[list[_Piece]]:
    """Runs of adjacent blocks of a section, separated by hidden content, which is in no chunk."""
    run: list[Block] = []
    for block in paper.section_blocks(section):
        # Rules and link definitions between blocks are not part of the text either.
        separated = run and not _GAP.fullmatch(paper.text, run[-1].end, block.start)
        if run and (separated or block.kind == "hidden"):
            yield list(_block_pieces(paper.text, run, tables))
            run = []
        if block.kind != "hidden":
            run.append(block)
    if run:
        yield list(_block_pieces(paper.text, run, tables))


def _block_pieces(text: str, run: Sequence[Block], tables: Sequence[Span]) -> Iterator[_Piece]:
    """The parts of adjacent blocks; a table and its caption are one part. `tables` are in order."""

    def table_of(block: Block) -> Span | None:
        place = bisect_right(tables, block.start, key=lambda span: span[0]) - 1
        return tables[place] if place >= 0 and block.start < tables[place][1] else None

    for table, grouped in groupby(run, key=table_of):
        blocks = list(grouped)
        if table is not None:
            yield _Piece(blocks[0].start, blocks[-1].end, overlaps=False)
            continue
        for block in blocks:
            if not any(map(str.isalnum, text[block.start : block.end])):
                continue
            if block.kind not in {"prose", "list"}:
                yield _Piece(block.start, block.end, overlaps=False)
                continue
            begin = block.start
            # A sentence includes a preceding list marker, so that nothing is lost.
            ends = [block.start + stop for _, stop in sentence_spans(text[block.start : block.end])]
            for right in [*ends[:-1], *([block.end] if ends else [])]:
                begin, _ = trim_span(text, begin, right)
                yield _Piece(begin, right, overlaps=True)
                begin = right


def _pieces(text: str, part: _Piece, tokens: int, count_tokens: CountTokens, target: int) -> Iterator[_Piece]:
    """The part as one piece, or a long sentence split at words, and a huge table or code block at line ends."""
    if tokens <= (target if part.overlaps else _WHOLE * target):
        yield replace(part, tokens=tokens)
        return
    if part.overlaps:
        yield from _word_pieces(text, part.start, part.end, count_tokens, target)
        return
    lines = [match for match in _LINE.finditer(text, part.start, part.end) if match.group().strip()]
    spans, counts = [trim_span(text, *line.span()) for line in lines], count_tokens([line.group() for line in lines])
    for left, right, tokens in pack_spans(spans, counts, target):
        if tokens > _WHOLE * target:
            yield from _word_pieces(text, left, right, count_tokens, target)
        else:
            yield _Piece(left, right, False, tokens)


def _word_pieces(text: str, start: int, end: int, count_tokens: CountTokens, target: int) -> Iterator[_Piece]:
    """Split a sentence or line longer than a chunk between words, or anywhere if a single word is too long."""
    half = max(1, target // 2)
    # A token has at least one character, so a piece of this many characters cannot be too long.
    words = [
        (left, min(left + half, match.end()))
        for match in _WORD.finditer(text, start, end)
        for left in range(match.start(), match.end(), half)
    ]
    counts = count_tokens([text[left:right] for left, right in words])
    yield from (_Piece(left, right, True, tokens) for left, right, tokens in pack_spans(words, counts, half))


def pack_spans(spans: Sequence[tuple[int, int]], counts: Sequence[int], most: int) -> Iterator[tuple[int, int, int]]:
    """Join consecutive spans, whose tokens are `counts`, to at most `most` tokens: start, end and tokens of each."""
    packed: list[tuple[int, int, int]] = []
    for (start, end), tokens in zip(spans, counts, strict=True):
        if packed and packed[-1][2] + tokens <= most:
            packed[-1] = (packed[-1][0], end, packed[-1][2] + tokens)
        else:
            packed.append((start, end, tokens))
    yield from packed


def _spans(pieces: Sequence[_Piece], target: int, overlap: int) -> Iterator[tuple[int, int]]:
    """First and last piece of each chunk; every piece is in at least one chunk."""
    most = _MOST * target
    left = sum(piece.tokens for piece in pieces)  # starting at `first`
    first = least = 0
    while first < len(pieces):
        if left <= most:
            yield first, len(pieces) - 1
            return
        # Equal shares of the remaining pieces, so that no short rest remains.
        count = max(2, math.ceil((left - overlap) / max(1, target - overlap)))
        share = (left + (count - 1) * overlap) / count
        last, gathered = first, pieces[first].tokens
        while last + 1 < len(pieces):
            more = pieces[last + 1].tokens
            enough = gathered + more / 2 > share and gathered >= share / 2
            # The overlap with the previous chunk may already be long enough, but every chunk must add something new.
            if gathered + more > most or (enough and last >= least):
                break
            last += 1
            gathered += more
        yield first, last
        least = following = last + 1
        if least < len(pieces):
            # The next chunk begins some sentences back, unless a large block leaves no room for them.
            room, shared = most - pieces[least].tokens, 0
            while following - 1 > first and pieces[following - 1].overlaps:
                more = pieces[following - 1].tokens
                if shared + more / 2 > overlap or shared + more > room:
                    break
                following -= 1
                shared += more
        left -= sum(piece.tokens for piece in pieces[first:following])
        first = following


def cuts_sentence(chunk: Chunk, following: Chunk) -> bool:
    """Whether the next chunk of the section holds the rest of the sentence with which this one ends."""
    if following.start > chunk.end + 1:
        return False
    gap = " " * (following.start - chunk.end)
    joined = chunk.text + gap + following.text[max(0, chunk.end - following.start) :]
    first = max(0, joined.rfind("\n\n", 0, len(chunk.text)))
    border = len(chunk.text) - first
    return "|" not in joined[first:] and any(start < border < end for start, end in sentence_spans(joined[first:]))


_BLANK_LINE = re.compile(r"\n[ \t\r]*(?=\n)")
_LEAST_CUT: Final = 200  # characters: shorter text of a note is not split further


def make_note(text: str, count_tokens: Callable[[str], int], *, target: int = 400) -> Note:
    """Split a note (not blank) into passages of at most `target` embedding tokens, at paragraphs if possible."""
    units: list[Span] = []
    cuts = [0, *(match.end() for match in _BLANK_LINE.finditer(text)), len(text)]
    for start, end in (trim_span(text, *cut) for cut in pairwise(cuts)):
        if count_tokens(text[start:end]) <= target:
            units += [(start, end)] if start < end else []
            continue
        # A long paragraph from one sentence start to the next: text between sentences belongs to the note as well.
        later = [start + first for first, _ in sentence_spans(text[start:end])][1:]
        for first, last in pairwise([start, *later, end]):
            units += _halve(text, first, first + len(text[first:last].rstrip()), count_tokens, target)
    packed = pack_spans(units, [count_tokens(text[start:end]) for start, end in units], target)
    return Note(text, tuple((start, end) for start, end, _ in packed))


def _halve(text: str, start: int, end: int, count_tokens: Callable[[str], int], target: int) -> Iterator[Span]:
    """Halve the span until each part has at most `target` tokens, at a space near the middle if there is one."""
    if end - start <= _LEAST_CUT or count_tokens(text[start:end]) <= target:
        yield start, end
        return
    middle = (start + end) // 2
    space = text.rfind(" ", start + (end - start) // 4, middle)
    middle = space if space > start else middle
    yield from _halve(text, start, middle, count_tokens, target)
    yield from _halve(text, middle, end, count_tokens, target)


@dataclass(frozen=True, slots=True)
class WindowSentence:
    """A sentence, a table or a panel of a caption: `chunk.text[start:end]`, shown as `text`."""

    chunk: Chunk
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive chunks of a section; `hits` are the ids of the search hits among them, best first.

    `cosines` are the cosines of the hits (0-1), `needs` the ids of the needs for which the window was found. `figures`
    are the model-described figures with captions in the window; their descriptions are not among its sentences.
    `columns` are the column names of a table in whose middle the window begins.
    """

    paper: Paper
    chunks: tuple[Chunk, ...]
    hits: tuple[str, ...]
    cosines: tuple[float, ...]
    needs: tuple[str, ...] = ()
    figures: tuple[PaperFigure, ...] = ()
    columns: str = ""

    @property
    def id(self) -> str:
        return f"{self.chunks[0].id}+{len(self.chunks)}"

    @property
    def vector_score(self) -> float:
        return max(self.cosines)

    @property
    def tokens(self) -> int:
        """The approximate number of tokens, without overlaps, and with descriptions of figures."""
        first, last = self.chunks[0], self.chunks[-1]
        characters = sum(len(chunk.text) for chunk in self.chunks) or 1
        whole = sum(chunk.tokens for chunk in self.chunks)
        described = sum(len(figure.description) for figure in self.figures) // _CHARACTERS_PER_TOKEN
        return max(1, round(whole * min(characters, last.end - first.start) / characters)) + described

    def sentences(self) -> list[WindowSentence]:
        """The readable units in the order of the paper, without duplicates."""
        found: list[WindowSentence] = []
        last_start = last_end = 0
        for chunk in self.chunks:
            for unit in readable_units(chunk.text):
                sentence = WindowSentence(chunk, unit.start, unit.end, unit.text)
                start, end = chunk.start + unit.start, chunk.start + unit.end
                if not found or start >= last_end:
                    found.append(sentence)
                elif end <= last_end:
                    continue
                elif start <= last_start:
                    found[-1] = sentence  # the previous chunk contained only its beginning
                else:  # longer than a chunk: its rest
                    begin, _ = trim_span(chunk.text, last_end - chunk.start, unit.end)
                    start, text = chunk.start + begin, plain_text(chunk.text[begin : unit.end])
                    found.append(WindowSentence(chunk, begin, unit.end, " ".join(text.split())))
                last_start, last_end = start, end
        return found
