"""Where the citations of a section or a paper come from: its searches, the cited passages whole, their papers.

Kept with the finished run, so that the command given again makes the same report without a look at the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..documents import Evidence
from ..documents.quote_display import shown_quote
from ..errors import InputError
from ..graph.role_inputs import sources_for
from ..stores.library import Library


def provenance(result: Mapping[str, Any], values: Mapping[str, Any], library: Library) -> dict[str, Any]:
    """`searches` as they were made, `passages` by the id of the cited evidence, `papers` by key.

    Args:
        result: the section's record.
        values: the run's state, which the record was made from.
        library: which is asked for the texts; blocks.

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
            item.id: shown_quote(source.text, item.start, item.end) for source in sources for item in [source.evidence]
        },
        "papers": {key: found for key in sorted({item.key for item in evidence}) if (found := _paper(library, key))},
    }


def _paper(library: Library, key: str) -> dict[str, Any]:
    """What a reader is shown of a paper; empty when it has left the library."""
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
    }
