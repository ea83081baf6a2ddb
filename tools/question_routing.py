"""Routes a question to one paper or the whole library, and to kinds of section."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from ..documents import Category, Paper, split_chunk_id
from ..models.embeddings.bundled_models import EMBEDDER, load_tokenizer
from ..plurals import some
from ..roles.protocols import QuestionKind
from ..stores.library import Library
from ..stores.text_analysis import analyze
from ..text.words import is_stop, one_of, read_rules, split_words, without_accents
from .paper_mentions import OtherUse, find_mentions, find_papers_led_by

Track = Literal["one_paper", "survey"]

_RULES: Final = read_rules(__file__, "question_rules")
_INVENTORY, _FOCUSED = (one_of(_RULES[name], re.IGNORECASE) for name in ("inventory", "focused"))
_ANYWHERE, _OF_A_PAPER, _OF_ONE_PAPER = (
    tuple((Category[kind.upper()], pattern) for kind, pattern in _RULES["sections"][asked].items())
    for asked in ("anywhere", "of_a_paper", "of_one_paper")
)
_LEAST_TITLE = 3  # words
_TITLE_SHARE = 0.6  # minimum share of the question's words in a title
# With only these words beside a title's, a question is about its subject, as in "What are the building blocks of life?"
_SUBJECT_WORDS = frozenset("what which how why are is do does the a an of there in can one so many be for and".split())


@dataclass(frozen=True, slots=True)
class Route:
    """The track of a question, the papers it names (one on "one_paper") and the kinds of section it asks for.

    A survey covers the papers it names, else the whole library. A survey whose question has the words of a title, but
    asks about its subject, starts with that paper. `only_mention` means that the question does not name the paper, but
    a thing that no other paper mentions.
    """

    track: Track
    papers: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    start: tuple[str, ...] = ()
    only_mention: bool = False

    def notice(self) -> str:
        """Return a line for readers if the question limited the search to papers, else an empty one."""
        if len(self.papers) == 1:
            said = "the question names it; leave its name out"
            if self.only_mention:
                said = "no other paper mentions what the question names; leave that name out"
            return f"Only {self.papers[0]} was searched, since {said} to search all papers."
        return f"Only {some(self.papers)} were searched, since the question names them." if self.papers else ""


def route(question: str, papers: Sequence[Paper], used_elsewhere: OtherUse = lambda name, key: False) -> Route:
    """Route a question by rules alone."""
    named = find_mentions(question, papers, used_elsewhere)
    asks_about_subject = all(word in _SUBJECT_WORDS for word in re.findall(r"\w+", named.rest.lower()))
    if not named.keys or (len(named.keys) == 1 and named.by_title and asks_about_subject):
        categories = requested_categories(question, about_a_paper=False, alone=False)
        # Find titles that consist of the question's words and cover most of them.
        asked = _content_words(question)
        titles = ((paper.key, _content_words(paper.title)) for paper in papers)
        long = [(key, words) for key, words in titles if len(words) >= max(_LEAST_TITLE, _TITLE_SHARE * len(asked))]
        return Route("survey", categories=categories, start=tuple(key for key, words in long if words <= asked))
    track: Track = "one_paper" if len(named.keys) == 1 else "survey"
    return Route(
        track, named.keys, requested_categories(named.rest, about_a_paper=bool(named.keys), alone=track != "survey")
    )


def question_kind(question: str, track: Track) -> QuestionKind:
    """Classify by rules alone how widely the library must be read for a question."""
    if track == "one_paper":
        return "paper"
    if _INVENTORY.search(question):
        return "inventory"
    return "focused" if _FOCUSED.search(question.strip()) else "survey"


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word.form for word in split_words(text) if not is_stop(word))


def route_in(question: str, library: Library) -> Route:
    """Route a question in a library; blocks.

    A coined name stands for the paper that introduces it if no other paper mentions it; otherwise, as for LASSO, it is
    a subject.
    """
    found = route(question, library.papers(), partial(_used_elsewhere, library))
    if found.papers or found.start:
        return found
    meant = papers_of_coined_names(question, library)
    if len(meant) != 1:
        return found
    ((key, only_mention),) = meant.items()
    categories = requested_categories(question, about_a_paper=True, alone=True)
    return Route("one_paper", (key,), categories, only_mention=only_mention)


def requested_categories(question: str, *, about_a_paper: bool, alone: bool) -> tuple[Category, ...]:
    """Return the kinds of section that a question, without the names of papers, asks for; empty if it does not say.

    `about_a_paper` says whether it names papers, `alone` whether it names just one.
    """
    text = question.lower()
    rules = _ANYWHERE + (_OF_A_PAPER if about_a_paper else ()) + (_OF_ONE_PAPER if alone else ())
    found = {category for category, pattern in rules if re.search(rf"\b(?:{pattern})\b", text)}
    return tuple(sorted(found))


_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_YEAR = re.compile(r"\b(?:1[5-9]|20|21)\d\d\b")
_FEWEST_CHUNKS: Final = 3  # chunks of a paper that must have a name that it coined
_MOST_CHUNKS: Final = 500


def papers_of_coined_names(question: str, library: Library) -> dict[str, bool]:
    """Find the papers that names in a question stand for, each with whether it only mentions the name; blocks."""
    meant: dict[str, bool] = {}
    plain = without_accents(question.casefold())
    for name in coined_names(question):
        # An author with a year was already checked, without a match. "The Wilcoxon test" does not mean the author.
        unclear = _YEAR.search(question) or re.search(rf"\b(?:the|an?)\s+{name}\b", plain)
        led = set() if unclear else find_papers_led_by(name, library.papers())
        found = [] if led else _papers_with(library, name)
        if len(led) == 1:
            meant[led.pop()] = False
        elif len(found) >= _FEWEST_CHUNKS and len(set(found)) == 1:
            meant.setdefault(found[0], True)
    return meant


def _papers_with(library: Library, name: str) -> list[str]:
    """Return the paper key of each chunk with the name."""
    terms = analyze(name)
    return [split_chunk_id(found)[0] for found, _ in library.matching(terms, _MOST_CHUNKS)] if terms else []


def _used_elsewhere(library: Library, name: str, key: str) -> bool:
    return any(found != key for found in _papers_with(library, name))


def coined_names(question: str) -> list[str]:
    """Return the words of a question that are coined names, in order, without repeats."""
    tokenizer = load_tokenizer(EMBEDDER)
    names: list[str] = []
    for match in _WORD.finditer(question):
        word = re.sub(r"['’]s$", "", match.group())
        plain = without_accents(word.casefold())
        capital = any(character.isupper() for character in word)
        if capital and len(plain) > 2 and tokenizer.token_to_id(plain) is None and plain not in names:
            names.append(plain)
    return names
