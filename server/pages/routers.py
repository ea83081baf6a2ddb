"""The routers of all pages."""

from __future__ import annotations

from typing import Final

from . import ask_page, html, library_page, runs_page, settings_page, sign_in_page, write_page

PAGE_ROUTERS: Final = (
    html.router,
    sign_in_page.router,
    ask_page.router,
    library_page.router,
    write_page.router,
    runs_page.router,
    settings_page.router,
)
