"""The fingerprint that decides when two commands are the same run: a hash of everything that can change the text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from ..experiment import Experiment, SectionKind
from ..settings.config import RoleName, Settings
from ..settings.key_trust import shown_address

# One section, or a whole paper.
RunKind = SectionKind | Literal["paper"]

# Settings that change which evidence is found or what is written from it. The citation style is applied to the
# finished text, and concurrency or retries only change the duration.
TEXT_SETTINGS: Final = (
    "temperature",
    "retrieval_mode",
    "rerank",
    "top_k_initial",
    "top_k_final",
    "per_paper",
    "window_tokens",
    "read_tokens",
    "search_tokens",
    "paper_share",
    "vector_weight",
    "llm_weight",
    "score_threshold",
    "max_search_iterations",
    "max_repairs",
    "summary_words",
    "section_words",
    "max_output_tokens",
    "context_tokens",
    "enough_findings",
    "cite_retracted",
)
KEPT_ROLES: Final[tuple[RoleName, ...]] = ("agent", "reader", "writer", "judge")
# The settings of a run that the register keeps; nothing else is read from there.
KEPT_SETTINGS: Final = frozenset(
    {
        *TEXT_SETTINGS,
        *(f"{role}_{part}" for role in ("chat", *KEPT_ROLES) for part in ("model", "base_url")),
        *("cite_style", "csl", "strict", "prompts_dir"),
    }
)


def section_fingerprint(
    kind: RunKind,
    experiment: Experiment,
    *,
    library_version: str,
    settings: Settings,
    prompts_hash: str,
    custom_model_id: str = "",
) -> str:
    """The kind and sixteen hex digits; `custom_model_id` identifies a chat model given as an object."""
    models = {role: list(settings.address_of(role)) for role in KEPT_ROLES}
    return _digest(
        kind,
        {
            "experiment": experiment.model_dump(mode="json"),
            "library": library_version,
            "settings": _text_settings(settings),
            "models": models,
            "prompts": prompts_hash,
            "handed_in": custom_model_id,
        },
    )


def research_fingerprint(
    asked: Mapping[str, Any], *, library_version: str, settings: Settings, prompts_hash: str, custom_model_id: str = ""
) -> str:
    """ "research" and sixteen hex digits; `asked` is the question with its limits, or a turn of a conversation."""
    return _digest(
        "research",
        {
            "asked": asked,
            "library": library_version,
            "settings": _text_settings(settings),
            "models": {role: list(settings.address_of(role)) for role in KEPT_ROLES},
            "prompts": prompts_hash,
            "handed_in": custom_model_id,
        },
    )


def research_subject(asked: Mapping[str, Any]) -> str:
    """Identifies the request regardless of library and settings."""
    return _digest("research", {"asked": asked})


def section_subject(kind: RunKind, experiment: Experiment) -> str:
    """Identifies the request regardless of library and settings: separates a changed library from a new question."""
    return _digest(kind, {"experiment": experiment.model_dump(mode="json")})


def settings_of_run(settings: Settings) -> dict[str, Any]:
    """The settings needed to resume a run by its id alone: all that are in the fingerprint.

    No key is among them, and no address containing one: keys stay in the environment.
    """
    kept = settings.model_dump(mode="json", include=set(KEPT_SETTINGS))
    return {
        name: shown_address(value) if name.endswith("_base_url") else value
        for name, value in kept.items()
        if value is not None
    }


def _text_settings(settings: Settings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in TEXT_SETTINGS}


def _digest(kind: RunKind | Literal["research"], record: dict[str, Any]) -> str:
    canonical = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"{kind}-{hashlib.sha256(canonical.encode()).hexdigest()[:16]}"
