"""The settings of a run as the graph's context, which Studio shows as a form.

Every field of `config.Settings` but keys and places for keys: secrets stay in the environment of the process.
A field left empty takes the value that the environment or `citeloom.toml` gives it. A request to the server gives
these, and any page open in a browser may send one: an address among them gets a key only when it is on this machine.
"""

from __future__ import annotations

from typing import Any, Optional

from pydantic import BaseModel, ConfigDict, Field, create_model

from citeloom.config import Settings, load_settings
from citeloom.key_trust import CONTEXT


class _Context(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


def _fields() -> dict[str, Any]:
    # `X | None` cannot be written of an annotation that is only known when the program runs.
    return {
        name: (Optional[info.annotation], Field(default=None, description=info.description))  # noqa: UP045
        for name, info in Settings.model_fields.items()
        if not name.endswith("_api_key")
    }


SectionContext = create_model("SectionContext", __base__=_Context, **_fields())
SectionContext.__doc__ = "Settings of one run; an empty field takes the value of the environment."


def settings_of(context: object) -> Settings:
    """The settings of a run; raises `ConfigurationError`.

    A parent graph hands its own context down to us; one that is not ours leaves all to the environment.
    """
    if isinstance(context, SectionContext):
        return load_settings(brought=context.model_dump(exclude_none=True), origin=CONTEXT)
    return load_settings()
