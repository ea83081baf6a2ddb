"""Decides whether a work proposed by a service is a paper of the library, by title, authors, year and kind.

The similarity is a product, so that one mismatch is not outweighed by other matches. `docs/decisions/paper-matching.md`
describes the data on which the thresholds were measured.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from ..documents import Paper
from ..text.words import one_of, read_rules, without_accents
from .service_works import Work

Verdict = Literal["same", "unsure", "different"]

SURE: Final = 0.9
UNSURE: Final = 0.55
_TITLES: Final = read_rules(__file__, "kinds_of_works")["titles"]
_STOP_WORDS, _OTHER_WORK = (frozenset(_TITLES[name].split()) for name in ("stop_words", "other_work"))
_ABOUT_ANOTHER = one_of(_TITLES["about_another"], re.IGNORECASE)
_RETRACTED_TITLE = re.compile(r"^\W*(?:retracted|withdrawn)(?:\s+(?:article|paper|chapter))?\W*:\s*", re.IGNORECASE)
_SUBTITLE = re.compile(r"(?<=\w)\s*(?::|\?|\.|\s[\u2013\u2014-])\s+")
_WORD = re.compile(r"[^\W_]+")
_APOSTROPHE = re.compile(r"['’ʼ]")
_BRACKETED = re.compile(r"\s*\[[^\[\]]{0,80}\]\s*$")  # bounded: 600 characters
PREPRINT_SERVER = re.compile(
    r"arxiv|biorxiv|medrxiv|chemrxiv|psyarxiv|preprint|ssrn|research square|osf|zenodo", re.IGNORECASE
)
_LEAST_WORDS: Final = 3
_MOST_TITLE: Final = 600


@dataclass(frozen=True, slots=True)
class WorkCandidate:
    """A proposed work with its similarity (0-1) and the reasons against it."""

    work: Work
    similarity: float
    against: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        work = self.work
        return {
            "doi": work.doi,
            "title": work.title,
            "authors": [author.name for author in work.authors[:5]],
            "year": work.year,
            "venue": work.venue,
            "service": work.service,
            "similarity": self.similarity,
            "against": list(self.against),
        }


@dataclass(frozen=True, slots=True)
class Match:
    """The decision on a paper; `best` is its work if the verdict is `same`, else there are only candidates to show."""

    verdict: Verdict
    candidates: tuple[WorkCandidate, ...] = ()
    why: str = ""

    @property
    def best(self) -> WorkCandidate | None:
        return self.candidates[0] if self.candidates else None


def match_paper(paper: Paper, works: Iterable[Work]) -> Match:
    """Find the work that is the paper; the verdict is `unsure` unless exactly one clearly matches."""
    by_doi = {work.doi: work for work in reversed(list(works))}
    rated = [compare(paper, work) for work in by_doi.values()]
    near = sorted((item for item in rated if item.similarity >= UNSURE), key=lambda item: -item.similarity)
    if not near:
        return Match("different", why="no work has this title")
    sure = [item for item in near if item.similarity >= SURE]
    if len(sure) > 1:
        sure = _narrow_by_venue(paper, sure)
    if len(sure) == 1:
        return Match("same", (sure[0], *(item for item in near if item is not sure[0])))
    if sure:
        return Match("unsure", tuple(near), "several works fit equally well")
    return Match("unsure", tuple(near), "; ".join(near[0].against) or "it is not similar enough")


def compare(paper: Paper, work: Work) -> WorkCandidate:
    against: list[str] = []
    title = title_similarity(paper.title, work.title)
    if title < 1 and title < SURE:
        against.append("its title differs")
    if work.is_notice or is_about_another(work.title) != is_about_another(paper.title):
        title *= 0.3
        against.append("it is a notice or comment on a paper")
    authors = _authors_factor(paper, work, against)
    year = 0.95
    if paper.year is not None and work.year is not None:
        apart = abs(paper.year - work.year)
        year = {0: 1.0, 1: 0.97, 2: 0.85}.get(apart, 0.7)  # one year apart: published online and in print
        if apart > 1:
            against.append(f"it is from {work.year}, not {paper.year}")
    kind = 1.0
    named_preprint = bool(PREPRINT_SERVER.search(paper.venue))
    if paper.venue and work.is_preprint and not named_preprint:
        kind = 0.85
        against.append(f"it is a preprint, the paper is in {paper.venue}")
    elif named_preprint and work.kind and not work.is_preprint and not PREPRINT_SERVER.search(work.venue):
        kind = 0.85
        against.append(f"it is in {work.venue or 'a journal'}, the paper is in {paper.venue}")
    return WorkCandidate(work, round(title * authors * year * kind, 3), tuple(against))


def is_about_another(title: str) -> bool:
    """Whether a title belongs to a correction, retraction notice, comment or the like."""
    return bool(_ABOUT_ANOTHER.match(title))


def title_similarity(one: str, other: str) -> float:
    """The similarity (0-1) of two titles: each content word found in only one of them lowers it a lot."""
    first, second = _plain_title(one), _plain_title(other)
    if not first or not second:
        return 0.0
    if "".join(first.split()) == "".join(second.split()):
        return 1.0
    whole = _word_similarity(_content(first), _content(second))
    return max(whole, _subtitle_similarity(one, other))


@lru_cache(maxsize=4096)
def _plain_title(title: str) -> str:
    text = _BRACKETED.sub("", _RETRACTED_TITLE.sub("", title[:_MOST_TITLE]))
    return " ".join(_WORD.findall(without_accents(_APOSTROPHE.sub("", text.casefold()).replace("&", " and "))))


def _content(plain: str) -> list[str]:
    words = plain.split()
    return [word for word in words if word not in _STOP_WORDS] or words


def _word_similarity(first: Sequence[str], second: Sequence[str]) -> float:
    """Exact matches count fully and misspelt ones nearly so; each unmatched word of either title takes off a fifth."""
    left = dict(enumerate(second))
    score, places = 1.0, list[int]()
    for word in first:
        same = [place for place, other in left.items() if other == word]
        near = same or [place for place, other in left.items() if _misspelt(word, other)]
        score *= 1 if same else 0.97 if near else 0.8
        for place in near[:1]:
            del left[place]
            places.append(place)
    score *= 0.8 ** len(left)
    return score * (0.98 if places == sorted(places) else 0.9)


def _misspelt(one: str, other: str) -> bool:
    """Whether two long words with the same beginning differ in one letter; numbers never do."""
    if min(len(one), len(other)) < 5 or abs(len(one) - len(other)) > 1 or any(map(str.isdigit, one + other)):
        return False
    longer, shorter = sorted((one, other), key=len, reverse=True)
    same = len(longer) == len(shorter)
    return any(longer[:n] == shorter[:n] and longer[n + 1 :] == shorter[n + same :] for n in range(1, len(longer)))


def _subtitle_similarity(one: str, other: str) -> float:
    """0.95 if one title is the other without its subtitle; 0 if the subtitle makes it another work."""
    parts = [_SUBTITLE.split(_RETRACTED_TITLE.sub("", title[:_MOST_TITLE]), maxsplit=1) for title in (one, other)]
    if len(parts[0]) == len(parts[1]):
        return 0.0
    mains = [_content(_plain_title(part[0])) for part in parts]
    subtitle = next(part[1] for part in parts if len(part) == 2)
    words = set(_plain_title(subtitle).split())
    if words & _OTHER_WORK or any(map(str.isdigit, subtitle)):
        return 0.0
    return 0.95 if mains[0] == mains[1] and len(mains[0]) >= _LEAST_WORDS else 0.0


def _authors_factor(paper: Paper, work: Work, against: list[str]) -> float:
    mine = [fold_name(name) for name in paper.family_names or paper.authors if name.strip().lower() != "others"]
    theirs = [fold_name(author.family) for author in work.authors]
    mine, theirs = [name for name in mine if name], [name for name in theirs if name]
    if not mine or not theirs:
        against.append("its authors cannot be compared")
        return 0.87
    shared = sum(any(_same_name(name, other) for other in theirs) for name in mine) / min(len(mine), len(theirs))
    if _same_name(mine[0], theirs[0]) and shared >= 0.5:
        return 1.0
    if shared >= 0.6:
        return 0.95  # in another order, or a list that was cut
    against.append("its authors differ")
    return 0.8 if shared > 0 else 0.6


def _same_name(one: str, other: str) -> bool:
    return one == other or one.endswith(other) or other.endswith(one) if min(len(one), len(other)) > 2 else one == other


def fold_name(name: str) -> str:
    """The letters of a name without case and accents."""
    plain = unicodedata.normalize("NFKD", name.casefold().replace("ß", "ss").replace("ø", "o").replace("ł", "l"))
    return "".join(sign for sign in plain if sign.isalpha())


def _narrow_by_venue(paper: Paper, sure: list[WorkCandidate]) -> list[WorkCandidate]:
    """Narrow the candidates to the paper's venue, or to its year if that separates them; else keep all."""
    if paper.venue:
        named = [item for item in sure if title_similarity(paper.venue, item.work.venue) >= SURE]
        if len(named) == 1:
            return named
    years = [item for item in sure if paper.year is not None and item.work.year == paper.year]
    kinds = {item.work.is_preprint for item in sure}
    return years if len(years) == 1 and (len(kinds) > 1 or not paper.venue) else sure
