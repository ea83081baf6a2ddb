"""How uvicorn serves the application."""

from __future__ import annotations

from typing import Final

import uvicorn
from fastapi import FastAPI

_CONNECTIONS: Final = 1024  # open at once
_GRACE: Final = 5  # seconds for open requests at the end; runs are paused


def uvicorn_config(app: FastAPI) -> uvicorn.Config:
    """The configuration for an application whose socket is bound already."""
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # what is asked is nobody else's business
        server_header=False,
        proxy_headers=False,  # or any program of this machine could claim another client's address
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
    )
