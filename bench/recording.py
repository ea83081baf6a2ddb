"""One question through the real research graph without a model, with a record of what each step was handed.

The roles are the extractive ones. What is recorded is the text that a chat model would be shown in their place: the
three functions at the end are all that has to follow when passages, findings or briefs take another form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from citeloom.documents.sentences import sentence_spans
from citeloom.graph.research_graph import build_research_graph
from citeloom.graph.research_run import ResearchRequest
from citeloom.graph.workbench import Workbench
from citeloom.models.briefs import AnswerBrief
from citeloom.models.chat.answer_layout import present_fresh
from citeloom.models.roles import AnswerWriter, EvidenceReader, Roles
from citeloom.stores.library import Library


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that a step was shown, and the key of its paper; the key is empty where the text is of several."""

    key: str
    text: str


@dataclass(slots=True)
class Seen:
    """What one question handed on: chunks that any search gave, candidates, what was read, what the writer was shown.

    A passage that is read twice is there twice.
    """

    searched: dict[str, None] = field(default_factory=dict)
    proposed: list[str] = field(default_factory=list)
    read: list[Passage] = field(default_factory=list)
    shown: list[Passage] = field(default_factory=list)


class RecordingLibrary(Library):
    """A library that notes the ids which its searches give, before any is chosen from them."""

    seen = Seen()

    def nearest_ids(self, *given: Any, **limits: Any) -> list[tuple[str, float]]:
        """The ids of `Library.nearest_ids`."""
        return self._noted(super().nearest_ids(*given, **limits))

    def matching(self, *given: Any, **limits: Any) -> list[tuple[str, float]]:
        """The ids of `Library.matching`."""
        return self._noted(super().matching(*given, **limits))

    def _noted(self, found: list[tuple[str, float]]) -> list[tuple[str, float]]:
        self.seen.searched.update(dict.fromkeys(identifier for identifier, _ in found))
        return found


@dataclass
class RecordingBench(Workbench):
    """A workbench whose roles note what they are shown in `seen`."""

    seen: Seen = field(default_factory=Seen)

    async def roles_of(self, run_id: str) -> Roles:
        """The roles of a run; those that read and write for questions are listened to."""
        roles = await super().roles_of(run_id)
        answering = roles.answering
        reader, writer = _Reader(answering.reader, self.seen), _Writer(answering.writer, self.seen)
        return replace(roles, answering=replace(answering, reader=reader, writer=writer))


class _Reader:
    def __init__(self, reader: EvidenceReader, seen: Seen) -> None:
        self._reader, self._seen = reader, seen

    async def read(self, *given: Any, **named: Any) -> Any:
        self._seen.read.append(shown_to_reader(*given, **named))
        return await self._reader.read(*given, **named)


class _Writer:
    def __init__(self, writer: AnswerWriter, seen: Seen) -> None:
        self._writer, self._seen = writer, seen

    async def write(self, brief: AnswerBrief, *given: Any, **named: Any) -> Any:
        self._seen.shown += shown_to_writer(brief)
        return await self._writer.write(brief, *given, **named)

    async def repair(self, *given: Any, **named: Any) -> Any:
        return await self._writer.repair(*given, **named)


async def ask(question: str, bench: RecordingBench, *, single_shot: bool = False) -> tuple[Seen, dict[str, Any]]:
    """What the question's run was shown, and its result; the run leaves nothing in the home."""
    seen = Seen()
    bench.seen = seen
    if isinstance(bench.library, RecordingLibrary):
        bench.library.seen = seen

    async def provide(_: object) -> Workbench:
        return bench

    graph = build_research_graph(provide).compile()
    request = ResearchRequest(question, single_shot=single_shot)
    values: dict[str, Any] = {}
    async for update in graph.astream(request.given(), stream_mode="updates"):
        for written in update.values():
            values |= written or {}
    seen.proposed = proposed_in(values)
    return seen, values["result"]


def proposed_in(values: Mapping[str, Any]) -> list[str]:
    """Ids of the chunks that the run's first search chose for reading; what the agent finds is all read."""
    return [identifier for identifier, _ in values["found"]]


def shown_to_reader(query: str, candidate: Any) -> Passage:
    """The sentences of a candidate that are numbered for a reader."""
    text = candidate.chunk.text
    spans: Sequence[tuple[int, int]] = sentence_spans(text)
    kept = [text[start:end] for start, end in spans if any(map(str.isalpha, text[start:end]))]
    return Passage(candidate.chunk.key, " ".join(kept))


def shown_to_writer(brief: AnswerBrief) -> list[Passage]:
    """The sources as they stand in the writer's prompt, with their background."""
    return [Passage("", present_fresh(brief).text)]
