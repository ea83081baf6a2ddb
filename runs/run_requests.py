"""Requests for durable runs of sections, papers and questions: fingerprints, storage and resuming.

A run resumes from the request and settings stored in the home, after checking them against the user's settings.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Literal, cast

from ..drafts.person_questions import expand_asks
from ..errors import ConfigurationError, InputError
from ..evidence_tables.stored_tables import GivenTable
from ..experiment import SECTION_KINDS, Experiment, SectionKind, parse_experiment, require_fields
from ..graph.session import Session
from ..models.embeddings.bundled_models import LocalEmbedding
from ..roles.protocols import Turn
from ..settings.config import EXTRACTIVE, Ask, RoleName, Settings, load_settings
from ..settings.key_trust import DEFAULT, RUN, same_endpoint, shown_address
from ..stores.home import Home
from ..stores.run_register import RunRecord
from ..text.words import is_latin, shorten
from ..tools.paper_search import year_range
from ..tools.scope import Scope, plain_question

# One section, or a whole paper.
RunKind = SectionKind | Literal["paper"]
OnNotice = Callable[[str], None]

# Settings that affect which evidence is found or what is written. Not included: the citation style, which is applied
# to the finished text, and concurrency and retries, which only affect the duration.
TEXT_SETTINGS: Final = (
    "temperature retrieval_mode rerank top_k_initial top_k_final per_paper window_tokens read_tokens search_tokens "
    "paper_share vector_weight llm_weight score_threshold max_search_iterations max_repairs summary_words depth "
    "section_words max_output_tokens context_tokens enough_findings cite_retracted"
).split()
# Text settings that enter the fingerprint only if set, so that runs without them keep their fingerprint.
_ADDED_TEXT_SETTINGS: Final = ("pinned", "preferences")
KEPT_ROLES: Final[tuple[RoleName, ...]] = ("agent", "reader", "writer", "judge")
# The settings that the register stores.
KEPT_SETTINGS: Final = frozenset(
    {
        *TEXT_SETTINGS,
        *_ADDED_TEXT_SETTINGS,
        *(f"{role}_{part}" for role in ("chat", *KEPT_ROLES) for part in ("model", "base_url")),
        *("cite_style", "csl", "strict", "prompts_dir", "interrupts"),
    }
)


def _fingerprint(kind: str, request: Mapping[str, Any], session: Session) -> str:
    """Return the kind plus a 16-digit hash of everything that can affect the text; blocks."""
    settings = session.settings
    added = {name: value for name in _ADDED_TEXT_SETTINGS if (value := getattr(settings, name))}
    return _hash_record(
        kind,
        {
            **request,
            "library": session.library.version(),
            "settings": {name: getattr(settings, name) for name in TEXT_SETTINGS} | added,
            "models": {role: list(settings.address_of(role)) for role in KEPT_ROLES},
            "prompts": session.prompts.fingerprint(),
            "handed_in": session.custom_model_id,
            **({"interrupts": steered} if (steered := steering_asks(settings)) else {}),
        },
    )


def settings_record(settings: Settings) -> dict[str, Any]:
    """Return the settings to store for resuming a run by id, without keys or addresses that contain one."""
    kept = settings.model_dump(mode="json", include=set(KEPT_SETTINGS))
    return {
        name: shown_address(value) if name.endswith("_base_url") else value
        for name, value in kept.items()
        if value is not None and (value or name != "interrupts")
    }


def steering_asks(settings: Settings) -> list[Ask]:
    """Return the kinds of questions that can change a run's text; a raised budget does not."""
    return [name for name in expand_asks(settings.interrupts) if name != "budget"]


def _hash_record(kind: str, record: Mapping[str, Any]) -> str:
    canonical = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"{kind}-{hashlib.sha256(canonical.encode()).hexdigest()[:16]}"


def required_kinds(kind: RunKind) -> tuple[SectionKind, ...]:
    """Return the kinds of sections that a run writes."""
    return SECTION_KINDS if kind == "paper" else (kind,)


@dataclass(frozen=True, slots=True)
class SectionRequest:
    """A request for a section or a whole paper."""

    kind: RunKind
    experiment: Experiment
    source: str = "experiment"  # names it in errors
    fresh: bool = False  # ignore answers of earlier runs
    thread_id: str | None = None  # resume this run instead of the latest one for the same request
    tables: tuple[GivenTable, ...] = ()  # evidence tables that it may cite

    @property
    def title(self) -> str:
        """The title of the run in the register."""
        return self.experiment.paper_concept.title

    async def require_valid(self, session: Session, on_notice: OnNotice) -> None:
        """Raise `ExperimentError` if the experiment lacks a required field."""
        require_fields(self.experiment, *required_kinds(self.kind), source=self.source)

    def subject_key(self) -> str:
        """Return a key that identifies the request regardless of library and settings."""
        return _hash_record(self.kind, self._asked)

    def fingerprint(self, session: Session) -> str:
        """Return a key that changes with everything that can change the run's text; blocks."""
        return _fingerprint(self.kind, self._asked, session)

    def to_record(self, session: Session) -> dict[str, Any]:
        """Return the stored form, from which the run can be resumed by id."""
        return {"source": self.source, **self._asked, "settings": settings_record(session.settings)}

    def graph_input(self) -> dict[str, Any]:
        return self._asked if self.kind == "paper" else {"section": self.kind, **self._asked}

    @property
    def _asked(self) -> dict[str, Any]:
        tables = {"tables": list(self.tables)} if self.tables else {}
        return {"experiment": self.experiment.model_dump(mode="json"), **tables}


_TITLE: int = 80
_NOT_ASKED: Final = frozenset({"question", "fresh", "thread_id"})

FOREIGN_SCRIPT = (
    "The question is in a script that the bundled embedding does not support; it knows only English. Set "
    "CITELOOM_EMBEDDING_MODEL to a multilingual model and rebuild the library with it, or ask in English."
)


@dataclass(frozen=True, slots=True)
class ResearchRequest:
    """A question and its limits; None takes the value from the settings."""

    question: str  # as the user typed it
    sources: int | None = None  # maximum number of papers that the answer may cite
    words: int | None = None  # requested length
    min_year: int | None = None  # first year of publication
    max_year: int | None = None  # last year of publication
    venue: str = ""  # part of the venue's name
    papers: tuple[str, ...] = ()  # keys of papers to search within
    single_shot: bool = False  # search once, without the agent
    fresh: bool = False  # ignore answers of earlier runs
    thread_id: str | None = None  # resume this existing run
    turns: tuple[Turn, ...] = ()  # earlier questions of the conversation with their answers
    follow_up: bool = False  # whether the question may refer to earlier turns
    recalled: tuple[dict[str, Any], ...] = ()  # evidence cited by earlier answers, as plain data
    kind: ClassVar[Literal["research"]] = "research"

    @property
    def title(self) -> str:
        """The question as shown in a list of runs."""
        return shorten(self.question, _TITLE)

    def graph_input(self) -> dict[str, Any]:
        """Return the graph's input: only what was requested."""
        asked = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in _NOT_ASKED}
        listed = {name: list(value) if isinstance(value, tuple) else value for name, value in asked.items() if value}
        return {"question": plain_question(self.question), **listed}

    async def require_valid(self, session: Session, on_notice: OnNotice) -> None:
        """Raise `QuestionError`, or another `InputError` if years, papers or venue match nothing."""
        plain_question(self.question)
        years = year_range(self.min_year, self.max_year)
        await session.require_papers()
        await asyncio.to_thread(Scope.within, session.library, self.papers, (), years, self.venue)
        if foreign_script(self.question, session):
            on_notice(f"Note: {FOREIGN_SCRIPT}")

    def subject_key(self) -> str:
        return _hash_record(self.kind, {"asked": self.graph_input()})

    def fingerprint(self, session: Session) -> str:
        """Return a key that changes with everything that can change the answer; blocks."""
        limits = {"sources": session.settings.answer_sources, "words": session.settings.answer_words}
        return _fingerprint(self.kind, {"asked": {**limits, **self.graph_input()}}, session)

    def to_record(self, session: Session) -> dict[str, Any]:
        settings = session.settings
        own: dict[str, Any] = {"cite_style": session.answer_style}
        own |= {"answer_words": settings.answer_words, "answer_sources": settings.answer_sources}
        return {"asked": self.graph_input(), "settings": settings_record(settings) | own}


RunRequest = SectionRequest | ResearchRequest


def foreign_script(question: str, session: Session) -> bool:
    """Whether the library's embedding does not support the question's script."""
    return not is_latin(question) and isinstance(session.library.embedding, LocalEmbedding)


_OF_ANSWERS: Final = frozenset({"answer_words", "answer_sources"})


def request_to_resume(run: RunRecord) -> RunRequest:
    """Return a registered run's request, to resume exactly this run."""
    if run.section == "research":
        asked = dict(run.request["asked"])
        listed: dict[str, Any] = {name: tuple(asked.pop(name, ())) for name in ("papers", "turns", "recalled")}
        return ResearchRequest(**asked, **listed, fresh=run.fresh, thread_id=run.thread_id)
    source = run.request["source"]
    experiment = parse_experiment(run.request["experiment"], source=source)
    tables = tuple(run.request.get("tables", ()))
    return SectionRequest(cast(RunKind, run.section), experiment, source, run.fresh, run.thread_id, tables)


def require_same_run(run: RunRecord, request: RunRequest, session: Session) -> None:
    """Raise `InputError` if the request would now start another run; blocks."""
    if run.fingerprint != request.fingerprint(session):
        raise InputError(
            f"Run {run.thread_id} was started with another library or other prompts.",
            help="Restore them, or run the original command for a new run.",
        )


def settings_to_resume(run: RunRecord, current: Settings, home: Home, given: Mapping[str, Any]) -> Settings:
    """Return the settings stored with the run, overridden by those `given` now.

    A home may come from somebody else, so only text settings are taken from it, and addresses get only keys that the
    run started with. Raises `ConfigurationError` if the run's endpoint differs from the current one.
    """
    _require_request(run, home)
    kept, marks = run.request["settings"], run.request.get("key_marks", [])
    taken = {
        name: value
        for name, value in kept.items()
        if name in KEPT_SETTINGS | _OF_ANSWERS and value != getattr(current, name)  # current values keep their origin
    }
    settings = load_settings(
        brought=taken, origin=RUN, vouched=[mark for mark in marks if isinstance(mark, str)], home=home.address, **given
    )
    for role in KEPT_ROLES:
        model, url = settings.address_of(role)
        _, now = current.address_of(role)
        setting = current.url_setting(role)
        if model == EXTRACTIVE or current.origin(setting) == DEFAULT or same_endpoint(url, now):
            continue
        variable = f"CITELOOM_{settings.url_setting(role).upper()}"
        raise ConfigurationError(
            f"{home.place_of('runs.sqlite')}: run {run.thread_id} was started at {shown_address(url)}, but {setting} "
            f"is now {shown_address(now)} ({current.origin(setting)}); nothing was sent.",
            help=f"To resume it there, set {variable}={shown_address(url)} in the environment; "
            "to use the current endpoint, run the original command again for a new run.",
        )
    return settings


def text_settings_of(run: RunRecord, current: Settings, home: Home) -> Settings:
    """Return the current settings with the run's text settings; models and addresses stay the current ones.

    Raises `ConfigurationError` for unreadable values.
    """
    _require_request(run, home)
    names = [*TEXT_SETTINGS, *_OF_ANSWERS, "cite_style", "csl", "strict", "interrupts"]
    kept = {name: run.request["settings"][name] for name in names if name in run.request["settings"]}
    loaded = load_settings(brought=kept, origin=RUN)
    return current.model_copy(update={"interrupts": [], **{name: getattr(loaded, name) for name in kept}})


def _require_request(run: RunRecord, home: Home) -> None:
    """Raise `ConfigurationError` if a stored request is unusable."""
    request, needed = run.request, {"asked": dict} if run.section == "research" else {"source": str, "experiment": dict}
    expected: dict[str, type] = {"settings": dict, **needed}
    wrong = [name for name, kind in expected.items() if not isinstance(request.get(name), kind)]
    unknown = {*request.get("asked", ())} - {item.name for item in fields(ResearchRequest)} if not wrong else None
    wrong += ["asked"] if unknown else []
    wrong += ["key_marks"] if not isinstance(request.get("key_marks", []), list) else []
    if wrong:
        place = f"table runs, column request, row thread_id={run.thread_id!r}"
        raise ConfigurationError(
            f"{home.place_of('runs.sqlite')}: {place}: {wrong[0]} cannot be read.",
            help="Delete the run with 'runs delete' and start it again.",
        )
