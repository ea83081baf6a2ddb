"""The address of an endpoint, and the limiter that all calls to one of its models share."""

from __future__ import annotations

from urllib.parse import urlsplit

from ...errors import ConfigurationError
from ...settings.config import OPENAI_BASE_URL, Settings
from ...settings.key_trust import shown_address
from ..singleton import thread_safe_cache
from .model_identity import ModelIdentity
from .retry import Limiter


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
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(
            f"{setting}: {shown} contains a user name or password, which would be sent instead of the key.",
            help=f"Give the address alone, and the key as {setting.replace('_BASE_URL', '_API_KEY')}.",
        )
    if parts.query or parts.fragment:
        raise ConfigurationError(
            f"{setting}: {shown} has a query or fragment, where a key would be visible to anyone who sees the address.",
            help=f"Give the address alone, and the key as {setting.replace('_BASE_URL', '_API_KEY')}.",
        )


def limiter_for(settings: Settings, identity: ModelIdentity) -> Limiter:
    """The limiter of a model, shared by all runs of this process with the same limits."""
    return _limiter(
        identity.endpoint,
        identity.model,
        settings.max_concurrency,
        settings.max_retries,
        settings.request_timeout,
    )


@thread_safe_cache
def _limiter(_endpoint: str, _model: str, max_concurrency: int, max_retries: int, timeout: float) -> Limiter:
    return Limiter(max_concurrency=max_concurrency, max_retries=max_retries, timeout=timeout)
