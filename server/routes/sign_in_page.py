"""Signs browsers in, with the token or an account's password, which gives them a session cookie, and out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from ...api.people import LIFETIMES, Person, WrongPasswordError, check_password
from ..access import BROWSER, People, address_of_path, caller
from ..guard import SIGN_IN
from ..server_options import COOKIE, session_cookie
from ..server_state import StateOf
from .html import page

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=2000)]
Given = Annotated[str, Query(max_length=2000)]


@router.get(SIGN_IN)
def sign_in_form(request: Request, state: StateOf, next: Given = "/") -> Response:
    """The sign-in form; a server without a token or accounts needs none."""
    if not request.app.state.people.update_in_use() and not state.tokens.needed:
        return RedirectResponse(own_path(next), 303)
    return _form(request, next)


def _form(request: Request, next: str, *, wrong: bool = False) -> Response:
    template = "people_sign_in.html" if request.app.state.people.in_use else "sign_in.html"
    return page(request, template, {"next": own_path(next), "wrong": wrong}, 401 if wrong else 200)


@router.post(SIGN_IN)
def sign_in(
    request: Request, state: StateOf, token: Field = "", name: Field = "", password: Field = "", next: Field = "/"
) -> Response:
    """Begin a session; a wrong password and an unknown name get the same answer."""
    people: People = request.app.state.people
    response = RedirectResponse(own_path(next), 303)
    if not people.update_in_use():
        if not state.tokens.valid(token.strip()):
            return _form(request, next, wrong=True)
        session = state.accounts.grant("session", state.tokens.fingerprint)
        return set_cookies(request, response, {COOKIE: (session, LIFETIMES["session"])}, "strict")
    try:
        with people.attempt(request, name):
            person = check_password(people.accounts, name, password)
    except WrongPasswordError:
        return _form(request, next, wrong=True)
    return begin_session(request, people, person, response)


@router.post("/sign-out")
def sign_out(request: Request, state: StateOf) -> Response:
    state.accounts.end(session_cookie(request.headers.get("cookie")))
    return _end_session()


@router.post("/sign-out-everywhere")
def sign_out_everywhere(state: StateOf) -> Response:
    """End all sessions of the person, or of the token; a person's tokens stay valid."""
    who = caller.get()
    state.accounts.revoke(state.tokens.fingerprint if who is None else who.person.name, kind="session")
    return _end_session()


def _end_session() -> Response:
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(COOKIE)
    return response


def own_path(address: str) -> str:
    """A path on this server; anything else becomes the first page."""
    plain = address.isascii() and address.isprintable() and "\\" not in address
    return address if plain and address.startswith("/") and not address.startswith("//") else "/"


def begin_session(
    request: Request, people: People, person: Person, response: Response, lasts: int = LIFETIMES["session"]
) -> Response:
    """Start a session and set its cookie on the response; ends the browser's previous session. Blocks."""
    people.accounts.end(session_cookie(request.headers.get("cookie")))
    session = people.accounts.grant("session", person.name, lasts=lasts)
    people.accounts.log(person.name, "signed in")
    cookies = {COOKIE: (session, lasts)}
    known = people.accounts.holder("browser", request.cookies.get(BROWSER, ""))
    if known is None or known[0].name != person.name:
        cookies[BROWSER] = people.accounts.grant("browser", person.name), LIFETIMES["browser"]
    return set_cookies(request, response, cookies)


def set_cookies(
    request: Request,
    response: Response,
    cookies: Mapping[str, tuple[str, int]],
    same_site: Literal["lax", "strict"] = "lax",  # an identity provider or an email may lead here
) -> Response:
    """Set cookies with these values and ages, hidden from scripts, on a response, and return it."""
    secure = address_of_path(request, "/").startswith("https:")
    for name, (value, lasts) in cookies.items():
        response.set_cookie(name, value, lasts, httponly=True, samesite=same_site, secure=secure)
    return response
