"""Helps while a text is written: which papers fit its sentence, what they say, and what its citations name."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..claims.claim_passages import ClaimPassage, choose_sentences, claim_query
from ..claims.manuscript import Manuscript
from ..claims.markup_readers import read_manuscript
from ..claims.reference_entries import ReferenceList, bibliography_files, load_references
from ..documents import Chunk, Paper
from ..documents.paper_names import in_text_name
from ..documents.plain_text import plain_text
from ..documents.sandbox import in_thread
from ..graph.session import Session
from ..text.words import without_accents
from ..tools.retrieval import Hit, Retrieval, retrieve
from ..tools.scope import Scope
from .arguments import at_least_one, requires_open
from .blocking import blocking
from .results import SuggestedCitation, SuggestedCitations

_WORD_WEIGHT: Final = 0.6  # as of a claim
_POOL: Final = 40  # passages from which papers are taken
_QUOTED_TOKENS: Final = 1
_CURSOR: Final = "\ue012"
_PARAGRAPH: Final = 3_000  # characters on either side of the cursor
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\r?\n")
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class SentenceAt:
    """The sentence at a place of a text, without its citations, and the one before it in its paragraph."""

    text: str
    before: str


@dataclass(frozen=True)
class OpenText:
    """A text as an editor has it, with the works that it cites and its `.bib` files."""

    manuscript: Manuscript
    references: ReferenceList
    bibliographies: tuple[Path, ...]

    def paper_of(self, written: str) -> str:
        """The key of the library's paper that a key or a number of the text names; empty if there is none."""
        key = self.references.numbers.get(int(written), "") if written.isdecimal() else written
        return self.references.in_library.get(key, "")

    def key_of(self, paper: str) -> str:
        """The key by which the text can cite a paper of the library: that of its entry, else the paper's own."""
        return next((key for key, named in self.references.in_library.items() if named == paper), paper)


def sentence_at(text: str, start: int, end: int, suffix: str) -> SentenceAt:
    """The sentence around `start:end`, a citation that is being written and is no part of it; `suffix` as of a file."""
    blanks = [match.span() for match in _BLANK_LINE.finditer(text, max(0, start - _PARAGRAPH), end + _PARAGRAPH)]
    first = max((stop for _, stop in blanks if stop <= start), default=max(0, start - _PARAGRAPH))
    last = min((begin for begin, _ in blanks if begin >= end), default=end + _PARAGRAPH)
    paragraph = f"{text[first:start]}{_CURSOR}{text[end:last]}"
    manuscript = read_manuscript(Path(f"text{suffix}"), paragraph)
    said = ["", ""]
    for sentence in manuscript.sentences():
        words = " ".join(manuscript.marked(sentence, ()).split())
        here = _CURSOR in manuscript.text[sentence.start : sentence.end]
        shown = re.sub(r" ([.,;:!?])", r"\1", " ".join(words.replace(_CURSOR, " ").split()))
        if here and _WORD.search(shown):
            return SentenceAt(shown, said[-1])
        if here:
            break
        said.append(shown)
    return SentenceAt(said[-1], said[-2])


@requires_open
async def asuggest_citations(
    session: Session, sentence: str, *, before: str = "", prefix: str = "", without: Collection[str] = (), most: int = 5
) -> SuggestedCitations:
    """The papers of the library that fit a sentence best, each with the words that bear on it; asks no chat model.

    Args:
        session: an open library.
        sentence: the sentence that is to cite, without its citations.
        before: the sentence before it, for one that depends on it.
        prefix: beginning of a key, or of a word of the author's name, the year or the title, that papers must have.
        without: keys of papers to leave out, such as those that the sentence cites already.
        most: number of papers.
    """
    at_least_one("most", most)
    library = session.library
    papers = {paper.key: paper for paper in await asyncio.to_thread(library.papers)}
    allowed = tuple(key for key, paper in papers.items() if _begins(paper, prefix)) if prefix.strip() else ()
    if not papers or (prefix.strip() and not allowed):
        return {"papers": []}
    if not _WORD.search(sentence):
        return {"papers": [_suggested(papers[key], 0.0, None) for key in sorted(allowed or papers)[:most]]}
    query = claim_query(sentence, before)
    options = Retrieval(session.settings.retrieval_mode, bm25_weight=_WORD_WEIGHT)
    hits = await retrieve(library, query, _POOL, Scope(papers=allowed), options)
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.chunk.key not in without:
            best.setdefault(hit.chunk.key, hit)
    chosen = list(best.values())[:most]
    passages = await asyncio.to_thread(_quoted, sentence, chosen)
    return {
        "papers": [_suggested(hit.paper, hit.score, passage) for hit, passage in zip(chosen, passages, strict=True)]
    }


@requires_open
async def anearest_words(
    session: Session, sentence: str, key: str, *, before: str = "", most: int = 1
) -> list[SuggestedCitation]:
    """The passages of one paper that are nearest to a sentence, best first. Raises `UnknownPaperError`."""
    paper = await asyncio.to_thread(session.library.paper, key)
    options = Retrieval(session.settings.retrieval_mode, bm25_weight=_WORD_WEIGHT)
    hits = await retrieve(session.library, claim_query(sentence, before), most, Scope(papers=(key,)), options)
    passages = await asyncio.to_thread(_quoted, sentence, hits)
    return [_suggested(paper, hit.score, passage) for hit, passage in zip(hits, passages, strict=True)]


async def aread_text(session: Session, file: Path, text: str) -> OpenText:
    """Read a text as an editor has it; raises `InputError`."""
    library = await asyncio.to_thread(session.library.papers)

    def read() -> OpenText:
        manuscript = read_manuscript(file, text)
        references = load_references(manuscript, file, None, library)
        return OpenText(manuscript, references, tuple(bibliography_files(manuscript, file, [])))

    return await in_thread(read)


def _begins(paper: Paper, prefix: str) -> bool:
    """Whether each word of a prefix begins the key or a word of the metadata, in any case, without accents."""
    said = f"{paper.key} {' '.join(paper.authors)} {paper.year or ''} {paper.title}"
    words = [paper.key.casefold(), *_WORD.findall(without_accents(said).casefold())]
    asked = without_accents(prefix).casefold().split()
    return all(any(word.startswith(part) for word in words) for part in asked)


def _quoted(sentence: str, hits: Sequence[Hit]) -> list[ClaimPassage]:
    """The passages with their sentences that are nearest."""
    given = [ClaimPassage(hit.chunk, hit.paper, hit.vector_score) for hit in hits]
    chosen = {item.chunk.id: item for one in given for item in choose_sentences(sentence, [one], _QUOTED_TOKENS)}
    return [chosen[item.chunk.id] for item in given]


def _suggested(paper: Paper, score: float, passage: ClaimPassage | None) -> SuggestedCitation:
    chunk: Chunk | None = passage.chunk if passage else None
    start, end = passage.nearest if passage else (0, 0)
    return {
        "key": paper.key,
        "title": paper.title,
        "authors": in_text_name(paper),
        "year": paper.year,
        "score": round(score, 4),
        "chunk_id": chunk.id if chunk else "",
        "section": chunk.section if chunk else "",
        "page": chunk.page_at(start) if chunk else None,
        "quote": plain_text(chunk.text[start:end]) if chunk else "",
    }


suggest_citations = requires_open(blocking(asuggest_citations))
