"""Finds sentences in different papers that may concern the same claim, by similarity alone, for a judge to compare.

Similarity finds statements about the same thing; it cannot tell agreement from contradiction.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..documents import Category, Chunk
from ..errors import InputError
from ..models.embeddings.protocol import Vector, Vectors
from ..roles.protocols import Statement
from ..stores.library import Library
from ..text.sentences import sentence_spans
from .paper_search import NO_PROSE
from .retrieval import DEFAULT_OPTIONS, Retrieval, retrieve
from .scope import Scope

_CHUNKS: Final = 48  # chunks whose sentences are embedded: about 400 sentences, 10 s with the bundled model
_PAPERS: Final = 500  # papers compared without a topic: about 2,000 passages, all pairs
_AROUND: Final = 2  # sentences on either side that the judge sees
_SHORTEST, _LONGEST = 40, 700  # characters of a sentence that can be a claim
_TIMES: Final = 2  # pairs per sentence
_OF_ONE: Final = 6  # passages on a topic per paper, so that a long paper does not crowd out the others
_OF_TWO: Final = 4  # pairs from the same two papers if there are others
_POOL: Final = 4  # candidate passages on a topic for each one selected
_TOPIC: Final = 0.5  # weight of similarity to the topic, relative to similarity to each other
# Sections where papers state their own findings; related work reports other papers' findings.
_CLAIMING: Final = (Category.ABSTRACT, Category.CONCLUSION)
_NO_CLAIM: Final = re.compile(
    r"^(?:Whether|How|In this (?:paper|article|review|work)|Here,? we)\b"
    r"|\bopen question|\bremains? (?:open|unclear|to be)\b|\bfuture (?:work|research|studies)\b"
    r"|\bwe (?:ask|describe|discuss|outline|have no evidence)\b"
    # "We did not find a difference" is a claim.
    r"|\bwe (?:did|do|have) not (?:ask|measure|test|stud|examine|consider|combine|compare|investigate)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Statements of two papers, with the cosine of the sentences that matched."""

    first: Statement
    second: Statement
    similarity: float


@dataclass(frozen=True, slots=True)
class _Sentence:
    chunk: Chunk
    place: int  # index among the sentences of its chunk
    text: str


async def statement_pairs(
    library: Library, topic: str, scope: Scope, most: int, options: Retrieval = DEFAULT_OPTIONS
) -> list[StatementPair]:
    """At most `most` pairs of statements from different papers in the scope, most similar first.

    With a topic, the statements are about it; without one, they come from abstracts and conclusions. Raises
    `InputError` if there are too many papers to compare without a topic, and any error of search and embedding.
    """
    chunks: list[Chunk] = []
    if topic:
        own = tuple(category for category in Category if category is not Category.RELATED_WORK)
        limits = replace(scope, categories=scope.categories or own)
        of_paper: Counter[str] = Counter()
        for hit in await retrieve(library, topic, _POOL * _CHUNKS, limits, options):
            chunk = hit.candidate.chunk
            of_paper[chunk.key] += 1
            if of_paper[chunk.key] <= _OF_ONE and len(chunks) < _CHUNKS:
                chunks.append(chunk)
    else:
        keys = list(scope.papers) or [paper.key for paper in library.papers()]
        if len(keys) > _PAPERS:
            raise InputError(
                f"The library has {len(keys)} papers; without a topic at most {_PAPERS} are compared.",
                help="Give --topic, or name papers with --papers.",
            )
        chunks = await asyncio.to_thread(_with_counterparts, library, keys)
    sentences = list(_sentences(chunks))
    if len({sentence.chunk.key for sentence in sentences}) < 2:
        return []
    vectors = await library.embedding.embed_documents([sentence.text for sentence in sentences])
    nearness = (vectors @ (await library.embedding.embed_query(topic))) if topic else np.zeros(len(sentences))
    chosen = await asyncio.to_thread(_nearest, sentences, vectors, nearness, most)
    return [
        StatementPair(_statement(library, sentences[one]), _statement(library, sentences[other]), cosine)
        for one, other, cosine in chosen
    ]


def _with_counterparts(library: Library, keys: Sequence[str]) -> list[Chunk]:
    """The passages of abstracts and conclusions that are closest to some passage in another paper."""
    rows = library.catalog.chunk_rows(keys=keys, categories=_CLAIMING)
    having = {row.key for row in rows}
    ids = [row.id for row in rows]
    ids += [chunk.id for key in keys if key not in having for chunk in library.introduction(key)]
    stored = library.store.get_vectors(ids)
    chunks = library.chunks([name for name in ids if name in stored])
    if not chunks:
        return []
    matrix = np.stack([stored[chunk.id] for chunk in chunks])
    taken: dict[int, None] = {}
    for one, other, _ in _across([chunk.key for chunk in chunks], matrix, np.zeros(len(chunks))):
        if len(taken) >= _CHUNKS:
            break
        taken |= {one: None, other: None}
    return [chunks[place] for place in taken]


def _sentences(chunks: Sequence[Chunk]) -> Iterator[_Sentence]:
    """The sentences that can be a claim; those shared by neighbouring chunks only once."""
    seen: set[tuple[str, str]] = set()
    for chunk in chunks:
        for place, (start, end) in enumerate(sentence_spans(chunk.text)):
            text = " ".join(chunk.text[start:end].split())
            if _can_claim(text) and (chunk.key, text) not in seen:
                seen.add((chunk.key, text))
                yield _Sentence(chunk, place, text)


def _can_claim(text: str) -> bool:
    """True for prose that makes a claim, rather than asking, planning or announcing something."""
    prose = _SHORTEST <= len(text) <= _LONGEST and not text.startswith(NO_PROSE)
    return prose and not text.endswith("?") and _NO_CLAIM.search(text) is None


def _nearest(
    sentences: Sequence[_Sentence], vectors: Vectors, nearness: Vector | NDArray[np.float64], most: int
) -> list[tuple[int, int, float]]:
    """Indices and cosines of the best pairs; at most one for any two chunks, since the judge sees their context."""
    used: Counter[int] = Counter()
    together: set[tuple[str, str]] = set()
    of_two: Counter[frozenset[str]] = Counter()
    papers = len({item.chunk.key for item in sentences})
    at_most = max(_OF_TWO, ceil(most / (papers * (papers - 1) / 2)))
    chosen: list[tuple[int, int, float]] = []
    for one, other, cosine in _across([item.chunk.key for item in sentences], vectors, nearness):
        if len(chosen) == most:
            break
        first, second = sentences[one], sentences[other]
        chunks = (first.chunk.id, second.chunk.id)
        two = frozenset((first.chunk.key, second.chunk.key))
        repeated = first.text.casefold() == second.text.casefold()  # two versions of a paper, or a quotation
        often = used[one] >= _TIMES or used[other] >= _TIMES or of_two[two] >= at_most
        if repeated or chunks in together or often:
            continue
        used.update((one, other))
        of_two[two] += 1
        together |= {chunks, chunks[::-1]}
        chosen.append((one, other, cosine))
    return chosen


def _across(
    keys: Sequence[str], vectors: Vectors, nearness: Vector | NDArray[np.float64]
) -> Iterator[tuple[int, int, float]]:
    """Pairs of rows of different papers with their cosine, best first by cosine and nearness; ties by index."""
    cosines = np.clip(vectors @ vectors.T, -1.0, 1.0).astype(np.float64)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    papers = np.array([numbers[key] for key in keys])
    ones, others = np.nonzero(np.triu(papers[:, None] != papers[None, :]))
    worth = cosines[ones, others] + _TOPIC * (nearness[ones] + nearness[others])
    for place in np.argsort(-worth, kind="stable"):
        one, other = int(ones[place]), int(others[place])
        yield one, other, float(cosines[one, other])


def _statement(library: Library, sentence: _Sentence) -> Statement:
    spans = sentence_spans(sentence.chunk.text)
    window = spans[max(0, sentence.place - _AROUND) : sentence.place + _AROUND + 1]
    return Statement(sentence.chunk, library.paper(sentence.chunk.key), tuple(window))
