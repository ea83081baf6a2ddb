"""Downloads a free PDF that a service names, in bounded time and size, and from no other host than the one named."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ..errors import InputError
from ..models.http.failures import (
    BrokenAnswerError,
    RedirectedError,
    ServerRefusalError,
    classify_failure,
    one_line,
    retry_after,
)
from ..models.http.response_body import ACCEPTED_ENCODING
from ..settings.key_trust import host_of
from .service_client import read_body, same_host

if TYPE_CHECKING:
    import httpx

MOST_BYTES: Final = 100_000_000
_SECONDS: Final = 300.0
_MOST_REDIRECTS: Final = 3
_PDF: Final = b"%PDF-"
_START: Final = 1024  # readers accept the mark within the first kilobyte


class DownloadError(InputError):
    """A free PDF could not be had; nothing was stored."""


async def download_pdf(http: httpx.AsyncClient, url: str, *, named_by: str = "", seconds: float = _SECONDS) -> bytes:
    """The PDF at a link; `named_by` is the address of the service that named it. Raises `DownloadError`.

    Only https links to public hosts are followed, or any on the host of the service itself.
    """
    if not may_download(url, named_by):
        raise DownloadError(f"{host_of(url)}: is no public https address, so nothing was downloaded.")
    try:
        async with asyncio.timeout(seconds):
            body = await _fetched(http, url)
    except RedirectedError as error:
        raise DownloadError(
            f"{host_of(url)}: redirects {error}, which is not followed.", help=f"Download it yourself: {url}"
        ) from error
    except Exception as error:
        failure = classify_failure(error)
        if failure is None:
            raise
        raise DownloadError(
            f"{host_of(url)}: gave no file ({one_line(failure.reason) or failure.kind}).",
            help=f"Download it yourself: {url}",
        ) from error
    if _PDF not in body[:_START]:
        raise DownloadError(f"{host_of(url)}: what it gave is no PDF.", help=f"Download it yourself: {url}")
    return body


def may_download(url: str, named_by: str = "") -> bool:
    """Whether a link may be followed: https to a host that is not a private address, or the service's own host."""
    try:
        parts, service = urlsplit(url), urlsplit(named_by)
        host = parts.hostname or ""
        if named_by and (parts.scheme, host, parts.port) == (service.scheme, service.hostname, service.port):
            return True
    except ValueError:
        return False
    if (
        parts.scheme != "https"
        or parts.username is not None
        or "." not in host
        or host.endswith((".local", ".internal"))
    ):
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return True


async def _fetched(http: httpx.AsyncClient, url: str) -> bytes:
    headers = {"Accept": "application/pdf", "Accept-Encoding": ACCEPTED_ENCODING}
    for _ in range(_MOST_REDIRECTS + 1):
        async with http.stream("GET", url, headers=headers, follow_redirects=False) as response:
            if 300 <= response.status_code < 400:
                url = same_host(url, str(response.headers.get("location", "")))
                continue
            if response.status_code >= 400:
                raise ServerRefusalError(response.status_code, "refused", retry_after(response.headers))
            length = str(response.headers.get("content-length", ""))
            if length.isdigit() and int(length) > MOST_BYTES:
                raise BrokenAnswerError(f"it has more than {MOST_BYTES // 1_000_000} MB")
            return await read_body(response, MOST_BYTES)
    raise RedirectedError("too often")
