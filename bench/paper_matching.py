"""How well papers are told from near misses: the real papers' entries, as a service might show them or their like.

Every paper is looked for among the works of all the others and one altered form of its own work. The altered forms that
still are the paper should be found; near misses (an erratum, a part two, a preprint where the article is meant) must not.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.papers import ROOT
from citeloom.documents import Paper
from citeloom.documents.bibliography import read_bibliography
from citeloom.metadata import matching
from citeloom.metadata.matching import SURE, match_paper
from citeloom.metadata.work import Author, Work, field_text

Altered = Callable[[Work], Sequence[Work]]
_SWEEP: Final = (0.80, 0.85, 0.90, 0.95, 0.98)
_REPLACED: Final = "porcelain"
_OTHERS: Final = (Author("Ada Lovelace", "Lovelace"), Author("Charles Babbage", "Babbage"))


def _titled(change: Callable[[str], str]) -> Altered:
    return lambda work: [replace(work, title=change(work.title))]


def _longest_replaced(title: str) -> str:
    longest = max(re.findall(r"\w+", title), key=len)
    return title.replace(longest, _REPLACED, 1)


def _misspelt(title: str) -> str:
    longest = max(re.findall(r"[A-Za-z]+", title), key=len)
    return title.replace(longest, longest[:-2] + longest[-1], 1)


def _initials(work: Work) -> Sequence[Work]:
    short = [Author(f"{author.name[:1]}. {author.family}", author.family) for author in work.authors]
    return [replace(work, authors=tuple(short))]


def _preprint(work: Work) -> Work:
    return replace(work, doi=f"{work.doi}.pre", kind="posted-content", venue="", year=(work.year or 2000) - 1)


SAME: Final[dict[str, Altered]] = {
    "as the .bib has it": lambda work: [work],
    "title in capitals": _titled(str.upper),
    "without its subtitle": _titled(lambda title: re.split(r": ", title)[0]),
    "with markup": _titled(lambda title: field_text(f"<i>{title.split()[0]}</i> {' '.join(title.split()[1:])}")),
    "one letter lost": _titled(_misspelt),
    "marked RETRACTED": _titled(lambda title: f"RETRACTED: {title}"),
    "a year later": lambda work: [replace(work, year=(work.year or 2000) + 1)],
    "initials": _initials,
    "first three authors": lambda work: [replace(work, authors=work.authors[:3])],
    "beside its preprint": lambda work: [_preprint(work), work],
    "beside its erratum": lambda work: [replace(work, doi=f"{work.doi}.e", title=f"Erratum: {work.title}"), work],
}
NEAR: Final[dict[str, Altered]] = {
    "erratum": _titled(lambda title: f"Erratum to: {title}"),
    "retraction notice": _titled(lambda title: f"Retraction: {title}"),
    "comment": _titled(lambda title: f"Comment on “{title}”"),
    "author response": _titled(lambda title: f"Author response: {title}"),
    "part two": _titled(lambda title: f"{title}, Part II"),
    "protocol": _titled(lambda title: f"{title}: study protocol"),
    "one word replaced": _titled(_longest_replaced),
    "one word more": _titled(lambda title: f"{_REPLACED.capitalize()} {title}"),
    "by others": lambda work: [replace(work, authors=_OTHERS)],
    "four years later": lambda work: [replace(work, year=(work.year or 2000) + 4)],
    "its preprint alone": lambda work: [_preprint(work)],
    "nothing of it": lambda _: [],
}


def measure() -> None:
    """Print how each altered form fares, and what other thresholds would do."""
    file = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared")) / "corpus" / "library.bib"
    if not file.is_file():
        print(f"skipped, since there is no {file} (set CITELOOM_SHARED)")
        return
    papers = list(read_bibliography(file).papers.values())
    print("| what the service has | papers | right | wrong | unsure | none |\n|---|---|---|---|---|---|")
    for label, altered in (*SAME.items(), *NEAR.items()):
        counts = _outcomes(papers, altered)
        cells = " | ".join(str(counts[name]) for name in ("right", "wrong", "unsure", "none"))
        print(f"| {label} | {len(papers)} | {cells} |")
    print("\n| sure from | found of those that are the paper | wrongly taken |\n|---|---|---|")
    for threshold in _SWEEP:
        print(f"| {threshold:.2f} | {_taken(papers, SAME, threshold, 'right')} | {_wrong(papers, threshold)} |")


def _outcomes(papers: Sequence[Paper], altered: Altered) -> Counter[str]:
    works = [_work(paper) for paper in papers]
    counts: Counter[str] = Counter()
    for paper, own in zip(papers, works, strict=True):
        others = [work for work in works if work is not own]
        found = match_paper(paper, [*altered(own), *others])
        right = found.best is not None and found.best.work.doi == own.doi and altered not in NEAR.values()
        taken = "right" if right else "wrong"
        counts[{"same": taken, "unsure": "unsure", "different": "none"}[found.verdict]] += 1
    return counts


def _taken(papers: Sequence[Paper], forms: dict[str, Altered], threshold: float, outcome: str) -> str:
    before, matching.SURE = matching.SURE, threshold  # type: ignore[misc]
    try:
        counts = [_outcomes(papers, altered)[outcome] for altered in forms.values()]
    finally:
        matching.SURE = before  # type: ignore[misc]
    return f"{sum(counts)} of {len(papers) * len(forms)}{' (in force)' if threshold == SURE else ''}"


def _wrong(papers: Sequence[Paper], threshold: float) -> str:
    return _taken(papers, {**SAME, **NEAR}, threshold, "wrong").removesuffix(" (in force)")


def _work(paper: Paper) -> Work:
    """The work of an entry as Crossref would show it."""
    authors = tuple(Author(name, family) for name, family in zip(paper.authors, paper.family_names, strict=True))
    kind = "journal-article"
    return Work(
        "Crossref", paper.doi or f"10.5555/{paper.key}", paper.title, authors, paper.year, paper.venue, kind=kind
    )
