"""Shared by all pages: templates, style sheet, scripts, and error pages.

Everything in a template is escaped, and no text can change the direction of its surroundings. Scripts import each other
by relative address, so all static files share one digest: browsers cache them forever and never mix versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ...api import messages, run_texts
from ...documents.plain_text import plain_text
from ..access import caller
from ..problems import MEDIA_TYPE, ServerError

_OPENING: Final = 400  # characters
_CUT_OFF: Final = re.compile(r"(?<!\w)\*\*(?=\w)|(?<=\S)\*\*(?!\w)")  # bold type that begins or ends outside the words
_STOPS: Final = re.compile(r"[,;:.)\]]{1,2}(?=\s|$)")  # end of the preceding sentence
# Characters that reorder the text after them, in some programs even outside their element.
_TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_TYPES: Final = {"css": "text/css", "js": "text/javascript", "mjs": "text/javascript", "svg": "image/svg+xml"}
_PDFJS: Final = Path(__file__).parents[1] / "static" / "pdfjs"
PDFJS_ADDRESS: Final = "/static/pdfjs/6.5.438/"
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_NO_PAGES: Final = ("/api/", "/v1/", "/mcp")

Handler = Callable[[Request, Exception], Awaitable[Response]]
router = APIRouter(include_in_schema=False)


class StaticFiles:
    """The packaged files, read once; nothing else can be requested."""

    def __init__(self) -> None:
        folder = files("citeloom.server").joinpath("static")
        named = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}
        self.contents = dict(sorted(named.items()))
        parts = [part for name, content in self.contents.items() for part in (name.encode(), content)]
        self.digest = sha256(b"\0".join(parts)).hexdigest()[:16]

    def address(self, name: str) -> str:
        if name not in self.contents:
            raise KeyError(name)
        return f"/static/{self.digest}/{name}"


STATIC: Final = StaticFiles()


def page(request: Request, template: str, context: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """Render a page or part of one from a template."""
    state, people = request.app.state.server, request.app.state.people
    who = caller.get()
    shared = {
        "path": request.url.path,
        "signed_in": who is not None or (state is not None and state.tokens.needed),
        "who": who.person.name if who is not None else "",
        "group": people if people.in_use else None,
        "owner": "",  # who shares the page's text with the reader
        "may_set_models": who is None or "admin" in who.rights,
        "reads_only": who is not None and "write" not in who.rights,
    }
    return HTMLResponse(_environment().get_template(template).render({**shared, **context}), status)


def part(request: Request, template: str, context: Mapping[str, Any]) -> HTMLResponse:
    """Render a fragment if a script asks for it, else a full page with it."""
    alone = "x-part" not in request.headers
    return page(request, "part_alone.html" if alone else template, {**context, "part": template})


def strip_controls(text: str) -> str:
    """Remove control characters that are invalid in HTML or change text direction."""
    return _TURNING.sub("", run_texts.shown_text(text))


def markdown(text: str) -> Markup:
    """Render markdown as HTML, without links or active content."""
    return without_styles(run_texts.section_html(strip_controls(text), ()))


def without_markup(words: str) -> str:
    """Remove Markdown markup from words of a text, line by line, keeping a blank at either end of a line."""

    def plain(line: str) -> str:
        shown = _CUT_OFF.sub("", plain_text(line))
        return f"{' ' * line[:1].isspace()}{shown}{' ' * (line.strip() != '' and line[-1:].isspace())}"

    stops = _STOPS.match(words)
    opening = stops[0] if stops else ""
    return opening + "\n".join(map(plain, words[len(opening) :].split("\n")))


def opening(passage: str) -> str:
    """The first sentences of a passage, about 400 characters, to be marked where it stands."""
    return passage[: next((end for _, end in run_texts.sentence_spans(passage) if end >= _OPENING), len(passage))]


def without_styles(html: Markup) -> Markup:
    """Replace the styles of aligned columns in rendered Markdown by classes, since the page's policy blocks styles."""
    return Markup(html.replace(' style="text-align:', ' class="align-'))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    own = files("citeloom.server").joinpath("templates")

    def load(name: str) -> str:
        """A page's template, or one that it shares with the evidence report."""
        file = own.joinpath(name)
        return file.read_text(encoding="utf-8") if file.is_file() else run_texts.packaged_template(name)

    def moment(seconds: float) -> Markup:
        """A time, which a script converts to the reader's time zone."""
        at = datetime.fromtimestamp(seconds, UTC)
        shown = at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M")
        return Markup('<time datetime="{}">{}</time>').format(*shown)

    environment = Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: strip_controls(value) if type(value) is str else value,
    )
    of_texts = {"verdicts": run_texts.VERDICTS, "doubtful": run_texts.DOUBTFUL, "commonness": run_texts.commonness}
    environment.globals.update(of_texts, asset=STATIC.address, version=version("citeloom"), pdfjs=PDFJS_ADDRESS)
    environment.filters.update(
        markdown=markdown,
        plain=without_markup,
        counted=messages.counted,
        doi=run_texts.doi_html,
        reference=run_texts.reference_html,
        moment=moment,
        opening=opening,
        zotero=run_texts.zotero_html,
    )
    return environment


@router.get(PDFJS_ADDRESS + "{name:path}")
def pdfjs_file(name: str) -> Response:
    """Serve a file of PDF.js, which pages load when a PDF is opened."""
    file = _pdfjs_files().get(name)
    if file is None:
        raise ServerError(404, "There is no such file.")
    kind = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    return FileResponse(file, media_type=kind, headers={"Cache-Control": _FOR_GOOD})


@lru_cache(maxsize=1)
def _pdfjs_files() -> Mapping[str, Path]:
    return {file.relative_to(_PDFJS).as_posix(): file for file in _PDFJS.rglob("*") if file.is_file()}


@router.get("/static/{digest}/{name}")
def static_file(digest: str, name: str) -> Response:
    """Serve a file; pages of earlier versions get the current one, uncached."""
    content = STATIC.contents.get(name)
    if content is None:
        raise ServerError(404, "There is no such file.")
    kept = _FOR_GOOD if digest == STATIC.digest else "no-cache"
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers={"Cache-Control": kept})


@router.get("/favicon.ico")
def icon() -> Response:
    return static_file(STATIC.digest, "icon.svg")


def handle_page_errors(app: FastAPI) -> None:
    """Show problems as pages if a browser asked for a page."""

    def as_page(handler: Handler) -> Handler:
        async def answer(request: Request, error: Exception) -> Response:
            response = await handler(request, error)
            if not wants_page(request) or response.headers.get("content-type") != MEDIA_TYPE:
                return response
            return page(request, "error.html", {"problem": json.loads(bytes(response.body))}, response.status_code)

        return answer

    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, as_page(cast(Handler, handler)))


def wants_page(request: Request) -> bool:
    """Whether to show a problem as a page: not to programs, nor to scripts that load part of a page."""
    headers, path = request.headers, request.url.path
    return "text/html" in headers.get("accept", "") and "x-part" not in headers and not path.startswith(_NO_PAGES)
