"""Files that are added through the server: each upload has a folder of its own.

A name from a request only ever becomes the last part of a path, after it was made safe.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final

from pathvalidate import sanitize_filename

from ..api.messages import megabytes
from ..api.serving import Session
from ..api.uploading import PAPER_SUFFIXES, UPLOAD_ID, stored_bytes
from .problems import ServerError

_LONGEST_NAME: Final = 150  # bytes without the ending
_BIB: Final = ".bib"


def require_upload(upload_id: str) -> None:
    """Raise `ServerError` if no upload has this id."""
    if not UPLOAD_ID.fullmatch(upload_id):
        raise ServerError(404, "There is no such upload.")


def safe_name(given: str) -> str:
    """The last part of a file name without anything that a file system or a terminal could misread; "" if none is left.

    Its ending stays, since it tells how the file is read.
    """
    text = unicodedata.normalize("NFC", given.encode("utf-8", "ignore").decode())
    path = PurePosixPath(PurePosixPath(text.replace("\\", "/")).name)
    ending = path.suffix.lower() if path.suffix.lower() in (*PAPER_SUFFIXES, _BIB) else path.suffix
    stem = path.stem.lstrip(". ").encode()[:_LONGEST_NAME].decode("utf-8", "ignore")
    return sanitize_filename(f"{stem}{ending}", platform="universal") if stem else ""


def reason_to_refuse(name: str, taken: Collection[str]) -> str:
    """Why a file of this name is not stored; empty if it is."""
    if not name:
        return "has no usable name"
    ending = PurePosixPath(name).suffix
    if ending not in (*PAPER_SUFFIXES, _BIB):
        return f"is not a paper ({', '.join(PAPER_SUFFIXES)})"
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


def require_space(session: Session, receiving: Mapping[str, int]) -> None:
    """Raise `ServerError` with status 507 if uploads that are being received exceed the library's limit; blocks."""
    limit = session.settings.max_library_size
    if limit is None:
        return
    used = stored_bytes(session, without=receiving)
    if used + (adding := sum(receiving.values())) > limit:
        raise ServerError(
            507,
            f"The library's files take {megabytes(used)} of {megabytes(limit)}; these would add {megabytes(adding)}.",
            help="Delete papers, or runs with plots; its operator can raise CITELOOM_MAX_LIBRARY_SIZE.",
        )


def find_bibliography(names: Sequence[str]) -> str | None:
    """The name of the .bib file among these."""
    return next((name for name in names if name.endswith(_BIB)), None)


def without_folder(text: str, folder: Path) -> str:
    """A message with the names of uploaded files instead of their paths on the server."""
    return text.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")


def refusal(name: str, reason: str) -> dict[str, Any]:
    """A refused file."""
    return {"name": name, "reason": reason}
