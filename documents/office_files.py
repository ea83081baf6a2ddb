"""Opens the archives of Word and LibreOffice documents, which may be hostile, and reads their XML parts."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Final

from .safe_files import FileRefusedError, require_regular

MOST_XML: Final = 60_000_000
_MOST_BYTES: Final = 300_000_000
_OLE: Final = b"\xd0\xcf\x11\xe0"  # an encrypted document is a file of the old format
_TEXT: Final = {".docx": "word/document.xml", ".odt": "content.xml"}


def open_office(path: Path, kind: str = ".docx") -> zipfile.ZipFile:
    """Open the archive of a `.docx` or `.odt`; raises `FileRefusedError` with the reason in one line."""
    require_regular(path, _MOST_BYTES)
    with path.open("rb") as opened:
        if opened.read(4) == _OLE:
            raise FileRefusedError("is password-protected, or a .doc; save it as a .docx without a password")
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError):
        raise FileRefusedError(f"is not a whole {kind} (its archive is broken)") from None
    names = archive.namelist()
    reason = "" if _TEXT[kind] in names else f"is not a {kind[1:]} document (it has no {_TEXT[kind]})"
    if "word/vbaProject.bin" in names or any(name.startswith("Basic/") for name in names):
        reason = f"contains macros; save it as a {kind} without them"
    elif sum(entry.file_size for entry in archive.infolist()) > 2 * _MOST_BYTES:
        reason = f"unpacks to more than {2 * _MOST_BYTES // 1_000_000} MB"
    elif kind == ".odt" and b"encryption-data" in read_part(archive, "META-INF/manifest.xml"):
        reason = "is password-protected; save it without a password"
    if reason:
        archive.close()
        raise FileRefusedError(reason)
    return archive


def read_part(archive: zipfile.ZipFile, name: str) -> bytes:
    """A part of the document, empty if there is none; raises `FileRefusedError`."""
    try:
        if archive.getinfo(name).file_size > MOST_XML:
            raise FileRefusedError(f"has more than {MOST_XML // 1_000_000} MB of text")
        with archive.open(name) as part:
            data = part.read(MOST_XML + 1)
    except KeyError:
        return b""
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, NotImplementedError):
        raise FileRefusedError("is not a whole document (its archive is broken)") from None
    if len(data) > MOST_XML or b"<!DOCTYPE" in data[:2_000] or b"<!ENTITY" in data:
        raise FileRefusedError("contains XML that is not accepted (entity declarations, or too much of it)")
    return data
