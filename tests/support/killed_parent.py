"""Run examples/embed_as_subgraph.py and end it with SIGKILL as soon as it emits a given event.

    python killed_parent.py EXP CHECKPOINTS THREAD [KILL_AT]

Prints each event as a JSON line [kind, text], and the paper as the last one. KILL_AT is a prefix of "kind: text"; the
kill happens in the loop that receives the events, while the node that emitted it is still running.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sys
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "embed_as_subgraph.py"


async def main(exp: str, checkpoints: str, thread: str, kill_at: str | None = None) -> None:
    spec = importlib.util.spec_from_file_location("embed_as_subgraph", EXAMPLE)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example
    spec.loader.exec_module(example)

    def tell(kind: str, text: str) -> None:
        print(json.dumps([kind, text]), flush=True)  # noqa: T201
        if kill_at is not None and f"{kind}: {text}".startswith(kill_at):
            os.kill(os.getpid(), signal.SIGKILL)

    experiment = json.loads(Path(exp).read_text(encoding="utf-8"))
    async with AsyncSqliteSaver.from_conn_string(checkpoints) as saver:
        agent = example.writing_agent().compile(checkpointer=saver)
        paper = await example.run(agent, thread, experiment, tell)
    print(json.dumps(["paper", paper]), flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
