"""A passage read in the light of a query, and the exact words that a citation will rest on."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from citeloom.documents.model import Chunk


def text_hash(text: str) -> str:
    """The sha256 of a text, by which vectors are reused and evidence is found again."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of evidence; `chunk.text[start:end] == quote` holds from the moment it is made.

    `id` is the marker a writer cites it by (`E1`, `E2` ...), stable within a thread. `locator` is the section
    title, which places the quote when the source has no pages. `combined_score` weighs both scores, all in 0-1.
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

    @classmethod
    def of(
        cls,
        chunk: Chunk,
        *,
        id: str,
        summary: str,
        start: int,
        end: int,
        vector_score: float,
        llm_score: float,
        combined_score: float,
        source_query: str,
    ) -> Evidence:
        """Evidence whose quote is sliced from `chunk`, never copied by a model; ValueError on an empty span."""
        if not 0 <= start < end <= len(chunk.text):
            raise ValueError(f"span {start}:{end} is not inside chunk {chunk.id} of {len(chunk.text)} characters")
        return cls(
            id=id,
            chunk_id=chunk.id,
            key=chunk.key,
            summary=summary,
            quote=chunk.text[start:end],
            start=start,
            end=end,
            vector_score=vector_score,
            llm_score=llm_score,
            combined_score=combined_score,
            source_query=source_query,
            section=chunk.section,
            page=chunk.page_at(start),
            chunk_hash=text_hash(chunk.text),
        )

    def as_dict(self) -> dict[str, Any]:
        """The plain form that graph state holds."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Evidence:
        """The one place where state becomes a typed value again."""
        return cls(**record)
