"""The roles of one run, put together from those on chat models and those without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar, cast

from .cell_protocols import CellReader
from .protocols import (
    AnswerPlanner,
    AnswerWriter,
    Brief,
    ClaimJudge,
    EvidenceReader,
    NeedsPlanner,
    PaperScreener,
    PaperSummarizer,
    Planner,
    QuestionRewriter,
    SearchPlanner,
    SectionWriter,
    SupportJudge,
    Writer,
)

AnyBrief = TypeVar("AnyBrief", bound=Brief)


@dataclass(frozen=True, slots=True)
class AnswerRoles:
    """The roles that answer questions; they use the models of the section roles of the same name.

    `rewriter` uses the planner's model.
    """

    reader: EvidenceReader
    planner: AnswerPlanner
    writer: AnswerWriter
    rewriter: QuestionRewriter


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one run; `notice` is one line for the user about the mode.

    `answering` are the roles for questions. `screener` reads cards, `claims` judges users' texts, `cells` fills
    evidence tables, `stances` (the judge's model) those on claims; all four are None without a chat model.
    """

    needs: NeedsPlanner
    reader: EvidenceReader
    planner: SearchPlanner
    writer: SectionWriter
    judge: SupportJudge
    summarizer: PaperSummarizer
    answering: AnswerRoles
    notice: str = ""
    screener: PaperScreener | None = None
    cells: CellReader | None = None
    stances: CellReader | None = None
    claims: ClaimJudge | None = None

    def planner_for(self, brief: AnyBrief) -> Planner[AnyBrief]:
        """The planner for a section or a question."""
        planner = self.answering.planner if brief.kind == "answer" else self.planner
        return cast("Planner[AnyBrief]", planner)

    def writer_for(self, brief: AnyBrief) -> Writer[AnyBrief]:
        """The writer of a section or an answer."""
        writer = self.answering.writer if brief.kind == "answer" else self.writer
        return cast("Writer[AnyBrief]", writer)


NOTICE: Final = (
    "Extractive mode: no chat model is configured, so your own statements are kept and passages near to them listed; "
    "nothing is argued or judged. Set CITELOOM_CHAT_MODEL for written prose."
)

ANSWER_NOTICE: Final = (
    "Extractive mode: no chat model is configured, so the nearest passages are listed; nothing is summed up or judged. "
    "Set CITELOOM_CHAT_MODEL for written prose."
)
