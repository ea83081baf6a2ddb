"""Evidence and sources made by hand."""

from __future__ import annotations

from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.roles.protocols import Source


def make_source(
    id: str,
    key: str = "himmelstein2017systematic",
    families: tuple[str, ...] = ("Himmelstein", "Lizee"),
    *,
    year: int = 2017,
    page: int | None = None,
    section: str = "Results",
) -> Source:
    text = "Node degree explains most of the edges. It is a strong baseline."
    chunk = Chunk(f"{key}:00004", key, 4, text, section, "", Category.EVALUATION, 1, page, 0, len(text), 14)
    evidence = Evidence.of(
        chunk,
        id=id,
        summary="Degree explains most edges.",
        start=0,
        end=39,
        vector_score=0.7,
        llm_score=0.8,
        combined_score=0.76,
        source_query="node degree",
    )
    paper = Paper(key, "On degree", tuple(f"Ada {name}" for name in families), year, family_names=families)
    return Source(evidence, paper, text)
