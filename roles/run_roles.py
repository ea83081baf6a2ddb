"""The roles of one run, put together from those on chat models and those without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar, cast

from .cell_protocols import CellReader
from .protocols import (
    AnswerWriter,
    Brief,
    ClaimJudge,
    EvidenceReader,
    NeedsPlanner,
    PaperScreener,
    PaperSummarizer,
    Planner,
    QuestionRewriter,
    SectionWriter,
    SupportJudge,
    Writer,
)

AnyBrief = TypeVar("AnyBrief", bound=Brief)


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one run; `notice` is one line for the user about the mode.

    `planner` searches further, `screener` reads cards, `claims` judges users' texts, `cells` fills evidence tables,
    `stances` (the judge's model) those on claims; these are None without a chat model.
    """

    needs: NeedsPlanner
    reader: EvidenceReader
    answer_reader: EvidenceReader
    writer: SectionWriter
    answer_writer: AnswerWriter
    rewriter: QuestionRewriter
    judge: SupportJudge
    summarizer: PaperSummarizer
    notice: str = ""
    planner: Planner | None = None
    screener: PaperScreener | None = None
    cells: CellReader | None = None
    stances: CellReader | None = None
    claims: ClaimJudge | None = None

    def writer_for(self, brief: AnyBrief) -> Writer[AnyBrief]:
        return cast("Writer[AnyBrief]", self.answer_writer if brief.kind == "answer" else self.writer)


NOTICE: Final = (
    "Extractive mode: no chat model is configured, so your own statements are kept and passages near to them listed; "
    "nothing is argued or judged. Set CITELOOM_CHAT_MODEL for written prose."
)

ANSWER_NOTICE: Final = (
    "Extractive mode: no chat model is configured, so the nearest passages are listed; nothing is summed up or judged. "
    "Set CITELOOM_CHAT_MODEL for written prose."
)
