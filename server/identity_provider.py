"""Sign-in at a group's identity provider (OpenID Connect: code flow with PKCE), whose access tokens MCP accepts.

The server stores nothing until a browser returns from the provider: state, nonce and verifier are in a signed cookie,
so any server of a library can finish a sign-in that another began.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final
from urllib.parse import quote_plus

import httpx
import jwt
from pydantic import Field, TypeAdapter, ValidationError

from ..api.messages import describe_invalid
from ..api.people import ISSUER, RIGHTS, Role
from ..errors import ConfigurationError
from .problems import ServerError
from .server_options import SIGN_IN_LASTS, token_from_environment

_CLIENT, _SECRET, _ROLES = (f"CITELOOM_OIDC_{name}" for name in ("CLIENT_ID", "CLIENT_SECRET", "ROLES"))
_Rule = Annotated[str, Field(pattern=r"^([^\s:@]*@[^\s:@]+|\S+:[^:]+)$")]  # an address, a domain, or a claim's value
_EXAMPLE: Final = '{"owner": ["ada@example.org"], "writer": ["@example.org"], "reader": ["groups:students"]}'
Arrival = tuple[str, str, Role | None, dict[str, str]]
_ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA")  # never a shared secret
_TIMEOUT: Final = 10  # seconds for a request to the provider


class IdentityProvider:
    """The identity provider set in the environment; all calls block. Raises `ConfigurationError` for wrong settings."""

    def __init__(self) -> None:
        self.issuer, self._client = (os.environ.get(name, "").strip() for name in (ISSUER, _CLIENT))
        if (secret := token_from_environment(_SECRET)) is None or not self._client:
            message = f"{ISSUER} is set, but {_SECRET if self._client else _CLIENT} is not."
            raise ConfigurationError(message, help="The provider shows it where this server is registered.")
        if not self.issuer.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
            raise ConfigurationError(f"{ISSUER}: {self.issuer[:200]}: needs https.", help="Copy it from the provider.")
        self._secret = secret.get_secret_value()
        self._signing = hashlib.sha256(f"citeloom sign-in {self._secret}".encode()).hexdigest()
        try:
            self._rules = TypeAdapter(dict[Role, list[_Rule]]).validate_json(os.environ.get(_ROLES) or "{}")
        except ValidationError as error:
            wrong = f"{_ROLES}: {describe_invalid(error.errors()[0])[:300]}."
            raise ConfigurationError(wrong, help=f"It holds addresses, domains and claims: {_EXAMPLE}") from error

    def begin(self, callback: str, about: Mapping[str, str]) -> tuple[str, str]:
        """Return where a browser signs in, and a cookie for its return to `callback`; `finish` gives `about` back."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        checked = {"state": state, "nonce": nonce}
        asked = {**checked, "response_type": "code", "client_id": self._client, "scope": "openid email profile"}
        asked |= {"redirect_uri": callback, "code_challenge": challenge, "code_challenge_method": "S256"}
        kept = {**about, **checked, "verifier": verifier, "exp": int(time.time()) + SIGN_IN_LASTS}
        place = httpx.URL(self._metadata["authorization_endpoint"]).copy_merge_params(asked)
        return str(place), jwt.encode(kept, self._signing, "HS256")

    def finish(self, cookie: str, answer: Mapping[str, str], callback: str) -> Arrival:
        """Verify a browser's return; gives a permanent id, a name, the role by the rules, and `about` from `begin`."""
        try:
            begun = jwt.decode(cookie, self._signing, ["HS256"], options={"require": ["exp"]})
        except jwt.InvalidTokenError:
            begun = {}  # refused below
        if begun.get("state") != answer.get("state", "") or answer.get("iss", self.issuer) != self.issuer:
            message = f"This sign-in was not begun in this browser, or lasted more than {SIGN_IN_LASTS // 60} minutes."
            raise ServerError(403, message, help="Sign in again.")
        if "code" not in answer:
            message = f"The group's sign-in refused: {answer.get('error', 'it does not say why')[:80]}."
            raise ServerError(403, message, help="Ask whoever runs the sign-in.")
        given = {"code": answer["code"], "code_verifier": begun["verifier"], "redirect_uri": callback}
        given["grant_type"] = "authorization_code"
        client = (quote_plus(self._client), quote_plus(self._secret))
        tokens = self._ask(self._metadata["token_endpoint"], data=given, auth=client)
        claims = self._verified(str(tokens.get("id_token")), self._client, begun["nonce"])
        if "email" not in claims and (place := self._metadata.get("userinfo_endpoint")):
            found = self._ask(place, headers={"Authorization": f"Bearer {tokens.get('access_token')}"})
            claims = {**found, **claims} if found.get("sub") == claims["sub"] else claims
        like = str(claims.get("preferred_username") or claims.get("email") or "somebody").partition("@")[0].lower()
        name = re.sub(r"[^a-z0-9_-]+", "-", like)[:40].strip("-_") or "somebody"
        return f"{self.issuer} {claims['sub']}", name, self._role(claims), begun

    def holder(self, token: str, resource: str) -> tuple[str, str]:
        """Return the subject and scopes of an access token; empty unless the provider issued it for this resource."""
        try:
            claims = self._verified(token, resource)
        except ServerError:  # also if the provider is down: the guard then asks for a token
            return "", ""
        return f"{self.issuer} {claims['sub']}", f"read {claims.get('scope', '')}"

    def _role(self, claims: Mapping[str, Any]) -> Role | None:
        """The highest role that the rules give; an address counts only if the provider has verified it."""
        address = str(claims.get("email", "")).lower() if claims.get("email_verified") is True else ""

        def fits(rule: str) -> bool:
            claim, colon, value = rule.rpartition(":")
            if not colon:
                return bool(address) and (address.endswith(rule.lower()) if rule[0] == "@" else address == rule.lower())
            held = claims.get(claim)
            return value in held if isinstance(held, list) else value == held

        return next((role for role in reversed(RIGHTS) if any(map(fits, self._rules.get(role, ())))), None)

    def _verified(self, token: str, audience: str, nonce: str = "") -> dict[str, Any]:
        needed: Any = {"require": ["exp", "iat", "iss", "sub", "aud"]}
        try:
            key = self._keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(token, key, _ALGORITHMS, needed, audience=audience, issuer=self.issuer, leeway=60)
            if nonce and (claims.get("nonce") != nonce or claims.get("azp", audience) != audience):
                raise jwt.InvalidTokenError("it belongs to another sign-in")
        except (jwt.PyJWTError, ValueError) as error:  # ValueError: the keys are not JSON
            message = f"The answer of the group's sign-in is not valid: {str(error)[:200]}."
            help = f"Sign in again; else check {_CLIENT} and the clock of this server."
            raise ServerError(403, message, help=help) from error
        return claims

    @cached_property
    def _keys(self) -> jwt.PyJWKClient:
        """The provider's keys, fetched again every five minutes, and at most twice a minute for an unknown key."""
        return jwt.PyJWKClient(str(self._metadata["jwks_uri"]), timeout=_TIMEOUT, cooldown_duration=30)

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        found = self._ask(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if (name := str(found.get("issuer"))) != self.issuer:
            raise ServerError(502, f"The group's provider calls itself {name[:200]}.", help=f"Set {ISSUER} to this.")
        if missing := {"authorization_endpoint", "token_endpoint", "jwks_uri"} - found.keys():
            named = f"The group's provider names no {min(missing)}."
            raise ServerError(502, named, help=f"{ISSUER} must name one with OpenID Connect and its code flow.")
        return found

    def _ask(self, address: str, **sent: Any) -> dict[str, Any]:
        try:
            answer = httpx.request("POST" if "data" in sent else "GET", address, timeout=_TIMEOUT, **sent)
            found = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            message = f"{address}: the group's sign-in cannot be reached."
            raise ServerError(502, message, help="Try again later.") from error
        if answer.is_error or not isinstance(found, dict):
            reason = str(found.get("error") if isinstance(found, dict) else "")[:80]
            help = f"Sign in again; else check {_CLIENT}, {_SECRET} and the address of return at the provider."
            raise ServerError(403, f"The group's sign-in answered {answer.status_code} {reason}.", help=help)
        return found
