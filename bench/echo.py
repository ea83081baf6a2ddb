"""A bare FastAPI application that streams the events of a file at once: what any server of these events costs."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from sse_starlette import EventSourceResponse, ServerSentEvent


def echo(events: list[tuple[str, str]]) -> FastAPI:
    """Build the application; each event is a name and its data."""
    app = FastAPI()

    @app.post("/echo")
    async def stream() -> EventSourceResponse:
        async def replay() -> AsyncGenerator[ServerSentEvent, None]:
            for place, (name, data) in enumerate(events):
                yield ServerSentEvent(data, event=name, id=str(place), sep="\n")

        return EventSourceResponse(replay())

    return app


if __name__ == "__main__":
    recorded = [(name, data) for name, data in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))]
    uvicorn.run(echo(recorded), port=int(sys.argv[2]), log_level="warning")
