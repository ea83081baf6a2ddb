"""Replaces a file in one step, so that a kill or a full disk leaves either the old content or the new."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Replace the file at `path` atomically and durably; raises OSError. A link is replaced, not its target.

    Only its owner can read it if it is `private`.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        mode = 0o600 if private else 0o666  # less what the process masks
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
