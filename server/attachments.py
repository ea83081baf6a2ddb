"""Files of results as downloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from fastapi import Response

from ..citations.export.figures import image_type
from ..runs.result_files import ResultFiles

_TYPES: Final = {
    "md": "text/markdown; charset=utf-8",
    "bib": "application/x-bibtex; charset=utf-8",
    "evidence.html": "text/html; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "tex": "application/x-tex; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
# A report opened in the browser runs nothing and loads nothing; its own policy permits only its own style sheet.
_REPORT_POLICY: Final = (
    "sandbox allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)


def file_records(files: Sequence[ResultFiles], base: str) -> list[dict[str, Any]]:
    """The files of a result with their address; the first are those as written, others the user's version."""
    return [
        {
            "name": name,
            "format": suffix,
            "version": "edited" if place else "original",
            "media_type": media_type(suffix),
            "href": f"{base}/{quote(name)}",
        }
        for place, result in enumerate(files)
        for suffix, name in zip(result.suffixes, result.names(), strict=True)
    ]


def media_type(suffix: str) -> str:
    """The type of a file by what follows the stem of its name."""
    return _TYPES.get(suffix) or image_type(suffix) or "application/octet-stream"


def attachment(name: str, content: bytes, suffix: str, *, inline: bool = False) -> Response:
    """A file to be stored; `inline` shows an evidence report in the browser instead."""
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
    if inline and suffix == "evidence.html":
        headers = {"Content-Disposition": "inline", "Content-Security-Policy": _REPORT_POLICY}
    return Response(content, media_type=media_type(suffix), headers=headers)
