"""Decides which key may be sent to which address, based on where each was set.

A key may only be sent to an address that is at least as trusted as the key: a key from the environment is never sent
to a server named by a folder or a home.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from ..errors import ConfigurationError

FLAG: Final = "flag"
ENVIRONMENT: Final = "environment"
DEFAULT: Final = "default"
DOTENV: Final = ".env"
FOLDER_TOML: Final = "citeloom.toml"
RUN: Final = "the register of runs"
CONTEXT: Final = "the context of the run"

# The distance of an origin from the user; unlisted origins are the user's own: flag, environment, own configuration.
_DISTANCE: Final = {DOTENV: 1, FOLDER_TOML: 1, RUN: 2, CONTEXT: 2}


def clean_key(key: SecretStr) -> SecretStr:
    """`key` without characters copied by mistake; raises ValueError if it is not valid in an HTTP header."""
    plain = key.get_secret_value().strip()
    if not plain.isascii() or not plain.isprintable() or " " in plain:
        raise ValueError("a key is plain ASCII without spaces")
    return SecretStr(plain)


ApiKey = Annotated[SecretStr, AfterValidator(clean_key)]


@dataclass(frozen=True, slots=True)
class KeyForAddress:
    """A key with its variable and origin, and an endpoint's address with its setting and origin.

    `own` is the user's own value of that setting.
    """

    secret: SecretStr
    variable: str
    key_origin: str
    url: str
    setting: str
    origin: str
    own: str


def user_folder(variable: str, default: str) -> Path:
    """The user's folder of a kind, by the XDG base directory specification."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path(default).expanduser()


def user_configuration() -> Path:
    """The path of the user's own `citeloom.toml`, outside of any project."""
    folder = user_folder("XDG_CONFIG_HOME", "~/.config")
    return (folder if folder.is_absolute() else Path(os.devnull)) / "citeloom" / FOLDER_TOML


def is_own(origin: str) -> bool:
    """Whether the origin is the user, not a folder, a home or a request."""
    return origin not in _DISTANCE


def require_trusted(key: KeyForAddress, vouched: Collection[str] = ()) -> None:
    """Raise `ConfigurationError` if a key may not be sent to its address.

    `vouched` are marks of keys and addresses that were used together before.
    """
    variable, host, origin = f"CITELOOM_{key.setting.upper()}", host_of(key.url), key.origin
    if not (
        _DISTANCE.get(origin, 0) <= _DISTANCE.get(key.key_origin, 0)
        or same_endpoint(key.url, key.own)
        or (origin == RUN and key_mark(key.secret, key.url) in vouched)
        # A request to the local LangGraph server may name another local server, as in Studio's form.
        or (origin == CONTEXT and is_loopback(key.url))
    ):
        place = str(Path.cwd() / origin) if origin in (DOTENV, FOLDER_TOML) else origin[:1].upper() + origin[1:]
        source = "the environment" if key.key_origin == ENVIRONMENT else key.key_origin
        raise ConfigurationError(
            f"{place} names {host} as {key.setting}, but {key.variable} is from {source}: the key was not sent.",
            help=f"If you trust {host} with it, set {variable}={shown_address(key.url)} in the environment.",
        )
    if key.key_origin == ENVIRONMENT and urlsplit(key.url).scheme == "http" and not is_loopback(key.url):
        raise ConfigurationError(
            f"{variable}: {key.variable} would go to {host} unencrypted over http: the key was not sent.",
            help=f"Use https, or put a key for this server next to its address in {user_configuration()}.",
        )


def key_mark(secret: SecretStr, url: str) -> str:
    """A mark that proves use of the key with this address; without the key it cannot be forged or reversed."""
    import hmac  # 5 ms, which most commands save

    return hmac.new(secret.get_secret_value().encode(), endpoint_name(url).encode(), "sha256").hexdigest()


def same_endpoint(one: str, other: str) -> bool:
    return endpoint_name(one) == endpoint_name(other)


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """The host and port of an address, for messages."""
    try:
        parts = urlsplit(url)
        named = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        named = ""
    return named or "an address that cannot be read"


def shown_address(url: str) -> str:
    """The address without parts that may be secret: user name, password, query and fragment."""
    bare = re.sub(r"^([^/]*//)?.*@", lambda found: f"{found[1] or ''}***@", url, flags=re.DOTALL)
    return re.sub(r"[?#].*", lambda found: f"{found[0][0]}***", bare, flags=re.DOTALL)


def endpoint_name(url: str) -> str:
    """The address without trailing slash, password and query."""
    parts = urlsplit(url.strip())
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}{parts.path.rstrip('/')}"
