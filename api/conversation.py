"""Conversations: questions and follow-ups, for Python and front ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..graph.conversation_graph import TurnKind, answer_with_sources, chat_question, truncate_history
from ..graph.run_events import Event, OnEvent
from ..graph.session import Session
from ..roles.extractive.follow_ups import is_remark
from ..runs.execution import (
    TurnRequest,
    delete_conversation,
    delete_expired,
    expired_conversations,
    ignore,
    paused_turn,
    take_turn,
)
from ..runs.result_record import ResultRecord, public_record
from .arguments import require_open, require_writable
from .blocking import blocking
from .library_search import akeys_within
from .running import stream_events
from .stored_runs import new_thread_id, turn_record, turns_as_shown, write_transcript

if TYPE_CHECKING:
    from .results import AnswerRecord


def short_answer(record: Mapping[str, Any]) -> AnswerRecord:
    """Return a finished run's answer without the fields that only files and pages need."""
    from .results import CheckedCitation, CitedSource

    answer = {
        "run_id": record["thread_id"],
        **{name: record[name] for name in ("question", "answered", "outcome", "text", "warnings")},
        "sources": [
            {name: item.get(name, []) for name in CitedSource.__annotations__} for item in record["references"]
        ],
        "citations": [  # `ocr` is only present if true
            {name: item.get(name, False) for name in CheckedCitation.__annotations__} for item in record["citations"]
        ],
        "cost": record["usage"],
    }
    return cast("AnswerRecord", answer)


class Conversation(nullcontext["Conversation"]):
    """A conversation over an open library: questions that may follow up on each other.

        with citeloom.open_library() as library:
            talk = citeloom.Conversation(library)
            talk.ask("How are graph genomes used to genotype structural variants?")["text"]
            talk.ask("What about their limitations?")["question"]  # rewritten to stand alone

    Turns are stored with the library: `Conversation(library, talk.thread_id)` continues them, in this process or
    another. Citation numbers and evidence ids are the same in all its turns.

    Args:
        library: an open library.
        thread_id: id of an existing conversation, or a prefix of it; omit it for a new conversation.

    Raises `UnknownConversationError` if no conversation has this id. `with` is optional; nothing needs closing.
    """

    def __init__(self, session: Session, thread_id: str | None = None) -> None:
        super().__init__(self)
        require_open(session)
        self._library = session
        known = None if thread_id is None else session.home.conversations().get(thread_id)
        self.thread_id = new_thread_id() if known is None else known.thread_id

    async def aask(
        self,
        question: str,
        *,
        alone: bool = False,
        papers: Sequence[str] = (),
        without: Sequence[str] = (),
        on_event: OnEvent | None = None,
    ) -> ResultRecord:
        """Ask the next question; returns the JSON of `research --json` plus the question as `asked`.

        Args:
            question: may follow up on the previous one ("and in 2020?"); `question` in the result stands alone.
            alone: do not rewrite the question.
            papers: keys of the only papers to draw on.
            without: keys of papers to leave out.
            on_event: called with each event.

        Asking an interrupted question again resumes it. Raises `InputError`, `PausedError`, or another
        `CiteloomError`.
        """
        keys = await akeys_within(self._library, papers, without)
        return await self._take(question, "question" if alone else "follow-up", on_event, keys)

    async def aimprove(self, feedback: str, *, on_event: OnEvent | None = None) -> ResultRecord:
        """Rewrite the last answer following feedback; raises `NothingToImproveError` without one, else as `aask`."""
        return await self._take(feedback, "improve", on_event)

    def stream(self, question: str, *, alone: bool = False) -> AsyncGenerator[Event, None]:
        """`aask` as a stream of events (`docs/events.md`) ending with `done`; closing it early pauses the turn."""
        return stream_events(lambda emit: self.aask(question, alone=alone, on_event=emit))

    ask = blocking(aask)
    improve = blocking(aimprove)

    @property
    def turns(self) -> list[ResultRecord]:
        """The finished turns in order: `number`, `asked` and each answer's JSON. Blocks briefly."""
        return [turn_record(turn) for turn in self._library.home.conversations().turns(self.thread_id)]

    def export(self, path: Path | str, *, force: bool = False) -> Path:
        """Write the conversation as edited to a markdown file, or JSON if its name ends in .json; returns the path.

        Unless `force` is given, files that were edited or not written by Citeloom are kept, and the new one is
        numbered (`talk.2.md`). Raises `InputError` if no question has been answered yet or the file cannot be written.
        """
        turns = turns_as_shown(self._library, self.thread_id)
        return write_transcript(Path(path), self.thread_id, turns, home=self._library.home, force=force)[0]

    async def _take(
        self, asked: str, kind: TurnKind, on_event: OnEvent | None, papers: tuple[str, ...] = ()
    ) -> ResultRecord:
        require_open(self._library)
        require_writable(self._library)
        request = TurnRequest(asked, kind, papers=papers)
        turn = await take_turn(self.thread_id, request, self._library, on_event=on_event or ignore)
        return {**public_record(turn.record), "number": turn.number}
