"""Images for an evidence report: the cited PDF pages, and the figures whose captions are cited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..citations.export.evidence_report import ReportFigure
from ..documents.pdf.drawing import draw_page_apart
from ..documents.safe_files import FileRefusedError
from ..plurals import counted
from ..stores.library import Library, UnknownPaperError
from ..tools.paper_search import find_cited_figures

_WIDTH: Final = 800  # pixels
_MOST_BYTES: Final = 16_000_000  # for all images, so that mail servers accept the report
_MOST_PAGES: Final = 120
_NAMED: Final = 3  # pages to name
_QUOTED: Final = 1500  # characters of a quote to search for on its page


@dataclass(frozen=True, slots=True)
class CitedPages:
    """PNG images by evidence id, with the quote highlighted, and one line per reason for missing images."""

    images: Mapping[str, bytes] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def cited_pages(record: Mapping[str, Any], library: Library, file_of: Callable[[str], Path] = Path) -> CitedPages:
    """Draw pages, at most 120 and 16 MB in total; `file_of` finds a paper's file by its source. Blocks."""
    found: dict[str, bytes] = {}
    refused: dict[str, list[str]] = {}
    size = 0
    for identifier, path, page, quote in _places(record, library, file_of):
        place = f"{path.name}, page {page}"
        if len(found) == _MOST_PAGES or size > _MOST_BYTES:
            refused.setdefault("the report would become too large", []).append(place)
            continue
        try:
            found[identifier] = draw_page_apart(path, page, words=quote, width=_WIDTH)
            size += len(found[identifier])
        except FileRefusedError as error:
            refused.setdefault(str(error), []).append(place)
    notices = []
    for why, places in refused.items():
        unique = list(dict.fromkeys(places))
        more = f" and {len(unique) - _NAMED} more" if len(unique) > _NAMED else ""
        left_out = f"{counted(len(places), 'page image')} left out of the report ({why})"
        notices.append(f"{left_out}: {'; '.join(unique[:_NAMED])}{more}.")
    return CitedPages(found, tuple(notices))


def _places(
    record: Mapping[str, Any], library: Library, file_of: Callable[[str], Path]
) -> Iterator[tuple[str, Path, int, str]]:
    """File, page and quote of the evidence cited from PDFs in the library, without repeats."""
    done: set[str] = set()
    for citation in record["citations"]:
        identifier = citation["evidence_id"]
        if citation["page"] is None or identifier in done:
            continue
        done.add(identifier)
        try:
            path = Path(library.paper(citation["key"]).source)
        except UnknownPaperError:
            continue
        if path.suffix.lower() == ".pdf":
            yield identifier, file_of(str(path)), citation["page"], citation["quote"][:_QUOTED]


_LARGEST_FIGURE: Final = 500_000  # per image
_MOST_FIGURE_BYTES: Final = 5_000_000


def report_figures(record: Mapping[str, Any], library: Library) -> dict[str, ReportFigure]:
    """Figures by evidence id; omits images over 500 kB each or 5 MB in total. Blocks."""
    times = Counter(citation["evidence_id"] for citation in record["citations"])
    evidence = {cited["evidence_id"]: {**cited, "id": cited["evidence_id"]} for cited in record["citations"]}
    left = _MOST_FIGURE_BYTES
    shown: dict[str, ReportFigure] = {}
    for identifier, figure in find_cited_figures(library, evidence.values()).items():
        content = library.figure_image(figure) or b""
        if len(content) > min(_LARGEST_FIGURE, left // times[identifier]):
            content = b""
        left -= len(content) * times[identifier]
        shown[identifier] = ReportFigure(
            figure.name, content, figure.media_type, figure.description, figure.described_by
        )
    return shown
