"""Helps while the user writes: suggests papers for a sentence, and finds what its citations refer to."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log
from pathlib import Path
from typing import Final

from ..claims.claim_passages import ClaimPassage, choose_sentences, claim_query, content_words
from ..claims.manuscript import Manuscript
from ..claims.markup_readers import read_manuscript
from ..claims.reference_entries import ReferenceList, bibliography_files, load_references, near_keys
from ..documents import Chunk, Paper, split_chunk_id
from ..documents.paper_names import in_text_name
from ..documents.plain_text import plain_text
from ..graph.session import Session
from ..text.words import close_gaps, without_accents
from ..tools.retrieval import Retrieval, rank, retrieve
from ..tools.scope import Scope
from .arguments import require_positive
from .blocking import blocking, threaded
from .results import SuggestedCitation, SuggestedCitations

WORD_WEIGHT: Final = 0.6  # a claim repeats more of its source's words than a question does; see docs/scores.md
_POOL: Final = 160  # best passages, whose papers are candidates
_NEAR_PAPERS: Final = 60
# Added to the cosine of a paper's summary with these weights; see bench/completions.py.
_PASSAGE_WEIGHT: Final = 0.3
_TITLE_WEIGHT: Final = 0.2
_QUOTED_TOKENS: Final = 1  # one sentence
_CURSOR: Final = "\ue012"
_PARAGRAPH: Final = 3_000  # characters on either side of the cursor
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\r?\n")
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class SentenceAt:
    """The sentence at a position, without its citations, and the sentence before it in the same paragraph."""

    text: str
    before: str


@dataclass(frozen=True)
class ReadText:
    """A text as read from a file or an editor, with the works that it cites and its `.bib` files."""

    file: Path
    manuscript: Manuscript
    references: ReferenceList
    bibliographies: tuple[Path, ...] = ()

    def paper_of(self, written: str) -> str:
        """The library's key for a citation key or number of the text; empty if the library has no such paper."""
        return self.references.in_library.get(self.entry_of(written), "")

    def entry_of(self, written: str) -> str:
        """The key of the reference that a citation key or number of the text stands for."""
        return self.references.numbers.get(int(written), "") if written.isdecimal() else written

    def near_keys(self, key: str) -> list[str]:
        """The keys that this one probably misspells, nearest first."""
        return near_keys(key, self.references.entries)

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """For each library paper in the text's bibliography, the key by which the text cites it."""
        return {paper: key for key, paper in [*self.references.in_library.items()][::-1] if paper}


def sentence_at(text: str, start: int, end: int, suffix: str) -> SentenceAt:
    """Find the sentence around `start:end`, an unfinished citation that is left out; `suffix` is the file's."""
    blanks = [match.span() for match in _BLANK_LINE.finditer(text, max(0, start - _PARAGRAPH), end + _PARAGRAPH)]
    first = max((stop for _, stop in blanks if stop <= start), default=max(0, start - _PARAGRAPH))
    last = min((begin for begin, _ in blanks if begin >= end), default=end + _PARAGRAPH)
    paragraph = f"{text[first:start]}{_CURSOR}{text[end:last]}"
    manuscript = read_manuscript(Path(f"text{suffix}"), paragraph)
    said = ["", ""]
    for sentence in manuscript.sentences():
        here = _CURSOR in manuscript.text[sentence.start : sentence.end]
        shown = close_gaps(manuscript.with_markers(sentence, ()).replace(_CURSOR, " "))
        if here and _WORD.search(shown):
            return SentenceAt(shown, said[-1])
        if here:
            break
        said.append(shown)
    return SentenceAt(said[-1], said[-2])


async def asuggest_citations(
    session: Session, sentence: str, *, before: str = "", prefix: str = "", without: Collection[str] = (), most: int = 5
) -> SuggestedCitations:
    """Suggest the papers that fit a sentence best, each with its nearest words; asks no chat model.

    Args:
        sentence: the sentence that needs a citation, without its citations.
        before: the preceding sentence, if the sentence depends on it.
        prefix: beginnings of words, each of which a paper's key, authors, year or title must match.
        without: keys of papers to leave out, such as those already cited.
        most: number of papers.
    """
    require_positive("most", most)
    library = session.library
    papers = {paper.key: paper for paper in await asyncio.to_thread(library.papers)}
    allowed = tuple(key for key, paper in papers.items() if _matches_prefix(paper, prefix)) if prefix.strip() else ()
    if not papers or (prefix.strip() and not allowed):
        return {"papers": []}
    if not _WORD.search(sentence):
        return {"papers": [_suggestion_record(papers[key], 0.0, None) for key in sorted(allowed or papers)[:most]]}
    vector = await library.embedding.embed_query(f"{before} {sentence}".strip())
    options = Retrieval(session.settings.retrieval_mode, bm25_weight=WORD_WEIGHT)
    query, scope = claim_query(sentence, before), Scope(papers=allowed)
    near, (ranking, _) = await asyncio.gather(
        asyncio.to_thread(library.nearest_papers, vector, max(_NEAR_PAPERS, len(allowed))),
        rank(library, query, _POOL, scope, options),
    )
    # Papers beyond the nearest have no known score; they count as being as far away as the last one.
    least = min((item.score for item in near), default=0.0)
    least_passage = min((score for _, score in ranking), default=0.0)
    scores = {item.paper.key: item.score for item in near}
    passages: dict[str, tuple[str, float]] = {}
    for name, score in ranking:
        passages.setdefault(split_chunk_id(name)[0], (name, score))
    possible = (scores.keys() | passages.keys()) & (set(allowed) or papers.keys()) - set(without)
    rarity = _rarity(tuple(paper.title for paper in papers.values()))
    said = content_words(sentence)
    for key in possible:
        about = _TITLE_WEIGHT * _overlap(said, content_words(papers[key].title), rarity)
        _, passage = passages.get(key, ("", least_passage))
        scores[key] = scores.get(key, least) + _PASSAGE_WEIGHT * passage + about
    chosen = sorted(possible, key=lambda key: (-scores[key], key))[:most]
    apart = tuple(key for key in chosen if key not in passages)
    more = (await rank(library, query, _POOL, Scope(papers=apart), options))[0] if apart else []
    for name, score in more:
        passages.setdefault(split_chunk_id(name)[0], (name, score))
    chunks = await asyncio.to_thread(library.chunks, [passages[key][0] for key in chosen if key in passages])
    found = {chunk.key: _quote_nearest(sentence, chunk, papers[chunk.key]) for chunk in chunks}
    return {"papers": [_suggestion_record(papers[key], scores[key], found.get(key)) for key in chosen]}


async def anearest_words(session: Session, sentence: str, key: str, *, before: str = "") -> list[SuggestedCitation]:
    """Find the passage of one paper that is nearest to a sentence, if any. Raises `UnknownPaperError`."""
    paper = await asyncio.to_thread(session.library.paper, key)
    options = Retrieval(session.settings.retrieval_mode, bm25_weight=WORD_WEIGHT)
    hits = await retrieve(session.library, claim_query(sentence, before), 1, Scope(papers=(key,)), options)
    return [_suggestion_record(paper, hit.score, _quote_nearest(sentence, hit.chunk, paper)) for hit in hits]


@threaded
def aread_text(session: Session, file: Path, text: str) -> ReadText:
    """Read a text that is open in an editor; raises `InputError`."""
    manuscript = read_manuscript(file, text)
    references = load_references(manuscript, file, None, session.library.papers())
    return ReadText(file, manuscript, references, tuple(bibliography_files(manuscript, file, [])))


def _matches_prefix(paper: Paper, prefix: str) -> bool:
    """Whether each word of a prefix begins the key or a word of the metadata, ignoring case and accents."""
    said = f"{paper.key} {' '.join(paper.authors)} {paper.year or ''} {paper.title}"
    words = [paper.key.casefold(), *_WORD.findall(without_accents(said).casefold())]
    asked = without_accents(prefix).casefold().split()
    return all(any(word.startswith(part) for word in words) for part in asked)


@lru_cache(maxsize=2)
def _rarity(titles: tuple[str, ...]) -> Mapping[str, float]:
    """How informative each title word is: higher if few titles contain it."""
    counts = Counter(word for title in titles for word in content_words(title))
    return {word: log(1 + len(titles) / count) for word, count in counts.items()}


def _overlap(said: Collection[str], title: Collection[str], rarity: Mapping[str, float]) -> float:
    """The share of the sentence's words found in the title plus the reverse, weighted by rarity: 0 to 2."""
    most = max(rarity.values(), default=1.0)
    weights = [sum(rarity.get(word, most) for word in words) for words in (said, title)]
    both = sum(rarity[word] for word in set(said).intersection(title))
    return sum(both / weight for weight in weights if weight)


def _quote_nearest(sentence: str, chunk: Chunk, paper: Paper) -> ClaimPassage:
    (passage,) = choose_sentences(sentence, [ClaimPassage(chunk, paper, 0.0)], _QUOTED_TOKENS)
    return passage


def _suggestion_record(paper: Paper, score: float, passage: ClaimPassage | None) -> SuggestedCitation:
    chunk = passage.chunk if passage else None
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


suggest_citations = blocking(asuggest_citations)
