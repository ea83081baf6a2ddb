"""Opens all configured services together for one command."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..documents import Paper
from ..documents.paper_names import Identifier
from ..documents.publication_status import Notice
from ..errors import ConfigurationError
from ..models.http.endpoints import check_url
from ..models.http.limiter import Clock
from ..program import NAME
from ..settings.config import MetadataService, Settings
from ..settings.key_trust import host_of
from ..stores.metadata_store import MetadataStore
from . import service_works as works
from .service_client import ServiceClient, ServiceError
from .service_works import CROSSREF, DATACITE, OPENALEX, SEMANTIC_SCHOLAR, Work

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
SERVICE_NAMES: Final[dict[MetadataService, str]] = {
    "crossref": CROSSREF,
    "datacite": DATACITE,
    "openalex": OPENALEX,
    "semantic_scholar": SEMANTIC_SCHOLAR,
}
# Minimum seconds between requests; for Crossref, its published limits for lists, inside and outside the polite pool.
_INTERVALS: Final[dict[MetadataService, float]] = {"datacite": 0.1, "openalex": 0.1, "semantic_scholar": 1.1}
_POLITE, _IMPOLITE = 0.34, 1.05
_SECONDS_OF_A_DAY: Final = 86_400
_CONNECT_TIMEOUT: Final = 10.0


@dataclass(slots=True)
class Responses:
    """The services' responses for one paper: works, most authoritative first, further notices, and failures."""

    works: list[Work] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Services:
    """Clients of the configured services, which share the cache and the connections."""

    clients: dict[MetadataService, ServiceClient]
    store: MetadataStore
    http: httpx.AsyncClient
    clock: Clock
    traffic: Counter[str] = field(default_factory=Counter)

    async def look_up(self, identifier: Identifier) -> Responses:
        """Look up the work with this identifier at all services; failures are collected, not raised."""
        responses = Responses()

        async def ask(service: MetadataService) -> Work | None:
            return await self._ask(service, responses, lambda client: works.look_up_work(client, identifier))

        async def ask_registrar() -> Work | None:
            """Ask Crossref, also for notices about the work, else DataCite."""
            work = None if identifier.arxiv else await ask("crossref")
            if work is None:
                return await ask("datacite")
            updates = await self._ask("crossref", responses, lambda one: works.crossref_notices(one, identifier.doi))
            responses.notices = updates or []
            return work

        found = await asyncio.gather(ask_registrar(), ask("openalex"), ask("semantic_scholar"))
        responses.works = [work for work in found if work is not None]
        return responses

    async def search(self, paper: Paper) -> Responses:
        """Works that may be the paper, from the services that can search; failures are collected, not raised."""
        responses = Responses()
        found = await asyncio.gather(
            self._ask("crossref", responses, lambda client: works.crossref_candidates(client, paper)),
            self._ask("semantic_scholar", responses, lambda client: works.semantic_scholar_candidates(client, paper)),
        )
        responses.works = [work for works in found for work in works or ()]
        return responses

    async def _ask(
        self, service: MetadataService, responses: Responses, request: Callable[[ServiceClient], Awaitable[T]]
    ) -> T | None:
        if service not in self.clients:
            return None
        try:
            return await request(self.clients[service])
        except ServiceError as error:
            if error.message not in responses.failures:
                responses.failures.append(error.message)
            return None


def service_hosts(settings: Settings) -> str:
    """The services and their hosts, for the notice shown before anything is sent."""
    named = [
        f"{SERVICE_NAMES[name]} ({host_of(settings.service_endpoint(name)[0])})"
        for name in _configured_services(settings)
    ]
    return ", ".join(named)


@asynccontextmanager
async def open_services(
    settings: Settings,
    store: MetadataStore,
    *,
    offline: bool = False,
    refresh: bool = False,
    clock: Clock | None = None,
) -> AsyncIterator[Services]:
    """Open the configured services; with `refresh`, cached answers are requested again.

    Raises `ConfigurationError` if no service is configured, or a key may not be sent.
    """
    import httpx

    timeout = httpx.Timeout(settings.request_timeout, connect=min(_CONNECT_TIMEOUT, settings.request_timeout))
    async with httpx.AsyncClient(timeout=timeout, follow_redirects=False) as http:
        services = Services({}, store, http, clock or Clock())
        for name in _configured_services(settings):
            services.clients[name] = ServiceClient(
                store=store,
                http=http,
                max_age=-1 if refresh else settings.metadata_days * _SECONDS_OF_A_DAY,
                offline=offline,
                timeout=settings.request_timeout,
                clock=services.clock,
                traffic=services.traffic,
                **_request_settings(settings, name),
            )
        yield services


def _request_settings(settings: Settings, service: MetadataService) -> dict[str, Any]:
    """Address, key and request rate of a service; raises `ConfigurationError` if its key may not be sent there."""
    url, key, mailto = settings.service_endpoint(service)
    setting = f"{service}_base_url"
    check_url(url, f"CITELOOM_{setting.upper()}", str(type(settings).model_fields[setting].default))
    secret = key.get_secret_value() if key is not None else ""
    private = {"mailto": mailto} if mailto and service in ("crossref", "openalex") else {}
    try:
        user_agent = f"{NAME}/{version(NAME)}"
    except PackageNotFoundError:
        user_agent = f"{NAME}/0"
    headers = {"User-Agent": f"{user_agent} (mailto:{mailto})" if mailto and service == "crossref" else user_agent}
    if service == "openalex" and secret:
        private["api_key"] = secret
    if service == "semantic_scholar" and secret:
        headers["x-api-key"] = secret
    interval = (_POLITE if mailto else _IMPOLITE) if service == "crossref" else _INTERVALS[service]
    named = {"name": SERVICE_NAMES[service], "base_url": url}
    return {**named, "interval": interval, "private": private, "headers": headers}


def _configured_services(settings: Settings) -> list[MetadataService]:
    wanted = [name for name in SERVICE_NAMES if name in settings.metadata_services]
    if not wanted:
        raise ConfigurationError(
            "Setting metadata_services is empty, so there is no service to ask.",
            help=f"Name some of {', '.join(SERVICE_NAMES)} in CITELOOM_METADATA_SERVICES, as a JSON list.",
        )
    return wanted
