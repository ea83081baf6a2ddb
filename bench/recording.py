"""Runs one question through the real research graph without a model, recording the input of each step.

The roles are extractive, but what is recorded is the text that a chat model would be shown: only the three functions at
the end need to change when passages, findings or briefs take another form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from citeloom.documents.chunking import Window
from citeloom.graph.graphs import research_graph
from citeloom.graph.session import Session
from citeloom.roles.chat.prompt_format import FRESH_TOKENS, present_findings
from citeloom.roles.protocols import (
    AnswerBrief,
    EvidenceReader,
    Need,
    NeedsPlan,
    PaperCard,
    Purpose,
    ScreenedPapers,
    Writer,
)
from citeloom.roles.run_roles import Roles, extractive_roles
from citeloom.runs.run_requests import ResearchRequest
from citeloom.settings.config import RoleName
from citeloom.stores.library import Library


@dataclass(frozen=True, slots=True)
class Passage:
    """A text shown to a step, and the key of its paper; the key is empty when the text is from several."""

    key: str
    text: str


@dataclass(slots=True)
class Seen:
    """The input of each step for one question: search results, candidates, passages read, the writer's sources.

    A passage that is read twice is listed twice.
    """

    searched: dict[str, None] = field(default_factory=dict)
    proposed: list[str] = field(default_factory=list)
    read: list[Passage] = field(default_factory=list)
    shown: list[Passage] = field(default_factory=list)


class RecordingLibrary(Library):
    """A library that records the ids that its searches return, before any are selected."""

    seen = Seen()

    def nearest_ids(self, *given: Any) -> list[tuple[str, float]]:
        """Like `Library.nearest_ids`."""
        return self._note(super().nearest_ids(*given))

    def matching(self, *given: Any) -> list[tuple[str, float]]:
        """Like `Library.matching`."""
        return self._note(super().matching(*given))

    def _note(self, found: list[tuple[str, float]]) -> list[tuple[str, float]]:
        self.seen.searched.update(dict.fromkeys(identifier for identifier, _ in found))
        return found


@dataclass
class RecordingBench(Session):
    """A session whose roles record in `seen` what they are shown, with the search settings of a chat model.

    `planned` are needs by question that replace those of the rules, `named` the papers that a model named by their
    cards.
    """

    seen: Seen = field(default_factory=Seen)
    planned: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def extractive(self) -> frozenset[RoleName]:
        """Empty, so that the run prepares what a chat model would read."""
        return frozenset()

    async def roles_of(self, run_id: str) -> Roles:
        """The extractive roles, wrapped to record what those for questions read and write."""
        roles = self._bare
        reader, writer = _Reader(roles.answer_reader, self.seen), _Writer(roles.writer, self.seen)

        async def plan_needs(brief: Any, papers: Sequence[str]) -> NeedsPlan:
            planned = self.planned.get(brief.question)
            return NeedsPlan(planned) if planned else await roles.plan_needs(brief, papers)

        screener = _Screener(self.named) if self.named else None
        own: dict[str, Any] = {"answer_reader": reader, "writer": writer, "screener": screener}
        return replace(roles, plan_needs=plan_needs, planner=_NoFurtherSearch(), **own)

    @cached_property
    def _bare(self) -> Roles:
        return extractive_roles(self.library.embedding, summary_words=self.settings.summary_words)


class _NoFurtherSearch:
    def open(self, brief: Any) -> list[BaseMessage]:
        return []

    async def plan(self, messages: Sequence[BaseMessage]) -> AIMessage:
        return AIMessage("The needs have been searched for.")


class _Screener:
    def __init__(self, named: Mapping[str, tuple[str, ...]]) -> None:
        self._named = named

    async def screen(self, purpose: Purpose, cards: Sequence[PaperCard]) -> ScreenedPapers:
        keys = self._named.get(purpose.text, ())
        return ScreenedPapers({need.id: keys for need in purpose.needs}, cards=len(cards))


class _Reader:
    def __init__(self, reader: EvidenceReader, seen: Seen) -> None:
        self._reader, self._seen = reader, seen

    async def read(self, *given: Any, **named: Any) -> Any:
        self._seen.read += shown_to_reader(*given, **named)
        return await self._reader.read(*given, **named)


class _Writer:
    def __init__(self, writer: Writer, seen: Seen) -> None:
        self._writer, self._seen = writer, seen

    async def write(self, brief: AnswerBrief, *given: Any, **named: Any) -> Any:
        self._seen.shown += shown_to_writer(brief)
        return await self._writer.write(brief, *given, **named)

    async def repair(self, *given: Any, **named: Any) -> Any:
        return await self._writer.repair(*given, **named)

    async def repair_sentences(self, *given: Any, **named: Any) -> Any:
        return await self._writer.repair_sentences(*given, **named)


async def ask(question: str, bench: RecordingBench, *, single_shot: bool = False) -> tuple[Seen, dict[str, Any]]:
    """Run a question; returns the inputs of its steps and its result. The run leaves nothing in the home."""
    seen = Seen()
    bench.seen = seen
    if isinstance(bench.library, RecordingLibrary):
        bench.library.seen = seen

    request = ResearchRequest(question, single_shot=single_shot)
    values: dict[str, Any] = {}
    async for update in research_graph().astream(request.graph_input(), context=bench, stream_mode="updates"):
        for written in update.values():
            values |= written or {}
    seen.proposed = proposed_in(values)
    return seen, values["result"]


def proposed_in(values: Mapping[str, Any]) -> list[str]:
    """Ids of the chunks that the run's first search selected for reading; everything the agent finds is read."""
    return list(values["found"])


def shown_to_reader(purpose: Purpose, windows: Sequence[Window]) -> list[Passage]:
    """The sentences of windows as numbered for a reader."""
    return [Passage(window.paper.key, " ".join(item.text for item in window.sentences())) for window in windows]


def shown_to_writer(brief: AnswerBrief) -> list[Passage]:
    """The sources as shown in the writer's prompt, with their context."""
    return [Passage("", present_findings(brief.needs, brief.sources, FRESH_TOKENS).text)]
