"""Opens a paper's file with the system's default program."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

from ...api.messages import command
from .input import on_terminal

# A program that fails does so at once; one that is still there shows the file.
_PATIENCE = 3.0  # seconds
_OPENERS = {"darwin": "open", "win32": "explorer"}


def opener() -> str | None:
    """The system's default opener; None without one or without a display."""
    name = _OPENERS.get(sys.platform, "xdg-open")
    if name == "xdg-open" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None  # it would start a browser of the terminal over the shell
    return shutil.which(name)


async def open_file(source: str) -> str:
    """Open the file, or report its path in a pipe; returns one line for the user."""
    path = await asyncio.to_thread(Path(source).absolute)  # begins with no hyphen: it cannot be taken for an option
    if not await asyncio.to_thread(path.is_file):
        return f"Its file is gone: {source}. Its indexed text: {command('papers show KEY --text')}"
    program = opener() if on_terminal() else None
    if program is None:
        return f"File: {source}"
    quiet = asyncio.subprocess.DEVNULL
    try:
        started = await asyncio.create_subprocess_exec(
            program, str(path), stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )
    except OSError as error:
        return f"{program} cannot be started ({error.strerror}). File: {source}"
    try:
        async with asyncio.timeout(_PATIENCE):
            code = await started.wait()
    except TimeoutError:
        code = 0
    # explorer ends with 1 whatever it did.
    if code and sys.platform != "win32":
        return f"{program} could not open it (exit code {code}). File: {source}"
    return f"Opened with {program}: {source}"
