"""Routes a question: to one paper or to the library, and to kinds of section."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...documents import Category, Paper
from ...stores.library import Library
from ...text.words import is_stop, words_of
from ..scope import Scope
from .paper_mentions import named_papers
from .unique_terms import paper_of_coined_name

Track = Literal["one_paper", "survey"]
QuestionKind = Literal["paper", "focused", "survey", "inventory"]

_INVENTORY = re.compile(
    r"\b(?:for (?:each|every)|each\b|list (?:all|every)|how many (?:papers|studies|trials)"
    r"|which (?:of the )?(?:papers|studies|trials|reviews|articles|reports))\b",
    re.IGNORECASE,
)
_FOCUSED = re.compile(
    r"^(?:does|do|did|is|are|can|could|has|have|will|would|should|was|were)\b"
    r"|\bhow (?:much|many|large|long|often|strongly|far|fast|accurate(?:ly)?|well)\b"
    r"|\bwhat (?:share|fraction|percentage|proportion|number)\b",
    re.IGNORECASE,
)
_LEAST_TITLE = 3  # words
_TITLE_SHARE = 0.6  # of the words of a question that a title must have
# With a title, these words ask about its subject, as any of them does in "What are the building blocks of life?"
_SUBJECT_WORDS = frozenset("what which how why are is do does the a an of there in can one so many be for and".split())


@dataclass(frozen=True, slots=True)
class Route:
    """The track of a question, the papers it names (one on "one_paper") and the kinds of section it asks for.

    A survey that names papers covers those; one that names none covers the whole library. A survey whose question has
    the words of a title, but asks about its subject, starts with that paper.
    """

    track: Track
    papers: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    start: tuple[str, ...] = ()

    def scope(self) -> Scope:
        """The part of the library that the question is about."""
        return Scope(papers=self.papers, categories=self.categories)


def route(question: str, papers: Sequence[Paper]) -> Route:
    """The route of a question, by rules alone; any text has one."""
    named = named_papers(question, papers)
    if not named.keys or (len(named.keys) == 1 and named.by_title and _asks_about_subject(named.rest)):
        categories = asked_categories(question, about_a_paper=False, alone=False)
        return Route("survey", categories=categories, start=_papers_titled_like(question, papers))
    track: Track = "one_paper" if len(named.keys) == 1 else "survey"
    return Route(
        track, named.keys, asked_categories(named.rest, about_a_paper=bool(named.keys), alone=track != "survey")
    )


def question_kind(question: str, track: Track) -> QuestionKind:
    """The kind of a question, by rules alone: how widely the library has to be read for it."""
    if track == "one_paper":
        return "paper"
    if _INVENTORY.search(question):
        return "inventory"
    return "focused" if _FOCUSED.search(question.strip()) else "survey"


def _asks_about_subject(rest: str) -> bool:
    return all(word in _SUBJECT_WORDS for word in re.findall(r"\w+", rest.lower()))


def _papers_titled_like(question: str, papers: Sequence[Paper]) -> tuple[str, ...]:
    """The papers whose titles consist of the question's words, and say most of what it asks about."""
    asked = _content_words(question)
    titled = ((paper.key, _content_words(paper.title)) for paper in papers)
    return tuple(
        key
        for key, words in titled
        if len(words) >= _LEAST_TITLE and words <= asked and len(words) >= _TITLE_SHARE * len(asked)
    )


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word.form for word in words_of(text) if not is_stop(word))


def route_in(question: str, library: Library) -> Route:
    """The route of a question in a library; blocks.

    When the question names no paper directly, but a thing that only one paper covers at length, it is about that paper.
    """
    papers = library.papers()
    found = route(question, papers)
    if found.papers or found.start:
        return found
    key = paper_of_coined_name(question, library)
    if key is None:
        return found
    return Route("one_paper", (key,), asked_categories(question, about_a_paper=True, alone=True))


# Words that ask for a kind of section in any question.
_ANYWHERE: tuple[tuple[Category, str], ...] = (
    (Category.ABSTRACT, r"abstract sections?|in (?:the|their) abstracts?"),
    (Category.INTRODUCTION, r"introductions|introduction sections?|in (?:the|their) introduction"),
    (Category.METHOD, r"methods? sections?"),
    (Category.EVALUATION, r"results?|accura(?:cy|te)|performance|outperform\w*|ablations?|benchmark results"),
    (Category.CONCLUSION, r"limitations?|future (?:work|directions?|research)|conclusions?|discussion sections?"),
    (Category.RELATED_WORK, r"(?:related|prior|previous|earlier) works?|literature reviews?"),
)
# Words that do so only in a question that names papers; otherwise they are its subject.
_OF_A_PAPER: tuple[tuple[Category, str], ...] = (
    (Category.ABSTRACT, r"abstract"),
    (Category.INTRODUCTION, r"introduction|background|motivat\w+"),
    (Category.METHOD, r"methods?|methodology|algorithms?|architecture|procedures?|protocol|implement\w*|trained"),
    (
        Category.EVALUATION,
        r"findings|experiments?|evaluat\w+|tested|benchmark\w*|how (?:well|accurately)|perform(?:s|ed)?",
    ),
    (Category.CONCLUSION, r"conclude[sd]?|discussion|outlook|implications?"),
)
# Ways of asking that imply the kind of section in a question about one paper.
_OF_ONE_PAPER: tuple[tuple[Category, str], ...] = (
    (Category.EVALUATION, r"how (?:does|do|did)\b.*\bcompare|finds?|found"),
    (Category.METHOD, r"how (?:did|does|do|is|are|was|were)(?!.*\b(?:compare|differ|perform|evaluate|validate)\b)"),
)


def asked_categories(question: str, *, about_a_paper: bool, alone: bool) -> tuple[Category, ...]:
    """The kinds of section that a question asks for, none when it does not say.

    Args:
        question: the question without the names of papers.
        about_a_paper: whether it names papers.
        alone: whether it names just one.
    """
    text = question.lower()
    rules = _ANYWHERE + (_OF_A_PAPER if about_a_paper else ()) + (_OF_ONE_PAPER if alone else ())
    found = {category for category, pattern in rules if re.search(rf"\b(?:{pattern})\b", text)}
    return tuple(sorted(found))
