"""Citeloom through MCP, with the official client: any agent that speaks MCP does the same.

    python cli.py ingest examples/library --bib examples/library/library.bib
    python examples/over_mcp.py "temperature scaling"

The client starts `citeloom mcp` and talks to it over standard input and output. `search` and `fetch` are the pair that
ChatGPT's connectors need; `search_evidence` gives the words at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

CLI = Path(__file__).resolve().parents[1] / "cli.py"


async def main(query: str) -> None:
    server = StdioServerParameters(command=sys.executable, args=[str(CLI), "mcp"], env=dict(os.environ))
    async with Client(server) as agent:
        tools = (await agent.list_tools()).tools
        print("Tools:", ", ".join(tool.name for tool in tools), file=sys.stderr)
        found = json.loads((await agent.call_tool("search", {"query": query})).content[0].text)
        for result in found["results"][:3]:
            print(f"{result['title']}\n    {result['url']}")
        read = json.loads((await agent.call_tool("fetch", {"id": found["results"][0]["id"]})).content[0].text)
        print(f"\n{read['text']}")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "temperature scaling"))
