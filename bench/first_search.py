"""Prints the seconds of the first search of a process: `python -m bench.first_search ours|bare ...`.

Our side loads what it needs on the way: Chroma, the embedder's weights, LangChain and the HTTP client. The bare client
opens its 20 connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from bench.bare import BareClient
from bench.evidence import AT_ONCE, search, settings_for
from citeloom.graph.session import open_session
from citeloom.stores.folder_home import FolderHome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("who", choices=("ours", "bare"))
    parser.add_argument("--url", required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--asked", type=Path, required=True, help="JSON file with the queries and the requests")
    given = parser.parse_args()
    asked = json.loads(given.asked.read_text(encoding="utf-8"))

    async def ours() -> float:
        with open_session(settings_for(given.url, AT_ONCE), FolderHome(given.home)) as bench:
            return await search(bench, asked["queries"])

    async def bare() -> float:
        async with BareClient(given.url, AT_ONCE) as client:
            return await client.walk(asked["stages"])

    print(asyncio.run(ours() if given.who == "ours" else bare()))


if __name__ == "__main__":
    main()
