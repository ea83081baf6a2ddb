"""The five roles that read and write, as protocols.

Each has two implementations with the same contract: `models/chat` asks a chat model, `models/extractive`
works from sentence selection alone. The graph does not know which one it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.experiment import Experiment, SectionKind

if TYPE_CHECKING:
    # For their names only: the package takes a quarter of a second, which `--help` need not wait for.
    from langchain_core.messages import AIMessage, BaseMessage

VerdictLabel = Literal["supported", "partly", "unsupported", "contradicted", "on-topic", "off-topic", "unjudged"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that retrieval proposes for a query, with its true cosine similarity (0-1)."""

    chunk: Chunk
    paper: Paper
    vector_score: float


@dataclass(frozen=True, slots=True)
class Reading:
    """A chunk read in the light of a query: `chunk.text[start:end]` is the passage that bears on it."""

    summary: str
    score: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """Evidence with what a writer or judge needs of it; `text` and `category` are those of the whole chunk."""

    evidence: Evidence
    paper: Paper
    text: str
    category: Category = Category.OTHER


@dataclass(frozen=True, slots=True)
class EarlierSection:
    """A section of the same paper that is written already, its markers among the text."""

    kind: SectionKind
    text: str


@dataclass(frozen=True, slots=True)
class SectionBrief:
    """All that a planner or writer is told.

    `queries` are those already answered (defaults and custom ones), `searches_left` the custom searches that
    the budget still allows, `words` the length asked of the section. `earlier` are the sections of the same paper
    that are written already, in the order of their writing; None for a section that is written by itself.
    """

    kind: SectionKind
    experiment: Experiment
    sources: tuple[Source, ...]
    queries: tuple[str, ...]
    searches_left: int
    words: int
    earlier: tuple[EarlierSection, ...] | None = None


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
class CitedPair:
    """A sentence as it was written, with its markers, and one of the sources that it cites."""

    sentence: str
    source: Source


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of a sentence and one of its sources.

    `source.text[start:end]` are the words that decide it; both None where there are none, as for "unsupported".
    """

    label: VerdictLabel
    reason: str = ""
    start: int | None = None
    end: int | None = None


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


class EvidenceReader(Protocol):
    """Reads a candidate chunk in the light of a query."""

    async def read(self, query: str, candidate: Candidate) -> Reading | None:
        """The reading, or None when nothing in the chunk bears on the query."""
        ...


class SearchPlanner(Protocol):
    """Decides what to search for next."""

    def open(self, brief: SectionBrief) -> list[BaseMessage]:
        """The messages that every later turn starts with, word for word."""
        ...

    async def plan(self, messages: Sequence[BaseMessage], brief: SectionBrief) -> AIMessage:
        """The next turn: a message with tool calls, or one without when the evidence suffices."""
        ...


class SectionWriter(Protocol):
    """Writes a section from a brief, citing only by marker."""

    async def write(self, brief: SectionBrief) -> Draft: ...

    async def repair(self, brief: SectionBrief, draft: Draft, problems: Sequence[str]) -> Draft:
        """The draft mended; `problems` are one line each and name the words at fault."""
        ...


class SupportJudge(Protocol):
    """Judges whether sources support the sentences that cite them."""

    async def judge(self, pairs: Sequence[CitedPair]) -> list[Verdict]:
        """A verdict for each pair, in their order."""
        ...


class ContradictionJudge(Protocol):
    """Judges whether statements of two papers disagree on one claim."""

    async def compare(self, first: Statement, second: Statement) -> Comparison: ...


class PaperSummarizer(Protocol):
    """Summarizes a paper for the `summaries` collection."""

    async def summarize(self, paper: Paper, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Roles:
    """The five roles of one run; `notice` is one line for the user about what this mode is.

    `comparer` is the judge's other task, None where the judge cannot: without a chat model.
    """

    reader: EvidenceReader
    planner: SearchPlanner
    writer: SectionWriter
    judge: SupportJudge
    summarizer: PaperSummarizer
    notice: str = ""
    comparer: ContradictionJudge | None = None
