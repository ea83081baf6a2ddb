"""The roles that read and write, as protocols: five for sections, and those that answer questions.

Each has two implementations with the same contract: `models/chat` asks a chat model, `models/extractive`
works from sentence selection alone. The graph does not know which one it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

from ..documents import Chunk, Paper
from ..documents.windows import Window
from ..models.journal.streaming import TextListener
from .inputs import AnswerBrief, Brief, SectionBrief, Source, Turn
from .needs import Need, Purpose

if TYPE_CHECKING:
    # For their names only: the package takes a quarter of a second, which `--help` need not wait for.
    from langchain_core.messages import AIMessage, BaseMessage

AnyBrief = TypeVar("AnyBrief", bound=Brief)
Told = TypeVar("Told", bound=Brief, contravariant=True)

VerdictLabel = Literal["supported", "partly", "unsupported", "contradicted", "on-topic", "off-topic", "unjudged"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that retrieval proposes for a query, with its true cosine similarity (0-1)."""

    chunk: Chunk
    paper: Paper
    vector_score: float


@dataclass(frozen=True, slots=True)
class PassageFinding:
    """One thing that a passage says for a need: a statement, and the words that carry it.

    `spans` are runs of words, `chunk.text[start:end]` each, in the order of the paper; `score` (0-1) tells how much it
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

    `truncated` when the model was cut off at its output limit. `quotes` are spans in a source's chunk that a
    citation rests on, where the writer chose other words of it than the reader did. `notes` are for the user.
    """

    text: str
    truncated: bool = False
    quotes: tuple[QuoteSpan, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A sentence as it was written, with its markers, and all sources that it cites, in the order of its markers.

    `before` is the sentence before it in the same paragraph, for the first one the heading above; empty without either.
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
    """What a judge says of a sentence, kept for each of the sources that it cites.

    The label is that of the whole sentence, judged against all its sources together; a source that contradicts it has
    the label "contradicted" by itself. `adds` tells a source that adds nothing ("idle"), and one that contradicts.
    `spans` are the words of the source that decide, in the order of the paper; `source.text[start:end]` are the first
    of them in the evidence's own chunk. All are empty where there are none, as for "unsupported".
    """

    label: VerdictLabel
    reason: str = ""
    start: int | None = None
    end: int | None = None
    adds: Literal["", "idle", "contradicts"] = ""
    spans: tuple[DecidingSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class FailingSentence:
    """A sentence of a draft to be repaired: what is wrong with it, what stands around it, and its evidence.

    `of_number` when a number in it was not found, which may be one of the experiment's.
    """

    text: str
    problems: tuple[str, ...]
    before: str = ""
    after: str = ""
    sources: tuple[Source, ...] = ()
    of_number: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """What a paper says at one place: `chunk.text[start:end]` for each of `spans` is a sentence, in order."""

    chunk: Chunk
    paper: Paper
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a judge says of two statements; `first` and `second` are places in their `spans` when they contradict.

    `claim` and `reason` are the judge's words, one line each.
    """

    label: Literal["contradict", "agree", "unrelated", "unjudged"]
    claim: str = ""
    reason: str = ""
    first: int = 0
    second: int = 0


class NeedsPlanner(Protocol):
    """Plans what has to be known before anything is searched."""

    async def needs(self, brief: Brief, papers: Sequence[str] = ()) -> tuple[Need, ...]:
        """At least one need; `papers` are titles in the library that are near to the question or section."""
        ...


class Findings(list[PassageFinding]):
    """What a reader found; `unreadable` are the ids of the chunks for which it gave no valid answer."""

    def __init__(self, found: Iterable[PassageFinding] = (), unreadable: Iterable[str] = ()) -> None:
        super().__init__(found)
        self.unreadable = tuple(unreadable)


class EvidenceReader(Protocol):
    """Reads windows of one paper for a purpose."""

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """What they say that helps, best first; empty when nothing does. `Findings` where some could not be read."""
        ...


class Planner(Protocol[Told]):
    """Decides what to search for next, for a section or for a question whose evidence is thin."""

    def open(self, brief: Told) -> list[BaseMessage]:
        """The messages that every later turn starts with, word for word."""
        ...

    async def plan(self, messages: Sequence[BaseMessage], brief: Told) -> AIMessage:
        """The next turn: a message with tool calls, or one without when the evidence suffices."""
        ...


class Writer(Protocol[Told]):
    """Writes a section or an answer from the evidence alone, citing only by marker."""

    async def write(self, brief: Told, listener: TextListener | None = None) -> Draft:
        """The draft; `listener` hears it while it is written, where that is known."""
        ...

    async def repair(self, brief: Told, draft: Draft, problems: Sequence[str]) -> Draft:
        """The draft written again, where a problem concerns the whole of it; `problems` are one line each."""
        ...

    async def repair_sentences(self, brief: Told, failing: Sequence[FailingSentence]) -> list[str | None]:
        """What replaces each sentence: other words, "" to remove it, None to leave it as it is."""
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
    """Makes a follow-up question stand alone; one that does already comes back to the character."""

    async def rewrite(self, question: str, earlier: Sequence[Turn]) -> str:
        """The question after `earlier`, whose questions stand alone, the last one last."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerRoles:
    """The roles that answer questions: they read, plan and write with the models of their namesakes below.

    `rewriter` works with the planner's.
    """

    reader: EvidenceReader
    planner: AnswerPlanner
    writer: AnswerWriter
    rewriter: QuestionRewriter


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one run; `notice` is one line for the user about what this mode is.

    `answering` are those for questions; `comparer` is the judge's other task, None where the judge cannot: without a
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
