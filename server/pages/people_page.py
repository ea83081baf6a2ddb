"""Signing in on a server with accounts, joining by an invitation, and the page of people, tokens and the audit log."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from ...api.people import LIFETIMES, RIGHTS, Person, Role, Scope, WrongPasswordError, join, with_password
from ..access import MCP, METADATA, Caller, People, caller, own_address
from ..guard import SIGN_IN
from ..problems import ServerError
from ..server_options import COOKIE, session_cookie
from .html import page
from .sign_in_page import own_path

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=2000)]
PAGE: Final = "/settings/people"
_DEEDS: Final = 100  # shown


def _people_of(request: Request) -> People:
    people: People = request.app.state.people
    return people


def _who() -> Caller:
    if (who := caller.get()) is None:
        raise ServerError(401, "Sign in first.")
    return who


PeopleOf = Annotated[People, Depends(_people_of)]
Who = Annotated[Caller, Depends(_who)]


@router.get(SIGN_IN)
def sign_in_form(request: Request, next: Annotated[str, Query(max_length=2000)] = "/") -> Response:
    return page(request, "people_sign_in.html", {"next": own_path(next), "wrong": False})


@router.post(SIGN_IN)
def sign_in(request: Request, people: PeopleOf, name: Field = "", password: Field = "", next: Field = "/") -> Response:
    """Begin a session; a wrong password and an unknown name get the same answer."""
    try:
        with people.attempt(request, name):
            person = with_password(people.accounts, name, password)
    except WrongPasswordError:
        return page(request, "people_sign_in.html", {"next": own_path(next), "wrong": True}, 401)
    return begin_session(request, people, person, own_path(next))


@router.get(METADATA)
@router.get(METADATA + MCP)
def resource_metadata(request: Request) -> dict[str, Any]:
    """What an agent has to know of tokens for MCP (RFC 9728)."""
    about = {"resource": own_address(request, MCP), "resource_name": "Citeloom"}
    return {**about, "bearer_methods_supported": ["header"], "scopes_supported": list(RIGHTS["owner"])}


@router.get("/join")
def join_form(request: Request, people: PeopleOf, invitation: Annotated[str, Query(max_length=200)] = "") -> Response:
    found = people.accounts.holder("invitation", invitation)
    context = {"invitation": invitation, "name": found[0].name if found else ""}
    return page(request, "people_join.html", context)


@router.post("/join")
def accept_invitation(request: Request, people: PeopleOf, invitation: Field = "", password: Field = "") -> Response:
    """Use an invitation up: set the password, and sign in."""
    with people.attempt(request):
        person = join(people.accounts, invitation, password)
    return begin_session(request, people, person, "/")


@router.post("/sign-out")
def sign_out(request: Request, people: PeopleOf) -> Response:
    people.accounts.end(session_cookie(request.headers.get("cookie")))
    return _signed_out()


@router.post("/sign-out-everywhere")
def sign_out_everywhere(people: PeopleOf, who: Who) -> Response:
    """End all sessions of the person; their tokens stay valid."""
    people.accounts.revoke(who.person.name, kind="session")
    return _signed_out()


@router.get(PAGE)
def people_page(request: Request, people: PeopleOf, who: Who) -> Response:
    return _people_page(request, people, who)


@router.post(PAGE)
def change_people(
    request: Request,
    people: PeopleOf,
    who: Who,
    act: Annotated[str, Form(pattern="^(invite|change|remove)$")],
    name: Field,
    role: Annotated[Role, Form()] = "reader",
    budget: Annotated[float | None, Form(ge=0, lt=1e9)] = None,
) -> Response:
    """Invite somebody, or change or remove an account."""
    if act == "invite":
        link = f"{own_address(request, '/join')}?invitation={people.accounts.invite(name, role)}"
        return _people_page(request, people, who, link=link, invited=name.strip().lower())
    if act == "remove":
        people.accounts.remove(name)
    else:
        people.accounts.change(name, role=role, budget=-1 if budget is None else budget)
    return RedirectResponse(PAGE, 303)


@router.post(PAGE + "/tokens")
def create_token(
    request: Request, people: PeopleOf, who: Who, label: Field = "", scope: Annotated[Scope, Form()] = "read"
) -> Response:
    """Create a token for programs and agents, within the rights of the person; it is shown this once."""
    who.require(scope, f"A token that may {scope}")
    rights = RIGHTS[who.person.role]
    token = people.accounts.grant("token", who.person.name, label, rights[: rights.index(scope) + 1])
    return _people_page(request, people, who, token=token)


@router.post(PAGE + "/tokens/{secret_id}/revoke")
def revoke_token(secret_id: str, people: PeopleOf, who: Who) -> Response:
    people.accounts.revoke(who.person.name, secret_id)
    return RedirectResponse(PAGE, 303)


def _people_page(request: Request, people: People, who: Caller, **shown: str) -> Response:
    accounts, owner = people.accounts, "admin" in who.rights
    context = {
        "you": who.person,
        "tokens": accounts.secrets_of(who.person.name),
        "people": accounts.people() if owner else [],
        "deeds": accounts.deeds("" if owner else who.person.name, _DEEDS),
        "rights": RIGHTS,
    }
    return page(request, "people.html", {**context, "link": "", "invited": "", "token": "", **shown})


def begin_session(request: Request, people: People, person: Person, place: str) -> Response:
    """Sign in with a new session; the one that the browser had ends. Blocks."""
    people.accounts.end(session_cookie(request.headers.get("cookie")))
    session = people.accounts.grant("session", person.name)
    people.accounts.log(person.name, "signed in")
    response = RedirectResponse(place, 303)
    secure = own_address(request, "/").startswith("https:")
    # Lax, since an identity provider or a mail may lead here; the guard refuses what other sites send.
    response.set_cookie(COOKIE, session, LIFETIMES["session"], httponly=True, samesite="lax", secure=secure)
    return response


def _signed_out() -> Response:
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(COOKIE)
    return response
