"""Figures for an evidence report: those whose caption or rows its citations rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from ..citations.export.evidence_report import ReportFigure
from ..documents.figures import PaperFigure
from ..stores.library import Library
from ..tools.paper_records import find_cited_figures

_MOST_BYTES: Final = 500_000  # of one image
_MOST_IN_ALL: Final = 5_000_000


def report_figures(record: Mapping[str, Any], library: Library) -> dict[str, ReportFigure]:
    """The figures by evidence id; images are left out beyond 500 kB each and 5 MB in all. Blocks."""
    times = Counter(citation["evidence_id"] for citation in record["citations"])
    evidence = {
        citation["evidence_id"]: {**citation, "id": citation["evidence_id"]} for citation in record["citations"]
    }
    left = _MOST_IN_ALL
    shown: dict[str, ReportFigure] = {}
    for identifier, figure in find_cited_figures(library, evidence.values()).items():
        content = library.figure_image(figure) or b""
        if len(content) > min(_MOST_BYTES, left // times[identifier]):
            content = b""
        left -= len(content) * times[identifier]
        shown[identifier] = _shown(figure, content)
    return shown


def _shown(figure: PaperFigure, content: bytes) -> ReportFigure:
    return ReportFigure(figure.name, content, figure.media_type, figure.description, figure.described_by)
