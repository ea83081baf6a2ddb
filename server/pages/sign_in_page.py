"""Signing in and out: a browser sends the token once and gets a session cookie."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from ...api.people import LIFETIMES
from ..guard import SIGN_IN
from ..server_options import COOKIE, session_cookie
from ..server_state import StateOf
from .html import page

router = APIRouter(include_in_schema=False)


@router.get(SIGN_IN)
def sign_in_form(request: Request, state: StateOf, next: Annotated[str, Query(max_length=2000)] = "/") -> Response:
    """The form; a server without a token needs none."""
    if not state.tokens.needed:
        return RedirectResponse(own_path(next), 303)
    return page(request, "sign_in.html", {"next": own_path(next), "wrong": False})


@router.post(SIGN_IN)
def sign_in(
    request: Request,
    state: StateOf,
    token: Annotated[str, Form(max_length=1000)] = "",
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    """Set the cookie, hidden from scripts and not sent by other sites."""
    if not state.tokens.valid(token.strip()):
        return page(request, "sign_in.html", {"next": own_path(next), "wrong": True}, 401)
    response = RedirectResponse(own_path(next), 303)
    secure = request.url.scheme == "https"
    session, lasts = state.accounts.grant("session", state.tokens.fingerprint), LIFETIMES["session"]
    response.set_cookie(COOKIE, session, max_age=lasts, httponly=True, samesite="strict", secure=secure)
    return response


@router.post("/sign-out")
def sign_out(request: Request, state: StateOf) -> Response:
    state.accounts.end(session_cookie(request.headers.get("cookie")))
    return signed_out()


@router.post("/sign-out-everywhere")
def sign_out_everywhere(state: StateOf) -> Response:
    state.accounts.revoke(state.tokens.fingerprint, kind="session")
    return signed_out()


def signed_out() -> Response:
    """The sign-in page, without the cookie."""
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(COOKIE)
    return response


def own_path(address: str) -> str:
    """A path on this server; anything else becomes the first page."""
    plain = address.isascii() and address.isprintable() and "\\" not in address
    return address if plain and address.startswith("/") and not address.startswith("//") else "/"
