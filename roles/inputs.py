"""Inputs to the planner, writer and judge roles: sources, needs, and what else a section or an answer is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..documents import Category, Evidence, Paper
from ..experiment import Experiment, SectionKind
from .needs import NeedCoverage


@dataclass(frozen=True, slots=True)
class PassageSentence:
    """A sentence of a source as it is shown: `chunk.text[start:end]` of chunk `chunk_id`, cleaned of markup in `text`.

    `carries` tells a sentence that the finding rests on from one that is shown as its context.
    """

    chunk_id: str
    start: int
    end: int
    text: str
    carries: bool = True


@dataclass(frozen=True, slots=True)
class Source:
    """Evidence with what a writer or judge needs of it; `text` and `category` are those of the whole first chunk.

    `passage` are the sentences that writer and judge are both shown, in the order of the paper: those that carry the
    finding, and a sentence of context before each run of them.
    """

    evidence: Evidence
    paper: Paper
    text: str
    category: Category = Category.OTHER
    passage: tuple[PassageSentence, ...] = ()

    @property
    def shown(self) -> str:
        """All words of the source that anyone was shown, for checks of numbers and of copied runs."""
        beyond = [item.text for item in self.passage if item.chunk_id != self.evidence.chunk_id]
        return "\n".join([self.text, *beyond])


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
    that are written already, in the order of their writing; None for a section that is written by itself. `needs` are
    what has to be known, with what was found for each; `library` is a line on how large the library is.
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
        """Whether it is put to a writer: a section always is."""
        return True

    @property
    def word_for_word(self) -> bool:
        """Whether a citation of the user's may stand in the user's own sentences only."""
        return True


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that was asked before in a conversation, and its answer with markers.

    `asked` is the question as it was typed, where it leaned on one before; empty where that is not known.
    """

    question: str
    answer: str
    asked: str = ""


@dataclass(frozen=True, slots=True)
class AnswerBrief:
    """All that is told to whoever answers a question, or looks for what the answer still lacks.

    `sources` are the evidence of this question, `recalled` what earlier answers of the conversation cited and this one
    may cite again. `needs` and `library` are as for a section. `survey` tells whether the question is about several
    papers, `most_papers` how many an answer may cite, `answerable` whether any source bears on the question enough to
    rest an answer on; with `feedback`, the answer of the last turn is to be written anew.
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
        """What is searched for: the question, with what the user found lacking in the answer to it."""
        return f"{self.question} {self.feedback}".strip()

    @property
    def kind(self) -> Literal["answer"]:
        """What is written, as the checks know it."""
        return "answer"

    @property
    def experiment(self) -> Experiment:
        """What the user states: here the question alone. Its words and numbers need no source."""
        return Experiment.model_validate({"question": self.question})

    @property
    def citable(self) -> tuple[Source, ...]:
        """The evidence that an answer may cite."""
        return (*self.sources, *self.recalled)

    @property
    def earlier(self) -> None:
        """An answer is no part of a paper."""
        return None

    @property
    def writable(self) -> bool:
        """Whether it is put to a writer: where no source bears on the question, nothing is."""
        return bool(self.citable) and self.answerable

    @property
    def word_for_word(self) -> bool:
        """What the question cites may stand in any sentence of the answer."""
        return False


Brief = SectionBrief | AnswerBrief
