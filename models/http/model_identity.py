"""Which model is asked: the part of a journal key that is not the conversation, and what errors name."""

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

    `parameters` are those that change answers. `url_setting`, `model_setting` and `key_setting` are the
    environment variables that an error tells the user to mend; they are empty for a model that was handed in.
    `secret` is only held to be struck out of what a server says.
    """

    endpoint: str
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    url_setting: str = ""
    model_setting: str = ""
    key_setting: str = ""
    secret: SecretStr | None = field(default=None, repr=False, compare=False)

    def without_secret(self, text: str) -> str:
        """`text` with the key struck out, should a server repeat it."""
        secret = self.secret.get_secret_value() if self.secret else ""
        return text.replace(secret, "***") if len(secret) > 3 else text


def endpoint_name(base_url: str) -> str:
    """`base_url` without a trailing slash, and without the password or query that it may carry."""
    parts = urlsplit(base_url.strip())
    host = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def canonical_json(value: object) -> str:
    """The one way to write `value` as JSON; what JSON has no form for is named by its type alone.

    An object's own text would do no good in a key: it may hold an address in memory, or a secret.
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
