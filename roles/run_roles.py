"""The roles of one run, those on chat models and those without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .protocols import (
    ClaimJudge,
    EvidenceReader,
    NeedsPlanner,
    PaperSummarizer,
    QuestionRewriter,
    SupportJudge,
    Writer,
)

if TYPE_CHECKING:
    from .chat.chat_cell_reader import ChatCellReader
    from .chat.chat_planners import ChatPlanner
    from .chat.chat_reader import ChatScreener


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one run.

    `planner` searches further, `screener` reads cards, `claims` judges users' texts, `cells` fills evidence tables,
    `stances` (the judge's model) those on claims; these are None without a chat model.
    """

    needs: NeedsPlanner
    reader: EvidenceReader
    answer_reader: EvidenceReader
    writer: Writer
    rewriter: QuestionRewriter
    judge: SupportJudge
    summarizer: PaperSummarizer
    planner: ChatPlanner | None = None
    screener: ChatScreener | None = None
    cells: ChatCellReader | None = None
    stances: ChatCellReader | None = None
    claims: ClaimJudge | None = None


def extractive_notice(*, answer: bool) -> str:
    """One line for the user about a section or an answer without a chat model."""
    kept = (
        "the nearest passages are listed" if answer else "your own statements are kept and passages near to them listed"
    )
    done = "summed up" if answer else "argued"
    return (
        f"Extractive mode: no chat model is configured, so {kept}; nothing is {done} or judged. "
        "Set CITELOOM_CHAT_MODEL for written prose."
    )
