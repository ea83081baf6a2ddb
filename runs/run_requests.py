"""Requests for durable runs: a section or a paper, a question, and the protocol common to both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ..experiment import SECTION_KINDS, Experiment, require_fields
from ..graph.session import Session
from ..graph.state import TurnRecord
from ..models.embeddings.bundled_models import LocalEmbedding
from ..text.words import is_latin
from ..tools.paper_search import year_range
from ..tools.scope import Scope, plain_question
from .fingerprint import (
    RunKind,
    research_fingerprint,
    research_subject,
    section_fingerprint,
    section_subject,
    settings_of_run,
)

OnNotice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SectionRequest:
    """A request for a section, or for a paper of all six.

    `source` names the experiment in errors, `fresh` ignores answers of earlier runs. `thread_id` resumes this existing
    run instead of the latest of its kind.
    """

    kind: RunKind
    experiment: Experiment
    source: str = "experiment"
    fresh: bool = False
    thread_id: str | None = None

    @property
    def title(self) -> str:
        """The title of the run in the register."""
        return self.experiment.paper_concept.title

    async def require_valid(self, session: Session, on_notice: OnNotice) -> None:
        """Raise `ExperimentError` where the experiment lacks a field that what is asked for needs."""
        kinds = SECTION_KINDS if self.kind == "paper" else (self.kind,)
        require_fields(self.experiment, *kinds, source=self.source)

    def subject_key(self) -> str:
        """Identifies the request regardless of library and settings."""
        return section_subject(self.kind, self.experiment)

    def fingerprint(self, session: Session) -> str:
        """Identifies the run by everything that can change its text; blocks."""
        return section_fingerprint(
            self.kind,
            self.experiment,
            library_version=session.library.version(),
            settings=session.settings,
            prompts_hash=session.prompts.fingerprint(),
            custom_model_id=session.custom_model_id,
        )

    def to_record(self, session: Session) -> dict[str, Any]:
        """What the register stores, from which the run can be resumed by its id alone."""
        return {
            "source": self.source,
            "experiment": self.experiment.model_dump(mode="json"),
            "settings": settings_of_run(session.settings),
        }

    def graph_input(self) -> dict[str, Any]:
        """The graph's input."""
        experiment = {"experiment": self.experiment.model_dump(mode="json")}
        return experiment if self.kind == "paper" else {"section": self.kind, **experiment}


class RunRequest(Protocol):
    """A request that can be run: `SectionRequest`, which documents the members, or `ResearchRequest`."""

    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def fresh(self) -> bool: ...
    @property
    def thread_id(self) -> str | None: ...
    async def require_valid(self, session: Session, on_notice: OnNotice) -> None: ...
    def subject_key(self) -> str: ...
    def fingerprint(self, session: Session) -> str: ...
    def to_record(self, session: Session) -> dict[str, Any]: ...
    def graph_input(self) -> dict[str, Any]: ...


_TITLE: int = 80

FOREIGN_SCRIPT = (
    "The question is in a script that the bundled embedding does not read; it knows English alone. Set "
    "CITELOOM_EMBEDDING_MODEL to a multilingual model and rebuild the library with it, or ask in English."
)


@dataclass(frozen=True, slots=True)
class ResearchRequest:
    """A question and its limits; None takes the value from the settings.

    Args:
        question: as the user typed it.
        sources: maximum number of papers that the answer may cite.
        words: requested length.
        min_year: first year of publication, `max_year` the last.
        venue: a part of the venue's name.
        papers: keys of the only papers to look into.
        single_shot: search once, without the agent.
        fresh: ignore answers of earlier runs.
        thread_id: resume this existing run.
        turns: earlier questions of the conversation with their answers.
        follow_up: the question may refer to them.
        recalled: the evidence that these answers cited, as plain data.
    """

    question: str
    sources: int | None = None
    words: int | None = None
    min_year: int | None = None
    max_year: int | None = None
    venue: str = ""
    papers: tuple[str, ...] = ()
    single_shot: bool = False
    fresh: bool = False
    thread_id: str | None = None
    turns: tuple[TurnRecord, ...] = ()
    follow_up: bool = False
    recalled: tuple[dict[str, Any], ...] = field(default=())

    @property
    def kind(self) -> Literal["research"]:
        """The kind of run in the register."""
        return "research"

    @property
    def title(self) -> str:
        """The question as shown in a list of runs."""
        text = " ".join(self.question.split())
        return text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"

    def graph_input(self) -> dict[str, Any]:
        """The graph's input: only what was requested."""
        asked: dict[str, Any] = {
            "sources": self.sources,
            "words": self.words,
            "min_year": self.min_year,
            "max_year": self.max_year,
            "venue": self.venue,
            "papers": list(self.papers),
            "single_shot": self.single_shot,
            "turns": [dict(turn) for turn in self.turns],
            "follow_up": self.follow_up,
            "recalled": [dict(record) for record in self.recalled],
        }
        return {"question": plain_question(self.question)} | {name: value for name, value in asked.items() if value}

    async def require_valid(self, session: Session, on_notice: OnNotice) -> None:
        """Raise `QuestionError`, or another `InputError` for years, papers and a venue that fit nothing."""
        plain_question(self.question)
        years = year_range(self.min_year, self.max_year)
        await session.require_papers()
        await asyncio.to_thread(Scope.within, session.library, self.papers, (), years, self.venue)
        if foreign_script(self.question, session):
            on_notice(f"Note: {FOREIGN_SCRIPT}")

    def subject_key(self) -> str:
        """Identifies the request regardless of library and settings."""
        return research_subject(self.graph_input())

    def fingerprint(self, session: Session) -> str:
        """Identifies the run by everything that can change its answer; blocks."""
        settings = session.settings
        return research_fingerprint(
            {"sources": settings.answer_sources, "words": settings.answer_words, **self.graph_input()},
            library_version=session.library.version(),
            settings=settings,
            prompts_hash=session.prompts.fingerprint(),
            custom_model_id=session.custom_model_id,
        )

    def to_record(self, session: Session) -> dict[str, Any]:
        """What the register stores, from which the run can be resumed by its id alone."""
        settings = session.settings
        own: dict[str, Any] = {"cite_style": session.answer_style}
        own |= {"answer_words": settings.answer_words, "answer_sources": settings.answer_sources}
        return {"asked": self.graph_input(), "settings": settings_of_run(settings) | own}

    @classmethod
    def of(cls, kept: dict[str, Any], *, fresh: bool, thread_id: str) -> ResearchRequest:
        """The request of a registered run."""
        asked = dict(kept["asked"])
        listed: dict[str, Any] = {name: tuple(asked.pop(name, ())) for name in ("papers", "turns", "recalled")}
        return cls(**asked, **listed, fresh=fresh, thread_id=thread_id)


def foreign_script(question: str, session: Session) -> bool:
    """True when the question is in a script that the library's embedding does not read."""
    return not is_latin(question) and isinstance(session.library.embedding, LocalEmbedding)
