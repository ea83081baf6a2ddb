"""The stages of an ingest that need no store, run here paper by paper, or on Ray (`ray_executor.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..documents import Chunk
from ..documents.chunking import CountTokens, chunk_paper
from ..documents.markdown import ParsedPaper
from ..documents.sandbox import raise_if_stopped
from ..models.embeddings.protocol import EmbeddingModel, Vector
from .reading import ParseFiles, parse_files

Chunking = tuple[int, int]  # target size and overlap of chunks, in tokens
Texts = Mapping[str, str]  # by their hashes
# Splits papers, given with their keys, in order; for a refused paper, the reason takes the place of its chunks.
SplitPapers = Callable[[Sequence[tuple[str, ParsedPaper]], Chunking], Iterable[tuple[Chunk, ...] | str]]
# Embeds texts and reports how many more are done; the result lacks texts that could not be embedded.
EmbedTexts = Callable[[Texts, Callable[[int], None]], Awaitable[Mapping[str, Vector]]]


@dataclass(frozen=True, slots=True)
class IngestExecutor:
    """How an ingest parses, splits and embeds; `texts_at_once` is the number of texts worth embedding per call."""

    parse: ParseFiles
    split: SplitPapers
    embed: EmbedTexts
    texts_at_once: int


def local_executor(embedding: EmbeddingModel) -> IngestExecutor:
    return IngestExecutor(
        parse_files,
        partial(split_papers, embedding.count_tokens_each),
        partial(embed_texts, embedding),
        embedding.at_once,
    )


def split_papers(
    count_tokens: CountTokens, papers: Sequence[tuple[str, ParsedPaper]], chunking: Chunking
) -> Iterator[tuple[Chunk, ...]]:
    """Split one paper after the other; one without searchable text has no chunks."""
    target, overlap = chunking
    for key, parsed in papers:
        raise_if_stopped()
        yield tuple(chunk_paper(key, parsed, count_tokens, target=target, overlap=overlap))


async def embed_texts(embedding: EmbeddingModel, texts: Texts, on_done: Callable[[int], None]) -> Mapping[str, Vector]:
    """The vectors of texts, by their hashes; raises any error of the embedding model."""
    rows = await embedding.embed_documents(list(texts.values()), on_done)
    return dict(zip(texts, rows, strict=True))
