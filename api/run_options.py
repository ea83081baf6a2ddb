"""Options of runs, each declared once with help and limits for the command line, Python and HTTP.

`commands/options.py` turns these classes into command options, `server/request_models.py` into JSON fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from ..section_kinds import PAPER_ORDER, SECTION_KINDS, SECTIONS, SectionKind

RunKind = SectionKind | Literal["paper"]

__all__ = [
    "FLAGS",
    "PAPER_ORDER",
    "SECTIONS",
    "SECTION_KINDS",
    "AnswerSettings",
    "BudgetOptions",
    "ChatSettings",
    "ModelSettings",
    "Option",
    "PaperSettings",
    "QuestionLimits",
    "RunKind",
    "RunLimits",
    "SectionKind",
    "SectionSettings",
    "StyleSettings",
    "TextOptions",
    "find_option",
]


@dataclass(frozen=True, slots=True)
class Option:
    """Metadata of an option.

    Args:
        help: what it does.
        flag: its name on the command line, if not the field's.
        default: the default as displayed.
        least: the smallest value.
        most: the largest value.
    """

    help: str
    flag: str = ""
    default: str = ""
    least: int | None = None
    most: int | None = None


def _option(help: str, *, value: Any = None, **shown: Any) -> Any:
    return field(default=value, metadata={"option": Option(help, **shown)})


class SettingOptions:
    """Base of dataclasses whose fields override the settings of the same name."""

    def changes(self) -> dict[str, Any]:
        """The settings that were given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class BudgetOptions(SettingOptions):
    """What a run may spend before it pauses."""

    max_calls: int | None = _option("Limit on model requests; the run pauses before it exceeds it.", least=1)
    max_tokens: int | None = _option("Limit on tokens; the run pauses before it exceeds it.", least=1)
    max_cost: float | None = _option(
        "Limit on cost, by the prices in the settings; the run pauses before it exceeds it."
    )


@dataclass(frozen=True, kw_only=True)
class RunLimits(BudgetOptions):
    """Limits that a request may set for its run, on a server or when resuming."""

    strict: bool | None = _option(
        "Leave out sentences that fail a check (they are listed) instead of marking them.", default="marked"
    )


@dataclass(frozen=True, kw_only=True)
class DepthOption(SettingOptions):
    """How much a text says."""

    depth: str | None = _option("How much the text says: brief, standard or thorough.", default="standard")


@dataclass(frozen=True, kw_only=True)
class TextOptions(DepthOption, RunLimits):
    """What a request for a text may set."""


@dataclass(frozen=True, kw_only=True)
class ModelSettings(BudgetOptions):
    """The chat model, and what it may cost."""

    chat_model: str | None = _option("Chat model, or 'extractive'. Default: CITELOOM_CHAT_MODEL.", flag="--model")
    chat_base_url: str | None = _option(
        "OpenAI-compatible endpoint. Default: CITELOOM_CHAT_BASE_URL.", flag="--base-url"
    )


@dataclass(frozen=True, kw_only=True)
class ChatSettings(DepthOption, ModelSettings):
    """How answers cite, and which model writes them."""

    cite_style: str | None = _option(
        "numeric [3], key (smith2024), key-page [smith2024, page 4], pandoc [@smith2024, p. 4], "
        "or latex \\cite[p.~4]{smith2024}.",
        default="numeric",
    )


@dataclass(frozen=True, kw_only=True)
class StyleSettings(SettingOptions):
    """The style of exported references."""

    csl: str | None = _option(
        "Style of the references, and of citations in tex, docx and html: a .csl file or, with the extra "
        "'styles', a name such as apa, ieee or nature.",
        default="Chicago author-date, and plainnat in tex",
    )


@dataclass(frozen=True, kw_only=True)
class AnswerSettings(ChatSettings, StyleSettings, TextOptions):
    """How an answer is written."""

    cite_retracted: bool | None = _option(
        "Let the text cite retracted papers; otherwise they are read, with a warning, but not cited.",
        default="not cited",
    )


@dataclass(frozen=True, kw_only=True)
class PaperSettings(AnswerSettings):
    """How a paper is written."""

    cite_style: str | None = _option(
        "key (smith2024), pandoc [@smith2024, p. 4], latex \\cite[p.~4]{smith2024}, numeric [3], "
        "or key-page [smith2024, page 4].",
        default="key",
    )
    section_words: int | None = _option("Target length of the section, in words.", flag="--words", default="by depth")


@dataclass(frozen=True, kw_only=True)
class SectionSettings(PaperSettings):
    """How a section is written."""

    max_search_iterations: int | None = _option("Searches that the agent may add.", flag="--max-searches", default="5")


@dataclass(frozen=True, kw_only=True)
class QuestionLimits:
    """Which papers to search for an answer, and its length."""

    sources: int | None = _option(
        "Maximum number of papers that the answer may draw on.", default="8", least=1, most=50
    )
    length: int | None = _option("Target length of the answer, in words.", default="by depth", least=50, most=5000)
    from_year: int | None = _option("First year of publication.")
    to_year: int | None = _option("Last year of publication.")
    venue: str = _option("Part of the journal's or book's name, in any case.", value="")
    single_shot: bool = _option("Search once, without the agent's further searches.", value=False)
    fresh: bool = _option("Answer again, without reusing cached answers.", value=False)


def find_option(group: type, name: str) -> Option:
    """The option of a field."""
    found: Option = next(item.metadata["option"] for item in fields(group) if item.name == name)
    return found


# Options named differently from the settings they override.
FLAGS: Final[Mapping[str, str]] = {
    item.name: item.metadata["option"].flag for item in fields(SectionSettings) if item.metadata["option"].flag
}
