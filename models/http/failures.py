"""Failures of model calls: their classification for retries, and the errors that the user sees.

A call that finally fails raises `EndpointRefusedError` if the endpoint never answered this run (exit code 2),
`EndpointLostError` if it did (a pause), or `EndpointBusyError` (always a pause).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

from ...errors import CiteloomError, ConfigurationError, PausedError
from ...plurals import counted
from ...settings.key_trust import is_loopback
from .endpoints import ModelIdentity

FailureKind = Literal[
    "busy",  # 429, 5xx: retried while all calls to the model wait
    "dropped",  # the connection broke: retried
    "timeout",
    "broken",  # an invalid answer
    "unreachable",
    "redirect",  # a redirect to another address, which is not followed
    "key",
    "model",
    "quota",
    "context",
    "request",
]

# Exception classes by name, so that no provider is imported and any LangChain model is supported.
_KINDS: Final[Mapping[FailureKind, frozenset[str]]] = {
    "unreachable": frozenset(
        "ConnectError ConnectTimeout ConnectionRefusedError ProxyError SSLError UnsupportedProtocol gaierror".split()
    ),
    "timeout": frozenset({"TimeoutException", "TimeoutError"}),
    "dropped": frozenset({"TransportError", "ConnectionError"}),
}
_BUSY_STATUSES: Final = frozenset({408, 409, 425, 429})
_NOT_BUSY: Final = frozenset({501, 505})
_CONTEXT = re.compile(
    r"context.?(?:length|window|size)|too many tokens|prompt is too long|maximum (?:context|model length)", re.I
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|insufficient (?:balance|credits)", re.I)
_NO_MODEL = re.compile(
    r"model_not_found|model .{0,80}(?:not found|not exist|not loaded)|(?:no such|invalid) model", re.I
)
_MESSAGE_LENGTH: Final = 300
_START_OF_PAGE: Final = 4_000
_FOR_EVER: Final = 1e9  # seconds
# Terminal control sequences: a server's text ends up in error messages.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class EndpointRefusedError(ConfigurationError):
    """The endpoint cannot be used as configured; it has not answered this run yet."""


class EndpointUnreachableError(EndpointRefusedError):
    """The endpoint cannot be reached; it has not answered this run yet."""


class EndpointLostError(PausedError):
    """The endpoint answered this run before, but no longer does."""


class EndpointBusyError(PausedError):
    """Every try ended in a busy response, a broken connection or a timeout."""


class ServerRefusalError(Exception):
    """A response with status 400 or above; never leaves `models`."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status_code = status
        self.message = message
        self.retry_after = retry_after


class RedirectedError(Exception):
    """A redirect, not followed since prompts and keys go only to the configured address; never leaves `models`."""


class BrokenAnswerError(Exception):
    """An invalid answer: not JSON, HTML, or empty; never leaves `models`."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one try failed; `reason` is one line, `retry_after` the seconds that the server requested."""

    kind: FailureKind
    reason: str
    retry_after: float | None = None


class CallFailedError(Exception):
    """A call failed for good after `tries`; never leaves `models`."""

    def __init__(self, failure: Failure, tries: int) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.tries = tries


def classify_failure(error: BaseException) -> Failure | None:
    """Classify a provider's exception; None if it is a bug rather than a failed call."""
    for cause in _causes(error):
        if isinstance(cause, BrokenAnswerError):
            return Failure("broken", one_line(str(cause)))
        if isinstance(cause, RedirectedError):
            return Failure("redirect", one_line(str(cause)))
        status = getattr(cause, "status_code", None)
        if isinstance(status, int) and status >= 400:
            message = getattr(cause, "message", None)
            reason = one_line(f"{status}: {message if isinstance(message, str) and message else cause}")
            if _QUOTA.search(reason) or status == 402:
                return Failure("quota", reason)
            if status in (401, 403):
                return Failure("key", reason)
            if status in (404, 405, 410):
                return Failure("model", reason)
            if (status != 429 and _CONTEXT.search(reason)) or status == 413:
                return Failure("context", reason)
            if status in _BUSY_STATUSES or (status >= 500 and status not in _NOT_BUSY):
                wait = getattr(cause, "retry_after", None)
                headers = getattr(getattr(cause, "response", None), "headers", None)
                if not isinstance(wait, int | float):
                    wait = None if headers is None else retry_after(headers)
                return Failure("busy", reason, wait)
            return Failure("model" if _NO_MODEL.search(reason) else "request", reason)
        names = {base.__name__ for base in type(cause).__mro__}
        kind = next((kind for kind, known in _KINDS.items() if names & known), None)
        if kind is not None:
            messages = [str(deeper) for deeper in _causes(cause) if str(deeper)]
            return Failure(kind, one_line(messages[-1] if messages else type(cause).__name__))
    return None


def retry_after(headers: Any) -> float | None:
    """Seconds to wait according to `headers` (`retry-after-ms`, or `Retry-After` as seconds or a date)."""
    from email.utils import parsedate_to_datetime  # lists of papers start without it

    try:
        if milliseconds := headers.get("retry-after-ms"):
            seconds = float(milliseconds) / 1000
            return min(max(0.0, seconds), _FOR_EVER) if not math.isnan(seconds) else None
        asked = headers.get("retry-after")
        if not asked:
            return None
        if re.fullmatch(r"\s*[0-9]+(\.[0-9]+)?\s*", asked):
            return min(float(asked), _FOR_EVER)
        sent = headers.get("date")
        start = parsedate_to_datetime(sent) if sent else None
        # Without the server's own date, its clock and therefore the wait are unknown.
        return None if start is None else max(0.0, (parsedate_to_datetime(asked) - start).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def server_message(body: str) -> str:
    """The message of an error body in any of the known formats, else the body itself, shortened."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        # Only the start of a page is read, since unclosed tags would take quadratic time (bounded: 4,000 characters).
        text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", body[:_START_OF_PAGE], flags=re.S | re.I)
        return one_line(text) or "no message"
    return _error_message(data)


def _error_message(data: Any) -> str:
    for _ in range(3):
        if not isinstance(data, dict):
            break
        inner = data.get("error") or data.get("message") or data.get("detail")
        code = data.get("code")
        if isinstance(inner, str) and isinstance(code, str) and code not in inner:
            inner = f"{inner} ({code})"
        if isinstance(inner, str) and isinstance(data.get("n_ctx"), int) and str(data["n_ctx"]) not in inner:
            inner = f"{inner} (n_ctx {data['n_ctx']})"
        if inner is None:
            break
        data = inner
    try:
        return one_line(data if isinstance(data, str) else json.dumps(data)) or "no message"
    except RecursionError:
        return "a message that is nested too deeply"


def raise_embedded_error(error: object) -> NoReturn:
    """Raise an error found inside an answer: `ServerRefusalError`, or `BrokenAnswerError` if it has no status."""
    code = error.get("code") if isinstance(error, dict) else None
    message = _error_message({"error": error})
    if isinstance(code, int) and 400 <= code < 600:
        raise ServerRefusalError(code, message)
    raise BrokenAnswerError(message)


def one_line(text: str) -> str:
    """`text` on one line, shortened, without terminal control sequences."""
    flat = _UNSEEN.sub("", " ".join(text.split()))
    return flat if len(flat) <= _MESSAGE_LENGTH else f"{flat[: _MESSAGE_LENGTH - 3]}..."


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


_BUSY = frozenset({"busy", "dropped", "timeout"})
_OF_ITS_CONTENT = frozenset({"request", "context", "broken"})
_MESSAGES: Final[Mapping[FailureKind, str]] = {
    "unreachable": "{where}: cannot be reached for model {model} ({reason}).",
    "redirect": "{where} redirects requests to model {model} ({reason}); redirects are not followed.",
    "key": "{where} refuses the key for model {model} ({reason}).",
    "model": "{where} has no model {model} ({reason}).",
    "quota": "{where}: the account's quota for model {model} is used up ({reason}).",
    "context": "{where}: the prompt is too long for model {model} ({reason}).",
    "request": "{where} refuses the request to model {model} ({reason}).",
    "broken": "{where}: model {model} gave no valid answer in {tries} ({reason}).",
    "timeout": "{where}: model {model} did not answer in time ({tries}).",
    "busy": "{where}: model {model} could not answer in {tries} ({reason}{waiting}).",
    "dropped": "{where}: model {model} could not answer in {tries} ({reason}{waiting}).",
}


def to_user_error(failed: CallFailedError, identity: ModelIdentity, *, answered: bool) -> CiteloomError:
    """The error for a call that failed for good: if the run was `answered` before, it pauses with everything saved."""
    failure = failed.failure
    message = _MESSAGES[failure.kind].format(
        where=identity.endpoint,
        model=identity.model,
        reason=one_line(failure.reason),
        tries="one try" if failed.tries == 1 else counted(failed.tries, "try", "tries"),
        waiting=f"; it asked to wait {failure.retry_after:.0f} s" if failure.retry_after else "",
    )
    message, remedy = identity.without_secret(message), _remedy(failure.kind, identity)
    if failure.kind in _BUSY:
        return EndpointBusyError(message, help=f"{remedy} {EndpointBusyError.default_help}".strip())
    if answered:
        return EndpointLostError(message, help=f"{remedy} {EndpointLostError.default_help}".strip())
    refused = EndpointUnreachableError if failure.kind == "unreachable" else EndpointRefusedError
    return refused(message, help=remedy)


def is_refused_content(error: CiteloomError) -> bool:
    """Whether a call was refused for the content of its prompt, so that other content may succeed."""
    cause = error.__cause__
    return isinstance(cause, CallFailedError) and cause.failure.kind in _OF_ITS_CONTENT


# A remedy that names a setting is left out if there is no setting to correct.
_REMEDIES: Final[Mapping[FailureKind, str]] = {
    "unreachable": "Start the server, or set {setting}.",
    "redirect": "If that is the server you mean, set {setting}.",
    "broken": "Base addresses mostly end in /v1: set {setting}.",
    **dict.fromkeys(("key", "model", "request"), "Set {setting}."),
    "quota": "Top it up.",
    "context": "Use a model with a longer context, or set CITELOOM_CONTEXT_TOKENS to the server's context size.",
    "timeout": "Raise CITELOOM_REQUEST_TIMEOUT or lower CITELOOM_MAX_CONCURRENCY.",
    **dict.fromkeys(("busy", "dropped"), "Lower CITELOOM_MAX_CONCURRENCY if this happens often."),
}


def _remedy(kind: FailureKind, identity: ModelIdentity) -> str:
    url, key, model = identity.url_setting, identity.key_setting, identity.model_setting
    if kind == "unreachable" and not is_loopback(identity.endpoint):
        no_key = f", set {key} (no key is set)" if key and identity.secret is None else ""
        return f"Check the network connection{no_key}{f', or set {url} for another server' if url else ''}."
    setting = {"key": key, "request": model, "model": " or ".join(filter(None, (model, url)))}.get(kind, url)
    remedy = _REMEDIES[kind]
    return remedy.format(setting=setting) if setting or "{" not in remedy else ""
