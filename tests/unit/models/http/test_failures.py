"""The kind of failure, from any exception that a provider raises."""

from __future__ import annotations

import socket
import ssl

import pytest
from pydantic import SecretStr

from citeloom.models.http.endpoints import ModelIdentity
from citeloom.models.http.failures import (
    BrokenAnswerError,
    CallFailedError,
    Failure,
    ServerRefusalError,
    classify_failure,
    retry_after,
    server_message,
    to_user_error,
)


class APIStatusError(Exception):
    """As the clients of several providers raise it."""

    def __init__(self, status_code: int, message: str = "") -> None:
        super().__init__(message)
        self.status_code = status_code


class TimeoutException(Exception):  # noqa: N818 - the name that is looked for
    pass


class TransportError(Exception):
    pass


class ConnectError(TransportError):
    pass


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ServerRefusalError(429, "slow down"), "busy"),
        (ServerRefusalError(500, "oops"), "busy"),
        (ServerRefusalError(529, "overloaded"), "busy"),
        (ServerRefusalError(408, "slow"), "busy"),
        (ServerRefusalError(501, "not implemented"), "request"),
        (ServerRefusalError(429, "insufficient_quota: you exceeded your current quota"), "quota"),
        (ServerRefusalError(429, "too many tokens per minute"), "busy"),
        (ServerRefusalError(402, "pay"), "quota"),
        (ServerRefusalError(401, "who are you"), "key"),
        (ServerRefusalError(403, "not from there"), "key"),
        (ServerRefusalError(404, "nothing here"), "model"),
        (ServerRefusalError(400, "model 'x' not found"), "model"),
        (ServerRefusalError(400, "maximum context length is 4096 tokens"), "context"),
        (ServerRefusalError(500, "exceeds the available context size"), "context"),
        (ServerRefusalError(413, "too large"), "context"),
        (ServerRefusalError(400, "bad field"), "request"),
        (ServerRefusalError(422, "bad field"), "request"),
        (APIStatusError(503, "from another provider"), "busy"),
        (BrokenAnswerError("no choices"), "broken"),
        (TimeoutError(), "timeout"),
        (TimeoutError(), "timeout"),
        (ConnectionRefusedError(111, "refused"), "unreachable"),
        (socket.gaierror(-2, "Name or service not known"), "unreachable"),
        (ssl.SSLCertVerificationError("self-signed certificate"), "unreachable"),
        (BrokenPipeError(32, "broken pipe"), "dropped"),
        (ConnectionResetError(104, "reset"), "dropped"),
        (caused(Exception("Connection error."), ConnectError("refused")), "unreachable"),
        (caused(Exception("Request timed out."), TimeoutException("read")), "timeout"),
        (caused(Exception("Connection error."), TransportError("closed")), "dropped"),
    ],
    ids=str,
)
def test_failures_are_classified(error: Exception, kind: str) -> None:
    failure = classify_failure(error)
    assert failure is not None
    assert failure.kind == kind
    assert failure.reason


@pytest.mark.parametrize("fault", [KeyError("x"), TypeError("our own"), RuntimeError("no"), ValueError("v")])
def test_a_programming_error_is_not_a_failed_call(fault: Exception) -> None:
    assert classify_failure(fault) is None


def test_the_requested_pause_is_kept() -> None:
    assert classify_failure(ServerRefusalError(429, "slow", 7.0)) == Failure("busy", "429: slow", 7.0)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        (
            {"retry-after": "Fri, 21 Nov 2025 10:00:30 GMT", "date": "Fri, 21 Nov 2025 10:00:00 GMT"},
            30.0,
        ),
        ({"retry-after": "Fri, 21 Nov 2025 09:00:00 GMT", "date": "Fri, 21 Nov 2025 10:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 21 Nov 2025 10:00:30 GMT"}, None),
        ({"retry-after": "soon", "date": "x"}, None),
        ({"retry-after-ms": "x"}, None),
    ],
)
def test_the_retry_after_header_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error": {"message": "no such key", "code": "invalid_api_key"}}', "no such key (invalid_api_key)"),
        ('{"error": "plain"}', "plain"),
        ('{"detail": "from FastAPI"}', "from FastAPI"),
        ('{"object": "error", "message": "from vLLM"}', "from vLLM"),
        ("<html><head><style>b{}</style></head><body>Bad\n Gateway</body></html>", "Bad Gateway"),
        ("", "no message"),
        ("a\nb", "a b"),
    ],
)
def test_the_message_of_a_server_is_extracted(body: str, message: str) -> None:
    assert server_message(body) == message


@pytest.mark.parametrize(
    ("url", "secret", "says", "never"),
    [
        ("http://localhost:1234/v1", None, "Start the server", "key"),
        ("https://api.openai.com/v1", None, "CITELOOM_CHAT_API_KEY (no key is set)", "Start the server"),
        ("https://api.openai.com/v1", SecretStr("sk-1"), "network", "key"),
    ],
)
def test_an_unreachable_server_is_reported_with_a_remedy(
    url: str, secret: SecretStr | None, says: str, never: str
) -> None:
    model = ModelIdentity(
        url, "gpt", {}, "CITELOOM_CHAT_BASE_URL", "CITELOOM_CHAT_MODEL", "CITELOOM_CHAT_API_KEY", secret
    )
    failed = CallFailedError(Failure("unreachable", "refused"), 1)
    help = to_user_error(failed, model, answered=False).help
    assert says in help and never not in help and "CITELOOM_CHAT_BASE_URL" in help
