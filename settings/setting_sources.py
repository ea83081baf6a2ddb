"""Where settings come from: the values of all sources, and where each was set."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_origin

from ..errors import ConfigurationError
from .key_trust import DOTENV, ENVIRONMENT, FLAG, FOLDER_TOML, is_own, user_configuration

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_PREFIX: Final = "citeloom_"


@dataclass(slots=True)
class FoundValues:
    """The values of settings, the origin of each, and the user's own addresses, in case a folder names others."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: Any, origin: str) -> None:
        """Add a value from the next source; earlier ones take precedence, also for single entries of an object."""
        if name.endswith("_base_url") and is_own(origin) and isinstance(value, str):
            self.own.setdefault(name, value)
        known = self.values.setdefault(name, value)
        if isinstance(known, dict) and isinstance(value, dict):
            self.values[name] = {**value, **known}
        self.origins.setdefault(name, origin)


def find_values(
    given: Mapping[str, Any], given_origins: Mapping[str, str], fields: Mapping[str, FieldInfo]
) -> FoundValues:
    """The values of `fields` from all sources; raises `ConfigurationError` for a source that cannot be read."""
    found = FoundValues()
    own_file = user_configuration()
    sources = (
        (_read_variables(os.environ, ENVIRONMENT, fields), ENVIRONMENT),
        (_read_variables(_read_file(Path(DOTENV), _parse_dotenv), DOTENV, fields), DOTENV),
        (_read_file(Path(FOLDER_TOML), _parse_toml), FOLDER_TOML),
        (_read_file(own_file, _parse_toml), str(own_file)),
    )
    for name, value in given.items():
        found.add(name, value, given_origins.get(name, FLAG))
    for values, origin in sources:
        for name in fields.keys() & values.keys():
            found.add(name, values[name], origin)
    return found


def _read_variables(
    variables: Mapping[str, str | None], origin: str, fields: Mapping[str, FieldInfo]
) -> dict[str, Any]:
    """The settings among environment variables; an empty one counts as not set: as a path it would be this folder."""
    found: dict[str, Any] = {}
    for variable, text in variables.items():
        name = variable.lower().removeprefix(_PREFIX)
        if text and name in fields and variable.lower().startswith(_PREFIX):
            try:
                in_json = get_origin(fields[name].annotation) in (dict, list)
                found[name] = json.loads(text) if in_json else text
            except (ValueError, RecursionError):
                message = f"{variable} ({origin}): is not valid JSON."
                raise ConfigurationError(message, help="Its value must be JSON.") from None
    return found


def _read_file(path: Path, parse: Callable[[str], Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return parse(path.read_text("utf-8")) if path.is_file() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: {error}.", help="Correct or remove the file.") from error


def _parse_toml(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


def _parse_dotenv(text: str) -> dict[str, str | None]:
    """Parse `.env` without expanding `${NAME}`, which would let a foreign folder copy the environment into settings."""
    from io import StringIO

    from dotenv import dotenv_values

    written = dotenv_values(stream=StringIO(text), interpolate=False)
    for name, value in written.items():
        if name.lower().startswith(_PREFIX) and "${" in (value or ""):
            raise ConfigurationError(
                f"{Path(DOTENV)}: {name} holds '${{', but variables are not expanded there.",
                help="Write the value itself, or set it in the environment.",
            )
    return written
