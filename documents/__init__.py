"""Papers, chunks and evidence, and the parsing of source files into them."""

from .types import (
    Category as Category,
    Chunk as Chunk,
    Evidence as Evidence,
    EvidenceSpan as EvidenceSpan,
    Paper as Paper,
    Section as Section,
    chunk_id as chunk_id,
    entry_labels as entry_labels,
    same_section as same_section,
    split_chunk_id as split_chunk_id,
    text_hash as text_hash,
)
