"""The fake endpoint in a separate process, so that it never waits for the client that is being timed.

Every chat request is answered after the delay. The agent requests the two searches of `SEARCHES`, in one turn or in
two, and then stops; the writer cites eight sources; readers and judge answer according to their schema.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.librarian import Librarian
from tests.support.openai_server import Behaviour, FakeOpenAI
from tests.support.protocol_answers import envelope, markers

ROOT = Path(__file__).resolve().parent.parent
SEARCHES = (
    "limits of the method when little data is available",
    "earlier comparisons on the same kind of task",
)
CITED = 8


def scripted(together: bool) -> Behaviour:
    """Answer a section's requests; both searches are in one turn if `together`, else in two."""

    def answer(body: dict[str, Any]) -> dict[str, Any] | None:
        if body.get("response_format") or "input" in body:
            return None
        if not body.get("tools"):
            return envelope(body, content=_section(markers(body)[:CITED]))
        asked = sum(len(message.get("tool_calls") or ()) for message in body["messages"])
        wanted = SEARCHES[asked:] if together else SEARCHES[asked : asked + 1]
        if not wanted:
            return envelope(body, content="Nothing more to search for.")
        calls = [
            {
                "id": f"call_{asked + place}",
                "type": "function",
                "function": {"name": "search_evidence", "arguments": json.dumps({"query": query})},
            }
            for place, query in enumerate(wanted)
        ]
        return envelope(body, tool_calls=calls)

    return answer


def _section(cited: list[str]) -> str:
    lines = [f"What was measured agrees with what others have reported before in part {marker}." for marker in cited]
    half = len(lines) // 2
    return " ".join(lines[:half]) + "\n\n" + " ".join(lines[half:])


@contextmanager
def serving(delay: float, *, together: bool = True, librarian: bool = False, log: Path | None = None) -> Iterator[str]:
    """The base URL of a server that runs until the end; `log` gets a line for each request and answer.

    With `librarian`, `tests/support/librarian.py` answers questions instead of `scripted` answering a section's
    requests.
    """
    command = [sys.executable, "-m", "bench.server", "--delay", str(delay)]
    command += ["--librarian"] if librarian else []
    command += [] if together else ["--two-turns"]
    command += [] if log is None else ["--log", str(log)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()  # on SIGTERM it would wait for keep-alive connections
        process.wait()


def stages(log: Path) -> list[list[dict[str, Any]]]:
    """The request bodies that a server received, in stages: concurrent requests of one kind.

    The server must have used its delay, so that concurrent requests overlap.
    """
    asked = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    found: list[list[dict[str, Any]]] = []
    before: object = None
    under_way = 0
    for record in asked:
        if record["event"] != "asked":
            under_way -= 1
            continue
        kind = (bool(record["body"].get("tools")), record["body"].get("response_format"))
        if kind != before or not under_way:
            found.append([])
        found[-1].append(record["body"])
        before = kind
        under_way += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--delay", type=float, default=0.1)
    parser.add_argument("--two-turns", action="store_true")
    parser.add_argument("--librarian", action="store_true")
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    behaviour: Behaviour = Librarian() if given.librarian else scripted(not given.two_turns)
    server = FakeOpenAI(delay=given.delay, behaviour=behaviour, log=given.log)
    print(server.base_url, flush=True)
    server.serve_here()


if __name__ == "__main__":
    main()
