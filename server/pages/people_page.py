"""Signing in on a server with accounts, joining by an invitation, and the page of people, tokens and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from ...api.people import LIFETIMES, RIGHTS, Person, Role, Scope, WrongPasswordError, enter, join, with_password
from ..access import BROWSER, MCP, METADATA, Caller, People, caller, own_address
from ..guard import SIGN_IN
from ..identity_provider import SIGN_IN_LASTS, IdentityProvider
from ..problems import ServerError
from ..server_options import COOKIE, session_cookie
from ..server_state import StateOf
from .html import page
from .sign_in_page import own_path, signed_out

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=2000)]
Given = Annotated[str, Query(max_length=2000)]
_RETURN: Final = SIGN_IN + "/callback"
_BEGUN: Final = "citeloom_sign_in"  # cookie
PAGE: Final = "/settings/people"
_ONCE: Final = "citeloom_once"  # a cookie with what the page shows when it is loaded next
_DEEDS: Final = 100  # shown


def _people_of(request: Request) -> People:
    people: People = request.app.state.people
    return people


def _who() -> Caller:
    if (who := caller.get()) is None:
        raise ServerError(401, "Sign in first.")
    return who


def _provider_of(request: Request) -> IdentityProvider:
    if (provider := _people_of(request).provider) is None:
        raise ServerError(404, "This server has no sign-in of a group.")
    return provider


PeopleOf = Annotated[People, Depends(_people_of)]
ProviderOf = Annotated[IdentityProvider, Depends(_provider_of)]
Who = Annotated[Caller, Depends(_who)]


@router.get(SIGN_IN)
def sign_in_form(request: Request, next: Given = "/") -> Response:
    return page(request, "people_sign_in.html", {"next": own_path(next), "wrong": False})


@router.post(SIGN_IN)
def sign_in(request: Request, people: PeopleOf, name: Field = "", password: Field = "", next: Field = "/") -> Response:
    """Begin a session; a wrong password and an unknown name get the same answer."""
    try:
        with people.attempt(request, name):
            person = with_password(people.accounts, name, password)
    except WrongPasswordError:
        return page(request, "people_sign_in.html", {"next": own_path(next), "wrong": True}, 401)
    return begin_session(request, people, person, RedirectResponse(own_path(next), 303))


@router.get(SIGN_IN + "/group")
def sign_in_at_provider(request: Request, provider: ProviderOf, invitation: Given = "", next: Given = "/") -> Response:
    """Lead to the group's own sign-in; from elsewhere an invitation is shown first: it may be to another's account."""
    if invitation and request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return RedirectResponse(f"/join?{urlencode({'invitation': invitation})}", 303)
    about = {"invitation": invitation, "next": own_path(next)}
    place, begun = provider.begin(own_address(request, _RETURN), about)
    return _with_cookies(request, RedirectResponse(place, 303), {_BEGUN: (begun, SIGN_IN_LASTS)})


@router.get(_RETURN)
def return_from_provider(request: Request, state: StateOf, people: PeopleOf, provider: ProviderOf) -> Response:
    """Sign in whom the provider knows and its rules or an invitation let in, for a day: people leave groups."""
    cookie, answer = request.cookies.get(_BEGUN, ""), request.query_params
    subject, name, role, about = provider.finish(cookie, answer, own_address(request, _RETURN))
    if about["invitation"]:
        person = people.accounts.accept(about["invitation"], None, subject)
    else:
        person = enter(state.session.home, subject, name, role)
    response = RedirectResponse(about["next"], 303)
    response.delete_cookie(_BEGUN)
    return begin_session(request, people, person, response, lasts=86_400)


@router.get(METADATA)
@router.get(METADATA + MCP)
def resource_metadata(request: Request, people: PeopleOf) -> dict[str, Any]:
    """What an agent has to know of tokens for MCP (RFC 9728)."""
    about = {"resource": own_address(request, MCP), "resource_name": "Citeloom"}
    issuers = {"authorization_servers": [people.provider.issuer]} if people.provider else {}
    return {**about, **issuers, "bearer_methods_supported": ["header"], "scopes_supported": list(RIGHTS["owner"])}


@router.get("/join")
def join_form(request: Request, people: PeopleOf, invitation: Given = "") -> Response:
    found = people.accounts.holder("invitation", invitation)
    context = {"invitation": invitation, "name": found[0].name if found else ""}
    return page(request, "people_join.html", context)


@router.post("/join")
def accept_invitation(request: Request, people: PeopleOf, invitation: Field = "", password: Field = "") -> Response:
    """Use an invitation up: set the password, and sign in."""
    person = join(people.accounts, invitation, password)
    return begin_session(request, people, person, RedirectResponse("/", 303))


@router.post("/sign-out")
def sign_out(request: Request, people: PeopleOf) -> Response:
    people.accounts.end(session_cookie(request.headers.get("cookie")))
    return signed_out()


@router.post("/sign-out-everywhere")
def sign_out_everywhere(people: PeopleOf, who: Who) -> Response:
    """End all sessions of the person; their tokens stay valid."""
    people.accounts.revoke(who.person.name, kind="session")
    return signed_out()


@router.get(PAGE)
def people_page(request: Request, people: PeopleOf, who: Who) -> Response:
    accounts, owner = people.accounts, "admin" in who.rights
    context = {
        "you": who.person,
        "tokens": accounts.secrets_of(who.person.name),
        "passkeys": accounts.secrets_of(who.person.name, "passkey"),
        "people": accounts.people() if owner else [],
        "deeds": accounts.deeds("" if owner else who.person.name, _DEEDS),
        "rights": RIGHTS,
        "once": dict(parse_qsl(request.cookies.get(_ONCE, ""))),
    }
    response = page(request, "people.html", context)
    response.delete_cookie(_ONCE)
    return response


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
        return _shown_once(request, link=link, invited=name.strip().lower())
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
    return _shown_once(request, token=token)


@router.post(PAGE + "/tokens/{secret_id}/revoke")
def revoke_token(
    secret_id: str, people: PeopleOf, who: Who, kind: Annotated[Literal["token", "passkey"], Form()] = "token"
) -> Response:
    people.accounts.revoke(who.person.name, secret_id, kind)
    return RedirectResponse(PAGE, 303)


def _shown_once(request: Request, **secrets: str) -> Response:
    """Lead to the page, which shows the secrets this once: loading it again neither shows nor makes any."""
    return _with_cookies(request, RedirectResponse(PAGE, 303), {_ONCE: (urlencode(secrets), 60)})


def begin_session(
    request: Request, people: People, person: Person, response: Response, lasts: int = LIFETIMES["session"]
) -> Response:
    """Sign in with a new session, whose cookie the response brings; the one that the browser had ends. Blocks."""
    people.accounts.end(session_cookie(request.headers.get("cookie")))
    session = people.accounts.grant("session", person.name, lasts=lasts)
    people.accounts.log(person.name, "signed in")
    cookies = {COOKIE: (session, lasts)}
    known = people.accounts.holder("browser", request.cookies.get(BROWSER, ""))
    if known is None or known[0].name != person.name:
        cookies[BROWSER] = people.accounts.grant("browser", person.name), LIFETIMES["browser"]
    return _with_cookies(request, response, cookies)


def _with_cookies(request: Request, response: Response, cookies: Mapping[str, tuple[str, int]]) -> Response:
    """The response with cookies of these values and ages."""
    secure = own_address(request, "/").startswith("https:")
    for name, (value, lasts) in cookies.items():
        # Lax, since an identity provider or a mail may lead here; the guard refuses what other sites send.
        response.set_cookie(name, value, lasts, httponly=True, samesite="lax", secure=secure)
    return response
