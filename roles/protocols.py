"""The roles, and their inputs and outputs: sources, needs, briefs, drafts, verdicts."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NotRequired, Protocol, get_args

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..documents import Category, Chunk, Evidence, Paper
from ..models.journal.streaming import TextListener
from ..settings.config import Depth

if TYPE_CHECKING:
    from ..documents.chunking import Window
    from ..experiment import Experiment, SectionKind

_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PassageSentence:
    """A sentence of a source, `chunk.text[start:end]` of the chunk `chunk_id`; `text` is without markup.

    `carries` is True if the finding rests on the sentence, False if it is only context.
    """

    chunk_id: str
    start: int
    end: int
    text: str
    carries: bool = True


@dataclass(frozen=True, slots=True)
class Source:
    """Evidence with the data that a writer or judge needs; `text` and `category` describe the whole first chunk.

    `passage` holds the sentences shown to every role, in reading order: those that carry the finding, and one sentence
    of context before each run of them. `window` holds these and all sentences near them in their section (within
    `parent`), of which a judge or a repair is shown more if needed.
    """

    evidence: Evidence
    paper: Paper
    text: str
    category: Category = Category.OTHER
    passage: tuple[PassageSentence, ...] = ()
    parent: str = ""
    window: tuple[PassageSentence, ...] = ()

    @property
    def shown_sentences(self) -> tuple[PassageSentence, ...]:
        """The sentences shown to every role; the quoted words if their sentences were not found."""
        item = self.evidence
        return self.passage or (PassageSentence(item.chunk_id, item.start, item.end, item.quote),)

    @property
    def shown(self) -> str:
        """All words of the source shown to any role, for the checks of numbers and copied text."""
        return "\n".join(self.passages)

    @property
    def passages(self) -> list[str]:
        """The chunk's text, and the sentences of other chunks that carry the finding or are shown with it."""
        return [self.text, *(item.text for item in self.passage if item.chunk_id != self.evidence.chunk_id)]

    @property
    def beyond(self) -> tuple[PassageSentence, ...]:
        """The sentences that any role may be shown from chunks other than the finding's own."""
        return tuple(item for item in self.window or self.passage if item.chunk_id != self.evidence.chunk_id)


@dataclass(frozen=True, slots=True)
class EarlierSection:
    """A section of the same paper that is already written, with its markers."""

    kind: SectionKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brief:
    """The common part of the briefs of sections and answers.

    `queries` are the completed searches, `searches_left` the custom searches that the budget still allows, `words` the
    requested length (0: an answer's length follows from the findings), `depth` the level of detail. `needs` are the
    planned needs with their evidence; `library` is a line on the library's size, `preferences` what the author wants in
    every text.
    """

    sources: tuple[Source, ...]
    queries: tuple[str, ...] = ()
    searches_left: int = 0
    words: int = 0
    depth: Depth = "standard"
    needs: tuple[NeedCoverage, ...] = ()
    library: str = ""
    preferences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionBrief(_Brief):
    """The input of a planner or writer for a section.

    `earlier` are the finished sections of the same paper, in the order of writing; None for a separate section.
    """

    kind: SectionKind
    experiment: Experiment
    earlier: tuple[EarlierSection, ...] | None = None
    writable: ClassVar[bool] = True  # the writer is called
    word_for_word: ClassVar[bool] = True  # the user's citations may appear only in the user's own sentences

    @property
    def citable(self) -> tuple[Source, ...]:
        return self.sources


class Turn(TypedDict):
    """An earlier question of a conversation, and its answer with markers.

    `asked` is the question as typed, if it depended on an earlier one.
    """

    question: str
    answer: str
    asked: NotRequired[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBrief(_Brief):
    """The input of a planner or writer for an answer.

    `sources` are the evidence for this question, `recalled` evidence that earlier answers of the conversation cited.
    `inventory` says whether the question asks for all papers of some kind, `survey` whether it is broad, `tabled`
    whether a table follows the answer, `most_papers` how many papers the answer may cite, `answerable` whether some
    source is relevant enough to answer from. With `feedback`, the last answer is to be revised.
    """

    question: str
    inventory: bool = False
    survey: bool = False
    tabled: bool = False
    most_papers: int = 8
    answerable: bool = True
    recalled: tuple[Source, ...] = ()
    turns: tuple[Turn, ...] = ()
    feedback: str = ""
    kind: ClassVar[Literal["answer"]] = "answer"  # as named by the checks
    earlier: ClassVar[None] = None  # it is not part of a paper
    word_for_word: ClassVar[bool] = False  # citations in the question may appear in any sentence

    @property
    def sought(self) -> str:
        """The text to search for: the question, with the user's feedback on the answer."""
        return f"{self.question} {self.feedback}".strip()

    @property
    def experiment(self) -> Experiment:
        """The user's own statements, which need no source: here only the question."""
        from ..experiment import Experiment  # takes 30 ms, not needed for searches

        return Experiment.model_validate({"question": self.question})

    @property
    def citable(self) -> tuple[Source, ...]:
        return (*self.sources, *self.recalled)

    @property
    def writable(self) -> bool:
        """Whether the writer is called: some source must be relevant to the question."""
        return bool(self.citable) and self.answerable


Brief = SectionBrief | AnswerBrief


Asks = Literal["finding", "number", "method", "contrary", "limit"]


@dataclass(frozen=True, slots=True)
class Need:
    """One piece of information to look for; `id` is `N1`, `N2` ..., stable within a run.

    `text` states it in one line, without the user's numbers and verdicts; `queries` are searches for it, worded as in a
    paper; `asks` is the kind of statement that meets it.
    """

    id: str
    text: str
    queries: tuple[str, ...]
    asks: Asks = "finding"

    @property
    def search(self) -> str:
        """The search as recorded: the queries on one line, or the need's text if it has all their words."""
        said = set(_WORDS.findall(self.text))
        parts = all(said.issuperset(_WORDS.findall(query)) for query in self.queries)
        return self.text if parts else "; ".join(self.queries)

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data for the graph's state."""
        return {**asdict(self), "queries": list(self.queries)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Need:
        return cls(**{**record, "queries": tuple(record["queries"])})


Status = Literal["met", "open", "in vain"]  # only a need that is "in vain" may be reported as unanswered


@dataclass(frozen=True, slots=True)
class NeedCoverage:
    """The coverage of a need: the ids of its evidence, best first, and the number of papers they come from.

    `searches` counts the searches for the need, `tried` are the agent's queries for it.
    """

    need: Need
    evidence: tuple[str, ...]
    papers: int
    searches: int
    tried: tuple[str, ...]
    status: Status


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of reading passages: a question, claim, or section with its subject, and the derived needs."""

    text: str
    needs: tuple[Need, ...]

    def select_needs(self, ids: Sequence[str]) -> tuple[Need, ...]:
        """Return the needs with these ids, in the order of the plan."""
        return tuple(need for need in self.needs if need.id in ids)


# How widely the library is read for a question; a remark asks for nothing.
QuestionKind = Literal["paper", "focused", "survey", "inventory", "remark"]


@dataclass(frozen=True, slots=True)
class NeedsPlan:
    """The planned needs, and for a question its kind, if the planner named one."""

    needs: tuple[Need, ...]
    kind: QuestionKind | None = None


# "indirect": stated there, but about another paper's work; used only for claims of users' texts.
VerdictLabel = Literal[
    "supported", "partly", "unsupported", "contradicted", "indirect", "on-topic", "off-topic", "unjudged"
]


@dataclass(frozen=True, slots=True)
class PassageFinding:
    """A statement of a passage that serves a need, and the words that carry it.

    `spans` are runs of words, `chunk.text[start:end]` each, in reading order; `score` (0-1) is the relevance to the
    need with the id `need`; `vector_score` (0-1) is the cosine by which its window was found.
    """

    paper: Paper
    statement: str
    score: float
    need: str
    spans: tuple[tuple[Chunk, int, int], ...]
    vector_score: float


@dataclass(frozen=True, slots=True)
class Draft:
    """A section with markers such as `[E3]`.

    `truncated` if the model reached its output limit, `declined` if the text only names the nearest evidence because
    the sources do not answer the question. `notes` are for the user.
    """

    text: str
    truncated: bool = False
    notes: tuple[str, ...] = ()
    declined: bool = False


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A written sentence with its markers, and all sources that it cites, in the order of its markers.

    `before` is the preceding sentence of the paragraph, else the heading, else empty; `may_sum_up` marks a paragraph's
    first sentence and those of the last paragraph.
    """

    sentence: str
    sources: tuple[Source, ...]
    before: str = ""
    may_sum_up: bool = False


@dataclass(frozen=True, slots=True)
class UncitedSentence:
    """A sentence without a citation: its section, and the sentence before it."""

    text: str
    section: str = ""
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

    The label applies to the whole sentence, judged against all its sources together, except that a contradicting source
    is labelled "contradicted". `adds` marks a source that adds nothing ("idle") or that contradicts. `spans` are the
    deciding words of the source, in reading order; `source.text[start:end]` are the first of them in the evidence's own
    chunk. Without deciding words, as for "unsupported", these are empty.
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

    `of_number` if a number in it was not found (it may be the experiment's).
    """

    text: str
    problems: tuple[str, ...]
    before: str = ""
    after: str = ""
    sources: tuple[Source, ...] = ()
    of_number: bool = False


@dataclass(frozen=True, slots=True)
class PaperCard:
    """The card of a paper shown to a screener; never used as evidence."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ScreenedPapers:
    """The result of screening `cards` cards: for each need, the keys of papers that may bear on it, best first.

    `near` are near misses, with the reason in one line; `unread` are papers whose card got no valid answer.
    """

    named: Mapping[str, tuple[str, ...]]
    near: Mapping[str, str] = field(default_factory=dict)
    cards: int = 0
    unread: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all named papers, each once."""
        return tuple(dict.fromkeys(key for keys in self.named.values() for key in keys))


# Plans at least one need before anything is searched, given titles in the library near the question or section.
NeedsPlanner = Callable[[Brief, Sequence[str]], Awaitable[NeedsPlan]]
# Rewrites a follow-up question so that it stands alone, given earlier turns, the latest last.
QuestionRewriter = Callable[[str, Sequence[Turn]], Awaitable[str]]
# Summarizes a paper, given its text, for the `summaries` collection.
PaperSummarizer = Callable[[Paper, str], Awaitable[str]]


class Findings(list[PassageFinding]):
    """The findings of a reader; `unreadable` are the ids of the chunks for which it gave no valid answer."""

    def __init__(self, found: Iterable[PassageFinding] = (), unreadable: Iterable[str] = ()) -> None:
        super().__init__(found)
        self.unreadable = tuple(unreadable)


class EvidenceReader(Protocol):
    """Reads windows of one paper for a purpose."""

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """Return the relevant findings, best first; as `Findings` if some chunks were unreadable."""


class Writer(Protocol):
    """Writes sections and answers from the evidence alone, citing only by marker; repairs only what it is asked to."""

    async def write(self, brief: Brief, listener: TextListener | None = None) -> Draft:
        """Write the draft; `listener` receives it while it is written, if the writer streams."""
        ...

    async def repair(self, brief: Brief, draft: Draft, problems: Sequence[str]) -> Draft:
        """Rewrite the draft to fix problems that concern it as a whole, one line each."""
        return draft

    async def repair_sentences(self, brief: Brief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """Return the replacement of each sentence: new text, "" to remove it, None to leave it unchanged."""
        return [None for _ in failing]


class SupportJudge(Protocol):
    """Judges whether sources support the sentences that cite them."""

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        """Return for each claim one verdict per source, in the order of its sources."""


# Kinds of uncited sentences: needs a citation, own work, common knowledge, opinion, or not a statement.
UncitedKind = Literal["needs", "own", "common", "opinion", "other"]


class ClaimJudge(SupportJudge, Protocol):
    """Judges sentences of a user's text: those with citations by their passages, those without by kind."""

    async def classify(self, sentences: Sequence[UncitedSentence]) -> list[UncitedKind | None]:
        """Return the kind of each uncited sentence; None where there was no valid answer."""
        ...


ColumnKind = Literal["text", "number", "yes/no", "choice", "p-value", "interval"]
COLUMN_KINDS: Final[tuple[ColumnKind, ...]] = get_args(ColumnKind)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of an evidence table: what it holds for each study.

    `asks` says it in a sentence, `unit` is the unit to which numbers are converted (empty: as printed), `options` are
    the allowed values of a choice, `queries` are searches worded as in a paper.
    """

    name: str
    asks: str = ""
    kind: ColumnKind = "text"
    unit: str = ""
    options: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data, as stored and in the JSON of a table."""
        return {**asdict(self), "options": list(self.options), "queries": list(self.queries)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TableColumn:
        return cls(**{**record, "options": tuple(record["options"]), "queries": tuple(record["queries"])})


@dataclass(frozen=True, slots=True)
class CellReading:
    """What a paper states for one column of one study: the value as printed, and the words it rests on.

    `unit` and `condition` may be empty; `formula` is set if the value is computed from printed numbers. `spans` are
    runs of words, `chunk.text[start:end]` each, at least one.
    """

    column: str
    value: str
    unit: str
    condition: str
    formula: str
    spans: tuple[tuple[Chunk, int, int], ...]


@dataclass(frozen=True, slots=True)
class StudyReading:
    """The cells of one study of a paper, unnamed if it is the only one."""

    study: str
    cells: tuple[CellReading, ...]


@dataclass(frozen=True, slots=True)
class RowReading:
    """The reading of one paper for a table: whether it belongs, why, and its studies."""

    belongs: bool
    reason: str
    studies: tuple[StudyReading, ...] = ()
