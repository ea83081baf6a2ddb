"""Papers, chunks and evidence, and the parsing of source files into them."""

from .evidence import Evidence as Evidence, EvidenceSpan as EvidenceSpan, text_hash as text_hash
from .types import (
    Category as Category,
    Chunk as Chunk,
    Paper as Paper,
    Section as Section,
    chunk_id as chunk_id,
    same_section as same_section,
    split_chunk_id as split_chunk_id,
)
