"""The settings of a run as the graph's context, which Studio shows as a form.

It has every field of `config.Settings` except API keys and where keys are found: secrets stay in the environment of
the process. An empty field takes its value from the environment or `citeloom.toml`. The context comes with a request
to the server, and any page open in a browser may send one: an address given here gets a key only when it is on this
machine.

An unknown field is an error. LangGraph's server drops fields that the JSON schema does not list before the graph
sees them, whatever the model would say about them; a schema without properties would let them through, but leave
Studio's form empty.
"""

from __future__ import annotations

from typing import Any, Optional, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    create_model,
    model_validator,
)

from ..settings.config import Settings, load_settings
from ..settings.key_trust import CONTEXT
from .input_check import GraphInputError, require_known


class _Context(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _named(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Raise Citeloom's own errors: LangGraph passes on what is raised here."""
        if isinstance(given, dict):
            keys = [str(name) for name in given if str(name).endswith("_api_key")]
            if keys:
                message = f"context: {keys[0]} is an API key and is not accepted here."
                raise GraphInputError(message, help="Set it in the environment of the process.")
            require_known("context", given, cls.model_fields)
        try:
            return handler(given)
        except ValidationError as error:
            wrong = error.errors()[0]
            name = ".".join(str(part) for part in wrong["loc"])
            secret = name.endswith("_base_url")
            value = "a value that is not shown" if secret else f"{wrong['input']!r:.80}"
            raise GraphInputError(f"context: field {name}: {wrong['msg'].lower()}, got {value}.") from None


def _fields() -> dict[str, Any]:
    # `X | None` needs an annotation that is known statically; these are read at runtime.
    return {
        name: (Optional[info.annotation], Field(default=None, description=info.description))  # noqa: UP045
        for name, info in Settings.model_fields.items()
        if not name.endswith("_api_key")
    }


SectionContext = create_model("SectionContext", __base__=_Context, **_fields())
SectionContext.__doc__ = "Settings of one run; an empty field takes the value of the environment."


def settings_of(context: object) -> Settings:
    """The settings of a run; raises `ConfigurationError`.

    A parent graph passes its own context down to us; one that is not ours leaves everything to the environment.
    """
    if isinstance(context, SectionContext):
        return load_settings(brought=context.model_dump(exclude_none=True), origin=CONTEXT)
    return load_settings()
