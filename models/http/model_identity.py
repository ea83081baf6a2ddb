"""The identity of a model, used in journal keys and error messages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """A model at an endpoint.

    `parameters` are those that change answers. `url_setting`, `model_setting` and `key_setting` are the environment
    variables that errors suggest correcting; they are empty for a custom model. `secret` is only used to redact server
    messages.
    """

    endpoint: str
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    url_setting: str = ""
    model_setting: str = ""
    key_setting: str = ""
    secret: SecretStr | None = field(default=None, repr=False, compare=False)

    def without_secret(self, text: str) -> str:
        """`text` with the key redacted, in case a server echoes it."""
        secret = self.secret.get_secret_value() if self.secret else ""
        return text.replace(secret, "***") if len(secret) > 3 else text


def endpoint_name(base_url: str) -> str:
    """`base_url` without trailing slash, password and query."""
    parts = urlsplit(base_url.strip())
    host = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def canonical_json(value: object) -> str:
    """Serialize `value` as canonical JSON; objects that JSON cannot represent are replaced by their type name.

    Their `repr` is unsuitable for a key: it may contain a memory address or a secret.
    """
    return json.dumps(
        value,
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
        default=lambda other: f"<{type(other).__qualname__}>",
    )


def key_of(value: object) -> str:
    """The sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
