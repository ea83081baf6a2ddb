"""Reads untrusted files within limits, also the archives of Word and LibreOffice, and replaces files in one step."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import zipfile
import zlib
from pathlib import Path
from typing import IO, Final


class FileRefusedError(Exception):
    """A file was refused and not read; the message is the reason in one line."""


def read_regular(path: Path, most: int) -> bytes:
    """Read a regular file of at most `most` bytes; raises `FileRefusedError` and OSError."""
    with _open_regular(path, most) as file:
        data = file.read(most + 1)
    if len(data) > most:  # it grew, or its file system does not report its size
        raise _too_large(len(data), most)
    return data


def require_regular(path: Path, most: int) -> None:
    """Raise `FileRefusedError` unless it is a regular file of at most `most` bytes; also raises OSError."""
    _open_regular(path, most).close()


def _open_regular(path: Path, most: int) -> IO[bytes]:
    # Non-blocking, since opening a pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise FileRefusedError("is not a regular file")
        if state.st_size > most:
            raise _too_large(state.st_size, most)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _too_large(size: int, most: int) -> FileRefusedError:
    return FileRefusedError(f"is {size / 1e6:.0f} MB, more than the limit of {most / 1e6:.0f} MB")


def hash_regular_file(file: Path) -> str | None:
    """The sha256 of a file's content; None for links, non-files and unreadable files."""
    if file.is_symlink() or not file.is_file():
        return None
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Replace a file (or a link itself) atomically and durably, readable only by us if `private`; raises OSError."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        mode = 0o600 if private else 0o666  # minus the process's umask
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


MOST_XML: Final = 60_000_000
_MOST_ARCHIVE: Final = 300_000_000
_OLE: Final = b"\xd0\xcf\x11\xe0"  # an encrypted document is a file of the old format
MAIN_PARTS: Final = {".docx": "word/document.xml", ".odt": "content.xml"}


def open_office(path: Path, kind: str = ".docx") -> zipfile.ZipFile:
    """Open the archive of a `.docx` or `.odt`; raises `FileRefusedError` with the reason in one line."""
    require_regular(path, _MOST_ARCHIVE)
    with path.open("rb") as opened:
        if opened.read(4) == _OLE:
            raise FileRefusedError("is password-protected, or a .doc; save it as a .docx without a password")
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError):
        raise FileRefusedError(f"is not a whole {kind} (its archive is broken)") from None
    names = archive.namelist()
    reason = "" if MAIN_PARTS[kind] in names else f"is not a {kind[1:]} document (it has no {MAIN_PARTS[kind]})"
    if "word/vbaProject.bin" in names or any(name.startswith("Basic/") for name in names):
        reason = f"contains macros; save it as a {kind} without them"
    elif sum(entry.file_size for entry in archive.infolist()) > 2 * _MOST_ARCHIVE:
        reason = f"unpacks to more than {2 * _MOST_ARCHIVE // 1_000_000} MB"
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
