"""Durable, resumable runs that answer a question."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Literal

from ..graph.session import Session
from ..graph.state import TurnRecord
from ..models.embeddings.bundled_models import LocalEmbedding
from ..text.normalize import is_latin
from ..tools.paper_search import year_range
from ..tools.questions.validation import plain_question
from ..tools.scope import Scope
from .fingerprint import research_fingerprint, research_question_of, settings_of_run
from .section_request import OnNotice

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

    def given(self) -> dict[str, Any]:
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

    def about(self) -> str:
        """Identifies the request regardless of library and settings."""
        return research_question_of(self.given())

    def mark(self, session: Session) -> str:
        """Identifies the run by everything that can change its answer; blocks."""
        settings = session.settings
        return research_fingerprint(
            {"sources": settings.answer_sources, "words": settings.answer_words, **self.given()},
            library_version=session.library.version(),
            settings=settings,
            prompts_hash=session.prompts.fingerprint(),
            custom_model_id=session.custom_model_id,
        )

    def kept(self, session: Session) -> dict[str, Any]:
        """What the register stores, from which the run can be resumed by its id alone."""
        settings = session.settings
        own: dict[str, Any] = {"cite_style": session.answer_style}
        own |= {"answer_words": settings.answer_words, "answer_sources": settings.answer_sources}
        return {"asked": self.given(), "settings": settings_of_run(settings) | own}

    @classmethod
    def of(cls, kept: dict[str, Any], *, fresh: bool, thread_id: str) -> ResearchRequest:
        """The request of a registered run."""
        asked = dict(kept["asked"])
        listed: dict[str, Any] = {name: tuple(asked.pop(name, ())) for name in ("papers", "turns", "recalled")}
        return cls(**asked, **listed, fresh=fresh, thread_id=thread_id)


def foreign_script(question: str, session: Session) -> bool:
    """True when the question is in a script that the library's embedding does not read."""
    return not is_latin(question) and isinstance(session.library.embedding, LocalEmbedding)
