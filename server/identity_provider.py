"""A group's own sign-in (OpenID Connect), whose access tokens agents may use as well; imported only where it is set."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from authlib.integrations.base_client import OAuthError
from authlib.integrations.starlette_client import OAuth
from fastapi import Request, Response
from httpx2 import HTTPError
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet, OctKey
from joserfc.jws import JWSRegistry

from ..errors import ConfigurationError
from .problems import ServerError

ISSUER: Final = "CITELOOM_OIDC_ISSUER"
_NAMES: Final = (ISSUER, "CITELOOM_OIDC_CLIENT_ID", "CITELOOM_OIDC_CLIENT_SECRET")
_COOKIE: Final = "citeloom_oidc"  # state, nonce and PKCE's verifier of a sign-in, signed
_MOST: Final = 600  # seconds of a sign-in
_SIGNED: Final = ("RS256", "ES256", "PS256", "EdDSA")  # access tokens: never with a shared secret
_KEYS_KEPT: Final = 60  # seconds before an unknown key is asked for again


class IdentityProvider:
    """The provider that the environment names; discovery and keys are read with the first use."""

    def __init__(self) -> None:
        self.issuer, client, secret = (os.environ.get(name, "").strip() for name in _NAMES)
        if not client or not secret or not self.issuer.startswith(("https://", "http://127.0.0.1:")):
            message = f"{', '.join(_NAMES)}: all three are needed, the issuer with https."
            raise ConfigurationError(message, help="They are shown where the group's provider registers this server.")
        self._key = OctKey.import_key(secret)
        self._asked = 0.0
        self._client: Any = OAuth().register(
            "group",
            client_id=client,
            client_secret=secret,
            server_metadata_url=f"{self.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={"scope": "openid", "code_challenge_method": "S256"},
        )

    async def begin(self, request: Request, callback: str, about: dict[str, str]) -> Response:
        """Lead a browser to the provider; `about` comes back with who it is."""
        request.scope["session"] = session = {"about": about}
        with self._failures():
            await self._require_issuer()
            answer = cast(Response, await self._client.authorize_redirect(request, callback))
        claims = {"exp": int(time.time()) + _MOST, "session": session}
        kept = jwt.encode({"alg": "HS256"}, claims, self._key)
        secure = callback.startswith("https:")
        answer.set_cookie(_COOKIE, kept, _MOST, httponly=True, samesite="lax", secure=secure, path="/sign-in")
        return answer

    async def finish(self, request: Request) -> tuple[str, dict[str, str]]:
        """Who came back from the provider, and what the sign-in is about; state, nonce and signature are checked."""
        with self._failures():
            kept = jwt.decode(request.cookies.get(_COOKIE, ""), self._key, algorithms=["HS256"]).claims
            jwt.JWTClaimsRegistry(exp={"essential": True}).validate(kept)
            request.scope["session"] = session = kept["session"]
            await self._require_issuer()
            token = await self._client.authorize_access_token(request)
            return f"{self.issuer} {token['userinfo']['sub']}", session["about"]

    async def holder(self, token: str, resource: str) -> tuple[str, str]:
        """Whose access token this is, and its scopes; both empty unless the provider issued it for this resource."""
        valid = {"iss": self.issuer, "aud": resource}
        rules: Any = {name: {"essential": True, "value": value} for name, value in valid.items()}
        try:
            await self._require_issuer()
            claims = jwt.decode(token, await self._keys(), registry=JWSRegistry(algorithms=list(_SIGNED))).claims
        except InvalidKeyIdError:
            if time.monotonic() < self._asked + _KEYS_KEPT:
                return "", ""
            self._asked = time.monotonic()
            await self._keys(force=True)
            return await self.holder(token, resource)
        except (JoseError, HTTPError, ValueError):
            return "", ""
        try:
            jwt.JWTClaimsRegistry(exp={"essential": True}, sub={"essential": True}, **rules).validate(claims)
        except JoseError:
            return "", ""
        return f"{self.issuer} {claims['sub']}", f"read {claims.get('scope', '')}"

    async def _keys(self, *, force: bool = False) -> KeySet:
        return KeySet.import_key_set(await self._client.fetch_jwk_set(force=force))

    async def _require_issuer(self) -> None:
        if (await self._client.load_server_metadata()).get("issuer") != self.issuer:
            raise ValueError("the provider calls itself by another name")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (OAuthError, HTTPError, JoseError, KeyError, TypeError, ValueError) as error:
            message = f"{self.issuer}: the sign-in failed ({type(error).__name__})."
            raise ServerError(502, message, help="Sign in again from this server.") from error
