"""Reads untrusted files within limits, and replaces files in one step."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import IO


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
