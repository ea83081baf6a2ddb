"""The roles that read, plan, write and judge, as protocols: for sections and for questions.

Each has two implementations with the same contract: `roles/chat` asks a chat model, `roles/extractive` selects
sentences without one. The graph does not know which one it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

from ..documents import Chunk, Paper
from ..models.journal.streaming import TextListener
from .inputs import AnswerBrief, Brief, SectionBrief, Source, Turn
from .needs import Need, Purpose

if TYPE_CHECKING:
    # For type names only: importing the package takes a quarter of a second, which would slow down `--help`.
    from langchain_core.messages import AIMessage, BaseMessage

    from ..documents.chunking import Window

AnyBrief = TypeVar("AnyBrief", bound=Brief)
BriefT = TypeVar("BriefT", bound=Brief, contravariant=True)

VerdictLabel = Literal["supported", "partly", "unsupported", "contradicted", "on-topic", "off-topic", "unjudged"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that retrieval proposes for a query, with its true cosine similarity (0-1)."""

    chunk: Chunk
    paper: Paper
    vector_score: float


@dataclass(frozen=True, slots=True)
class PassageFinding:
    """A statement that a passage makes for a need, and the words that carry it.

    `spans` are runs of words, `chunk.text[start:end]` each, in the order of the paper; `score` (0-1) is how much it
    helps with the need `need`; `vector_score` (0-1) is the cosine by which its window was found.
    """

    paper: Paper
    statement: str
    score: float
    need: str
    spans: tuple[tuple[Chunk, int, int], ...]
    vector_score: float


@dataclass(frozen=True, slots=True)
class QuoteSpan:
    """The words `chunk.text[start:end]` of the chunk behind evidence `evidence_id`."""

    evidence_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A section with markers such as `[E3]`.

    `truncated` when the model was cut off at its output limit. `quotes` are spans of a source's chunk that a citation
    rests on, where the writer chose other words than the reader. `notes` are for the user.
    """

    text: str
    truncated: bool = False
    quotes: tuple[QuoteSpan, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A written sentence with its markers, and all sources that it cites, in the order of its markers.

    `before` is the preceding sentence of the paragraph, or for the first one the heading; empty without either.
    """

    sentence: str
    sources: tuple[Source, ...]
    before: str = ""


@dataclass(frozen=True, slots=True)
class DecidingSpan:
    """Words that decide a verdict: `chunk.text[start:end]` of the chunk `chunk_id`."""

    chunk_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on a sentence, stored for each of the sources that it cites.

    The label is that of the whole sentence, judged against all its sources together; a source that contradicts it has
    the label "contradicted" of its own. `adds` marks a source that adds nothing ("idle") or that contradicts. `spans`
    are the deciding words of the source, in the order of the paper; `source.text[start:end]` are the first of them in
    the evidence's own chunk. All are empty when there are none, as for "unsupported".
    """

    label: VerdictLabel
    reason: str = ""
    start: int | None = None
    end: int | None = None
    adds: Literal["", "idle", "contradicts"] = ""
    spans: tuple[DecidingSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class FailingSentence:
    """A sentence of a draft to be repaired: its problems, its surroundings, and its evidence.

    `of_number` when a number in it was not found, which may be one of the experiment's; `as_a_whole` when a problem
    concerns the sentence itself, not only some words of it.
    """

    text: str
    problems: tuple[str, ...]
    before: str = ""
    after: str = ""
    sources: tuple[Source, ...] = ()
    of_number: bool = False
    as_a_whole: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """What a paper says at one place: each of `spans` is a sentence `chunk.text[start:end]`, in order."""

    chunk: Chunk
    paper: Paper
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A judge's comparison of two statements; `first` and `second` index their `spans` when they contradict.

    `claim` and `reason` are the judge's words, one line each.
    """

    label: Literal["contradict", "agree", "unrelated", "unjudged"]
    claim: str = ""
    reason: str = ""
    first: int = 0
    second: int = 0


class NeedsPlanner(Protocol):
    """Plans what has to be known, before anything is searched."""

    async def needs(self, brief: Brief, papers: Sequence[str] = ()) -> tuple[Need, ...]:
        """At least one need; `papers` are titles in the library near to the question or section."""
        ...


class Findings(list[PassageFinding]):
    """The findings of a reader; `unreadable` are the ids of the chunks for which it gave no valid answer."""

    def __init__(self, found: Iterable[PassageFinding] = (), unreadable: Iterable[str] = ()) -> None:
        super().__init__(found)
        self.unreadable = tuple(unreadable)


class EvidenceReader(Protocol):
    """Reads windows of one paper for a purpose."""

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """The relevant findings, best first; empty when nothing helps. `Findings` when some chunks were unreadable."""
        ...


class Planner(Protocol[BriefT]):
    """Decides what to search for next, for a section or for a question with thin evidence."""

    def open(self, brief: BriefT) -> list[BaseMessage]:
        """The messages that every later turn starts with, verbatim."""
        ...

    async def plan(self, messages: Sequence[BaseMessage], brief: BriefT) -> AIMessage:
        """The next turn: a message with tool calls, or one without when the evidence is sufficient."""
        ...


class Writer(Protocol[BriefT]):
    """Writes a section or an answer from the evidence alone, citing only by marker."""

    async def write(self, brief: BriefT, listener: TextListener | None = None) -> Draft:
        """The draft; `listener` receives it while it is written, if the writer streams."""
        ...

    async def repair(
        self, brief: BriefT, draft: Draft, problems: Sequence[str], failing: Sequence[tuple[int, int]] = ()
    ) -> Draft:
        """The draft rewritten, for problems that concern the whole of it.

        `problems` are one line each, `failing` the spans of the sentences that fail besides.
        """
        ...

    async def repair_sentences(self, brief: BriefT, failing: Sequence[FailingSentence]) -> list[str | None]:
        """The replacement of each sentence: other words, "" to remove it, None to leave it unchanged."""
        ...


SearchPlanner = Planner[SectionBrief]
AnswerPlanner = Planner[AnswerBrief]
SectionWriter = Writer[SectionBrief]
AnswerWriter = Writer[AnswerBrief]


class SupportJudge(Protocol):
    """Judges whether sources support the sentences that cite them."""

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        """For each claim, in order, a verdict for each of its sources, in their order."""
        ...


class ContradictionJudge(Protocol):
    """Judges whether statements of two papers disagree on one claim."""

    async def compare(self, first: Statement, second: Statement) -> Comparison: ...


class PaperSummarizer(Protocol):
    """Summarizes a paper for the `summaries` collection."""

    async def summarize(self, paper: Paper, text: str) -> str: ...


class QuestionRewriter(Protocol):
    """Rewrites a follow-up question so that it stands alone; one that already does is returned unchanged."""

    async def rewrite(self, question: str, earlier: Sequence[Turn]) -> str:
        """The question after `earlier`, whose questions stand alone, the latest last."""
        ...


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

    `answering` are those for questions; `comparer` is the judge of contradictions, None when the judge works without a
    chat model.
    """

    needs: NeedsPlanner
    reader: EvidenceReader
    planner: SearchPlanner
    writer: SectionWriter
    judge: SupportJudge
    summarizer: PaperSummarizer
    answering: AnswerRoles
    notice: str = ""
    comparer: ContradictionJudge | None = None

    def planner_of(self, brief: AnyBrief) -> Planner[AnyBrief]:
        """The planner for a section or a question."""
        planner = self.answering.planner if brief.kind == "answer" else self.planner
        return cast("Planner[AnyBrief]", planner)

    def writer_of(self, brief: AnyBrief) -> Writer[AnyBrief]:
        """The writer of a section or an answer."""
        writer = self.answering.writer if brief.kind == "answer" else self.writer
        return cast("Writer[AnyBrief]", writer)
