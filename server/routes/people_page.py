"""Accounts: joining, sign-in at an identity provider, passkeys, and the page of people, tokens and the audit log.

A signed-in person can add a passkey (WebAuthn), which then signs in without name and password. Each step takes two
requests: the first returns the options for the browser's authenticator, with a challenge that is valid once and for
five minutes; the second sends the credential.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Body, Depends, Form, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from ...api.messages import install_hint
from ...api.people import RIGHTS, Role, Scope, begin_group, enter, join
from ...errors import ConfigurationError, InputError
from ..access import MCP, METADATA, Caller, People, address_of_path, caller
from ..guard import SIGN_IN
from ..problems import Problem, ServerError, to_problem
from ..server_options import SIGN_IN_LASTS
from ..server_state import ServerState, StateOf
from .html import page
from .sign_in_page import Field, Given, begin_session, own_path, set_cookies

if TYPE_CHECKING:
    from ..identity_provider import IdentityProvider

router = APIRouter(include_in_schema=False)
_RETURN: Final = SIGN_IN + "/callback"
_BEGUN: Final = "citeloom_sign_in"  # cookie
PAGE: Final = "/settings/people"
_ONCE: Final = "citeloom_once"  # a cookie with secrets that the page shows once
_AUDIT_LINES: Final = 100  # entries of the audit log shown
_AT_MACHINE: Final = (
    "There use '{citeloom} people invite', or serve without --name and token and open Settings, People."
)


def _people_of(request: Request) -> People:
    people: People = request.app.state.people
    if not people.update_in_use():
        raise ServerError(404, "This server has no accounts.")
    return people


def _who() -> Caller:
    if (who := caller.get()) is None:
        raise ServerError(401, "Sign in first.")
    return who


def _provider_of(people: People) -> IdentityProvider:
    if (provider := people.provider) is None:
        raise ServerError(404, "This server has no identity provider.")
    return provider


PeopleOf = Annotated[People, Depends(_people_of)]
Who = Annotated[Caller, Depends(_who)]


@router.get(SIGN_IN + "/group")
def sign_in_at_provider(request: Request, people: PeopleOf, invitation: Given = "", next: Given = "/") -> Response:
    """Redirect to the identity provider; an invitation followed from another site is shown first for confirmation."""
    provider = _provider_of(people)
    if invitation and request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return RedirectResponse(f"/join?{urlencode({'invitation': invitation})}", 303)
    about = {"invitation": invitation, "next": own_path(next)}
    place, begun = provider.begin(address_of_path(request, _RETURN), about)
    return set_cookies(request, RedirectResponse(place, 303), {_BEGUN: (begun, SIGN_IN_LASTS)})


@router.get(_RETURN)
def return_from_provider(request: Request, state: StateOf, people: PeopleOf) -> Response:
    """Sign in a person whom the rules or an invitation admit, for one day only, since people leave groups."""
    provider = _provider_of(people)
    cookie, answer = request.cookies.get(_BEGUN, ""), request.query_params
    subject, name, role, about = provider.finish(cookie, answer, address_of_path(request, _RETURN))
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
    """Tell agents where to get tokens for MCP (RFC 9728)."""
    about = {"resource": address_of_path(request, MCP), "resource_name": "Citeloom"}
    issuers = {"authorization_servers": [people.provider.issuer]} if people.provider else {}
    return {**about, **issuers, "bearer_methods_supported": ["header"], "scopes_supported": list(RIGHTS["owner"])}


@router.get("/join")
def join_form(request: Request, people: PeopleOf, invitation: Given = "") -> Response:
    found = people.accounts.holder("invitation", invitation)
    context = {"invitation": invitation, "name": found[0].name if found else ""}
    return page(request, "people_join.html", context)


@router.post("/join")
def accept_invitation(request: Request, people: PeopleOf, invitation: Field = "", password: Field = "") -> Response:
    """Accept an invitation: set the password, and sign in."""
    person = join(people.accounts, invitation, password)
    return begin_session(request, people, person, RedirectResponse("/", 303))


def may_begin(request: Request, state: ServerState) -> bool:
    """Whether a request may create the first account, that is, comes from the only person with access so far."""
    return state.options.local_only and not state.tokens.needed and not request.app.state.people.in_use


@router.post(PAGE + "/first")
def create_first_account(request: Request, state: StateOf, name: Field = "", password: Field = "") -> Response:
    """Make the person at this machine the owner of a group's server, and sign them in; now everybody has to sign in."""
    if not may_begin(request, state):
        raise ServerError(403, "The first account must be created on the server's machine.", help=_AT_MACHINE)
    if state.jobs.counts():
        raise ServerError(409, "A question, text or ingest is in progress.", help="Wait until it ends, or stop it.")
    try:
        person = begin_group(state.session.home, name, password)
    except InputError as error:
        return page(request, "people_first.html", {"name": name, "problem": to_problem(error)}, 422)
    request.app.state.people.update_in_use()
    return begin_session(request, request.app.state.people, person, RedirectResponse(PAGE, 303))


@router.get(PAGE)
def people_page(request: Request, state: StateOf) -> Response:
    people: People = request.app.state.people
    if not people.in_use:
        if not may_begin(request, state):
            raise ServerError(403, "This server has no accounts.", help=_AT_MACHINE)
        return page(request, "people_first.html", {"name": "", "problem": None})
    return _people_page(request, state)


def _people_page(
    request: Request, state: ServerState, name: str = "", role: Role = "writer", problem: Problem | None = None
) -> Response:
    """The page, with what was entered to invite somebody if that is refused."""
    people, who = request.app.state.people, _who()
    accounts, owner = people.accounts, "admin" in who.rights
    context = {
        "you": who.person,
        "tokens": accounts.secrets_of(who.person.name),
        "passkeys": accounts.secrets_of(who.person.name, "passkey"),
        "people": accounts.people() if owner else [],
        "audit": accounts.audit_lines("" if owner else who.person.name, _AUDIT_LINES),
        "rights": RIGHTS,
        "once": dict(parse_qsl(request.cookies.get(_ONCE, ""))),
        "here_only": state.options.local_only,
        "entered": {"name": name, "role": role, "problem": problem},
    }
    response = page(request, "people.html", context, 422 if problem else 200)
    response.delete_cookie(_ONCE)
    return response


@router.post(PAGE)
def change_people(
    request: Request,
    state: StateOf,
    people: PeopleOf,
    who: Who,
    act: Annotated[str, Form(pattern="^(invite|change|remove)$")],
    name: Field,
    role: Annotated[Role, Form()] = "reader",
    budget: Annotated[float | None, Form(ge=0, lt=1e9)] = None,
) -> Response:
    """Invite somebody, or change or remove an account."""
    if act == "invite":
        try:
            invitation = people.accounts.invite(name, role)
        except InputError as error:
            return _people_page(request, state, name, role, to_problem(error))
        link = f"{address_of_path(request, '/join')}?invitation={invitation}"
        return _show_once(request, link=link, invited=name.strip().lower())
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
    return _show_once(request, token=token)


@router.post(PAGE + "/tokens/{secret_id}/revoke")
def revoke_token(
    secret_id: str, people: PeopleOf, who: Who, kind: Annotated[Literal["token", "passkey"], Form()] = "token"
) -> Response:
    people.accounts.revoke(who.person.name, secret_id, kind)
    return RedirectResponse(PAGE, 303)


def _show_once(request: Request, **secrets: str) -> Response:
    """Redirect to the page, which shows the secrets only this once; reloading it neither shows nor creates any."""
    return set_cookies(request, RedirectResponse(PAGE, 303), {_ONCE: (urlencode(secrets), 60)})


Credential = Annotated[dict[str, Any] | None, Body()]
Text = Annotated[str, Body(max_length=2000)]
_ALGORITHMS = (-8, -7, -257)  # EdDSA, ES256, RS256
# Stored on the authenticator, so no name is needed, and unlocked by PIN or finger, since there is no password.
_AUTHENTICATOR = {"residentKey": "required", "requireResidentKey": True, "userVerification": "required"}


@router.post(PAGE + "/passkeys")
def add_passkey(
    request: Request, people: PeopleOf, who: Who, credential: Credential = None, label: Text = ""
) -> dict[str, Any]:
    """Add a passkey to the caller's account."""
    name = who.person.name
    if credential is None:
        handle = hashlib.sha256(f"citeloom {name}".encode()).hexdigest()[:40]
        asked = {
            "challenge": people.accounts.grant("challenge", name),
            "rp": {"id": request.url.hostname, "name": "Citeloom"},
            "user": {"id": handle, "name": name, "displayName": name},
            "pubKeyCredParams": [{"type": "public-key", "alg": number} for number in _ALGORITHMS],
            "authenticatorSelection": _AUTHENTICATOR,
        }
        return {"create": asked}
    with _verifying():
        from webauthn import verify_registration_response

        made = verify_registration_response(**_expected(request, people, credential, name))
    if people.accounts.holder("passkey", credential["id"]) is not None:
        raise ServerError(409, "This passkey is known already.", help="Revoke it first.")
    proof = (made.credential_public_key.hex(), str(made.sign_count))
    people.accounts.grant("passkey", name, label, proof, secret=credential["id"])
    return {"next": PAGE}


@router.post(SIGN_IN + "/passkey")
def sign_in_by_passkey(request: Request, people: PeopleOf, credential: Credential = None, next: Text = "/") -> Any:
    """Begin a session with a passkey."""
    if credential is None:
        challenge = people.accounts.grant("challenge", "")
        return {"get": {"challenge": challenge, "rpId": request.url.hostname, "userVerification": "required"}}
    with _verifying():
        from webauthn import verify_authentication_response

        if (found := people.accounts.holder("passkey", credential["id"])) is None:
            raise KeyError(credential["id"])
        key, _, count = found[1].scopes.partition(" ")
        used = verify_authentication_response(
            **_expected(request, people, credential, ""),
            credential_public_key=bytes.fromhex(key),
            credential_current_sign_count=int(count),
        )
    people.accounts.note_use(credential["id"], f"{key} {used.new_sign_count}")
    return begin_session(request, people, found[0], JSONResponse({"next": own_path(next)}))


def _expected(request: Request, people: People, credential: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what a credential must match, and consume its challenge, which must have been issued to this person."""
    from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, parse_client_data_json

    challenge = parse_client_data_json(base64url_to_bytes(credential["response"]["clientDataJSON"])).challenge
    if people.accounts.spend("challenge", bytes_to_base64url(challenge)) != name:
        raise ValueError("its challenge was used, has expired, or was given to somebody else")
    here = {"expected_origin": address_of_path(request, "").rstrip("/"), "expected_rp_id": request.url.hostname}
    return {**here, "credential": credential, "expected_challenge": challenge, "require_user_verification": True}


@contextmanager
def _verifying() -> Iterator[None]:
    """Turn any fault of a credential into one error that reveals nothing."""
    try:
        from webauthn.helpers.exceptions import WebAuthnException
    except ImportError as error:
        missing = f"Passkeys need {error.name}, which is not installed."
        raise ConfigurationError(missing, help=f"{install_hint('people')}.") from error
    try:
        yield
    except (WebAuthnException, AttributeError, LookupError, TypeError, ValueError) as error:
        help = "Try again, or sign in with your password and add the passkey anew."
        raise ServerError(403, "This passkey is not valid here.", help=help) from error
