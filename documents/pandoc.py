"""Runs pandoc sandboxed, with limits on memory and time and a clean environment.

`--sandbox` keeps documents from accessing files and the network, but not citation styles: citeproc resolves a style's
parent outside of it. So styles are validated before they are passed to pandoc (`citations/csl_styles.py`), and any
remaining request goes to a proxy address where nothing listens.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from .subprocesses import OutOfTimeError, run

_HEAP_EXHAUSTED: Final = 251  # exit code of GHC's runtime
_SIGNALLED: Final = 128
# Excludes the user's keys, and variables that change the limits of pandoc's runtime.
_PASSED_ON = re.compile(r"HOME|PATH|LANG|LC_\w+|TMPDIR|TEMP|TMP|XDG_\w+|PYPANDOC_PANDOC|SYSTEMROOT|APPDATA|USERPROFILE")
_NOBODY: Final = "http://127.0.0.1:9"
_NO_NET: Final = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _NOBODY)
_MESSAGE: Final = 200  # characters


class PandocError(RuntimeError):
    """pandoc rejected its input or was stopped at a limit; the message is the reason in one line."""


class PandocLimitError(PandocError):
    """The input needs more time or memory than allowed."""


def pandoc(arguments: Sequence[str], *, seconds: float, megabytes: int) -> bytes:
    """Run pandoc and return its standard output.

    Args:
        arguments: all arguments except those for sandbox and limits.
        seconds: the timeout after which it is killed.
        megabytes: the memory limit.

    Raises `PandocError`, and OSError if it cannot be started. It is killed if the task that called it through
    `subprocesses.in_thread` is cancelled.
    """
    # Imported lazily: the import looks for the binary, which most commands do not need.
    import pypandoc

    command = [pypandoc.get_pandoc_path(), "+RTS", f"-M{megabytes}m", "--RTS", "--sandbox", *arguments]
    try:
        ended = run(command, seconds=seconds, env=_environment())
    except OutOfTimeError:
        raise PandocLimitError(f"was not converted within {seconds:g} seconds") from None
    if ended.code == 0:
        return ended.output
    if ended.code == _HEAP_EXHAUSTED:
        raise PandocLimitError(f"takes more than {megabytes} MB of memory to convert")
    if ended.code > _SIGNALLED:
        raise PandocLimitError("exceeds the limits of time or output; not converted")
    raise PandocError(" ".join(ended.errors.split())[:_MESSAGE].rstrip(".") or f"pandoc ended with {ended.code}")


def _environment() -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    return passed | _NO_NET
