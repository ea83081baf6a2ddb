"""Replaces a file in one step, so that a kill or a full disk leaves either the old content or the new."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file at `path` atomically and durably; raises OSError. A link is replaced, not its target."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
