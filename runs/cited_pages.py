"""Images of the PDF pages that the citations of a result rest on, for its evidence report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..documents.pdf.drawing import draw_page_apart
from ..documents.safe_files import FileRefusedError
from ..plurals import counted
from ..stores.library import Library, UnknownPaperError

_WIDTH: Final = 800  # pixels
_MOST_BYTES: Final = 16_000_000  # of all images, so that a mail server still takes the report
_MOST_PAGES: Final = 120
_NAMED: Final = 3  # pages in a notice
_QUOTED: Final = 1500  # characters of a quote that are looked for on its page


@dataclass(frozen=True, slots=True)
class CitedPages:
    """PNG images by evidence id, with the quote marked, and a line on each reason why others are missing."""

    images: Mapping[str, bytes] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def cited_pages(record: Mapping[str, Any], library: Library, file_of: Callable[[str], Path] = Path) -> CitedPages:
    """Draw the pages, at most 120 of together 16 MB; `file_of` finds the file of a paper by its source. Blocks."""
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
    notices = (
        f"{counted(len(places), 'page image')} left out of the report ({why}): {_named(places)}."
        for why, places in refused.items()
    )
    return CitedPages(found, tuple(notices))


def _named(places: Sequence[str]) -> str:
    unique = list(dict.fromkeys(places))
    return "; ".join(unique[:_NAMED]) + (f" and {len(unique) - _NAMED} more" if len(unique) > _NAMED else "")


def _places(
    record: Mapping[str, Any], library: Library, file_of: Callable[[str], Path]
) -> Iterator[tuple[str, Path, int, str]]:
    """File, page and quote of each piece of evidence that is cited from a PDF of the library, each once."""
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
