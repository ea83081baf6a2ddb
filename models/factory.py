"""Builds chat callers from settings: model, address, key and shared limiter.

Only the configured address is used: an ambient `OPENAI_BASE_URL` is ignored. Which key may be sent to it is decided by
the settings (`Settings.role_endpoint`, `key_trust.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..settings.config import RoleName, Settings
from .context_size import ContextSize
from .http.endpoint_address import check_url, limiter_for
from .http.model_identity import ModelIdentity, endpoint_name
from .journal.budget import Budget
from .journal.journal import Journal
from .journal.records import RunScope
from .journaled_chat import DialectMemory, JournaledChat, identity_of
from .singleton import thread_safe_cache

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from pydantic import SecretStr


def chat_model(settings: Settings, role: RoleName) -> BaseChatModel:
    """The LangChain model of a role, without its own retries and cache; raises `ConfigurationError`."""
    model, url, key = settings.role_endpoint(role)
    check_url(url, chat_identity(settings, role).url_setting)
    return _chat_openai(model, url, key, settings.request_timeout)


def chat_identity(settings: Settings, role: RoleName) -> ModelIdentity:
    """The identity of a role's model in the journal and in error messages."""
    model, url, key = settings.role_endpoint(role)
    own_model, own_url, own_key = (
        getattr(settings, f"{role}_{part}") is not None for part in ("model", "base_url", "api_key")
    )
    prefix = f"CITELOOM_{role.upper()}"
    # The remedy for a missing key names the setting at the level where the address was set.
    return ModelIdentity(
        endpoint=endpoint_name(url),
        model=model,
        parameters={"temperature": settings.temperature},
        url_setting=f"{prefix if own_url else 'CITELOOM_CHAT'}_BASE_URL",
        model_setting=f"{prefix if own_model else 'CITELOOM_CHAT'}_MODEL",
        key_setting=f"{prefix if own_url or own_key else 'CITELOOM_CHAT'}_API_KEY",
        secret=key,
    )


def chat_caller(
    settings: Settings,
    role: RoleName,
    *,
    journal: Journal,
    scope: RunScope,
    budget: Budget | None = None,
    context: ContextSize | None = None,
) -> JournaledChat:
    """The caller of a role, built from the settings; raises `ConfigurationError`."""
    identity = chat_identity(settings, role)
    if budget is not None:
        budget.require_price(identity.model)
    return JournaledChat(
        chat_model(settings, role),
        identity=identity,
        journal=journal,
        scope=scope,
        limiter=limiter_for(settings, identity),
        temperature=settings.temperature,
        dialect=_dialect(identity.endpoint, identity.model),
        budget=budget,
        context=context,
    )


def caller_for(
    model: BaseChatModel,
    settings: Settings,
    *,
    journal: Journal,
    scope: RunScope,
    budget: Budget | None = None,
    context: ContextSize | None = None,
) -> JournaledChat:
    """The caller of a custom LangChain model, which keeps its own temperature; raises `ConfigurationError`."""
    identity = identity_of(model)
    if budget is not None:
        budget.require_price(identity.model)
    limiter = limiter_for(settings, identity)
    return JournaledChat(
        model, identity=identity, journal=journal, scope=scope, limiter=limiter, budget=budget, context=context
    )


@thread_safe_cache
def _dialect(_endpoint: str, _model: str) -> DialectMemory:
    return DialectMemory()


@thread_safe_cache
def _chat_openai(model: str, url: str, key: SecretStr | None, timeout: float) -> BaseChatModel:
    from .http.chat_openai import LeanChatOpenAI
    from .http.client import NO_KEY, openai_client

    client = openai_client(url, key, timeout)
    given: dict[str, Any] = {
        "model": model,
        "base_url": url,
        "api_key": key or NO_KEY,
        "root_async_client": client,
        "async_client": client.chat.completions,
        "timeout": timeout,
        "max_retries": 0,
        "cache": False,
        # The chat completions API is the one that all these servers support.
        "use_responses_api": False,
    }
    return LeanChatOpenAI(**given)
