"""Inputs to the planner, writer and judge roles: sources, needs, and the briefs for sections and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..documents import Category, Evidence, Paper
from ..experiment import Experiment, SectionKind
from .needs import NeedCoverage


@dataclass(frozen=True, slots=True)
class PaperCard:
    """What a screener sees of a paper; never evidence."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class PassageSentence:
    """A sentence of a source as shown: `chunk.text[start:end]` of chunk `chunk_id`, without markup in `text`.

    `carries` is true for a sentence that the finding rests on, false for one that is shown as context.
    """

    chunk_id: str
    start: int
    end: int
    text: str
    carries: bool = True


@dataclass(frozen=True, slots=True)
class Source:
    """Evidence with what a writer or judge needs; `text` and `category` are those of the whole first chunk.

    `passage` holds the sentences that writer and judge are both shown, in the order of the paper: those that carry the
    finding, and a sentence of context before each run of them.
    """

    evidence: Evidence
    paper: Paper
    text: str
    category: Category = Category.OTHER
    passage: tuple[PassageSentence, ...] = ()

    @property
    def shown(self) -> str:
        """All words of the source that any role was shown, for the checks of numbers and of copied text."""
        return "\n".join(self.passages)

    @property
    def passages(self) -> list[str]:
        """The chunk's text, and the shown sentences of other chunks."""
        return [self.text, *(item.text for item in self.passage if item.chunk_id != self.evidence.chunk_id)]


@dataclass(frozen=True, slots=True)
class EarlierSection:
    """A section of the same paper that is already written, with its markers."""

    kind: SectionKind
    text: str


@dataclass(frozen=True, slots=True)
class SectionBrief:
    """The input of a planner or writer for a section.

    `queries` are those already answered (default and custom ones), `searches_left` the custom searches that the budget
    still allows, `words` the requested length. `earlier` are the sections of the same paper that are already written,
    in the order of writing; None for a section written on its own. `needs` are the planned needs with what was found
    for each; `library` is a line on the size of the library.
    """

    kind: SectionKind
    experiment: Experiment
    sources: tuple[Source, ...]
    queries: tuple[str, ...]
    searches_left: int
    words: int
    earlier: tuple[EarlierSection, ...] | None = None
    needs: tuple[NeedCoverage, ...] = ()
    library: str = ""

    @property
    def citable(self) -> tuple[Source, ...]:
        """The evidence that the section may cite."""
        return self.sources

    @property
    def writable(self) -> bool:
        """True when it is given to a writer: a section always is."""
        return True

    @property
    def word_for_word(self) -> bool:
        """True when citations of the user may appear only in the user's own sentences."""
        return True


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation, and its answer with markers.

    `asked` is the question as it was typed, when it depended on an earlier one; empty when that is not known.
    """

    question: str
    answer: str
    asked: str = ""


@dataclass(frozen=True, slots=True)
class AnswerBrief:
    """The input of a planner or writer for an answer.

    `sources` are the evidence for this question, `recalled` what earlier answers of the conversation cited and this one
    may cite again. `needs` and `library` are as for a section. `survey` says whether the question is about several
    papers, `most_papers` how many an answer may cite, `answerable` whether some source is relevant enough to rest an
    answer on. With `feedback`, the last answer is to be revised.
    """

    question: str
    sources: tuple[Source, ...]
    queries: tuple[str, ...]
    searches_left: int
    words: int
    survey: bool = True
    most_papers: int = 8
    answerable: bool = True
    needs: tuple[NeedCoverage, ...] = ()
    library: str = ""
    recalled: tuple[Source, ...] = ()
    turns: tuple[Turn, ...] = ()
    feedback: str = ""

    @property
    def sought(self) -> str:
        """What to search for: the question, with the user's feedback on the answer."""
        return f"{self.question} {self.feedback}".strip()

    @property
    def kind(self) -> Literal["answer"]:
        """The kind of text, as the checks name it."""
        return "answer"

    @property
    def experiment(self) -> Experiment:
        """The user's own statements, which need no source: here the question alone."""
        return Experiment.model_validate({"question": self.question})

    @property
    def citable(self) -> tuple[Source, ...]:
        """The evidence that an answer may cite."""
        return (*self.sources, *self.recalled)

    @property
    def earlier(self) -> None:
        """None: an answer is not part of a paper."""
        return None

    @property
    def writable(self) -> bool:
        """True when it is given to a writer: some source must be relevant to the question."""
        return bool(self.citable) and self.answerable

    @property
    def word_for_word(self) -> bool:
        """False: citations in the question may appear in any sentence of the answer."""
        return False


Brief = SectionBrief | AnswerBrief
