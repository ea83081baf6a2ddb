"""A section's command that kills itself at the n-th checkpoint that it writes.

    python interrupted_section.py NUMBER SIDE ARGUMENT...     SIDE is "before" or "after" the write

The arguments are those of `cli.py`. A run with fewer checkpoints ends as it would alone.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from citeloom.cli import main


def interrupt(number: int, side: str) -> None:
    """Have the saver kill this process."""
    written = 0
    put = AsyncSqliteSaver.aput

    async def killing(*arguments: Any, **named: Any) -> Any:
        nonlocal written
        written += 1
        if written == number and side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = await put(*arguments, **named)
        if written == number and side == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    AsyncSqliteSaver.aput = killing  # type: ignore[method-assign]


if __name__ == "__main__":
    interrupt(int(sys.argv[1]), sys.argv[2])
    sys.argv = ["cli.py", *sys.argv[3:]]
    main()
