"""PDFs of papers and images of their pages. Separate, since listing papers needs no PDF reader."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from ..documents.pdf.drawing import MAX_BYTES, MAX_WORDS as MAX_WORDS, draw_page_apart
from ..documents.safe_files import FileRefusedError as FileRefusedError, require_regular
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..graph.session import Session
from ..stores.backends import backend_of

_PDF_HEAD: Final = 1024  # search `%PDF` in this many bytes


class MissingPdfError(InputError):
    """A paper has no PDF, or none that can be read."""

    default_help = "Add the paper again."


async def apaper_pdf(session: Session, key: str) -> Path:
    """Return the PDF of a paper; raises `UnknownPaperError`, and `MissingPdfError` if it has none or it is gone."""
    return await asyncio.to_thread(_paper_pdf, session, key)


def _paper_pdf(session: Session, key: str) -> Path:
    source = session.library.paper(key).source
    if Path(source).suffix.lower() != ".pdf":
        raise MissingPdfError(f"Paper {key} is not a PDF.", help="")
    path = backend_of(session.home).uploads().file(source)
    try:
        require_regular(path, MAX_BYTES)
        with path.open("rb") as file:
            is_pdf = b"%PDF-" in file.read(_PDF_HEAD)
    except (OSError, FileRefusedError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingPdfError(f"The PDF of {key} cannot be read ({reason}).") from error
    if not is_pdf:
        raise MissingPdfError(f"The file of {key} is not a PDF any more.")
    return path


async def apage_image(session: Session, key: str, number: int, *, words: str = "", width: int = 1000) -> bytes:
    """Return a page of a paper's PDF as a PNG, with these words highlighted.

    Raises `UnknownPaperError`, `MissingPdfError`, and `FileRefusedError` saying why it cannot be drawn.
    """
    path = await apaper_pdf(session, key)
    return await in_thread(draw_page_apart, path, number, words=words, width=width)
