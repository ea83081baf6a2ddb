"""Creates all roles on chat models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...models.chat_caller import ChatCaller
from ...models.context_size import OF_A_TURN, Room
from ...prompts import PromptLibrary
from ...settings.config import RoleName
from ..protocols import NeedsPlanner
from ..run_roles import Roles
from .chat_cell_reader import ChatCellReader
from .chat_planners import ChatNeedsPlanner, ChatPlanner, ChatRewriter
from .chat_reader import ChatReader
from .chat_writers import ChatAnswerer, ChatWriter
from .claim_judges import ChatClaimJudge, SmallClaimJudge
from .judges import ChatJudge
from .screener import ChatScreener
from .structured_output import Note, log_note
from .summarizer import ChatSummarizer

# The length of a paper's summary relative to that of a passage.
_PAPER_SUMMARY_FACTOR = 2


def chat_roles(
    callers: Mapping[RoleName, ChatCaller],
    prompts: PromptLibrary,
    fallback: NeedsPlanner,
    *,
    summary_words: int,
    tool_specs: Sequence[Mapping[str, Any]],
    max_output_tokens: int,
    note: Note = log_note,
    sizes: Mapping[RoleName, int | None] = MappingProxyType({}),
    small_judge: bool = False,
) -> Roles:
    """All roles on chat models; `callers` holds one caller for each role, which may be the same object.

    `fallback` plans the needs if a model gives no valid plan. `sizes` are the context sizes of the roles' servers in
    tokens, as far as they are known. A `small_judge` answers Yes or No to a document and a claim.
    """
    agent, reads, writes, judges, sums_up = (
        Room.of(sizes.get(name), max_output_tokens) for name in ("agent", "reader", "writer", "judge", "summarizer")
    )
    turns = Room.of(sizes.get("agent"), max_output_tokens, OF_A_TURN)
    reader = ChatReader(
        callers["reader"], prompts, statement_words=summary_words, max_tokens=reads.output, note=note, room=reads
    )

    return Roles(
        needs=ChatNeedsPlanner(callers["agent"], prompts, fallback, max_tokens=agent.output, note=note, room=agent),
        reader=reader,
        answer_reader=reader,
        planner=ChatPlanner(callers["agent"], prompts, tool_specs, max_tokens=turns.output, room=turns),
        writer=ChatWriter(callers["writer"], prompts, max_tokens=writes.output, room=writes),
        judge=ChatJudge(callers["judge"], prompts, max_tokens=judges.output, room=judges),
        summarizer=ChatSummarizer(
            callers["summarizer"],
            prompts,
            words=_PAPER_SUMMARY_FACTOR * summary_words,
            max_tokens=sums_up.output,
            note=note,
            room=sums_up,
        ),
        answer_writer=ChatAnswerer(callers["writer"], prompts, max_tokens=writes.output, room=writes),
        rewriter=ChatRewriter(callers["agent"], prompts, max_tokens=agent.output),
        cells=ChatCellReader(callers["reader"], prompts, max_tokens=reads.output, note=note, room=reads),
        stances=ChatCellReader(callers["judge"], prompts, max_tokens=judges.output, note=note, room=judges),
        claims=SmallClaimJudge(callers["judge"], prompts, judges)
        if small_judge
        else ChatClaimJudge(callers["judge"], prompts, max_tokens=judges.output, room=judges, note=note),
        screener=ChatScreener(callers["reader"], prompts, max_tokens=reads.output, note=note, room=reads),
    )
