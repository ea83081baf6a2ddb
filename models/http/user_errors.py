"""Turns a finally failed call into the user's error: endpoint, model, server message and remedy."""

from __future__ import annotations

from ...errors import CiteloomError
from ...plurals import counted
from .failures import EndpointBusyError, EndpointLostError, EndpointRefusedError, EndpointUnreachableError, one_line
from .model_identity import ModelIdentity
from .retry import CallFailedError

_BUSY = frozenset({"busy", "dropped", "timeout"})
_OF_ITS_CONTENT = frozenset({"request", "context", "broken"})


def to_user_error(failed: CallFailedError, identity: ModelIdentity, *, answered: bool) -> CiteloomError:
    """The error to raise for a call to `identity` that failed for good.

    Args:
        answered: whether the run has had an answer before. If so, everything is saved and the run pauses; if not,
            nothing was changed and the configuration is wrong.
    """
    message, remedy = _message_and_help(failed, identity)
    message = identity.without_secret(message)
    if failed.failure.kind in _BUSY:
        return EndpointBusyError(message, help=f"{remedy} {EndpointBusyError.default_help}".strip())
    if answered:
        return EndpointLostError(message, help=f"{remedy} {EndpointLostError.default_help}".strip())
    refused = EndpointUnreachableError if failed.failure.kind == "unreachable" else EndpointRefusedError
    return refused(message, help=remedy)


def is_refused_content(error: CiteloomError) -> bool:
    """Whether a call failed for what was in its prompt, so that one with another content may succeed."""
    cause = error.__cause__
    return isinstance(cause, CallFailedError) and cause.failure.kind in _OF_ITS_CONTENT


def _message_and_help(failed: CallFailedError, identity: ModelIdentity) -> tuple[str, str]:
    where, model = identity.endpoint, identity.model
    reason = one_line(failed.failure.reason)
    tries = "one try" if failed.tries == 1 else counted(failed.tries, "try", "tries")
    match failed.failure.kind:
        case "unreachable":
            return (
                f"{where}: cannot be reached for model {model} ({reason}).",
                _set(identity.url_setting, "Start the server, or"),
            )
        case "redirect":
            return (
                f"{where} redirects requests to model {model} ({reason}); redirects are not followed.",
                _set(identity.url_setting, "If that is the server you mean,"),
            )
        case "key":
            return f"{where} refuses the key for model {model} ({reason}).", _set(identity.key_setting)
        case "model":
            settings = " or ".join(filter(None, (identity.model_setting, identity.url_setting)))
            return f"{where} has no model {model} ({reason}).", _set(settings)
        case "quota":
            return f"{where}: the account's quota for model {model} is used up ({reason}).", "Top it up."
        case "context":
            return (
                f"{where}: the prompt is too long for model {model} ({reason}).",
                "Use a model with a longer context, or set CITELOOM_CONTEXT_TOKENS to the server's context size.",
            )
        case "request":
            return f"{where} refuses the request to model {model} ({reason}).", _set(identity.model_setting)
        case "broken":
            return (
                f"{where}: model {model} gave no valid answer in {tries} ({reason}).",
                _set(identity.url_setting, "Base addresses mostly end in /v1:"),
            )
        case "timeout":
            return (
                f"{where}: model {model} did not answer in time ({tries}).",
                "Raise CITELOOM_REQUEST_TIMEOUT or lower CITELOOM_MAX_CONCURRENCY.",
            )
        case "busy" | "dropped":
            asked = failed.failure.retry_after
            waiting = f"; it asked to wait {asked:.0f} s" if asked else ""
            return (
                f"{where}: model {model} could not answer in {tries} ({reason}{waiting}).",
                "Lower CITELOOM_MAX_CONCURRENCY if this happens often.",
            )


def _set(setting: str, otherwise: str = "") -> str:
    if not setting:
        return ""
    return f"{otherwise} set {setting}." if otherwise else f"Set {setting}."
