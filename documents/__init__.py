"""Papers, chunks and evidence, and the parsing of source files into them."""

from .evidence import Evidence, EvidenceSpan, text_hash
from .types import Category, Chunk, Paper, Section, chunk_id, same_section, split_chunk_id

__all__ = [
    "Category",
    "Chunk",
    "Evidence",
    "EvidenceSpan",
    "Paper",
    "Section",
    "chunk_id",
    "same_section",
    "split_chunk_id",
    "text_hash",
]
