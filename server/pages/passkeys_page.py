"""Passkeys (WebAuthn): added by somebody who is signed in, they sign in without name and password.

Each request is made twice: without a credential it is answered with what the browser asks its authenticator for, with a
challenge that is good once, for five minutes; then it brings the credential.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse

from ...api.messages import install_hint
from ...errors import ConfigurationError
from ..access import People, own_address
from ..guard import SIGN_IN
from ..problems import ServerError
from .people_page import PAGE, PeopleOf, Who, begin_session
from .sign_in_page import own_path

router = APIRouter(include_in_schema=False)
Credential = Annotated[dict[str, Any] | None, Body()]
Text = Annotated[str, Body(max_length=2000)]
_ALGORITHMS = (-8, -7, -257)  # EdDSA, ES256, RS256
# Kept on the authenticator, so that no name is needed, and opened by a PIN or a finger, since there is no password.
_AUTHENTICATOR = {"residentKey": "required", "requireResidentKey": True, "userVerification": "required"}


@router.post(PAGE + "/passkeys")
def add_passkey(
    request: Request, people: PeopleOf, who: Who, credential: Credential = None, label: Text = ""
) -> dict[str, Any]:
    """Add a passkey to one's own account."""
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
    """What a credential has to fit; uses its challenge up, which must have been given to this person."""
    from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, parse_client_data_json

    challenge = parse_client_data_json(base64url_to_bytes(credential["response"]["clientDataJSON"])).challenge
    if people.accounts.spend("challenge", bytes_to_base64url(challenge)) != name:
        raise ValueError("its challenge was used, has expired, or was given to somebody else")
    here = {"expected_origin": own_address(request, "").rstrip("/"), "expected_rp_id": request.url.hostname}
    return {**here, "credential": credential, "expected_challenge": challenge, "require_user_verification": True}


@contextmanager
def _verifying() -> Iterator[None]:
    """Turn what is wrong with a credential into one error that tells strangers nothing."""
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
