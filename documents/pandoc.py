"""The one way in which pandoc is run: sandboxed, within limits of memory and time, with an environment of its own.

`--sandbox` keeps what a document says from files and the net, but not what a citation style says: citeproc looks for
the parent of a style outside of it. So a style is checked before pandoc is shown it (`citations/csl_styles.py`), and
any address that is asked for all the same ends at a proxy that nobody listens at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from .subprocesses import OutOfTimeError, run

_HEAP_EXHAUSTED: Final = 251  # exit code of GHC's runtime
_SIGNALLED: Final = 128
# No key of the user's, and nothing that changes how pandoc's runtime is limited.
_PASSED_ON = re.compile(r"HOME|PATH|LANG|LC_\w+|TMPDIR|TEMP|TMP|XDG_\w+|PYPANDOC_PANDOC|SYSTEMROOT|APPDATA|USERPROFILE")
_NOBODY: Final = "http://127.0.0.1:9"
_NO_NET: Final = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _NOBODY)
_MESSAGE: Final = 200  # characters


class PandocError(RuntimeError):
    """pandoc refused what it was given, or was stopped at a limit; the message is the reason, in one line."""


class PandocLimitError(PandocError):
    """What pandoc was given takes more time or memory than it may."""


def pandoc(arguments: Sequence[str], *, seconds: float, megabytes: int) -> bytes:
    """What pandoc writes to its standard output.

    Args:
        arguments: all but those of the sandbox and the limits.
        seconds: after which it is killed.
        megabytes: of memory that it may take.

    Raises `PandocError`, and OSError when it cannot be started. Killed when the task is cancelled that
    `processes.in_thread` runs it for.
    """
    # Imported here: it looks for the binary, and most commands need none.
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
        raise PandocLimitError("takes more time or output than it may to convert")
    raise PandocError(" ".join(ended.errors.split())[:_MESSAGE].rstrip(".") or f"pandoc ended with {ended.code}")


def _environment() -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    return passed | _NO_NET
