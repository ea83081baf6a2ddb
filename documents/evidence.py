"""Evidence: a finding read from a paper with the exact words that support it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from .types import Chunk


def text_hash(text: str) -> str:
    """The sha256 of a text, used to reuse vectors and to find evidence again."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class EvidenceSpan:
    """A span of a chunk: `chunk.text[start:end] == quote` for the chunk whose text has the hash `chunk_hash`."""

    chunk_id: str
    start: int
    end: int
    quote: str
    page: int | None
    chunk_hash: str

    @classmethod
    def of(cls, chunk: Chunk, start: int, end: int) -> EvidenceSpan:
        """The span sliced from `chunk`, never copied by a model; raises ValueError for an empty span."""
        if not 0 <= start < end <= len(chunk.text):
            raise ValueError(f"span {start}:{end} is not inside chunk {chunk.id} of {len(chunk.text)} characters")
        return cls(chunk.id, start, end, chunk.text[start:end], chunk.page_at(start), text_hash(chunk.text))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One finding of a paper; `chunk.text[start:end] == quote` always holds.

    `id` is the marker by which a writer cites it (`E1`, `E2` ...), stable within a thread; `summary` is the finding in
    one statement. `section` is the section title, which locates the quote if the source has no pages. `combined_score`
    weights both scores, all in 0-1. A finding may be based on non-adjacent sentences, even in neighbouring chunks:
    `more` are the spans after the first run. `need` is the id of the need that it serves, `also` the ids of further
    needs.
    """

    id: str
    chunk_id: str
    key: str
    summary: str
    quote: str
    start: int
    end: int
    vector_score: float
    llm_score: float
    combined_score: float
    source_query: str
    section: str
    page: int | None
    chunk_hash: str
    need: str = ""
    more: tuple[EvidenceSpan, ...] = ()
    also: tuple[str, ...] = ()

    @classmethod
    def of(cls, chunk: Chunk, *, start: int, end: int, **fields: Any) -> Evidence:
        """Evidence whose quote is sliced from `chunk`, never copied by a model; raises ValueError for an empty span."""
        return cls(key=chunk.key, section=chunk.section, **asdict(EvidenceSpan.of(chunk, start, end)), **fields)

    @property
    def chosen(self) -> bool:
        """Whether a person chose it by hand, which gives it all scores in full."""
        return self.vector_score == self.llm_score == self.combined_score == 1

    @property
    def spans(self) -> tuple[EvidenceSpan, ...]:
        """All spans that support the finding, in the order of the paper."""
        first = EvidenceSpan(self.chunk_id, self.start, self.end, self.quote, self.page, self.chunk_hash)
        return (first, *self.more)

    def as_dict(self) -> dict[str, Any]:
        """The evidence as plain data for graph state."""
        return {**asdict(self), "more": [asdict(span) for span in self.more], "also": list(self.also)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Evidence:
        """Restore evidence from graph state, as stored by `as_dict`."""
        more = tuple(EvidenceSpan(**span) for span in record["more"])
        return cls(**{**record, "more": more, "also": tuple(record["also"])})
