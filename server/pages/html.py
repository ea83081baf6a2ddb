"""Renders the templates. Everything is escaped, and no text can turn the direction of what surrounds it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ...api.messages import counted
from ...api.result_views import (
    DOUBTFUL,
    VERDICTS,
    commonness,
    doi_html,
    reference_html,
    section_html,
    shown_text,
    zotero_html,
)
from .static_files import STATIC

NAVIGATION: Final = (
    ("/", "Ask"),
    ("/library", "Library"),
    ("/write", "Write"),
    ("/runs", "Runs"),
    ("/settings", "Settings"),
)
# Characters that reorder the text after them, also outside of their element in some programs.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def page(request: Request, template: str, context: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """A whole page, or a part of one, from a template."""
    state = getattr(request.app.state, "server", None)
    shared = {"path": request.url.path, "signed_in": state is not None and state.tokens.needed}
    return HTMLResponse(_environment().get_template(template).render({**shared, **context}), status)


def displayed(text: str) -> str:
    """The text without control characters that are invalid in HTML or change the direction of writing."""
    return _TURNING.sub("", shown_text(text))


def markdown(text: str) -> Markup:
    """A text of a paper or a person as HTML, without links and anything live."""
    return section_html(displayed(text), ())


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_packaged),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) or not isinstance(value, str) else displayed(value),
    )
    environment.globals.update(asset=STATIC.address, navigation=NAVIGATION, version=version("citeloom"))
    environment.globals.update(verdicts=VERDICTS, doubtful=DOUBTFUL, commonness=commonness)
    environment.filters.update(
        markdown=markdown, counted=counted, doi=doi_html, reference=reference_html, moment=_moment, zotero=zotero_html
    )
    return environment


def _packaged(name: str) -> str:
    return files("citeloom.server").joinpath("templates", name).read_text(encoding="utf-8")


def _moment(seconds: float) -> Markup:
    """A point in time, which a script shows in the reader's own time zone."""
    at = datetime.fromtimestamp(seconds, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M")
    )
