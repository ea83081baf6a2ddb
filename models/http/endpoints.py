"""The identity of a model, used in journal keys and error messages."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from ...errors import ConfigurationError
from ...settings.config import OPENAI_BASE_URL
from ...settings.key_trust import shown_address


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """A model at an endpoint; the settings are environment variables that messages name, empty for a custom model."""

    endpoint: str
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)  # those that affect answers
    url_setting: str = ""
    model_setting: str = ""
    key_setting: str = ""
    secret: SecretStr | None = field(default=None, repr=False, compare=False)  # redacted in server messages

    def without_secret(self, text: str) -> str:
        """`text` with the key redacted, in case a server echoes it."""
        secret = self.secret.get_secret_value() if self.secret else ""
        return text.replace(secret, "***") if len(secret) > 3 else text


def canonical_json(value: object) -> str:
    """`value` as canonical JSON; other objects become the name of their type, since a `repr` may hold a secret."""
    return json.dumps(
        value,
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
        default=lambda other: f"<{type(other).__qualname__}>",
    )


def hash_key(value: object) -> str:
    """The sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


USUAL_PORTS: Final[Mapping[str, int]] = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
_OPENAI_MODEL: Final = "gpt-4.1-mini"
_SECONDS: Final = 2.0
_MOST_BYTES: Final = 1_000_000
_NO_CHAT: Final = ("embed", "rerank", "whisper", "tts", "bge-")


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server of chat models, with the names of its models."""

    name: str
    base_url: str
    models: tuple[str, ...]


def find_servers(ports: Mapping[str, int] = USUAL_PORTS) -> list[FoundServer]:
    """Find OpenAI if its key is in the environment, and servers that answer on their usual local ports; blocks."""
    found: list[FoundServer] = []
    if os.environ.get("OPENAI_API_KEY", "").strip():
        found.append(FoundServer("OpenAI", OPENAI_BASE_URL, (_OPENAI_MODEL,)))
    urls = {name: f"http://localhost:{port}/v1" for name, port in ports.items()}
    with ThreadPoolExecutor(len(urls) or 1) as threads:
        offered = dict(zip(urls, threads.map(models_at, urls.values()), strict=True))
    found += [FoundServer(name, urls[name], models) for name, models in offered.items() if models]
    return found


def models_at(base_url: str) -> tuple[str, ...]:
    """The chat models that a server lists; empty if none answers there. Only for addresses without a key."""
    import urllib.request
    from http.client import HTTPException

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{base_url.rstrip('/')}/models", timeout=_SECONDS) as answer:
            listed = json.loads(answer.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError, HTTPException):
        return ()
    return chat_models(listed)


def chat_models(listed: object) -> tuple[str, ...]:
    """The names in a server's list of models that may be chat models."""
    items = listed.get("data") if isinstance(listed, dict) else None
    names = [item.get("id") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    named = [name for name in names if isinstance(name, str) and name]
    return tuple(name for name in named if not any(word in name.lower() for word in _NO_CHAT))


def check_url(url: str, setting: str, example: str = OPENAI_BASE_URL) -> None:
    """Raise `ConfigurationError` naming `setting` if `url` is not an endpoint's address, or may contain a secret."""
    shown = shown_address(url)
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigurationError(
            f"{setting}: expected an address such as {example}, got {shown!r}.", help=f"Set {setting}."
        )
    exposed = ""
    if parts.username is not None or parts.password is not None:
        exposed = "contains a user name or password, which would be sent instead of the key"
    elif parts.query or parts.fragment:
        exposed = "has a query or fragment, where a key would be visible to anyone who sees the address"
    if exposed:
        raise ConfigurationError(
            f"{setting}: {shown} {exposed}.",
            help=f"Give the address alone, and the key as {setting.replace('_BASE_URL', '_API_KEY')}.",
        )
