"""The provenance of a section's or paper's citations: its searches, the cited passages in full, and their papers.

It is stored with the finished run, so that repeating the command makes the same report without the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..documents import Evidence
from ..documents.paper_names import NO_LINK, zotero_link
from ..documents.plain_text import format_quote
from ..drafts.evidence_sources import sources_for
from ..errors import InputError
from ..stores.library import Library


def provenance(result: Mapping[str, Any], values: Mapping[str, Any], library: Library) -> dict[str, Any]:
    """The searches in order, the `passages` by id of the cited evidence, and the `papers` by key.

    Args:
        result: the section's record.
        values: the run's state, from which the record was made.
        library: provides the texts; blocks.

    `quotes` are those of all evidence as a reader is shown them, with an ellipsis where a sentence is cut. A passage
    that is no longer there is left out: its quote stays in the record.
    """
    evidence = [Evidence.from_dict(record) for record in values.get("evidence", [])]
    cited = {citation["evidence_id"] for citation in result["citations"]}
    sources, _ = sources_for(library, evidence)
    return {
        "searches": [dict(record) for record in values.get("queries", [])],
        "passages": {source.evidence.id: source.text for source in sources if source.evidence.id in cited},
        "quotes": {
            item.id: format_quote(source.text, item.start, item.end) for source in sources for item in [source.evidence]
        },
        "papers": {key: found for key in sorted({item.key for item in evidence}) if (found := _paper(library, key))},
    }


def _paper(library: Library, key: str) -> dict[str, Any]:
    """What the report shows of a paper; empty when it has left the library."""
    try:
        paper = library.paper(key)
    except InputError:
        return {}
    return {
        "title": paper.title,
        "authors": list(paper.authors),
        "year": paper.year,
        "venue": paper.venue,
        "doi": paper.doi,
        **(zotero_link(paper.bibtex) or NO_LINK).as_dict(),
        "ocr_pages": list(paper.ocr_pages),
    }
