"""Plans needs without a chat model, from the author's statements in a section, or the clauses of a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...documents import Paper
from ...experiment import Experiment, SectionKind
from ...text.sentences import sentence_spans
from ...text.words import is_stop, read_rules, split_words, stem
from ..protocols import AnswerBrief, Brief, Need, NeedsPlan
from .section_outlines import outline

_FEWEST_WORDS: Final = 3
_NAMED: Final = 2  # words of the subject; a sentence with fewer is searched for with the title
_MOST_QUERIES: Final = 6  # per need
_MOST_CLAUSES: Final = 6  # per question
_RULES: Final = read_rules(__file__, "statement_rules")["patterns"]
_PARTS, _JOINED, _BRACKETED, _NUMBER, _LOOSE = (
    re.compile(_RULES[name]) for name in ("parts", "joined", "bracketed", "number", "loose")
)
_OWN: Final = re.compile(_RULES["own"], re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]{2}")
_NAME: Final = re.compile(r"\w+")


async def plan_needs(brief: Brief, papers: Sequence[str]) -> NeedsPlan:
    """Plan needs: for a section, per paragraph and open question; for a question, the whole, then per clause."""
    if not isinstance(brief, AnswerBrief):
        return NeedsPlan(statement_needs(brief.kind, brief.experiment) or section_needs(brief.queries))
    asked = brief.sought
    *clauses, words = split_question(asked) or [asked]
    whole = Need("N1", asked, tuple(dict.fromkeys([asked, words])))
    parts = (Need(f"N{place}", text, (text,)) for place, text in enumerate(clauses[:_MOST_CLAUSES], 2))
    return NeedsPlan((whole, *parts))


def statement_needs(kind: SectionKind, experiment: Experiment) -> tuple[Need, ...]:
    """Return a need for each paragraph of the section, searched for whole and by its sentences.

    The paper's subject adds further needs, for sections whose own statements find little.
    """
    concept = experiment.paper_concept
    abouts = [item.about for item in outline(kind, experiment) if item.about]
    methods = {item.about for item in outline("methods", experiment)}
    # A title alone is too short to distinguish texts of similar meaning from texts that share its words.
    subject = (concept.description or concept.title, experiment.hypothesis.description, *concept.open_questions)
    needs: dict[str, tuple[str, ...]] = {}
    for about in dict.fromkeys([*abouts, *subject, experiment.hypothesis.method_combination]):
        queries = queries_for(about, concept.title, concept.description)
        if about == experiment.hypothesis.method_combination:
            parts = (queries_for(part) for part in _JOINED.split(about))  # methods are also used in other fields
            queries = tuple(dict.fromkeys([*queries, *(query for part in parts for query in part)]))[:_MOST_QUERIES]
        if queries:
            needs[about] = queries
    return tuple(
        Need(f"N{number}", text, queries, "method" if text in methods else "finding")
        for number, (text, queries) in enumerate(needs.items(), 1)
    )


def queries_for(text: str, title: str = "", described: str = "") -> tuple[str, ...]:
    """Return queries for a text, whole and by sentence, without its results; sentences off subject get the title."""
    topic = set(map(stem, _significant_words(f"{title} {described}")))
    fit: list[str] = []
    for start, end in [*sentence_spans(text), (0, len(text))]:
        part = strip_own_results(text[start:end])
        words = list(map(stem, _significant_words(part)))
        if title and part and (len(words) < _FEWEST_WORDS or len(topic.intersection(words)) < _NAMED):
            part = f"{part} {title}"
        if len(_significant_words(part)) >= _FEWEST_WORDS:
            fit.append(part)
    return tuple(dict.fromkeys(fit))[-_MOST_QUERIES:]


def is_cited(paper: Paper, text: str) -> bool:
    """Whether a text names a paper by its key, or by its first author's name and its year."""
    words = set(_NAME.findall(text.casefold()))
    name = _NAME.findall(paper.family_names[0].casefold()) if paper.family_names else []
    return paper.key.casefold() in words or (bool(name) and words.issuperset([*name, str(paper.year)]))


def section_needs(queries: Sequence[str]) -> tuple[Need, ...]:
    """Return a need for each default query that is meaningful without its numbers; if none is, for all."""
    texts = dict.fromkeys(text for query in queries if (text := strip_own_results(query)))
    return tuple(Need(f"N{number}", text, (text,)) for number, text in enumerate(texts or queries, start=1))


def strip_own_results(query: str) -> str:
    """Turn a field into a search, without numbers, verdicts and self-references; empty if nothing is left."""
    text = _NUMBER.sub("", _BRACKETED.sub("", _OWN.sub("", query)))
    text = " ".join(_LOOSE.sub("", text).split()).strip(" ,;:")
    return text if _WORD.search(text) else ""


def split_question(question: str) -> list[str]:
    """Return the question's clauses if it has several, then its significant words in order, as separate queries."""
    sentences = (question[start:end] for start, end in sentence_spans(question))  # not cut at "Lee et al. 2022"
    clauses = [clause.strip(" ?.!,;:") for sentence in sentences for clause in _PARTS.split(sentence)]
    clauses = [clause for clause in clauses if len(_significant_words(clause)) >= _FEWEST_WORDS]
    queries = clauses if len(clauses) > 1 else []
    words = _significant_words(question)
    if len(words) >= _FEWEST_WORDS:
        queries.append(" ".join(words))
    return list(dict.fromkeys(queries))


def _significant_words(text: str) -> list[str]:
    return list(dict.fromkeys(word.surface for word in split_words(text) if not is_stop(word)))
