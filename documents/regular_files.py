"""Reading a file that someone else may have made: its kind and its size are looked at before a byte is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO


class FileRefusedError(Exception):
    """A file that is not read; the message is the reason, in one line."""


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most `most` bytes; raises `FileRefusedError` and OSError."""
    with _opened(path, most) as file:
        data = file.read(most + 1)
    if len(data) > most:  # it grew, or its file system does not tell its size
        raise _too_large(len(data), most)
    return data


def require_regular(path: Path, most: int) -> None:
    """Raise `FileRefusedError` for what is no regular file of at most `most` bytes, and OSError."""
    _opened(path, most).close()


def _opened(path: Path, most: int) -> IO[bytes]:
    # Without waiting: to open a pipe would wait for someone who writes to it.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise FileRefusedError("is no regular file")
        if state.st_size > most:
            raise _too_large(state.st_size, most)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _too_large(size: int, most: int) -> FileRefusedError:
    return FileRefusedError(f"is {size / 1e6:.0f} MB, more than it may be ({most / 1e6:.0f} MB)")
