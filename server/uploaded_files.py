"""Files that are added through the server: each upload has a folder of its own.

A name from a request only ever becomes the last part of a path, after it was made safe.
"""

from __future__ import annotations

import asyncio
import shutil
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final

from pathvalidate import sanitize_filename

from ..documents.notes import note_stem
from ..ingestion.ingest import remove
from ..ingestion.sources import ENDINGS
from ..stores.library import Library
from ..stores.local.local_uploads import UPLOAD
from ..stores.server_protocols import Uploads
from .problems import ServerError

_LONGEST_NAME: Final = 150  # bytes without the ending
_BIB: Final = ".bib"


def require_upload(upload_id: str) -> None:
    """Raise `ServerError` for an id that is none of an upload."""
    if not UPLOAD.fullmatch(upload_id):
        raise ServerError(404, "There is no such upload.")


def safe_name(given: str) -> str:
    """The last part of a file name without anything that a file system or a terminal could misread; "" if none is left.

    Its ending stays, since it tells how the file is read.
    """
    text = unicodedata.normalize("NFC", given.encode("utf-8", "ignore").decode())
    path = PurePosixPath(PurePosixPath(text.replace("\\", "/")).name)
    ending = path.suffix.lower() if path.suffix.lower() in (*ENDINGS, _BIB) else path.suffix
    stem = path.stem.lstrip(". ").encode()[:_LONGEST_NAME].decode("utf-8", "ignore")
    return sanitize_filename(f"{stem}{ending}", platform="universal") if stem else ""


def reason_to_refuse(name: str, taken: Collection[str]) -> str:
    """Why a file of this name is not stored; empty if it is."""
    if not name:
        return "has no usable name"
    ending = PurePosixPath(name).suffix
    if ending not in (*ENDINGS, _BIB):
        return f"is not a paper ({', '.join(ENDINGS)})"
    if name.casefold() in {other.casefold() for other in taken}:
        return "has the same name as another file of this upload"
    if ending == _BIB and any(other.endswith(_BIB) for other in taken):
        return "is a second .bib file; send one"
    return ""


def store_file(source: BinaryIO, folder: Path, name: str) -> bool:
    """Write a file to the folder of its upload, and return whether it holds anything; blocks.

    Raises `ServerError` with status 507 when it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("xb") as target:
            shutil.copyfileobj(source, target, 2**20)
            return target.tell() > 0
    except OSError as error:
        raise ServerError(507, f"The file cannot be stored ({error.strerror}).", help="Free some space.") from error


def bibliography_of(names: Sequence[str]) -> str | None:
    """The name of the .bib file among these."""
    return next((name for name in names if name.endswith(_BIB)), None)


async def remove_paper(library: Library, key: str, uploads: Uploads) -> None:
    """Remove a paper, and its file if it was uploaded; raises `UnknownPaperError`."""
    paper = await remove(library, key)
    place = uploads.place_of(paper.source)
    if place is not None:
        await asyncio.to_thread(tidy_upload, place[0], library, uploads)


def tidy_upload(upload: str, library: Library, uploads: Uploads) -> None:
    """Delete the files of an upload that belong to no paper; blocks."""
    places = [uploads.place_of(paper.source) for paper in library.papers() if paper.source]
    kept = {place[1] for place in places if place is not None and place[0] == upload}
    stems = {PurePosixPath(name).stem for name in kept} | set(library.records())
    unused = [name for name in uploads.names(upload) if name not in kept and note_stem(Path(name)) not in stems]
    uploads.remove(upload, unused)


def tidy_abandoned(library: Library, active: Collection[str], uploads: Uploads) -> None:
    """Tidy the uploads that no job works on: those of a killed server that are not resumed; blocks."""
    for upload in uploads.idle():
        if upload not in active:
            tidy_upload(upload, library, uploads)


def without_folder(text: str, folder: Path) -> str:
    """A message with the names of uploaded files instead of their paths on the server."""
    return text.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")


def refusal(name: str, reason: str) -> dict[str, Any]:
    """A refused file."""
    return {"name": name, "reason": reason}
