"""Where settings come from: each source also records where it set a value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dotenv import dotenv_values
from pydantic_settings import BaseSettings, DotEnvSettingsSource, PydanticBaseSettingsSource, TomlConfigSettingsSource
from pydantic_settings.sources.utils import parse_env_vars

from ..errors import ConfigurationError
from .key_trust import FLAG, is_own

ORIGINS: Final = "origins of the settings"  # no environment variable or file entry can have this name


class TrackedSource(PydanticBaseSettingsSource):
    """A settings source that also records where its values were set, and the user's own addresses."""

    def __init__(self, source: PydanticBaseSettingsSource, origin: str) -> None:
        super().__init__(source.settings_cls)
        self._source = source
        self._origin = origin

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        return self._source.get_field_value(field, field_name)

    def __call__(self) -> dict[str, Any]:
        values = self._source()
        given = values.pop(ORIGINS, {}) if self._origin == FLAG else {}
        origins = {name: given.get(name, self._origin) for name in values}
        own = {
            name: value
            for name, value in values.items()
            if name.endswith("_base_url") and is_own(origins[name]) and isinstance(value, str)
        }
        return {**values, ORIGINS: {"set": origins, "own": own}}


class DotEnvSource(DotEnvSettingsSource):
    """Reads `.env` without expanding `${NAME}`, which would let a foreign folder copy the environment into settings."""

    def _read_env_file(self, file_path: Path) -> Mapping[str, str | None]:
        try:
            written = dotenv_values(file_path, encoding=self.env_file_encoding or "utf-8", interpolate=False)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{file_path}: {error}.", help="Correct or remove the file.") from error
        for name, value in written.items():
            if name.upper().startswith("CITELOOM_") and "${" in (value or ""):
                raise ConfigurationError(
                    f"{file_path}: {name} holds '${{', but variables are not expanded there.",
                    help="Write the value itself, or set it in the environment.",
                )
        return parse_env_vars(written, self.case_sensitive, self.env_ignore_empty, self.env_parse_none_str)


def toml_source(settings_cls: type[BaseSettings], path: Path) -> PydanticBaseSettingsSource:
    """The settings in a TOML file; raises `ConfigurationError` if it cannot be read."""
    try:
        return TomlConfigSettingsSource(settings_cls, path)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: {error}.", help="Correct or remove the file.") from error
