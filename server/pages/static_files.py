"""Style sheet and scripts, each under an address that changes with the content of all of them.

Modules import each other by relative address, so one digest stands for all: a browser keeps them for good and never
mixes two versions.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Response

from ..problems import ServerError

_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOR_GOOD: Final = "public, max-age=31536000, immutable"


class StaticFiles:
    """The packaged files, read once: a request can name none but these."""

    def __init__(self) -> None:
        folder = files("citeloom.server").joinpath("static")
        named = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}
        self.contents = dict(sorted(named.items()))
        parts = [part for name, content in self.contents.items() for part in (name.encode(), content)]
        self.digest = sha256(b"\0".join(parts)).hexdigest()[:16]

    def address(self, name: str) -> str:
        """Where a browser finds a file; raises KeyError for one that is not packaged."""
        return f"/static/{self.digest}/{name}" if name in self.contents else self._missing(name)

    def _missing(self, name: str) -> str:
        raise KeyError(name)


STATIC: Final = StaticFiles()
router = APIRouter(include_in_schema=False)


@router.get("/static/{digest}/{name}")
def static_file(digest: str, name: str) -> Response:
    """One file; a page of an earlier version gets the present one, which it must not keep."""
    content = STATIC.contents.get(name)
    if content is None:
        raise ServerError(404, "There is no such file.")
    kept = _FOR_GOOD if digest == STATIC.digest else "no-cache"
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers={"Cache-Control": kept})


@router.get("/favicon.ico")
def icon() -> Response:
    """The icon that browsers ask for without being asked to."""
    return static_file(STATIC.digest, "icon.svg")
