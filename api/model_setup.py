"""Finds a chat model, tries it, and writes it to the user's settings.

A key goes to the operating system's keyring where one works, else into the user's own file, which only they can read;
it is never shown again, and never part of a library.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from pydantic import SecretStr

from ..documents.safe_files import replace_file
from ..errors import InputError
from ..graph.session import ROLE_NAMES, Session
from ..models.chat_caller import chat_endpoint, chat_identity
from ..models.context_size import list_models
from ..models.http.endpoints import USUAL_PORTS, FoundServer, chat_models, find_servers, models_at
from ..settings.config import EXTRACTIVE, KEYRING, OPENAI_BASE_URL, RoleName, Settings, load_settings
from ..settings.key_trust import DEFAULT, FLAG, clean_key, same_endpoint, shown_address, user_configuration
from .blocking import threaded

_log = logging.getLogger("citeloom.server")
MODEL_ROLES: Final[Mapping[str, str]] = {
    "chat": "All work without a separate model below",
    "agent": "Plans searches",
    "reader": "Reads papers for evidence",
    "writer": "Writes sections and answers",
    "judge": "Judges whether a source supports a sentence",
    "summarizer": "Summarises papers that have no abstract",
    "vision": "Describes figures",
}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model of a role, its address and a new key; without a model, the role uses the chat model."""

    role: str
    model: str = ""
    base_url: str = ""
    key: str = ""

    @property
    def names(self) -> tuple[str, str, str]:
        return f"{self.role}_model", f"{self.role}_base_url", f"{self.role}_api_key"

    def values(self, settings: Settings) -> dict[str, Any]:
        """The changed settings by name; a stored key is kept only for the same address. Raises `InputError`."""
        if self.role not in MODEL_ROLES:
            raise InputError(f"There is no role {self.role!r:.40}.", help=f"The roles are {', '.join(MODEL_ROLES)}.")
        usual = OPENAI_BASE_URL if self.role == "chat" else settings.chat_base_url
        model, url = self.model.strip(), (self.base_url.strip() or usual)
        if not re.fullmatch(r"https?://[\w.:\[\]-]+(/[\w./~%+-]*)?", url, re.ASCII):
            raise InputError("This is not a server's address.", help="Give one such as http://localhost:11434/v1.")
        try:
            key = clean_key(SecretStr(self.key)) if self.key.strip() else None
        except ValueError as error:
            raise InputError(f"The key cannot be used: {error}.", help="Copy it again.") from error
        before = getattr(settings, self.names[1]) or settings.chat_base_url
        if key is None and model and same_endpoint(before, url):
            key = getattr(settings, self.names[2])
        if self.role == "chat":
            return dict(zip(self.names, (model or EXTRACTIVE, url, key), strict=True))
        return dict(zip(self.names, (model or None, url if model else None, key if model else None), strict=True))


async def atry_choice(session: Session, choice: ModelChoice) -> None:
    """Make one small call to a model before it is chosen; raises `InputError` if it fails."""
    role = "writer" if choice.role == "chat" else choice.role
    values = {
        f"{role}{name.removeprefix(choice.role)}": value for name, value in choice.values(session.settings).items()
    }
    await _try_model(session.settings.with_own(values, FLAG), role)


async def alist_models(session: Session, choice: ModelChoice) -> list[str]:
    """The chat models that the address of a choice lists with its key; empty if it does not say."""
    # With a model, as a stored key is given only to a choice that has one.
    values = replace(choice, model=EXTRACTIVE).values(session.settings)
    _, url, key = (values[name] for name in choice.names)
    return list(chat_models(await list_models(url, key)))


@threaded
def achoose_model(session: Session, choice: ModelChoice) -> str:
    """Save the model of a role in the user's settings and use it from now on; returns where its key is stored.

    Raises `InputError` if a source with precedence sets one of the values, or if the file cannot be written.
    """
    settings, file = session.settings, user_configuration()
    values, key_name = choice.values(settings), f"{choice.role}_api_key"
    for name in [name for name in values if settings.origin(name) not in (DEFAULT, str(file))]:
        if values[name] != getattr(settings, name):
            help_ = "Change or remove it there: it takes precedence over your settings file."
            raise InputError(f"{name} is set by {settings.origin(name)}.", help=help_)
        del values[name]
    key = values[key_name].get_secret_value() if values.get(key_name) is not None else None
    in_keyring = _keep_in_keyring(key_name, key)
    write_settings(file, {**values, key_name: KEYRING if in_keyring else key})
    session.adopt(settings.with_own(values, str(file)))
    return "" if key is None else "your keyring" if in_keyring else str(file)


def _keep_in_keyring(name: str, key: str | None) -> bool:
    """Store a key in the operating system's keyring, or remove it for None; returns whether it is stored there."""
    import keyring  # searches for installed backends

    try:
        if key is not None:
            keyring.set_password("citeloom", name, key)
            return keyring.get_password("citeloom", name) == key
        if keyring.get_password("citeloom", name) is not None:
            keyring.delete_password("citeloom", name)
    except Exception as error:  # noqa: BLE001 - keyring lets errors of D-Bus, GLib and Windows through
        _log.warning("The keyring cannot be used (%s).", type(error).__name__)  # the settings file is private as well
    return False


async def aoffered_models(session: Session) -> list[str]:
    """List the models to choose from for a question: the configured one first, then those that its endpoint lists.

    Empty if there is no chat model, or if every role has a separate model; includes "extractive" if no role has one.
    """
    settings, own = session.settings, {name: getattr(session.settings, f"{name}_model") for name in ROLE_NAMES}
    role = next((name for name, model in own.items() if not model), None)
    if session.chat_model is not None or role is None or settings.chat_model == EXTRACTIVE:
        return []
    model, url, key = settings.role_endpoint(role)
    at_it = [name for other, name in own.items() if name and settings.address_of(other)[1] == url]
    listed = chat_models(await list_models(url, key))
    return list(dict.fromkeys([model, *at_it, *listed, *([] if any(own.values()) else [EXTRACTIVE])]))


async def atry_model(model: str, url: str) -> None:
    """Make one small call to a model at an address; raises `InputError` if it fails."""
    await _try_model(load_settings(chat_model=model, chat_base_url=url), "writer")


async def _try_model(settings: Settings, role: str) -> None:
    named = cast("RoleName", role)
    model, url = settings.address_of(named)
    try:
        asked = {"model": model, "messages": [{"role": "user", "content": "Answer with the word OK."}]}
        await chat_endpoint(settings, named).chat({**asked, "max_completion_tokens": 64})
    except InputError:
        raise
    except Exception as error:
        said = chat_identity(settings, named).without_secret(" ".join(str(error).split()))[:300]
        missing = getattr(error, "status_code", None) == 404 and not url.rstrip("/").endswith("/v1")
        help_ = "the address: it usually ends in /v1" if missing else "the server, the model's name and the key"
        raise InputError(
            f"{shown_address(url)}: {model} did not answer ({said or type(error).__name__}).",
            help=f"Nothing was written. Check {help_}.",
        ) from error


def write_settings(file: Path, values: Mapping[str, str | None]) -> None:
    """Set values in a TOML file, and remove those that are None, leaving other lines unchanged."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        tables = next((place for place, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
        names = "|".join(map(re.escape, values))
        kept = [line for line in lines[:tables] if not re.match(rf"\s*(?:{names})\s*=", line)]
        given = [
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items() if value is not None
        ]
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, "\n".join([*kept, *given, *lines[tables:], ""]).encode("utf-8"), private=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read or written ({error}).") from error
