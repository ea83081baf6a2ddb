"""A small OpenID Connect provider on a local socket: discovery, authorization with PKCE, tokens, userinfo and keys.

Whoever is led to it is `person` at once. `wrong` are claims that its next ID tokens contain instead of the right ones.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

CLIENT, SECRET = "citeloom", "a secret: of this & that"


class OidcServer:
    def __init__(self) -> None:
        self.person: dict[str, Any] = {"sub": "1", "email": "ada@example.org", "email_verified": True}
        self.wrong: dict[str, Any] = {}
        self.in_userinfo: set[str] = set()  # claims that ID tokens leave out
        self.key_requests = 0
        self._codes: dict[str, dict[str, str]] = {}
        self._tokens: dict[str, dict[str, Any]] = {}
        self.use_key("RS256")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def use_key(self, algorithm: Literal["RS256", "ES256"]) -> None:
        """Sign with a new key from now on, and publish no other."""
        self._algorithm, self._key_id = algorithm, secrets.token_hex(4)
        self._key: Any = (
            rsa.generate_private_key(65537, 2048) if algorithm == "RS256" else ec.generate_private_key(ec.SECP256R1())
        )

    def sign(self, **claims: Any) -> str:
        """A token with these claims, valid for five minutes unless they say otherwise."""
        now = int(time.time())
        whole = {"iss": self.url, "iat": now, "exp": now + 300, **claims}
        return jwt.encode(whole, self._key, self._algorithm, headers={"kid": self._key_id})

    def authorize(self, asked: dict[str, str]) -> str:
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
        assert asked["client_id"] == CLIENT and "openid" in asked["scope"].split()
        code = secrets.token_hex(8)
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchange(self, given: dict[str, str], client: str) -> tuple[int, dict[str, Any]]:
        asked = self._codes.pop(given["code"], None)
        hashed = base64.urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest())
        if client != f"Basic {base64.b64encode(f'{CLIENT}:a+secret%3A+of+this+%26+that'.encode()).decode()}":
            return 401, {"error": "invalid_client"}
        if (
            asked is None
            or hashed.rstrip(b"=").decode() != asked["code_challenge"]
            or given["redirect_uri"] != asked["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        access = secrets.token_hex(8)
        self._tokens[access] = self.person
        said = {name: value for name, value in self.person.items() if name not in self.in_userinfo}
        claims = {**said, "aud": CLIENT, "nonce": asked["nonce"], **self.wrong}
        return 200, {"access_token": access, "token_type": "Bearer", "id_token": self.sign(**claims)}

    def answer(self, path: str, given: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        if path == "/token":
            return self.exchange(given, authorization)
        if path == "/userinfo":
            return 200, self._tokens[authorization.removeprefix("Bearer ")]
        if path == "/keys":
            self.key_requests += 1
            kind: Any = jwt.get_algorithm_by_name(self._algorithm)
            return 200, {"keys": [{**kind.to_jwk(self._key.public_key(), as_dict=True), "kid": self._key_id}]}
        assert path == "/.well-known/openid-configuration", path
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "userinfo_endpoint": "userinfo"}
        return 200, {
            "issuer": self.url,
            **{name: f"{self.url}/{place}" for name, place in {**places, "jwks_uri": "keys"}.items()},
        }


def _handler(server: OidcServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            given = {name: values[0] for name, values in parse_qs(place.query).items()}
            if place.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", server.authorize(given))
                self.end_headers()
                return
            self._send(*server.answer(place.path, given, self.headers.get("Authorization", "")))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            given = {name: values[0] for name, values in parse_qs(body).items()}
            self._send(*server.answer(self.path, given, self.headers.get("Authorization", "")))

        def _send(self, status: int, record: dict[str, Any]) -> None:
            content = json.dumps(record).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    return Handler
