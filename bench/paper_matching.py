"""How well papers are distinguished from near misses, with the entries of real papers as a service might show them.

Every paper is looked up among the works of all other papers and an altered form of its own work. Altered forms of the
same paper should be found; near misses (an erratum, a part two, a preprint of the article) must not.
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
from citeloom.metadata.matching import PREPRINT_SERVER, match_paper
from citeloom.metadata.service_works import Author, Work, field_text

Altered = Callable[[Work], Sequence[Work]]
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
    # If the entry names a preprint server, its preprint is not a near miss.
    "its preprint alone": lambda work: [] if PREPRINT_SERVER.search(work.venue) else [_preprint(work)],
    "nothing of it": lambda _: [],
}


def measure() -> None:
    """Print how often each altered form is found, and what other thresholds would change."""
    file = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared")) / "corpus" / "library.bib"
    if not file.is_file():
        print(f"skipped, since there is no {file} (set CITELOOM_SHARED)")
        return
    papers = list(read_bibliography(file).papers.values())
    print(
        "| what the service has | papers | right | wrong | unsure | none | similarity |\n|---|---|---|---|---|---|---|"
    )
    for label, altered in (*SAME.items(), *NEAR.items()):
        counts, similarities = _outcomes(papers, altered)
        cells = " | ".join(str(counts[name]) for name in ("right", "wrong", "unsure", "none"))
        ends = f"{min(similarities):.2f} to {max(similarities):.2f}" if similarities else ""
        print(f"| {label} | {len(papers)} | {cells} | {ends} |", flush=True)


def _outcomes(papers: Sequence[Paper], altered: Altered) -> tuple[Counter[str], list[float]]:
    """Count the papers by outcome; also returns the similarities of the best candidates."""
    works = [_work(paper) for paper in papers]
    counts: Counter[str] = Counter()
    similarities: list[float] = []
    for paper, own in zip(papers, works, strict=True):
        found = match_paper(paper, [*altered(own), *(work for work in works if work is not own)])
        right = found.best is not None and found.best.work.doi == own.doi and altered not in NEAR.values()
        taken = "right" if right else "wrong"
        counts[{"same": taken, "unsure": "unsure", "different": "none"}[found.verdict]] += 1
        similarities += [found.best.similarity] if found.best else []
    return counts, similarities


def _work(paper: Paper) -> Work:
    """Convert a paper's entry to a work as Crossref would show it."""
    authors = tuple(Author(name, family) for name, family in zip(paper.authors, paper.family_names, strict=True))
    kind = "journal-article"
    return Work(
        "Crossref", paper.doi or f"10.5555/{paper.key}", paper.title, authors, paper.year, paper.venue, kind=kind
    )
