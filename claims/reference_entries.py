"""The works that a text cites: its entries, the papers of the library that they name, and what is wrong with them."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from ..citations.cited_works import CitedWork, WorkIndex
from ..documents import Paper
from ..documents.bibliography import read_bibliography
from ..documents.front_matter import find_doi
from ..documents.publication_status import PublicationStatus
from ..errors import InputError
from ..metadata.enriching import differing_fields, enrich_paper
from ..metadata.matching import SURE, fold_name, title_similarity
from ..metadata.services import Services
from ..stores.metadata_store import MetadataStore
from ..text.words import shorten
from .claim_records import FaultRecord, fault
from .manuscript import ListedReference, Manuscript, ManuscriptSentence

_YEAR: Final = re.compile(r"(?<![\d./-])((?:1[5-9]|20)\d\d)[a-z]?(?![\d/-])")
_AUTHOR: Final = re.compile(r"[^\W\d_][\w'\u2019-]{0,40}(?:\s[^\W\d_][\w'\u2019-]{0,40}){0,4}", re.UNICODE)
_INITIALS: Final = re.compile(r"[A-Z]{1,3}\.?(?:-[A-Z]\.?)?")
# "Hull D, Kell DB" before the full stop that ends the authors; "Hull D." alone may go on with a family name.
_VANCOUVER: Final = re.compile(
    r"[^\W\d_][\w'\u2019 -]{1,60} (?:[A-Z]{2,3}|[A-Z]{1,3}(?:, [^.,]{1,80}){0,400},[^.,]{1,80} [A-Z]{1,3})(?=\. )"
)
_LONGEST_NAME: Final = 4  # words
_QUOTED: Final = re.compile(r"[\"\u201c\u201e]([^\"\u201c\u201d]{10,400}?)[.,]?[\"\u201d]")
_WORDS: Final = re.compile(r"[^\W_]+")
_LEAST_TITLE: Final = 3  # words by which a listed entry can name a paper of the library
_SAME_KEY: Final = 0.55  # similarity of titles from which a shared key means the same paper
_YEARS_APART: Final = 1  # between preprint and article
_LONGEST_ORGANISATION: Final = 90  # characters
_NEAR_KEY: Final = 0.8
_BEGUN_KEY: Final = 5  # characters of a key by which a longer key is suggested


@dataclass(frozen=True)
class ReferenceList:
    """The entries of a text by key, the library's paper for each (`in_library`), and the numbers of a numbered list.

    `texts` are the entries as written. `complete` is false if the text has no list of its own: then the library's
    papers stand for it.
    """

    entries: Mapping[str, Paper]
    in_library: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[int, str] = field(default_factory=dict)
    complete: bool = True
    notices: tuple[str, ...] = ()

    @cached_property
    def index(self) -> WorkIndex:
        return WorkIndex(tuple(self.entries.values()), self.numbers)

    def key_of(self, work: CitedWork) -> str:
        """The key of the entry that is named directly or by its library paper; empty if none or several match."""
        return self.index.key_of(work) or (self._by_paper.get(work.key, "") if work.key else "")

    @cached_property
    def _by_paper(self) -> dict[str, str]:
        return {paper: key for key, paper in self.in_library.items() if paper}


def load_references(manuscript: Manuscript, file: Path, bib: Path | None, library: Sequence[Paper]) -> ReferenceList:
    """The entries of a text: from `.bib` files, its list or fields, or the library. Blocks; raises `InputError`."""
    notices: list[str] = []
    papers: dict[str, Paper] = {}
    for path in bibliography_files(manuscript, file, notices) if bib is None else [bib]:
        try:
            read = read_bibliography(path)
        except InputError as error:
            if bib is not None:
                raise
            notices.append(error.message)
            continue
        papers |= read.papers
        notices += [*(f"{refusal.path}: {refusal.reason}." for refusal in read.refused), *read.warnings]
    papers |= {key: paper for key, paper in manuscript.papers.items() if key not in papers}
    texts = {key: paper.title or key for key, paper in papers.items()}
    numbers: dict[int, str] = {}
    if not papers or (manuscript.format in ("pdf", "docx") and not manuscript.papers):
        given, known = LibraryMatcher(tuple(papers.values())), dict(papers)
        for place, item in enumerate(manuscript.listed, 1):
            paper = parse_listed(item, place)
            key = given.match(paper, item.text)
            if not key or not _is_listed_as(known[key], paper, item.text):
                key, papers[paper.key], texts[paper.key] = paper.key, paper, item.text
            if item.label.isdigit():
                numbers[int(item.label)] = key
    complete = bool(papers)
    papers = papers or {paper.key: paper for paper in library}
    matcher = LibraryMatcher(library)
    found = {key: matcher.match(paper, texts.get(key, "")) for key, paper in papers.items()}
    return ReferenceList(papers, found, texts, numbers, complete, tuple(notices))


def bibliography_files(manuscript: Manuscript, file: Path, notices: list[str]) -> Iterator[Path]:
    folder = file.parent.resolve()
    if not manuscript.bibliographies:
        # The `.bib` of a text of ours, which has its `.json` beside it, lists what that text cites.
        theirs = [
            path for path in folder.glob("*.bib") if path.stem == file.stem or not path.with_suffix(".json").exists()
        ]
        lone = theirs if not (manuscript.listed or manuscript.papers) else []
        if len(lone) == 1:
            notices.append(f"{file.name}: names no bibliography, so {lone[0].name} next to it was used.")
            yield lone[0]
        return
    for name in dict.fromkeys(manuscript.bibliographies):
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):
            notices.append(f"{name}: is outside the folder of the text and was not read; give it as --bib.")
        elif path.suffix != ".bib":
            notices.append(f"{name}: is not a .bib file and was not read; give one as --bib.")
        elif not path.is_file():
            notices.append(f"{name}: no such file next to the text; give it as --bib.")
        else:
            yield path


def parse_listed(item: ListedReference, place: int) -> Paper:
    """Parse authors, year, title and DOI of an entry of a written list, as far as they can be recognised."""
    text = item.text.strip()
    year, quoted = _YEAR.search(text), _QUOTED.search(text)
    families = tuple(_listed_authors(text[: year.start()] if year and year.start() > 0 else text[:200]))
    key = item.label or f"{fold_name(families[0]) if families else 'entry'}{year[1] if year else ''}-{place}"
    number = int(year[1]) if year else None
    return Paper(key, quoted[1] if quoted else "", families, number, doi=find_doi(text), family_names=families)


def _is_listed_as(entry: Paper, listed: Paper, text: str) -> bool:
    """Whether an entry with the title or the DOI of a listed one is the same work, not another version of it."""
    if entry.doi and find_doi(entry.doi) == listed.doi:
        return True
    families = _families(entry)[:1]
    return entry.year == listed.year and all(family in fold_name(text) for family in families)


def _listed_authors(text: str) -> list[str]:
    names: list[str] = []
    vancouver = _VANCOUVER.match(text)
    authors = vancouver[0] if vancouver else text.partition("(")[0].partition(". \u201c")[0]
    for part in re.split(r",|;|&|\band\b|(?=\bet al\b)", authors):
        words = [word for word in part.replace(".", ". ").split() if not _INITIALS.fullmatch(word)]
        name = " ".join(words).strip(" .")
        if name.startswith("et al"):
            return [*names, "others"]
        found = _AUTHOR.fullmatch(name)
        if found is not None and len(words) <= _LONGEST_NAME:
            names.append(name)
        elif name and names:
            break
    names = _without_given(names, text)
    organisation = text.partition(". ")[0].strip()
    return names or ([organisation] if 0 < len(organisation) <= _LONGEST_ORGANISATION else [])


def _without_given(names: list[str], text: str) -> list[str]:
    """The authors of an entry without the first author's given name, if that follows the family name ("Le, Trang T.").

    "Le, Trang T., Weixuan Fu, and Jason H. Moore" has three authors. "Hastie, Trevor" may be one or two.
    """
    inverted = len(names) > 1 and text.startswith(f"{names[0]}, {names[1]}") and names[1][0].isupper()
    if not inverted or (" " in names[0] and " " in names[1]):
        return names
    if len(names) == 2:
        return [*names, "others"]
    parts = [part for part in map(_WORDS.findall, re.split(r",|\band\b|&|;", text)) if part]
    return [names[0], *names[2:]] if all(len(part) > 1 for part in parts[2 : len(names)]) else names


class LibraryMatcher:
    """Finds the paper of the library that an entry names."""

    def __init__(self, library: Sequence[Paper]) -> None:
        self._papers = {paper.key: paper for paper in library}
        self._by_doi = {paper.doi.casefold(): paper.key for paper in library if paper.doi}
        titles = {paper.key: _plain(paper.title) for paper in library}
        self._titles = {key: title for key, title in titles.items() if len(title.split()) >= _LEAST_TITLE}

    def match(self, entry: Paper, text: str = "") -> str:
        """The key of the paper, by DOI, by title, or by a shared key; empty if not found."""
        if entry.doi and entry.doi.casefold() in self._by_doi:
            return self._by_doi[entry.doi.casefold()]
        same = self._papers.get(entry.key)
        if same is not None and (not entry.title or title_similarity(entry.title, same.title) >= _SAME_KEY):
            return same.key
        if entry.title:
            rated = [(title_similarity(entry.title, paper.title), key) for key, paper in self._papers.items()]
            likeness, key = max(rated, default=(0.0, ""))
            if likeness >= SURE:
                return key
            shortened = [key for key, paper in self._papers.items() if _is_shortened(entry, paper)]
            if len(shortened) == 1:
                return shortened[0]
        said = f" {_plain(text)} "
        held = [(len(title), key) for key, title in self._titles.items() if f" {title} " in said]
        return max(held, default=(0, ""))[1]


def _is_shortened(entry: Paper, paper: Paper) -> bool:
    """Whether the entry has the authors and the year of the paper, and only words of the paper's title in its own."""
    mine, theirs = ({word for word in _plain(each.title).split() if len(word) > 3} for each in (entry, paper))
    families = _families(entry), _families(paper)
    same = entry.year is not None and entry.year == paper.year and all(families) and _same_authors(*families)
    other = bool(entry.doi and paper.doi)  # if both have a DOI, the DOI decides
    return same and not other and len(mine) >= _LEAST_TITLE and mine <= theirs


def _plain(title: str) -> str:
    return " ".join(_WORDS.findall(title.casefold()))


def differing(entry: Paper, paper: Paper) -> dict[str, tuple[str, str]]:
    """The fields that differ, with both values; initials, accents, subtitles or an earlier preprint do not count."""
    found: dict[str, tuple[str, str]] = {}
    if entry.title and paper.title and title_similarity(entry.title, paper.title) < SURE:
        found["title"] = (entry.title, paper.title)
    if entry.year and paper.year and abs(entry.year - paper.year) > _YEARS_APART:
        found["year"] = (str(entry.year), str(paper.year))
    mine, theirs = _families(entry), _families(paper)
    if mine and theirs and not _same_authors(mine, theirs):
        pairs = enumerate(zip(mine, theirs, strict=False))
        last = min(len(mine), len(theirs)) - 1
        first = next((place for place, (one, other) in pairs if not _same_authors([one], [other])), last)
        found["authors"] = (_shown_names(entry, first), _shown_names(paper, first))
    if entry.doi and paper.doi and find_doi(entry.doi) != find_doi(paper.doi):
        found["doi"] = (find_doi(entry.doi), find_doi(paper.doi))
    return found


def _families(paper: Paper) -> list[str]:
    names = paper.family_names or tuple(author.split()[-1] for author in paper.authors if author.split())
    return [fold_name(name) for name in names]


def _same_authors(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    cut = "others" in mine or "others" in theirs
    mine, theirs = [name for name in mine if name != "others"], [name for name in theirs if name != "others"]
    if len(mine) != len(theirs) and not cut:
        return False
    pairs = zip(mine, theirs, strict=False)
    return all(one == other or one.endswith(other) or other.endswith(one) for one, other in pairs)


def _shown_names(paper: Paper, first: int) -> str:
    """The authors from the first that differs."""
    names = (paper.family_names or paper.authors)[first:]
    return ("..., " if first else "") + ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def entry_faults(
    references: ReferenceList,
    cited: Counter[str],
    silent: Sequence[str],
    library: Mapping[str, Paper],
    store: MetadataStore | None,
) -> dict[str, list[FaultRecord]]:
    """The faults of each entry, by key; blocks. `store` holds earlier answers from services about papers."""
    found: dict[str, list[FaultRecord]] = {key: [] for key in references.entries}
    statuses: dict[str, PublicationStatus] = {}
    if store is not None and not store.is_empty():  # look up its own DOI or that of the library's paper
        held = store.statuses(library.values())
        statuses = store.statuses(references.entries.values())
        statuses |= {key: held[paper] for key, paper in references.in_library.items() if paper in held}
    for key in references.entries if references.complete else [key for key in references.entries if cited[key]]:
        entry, paper = references.entries[key], library.get(references.in_library.get(key, ""))
        if references.complete and not cited[key] and key not in silent and "*" not in silent:
            found[key].append(fault("entry-not-cited", "This entry is cited nowhere in the text."))
        if key in statuses and statuses[key].retracted:
            line = statuses[key].retraction_line() or "It is retracted."
            found[key].append(fault("retracted", f"The paper is retracted. {line}"))
        if paper is not None and references.complete:
            found[key] += [
                fault("entry-differs", f'{name}: the entry says "{shorten(own)}", the paper "{shorten(said)}".')
                for name, (own, said) in differing(entry, paper).items()
            ]
        if store is not None and entry.doi:
            found[key] += _service_differences(entry, paper, store)
    first: dict[str, str] = {}
    for entry in references.entries.values() if references.complete else ():
        mark = find_doi(entry.doi) or references.in_library.get(entry.key) or ""
        if mark and (twin := first.setdefault(mark, entry.key)) != entry.key:
            found[entry.key].append(fault("entry-twice", f"The same work is also listed as {twin}."))
    return found


def entries_elsewhere(references: ReferenceList) -> list[Paper]:
    """Entries of works that are not in the library: only services can tell whether these exist."""
    held = references.in_library
    return [paper for key, paper in references.entries.items() if references.complete and not held.get(key)]


async def unknown_entries(references: ReferenceList, services: Services) -> dict[str, FaultRecord]:
    """Faults, by key, of entries that neither the library nor the services know; what services say is stored."""
    found: dict[str, FaultRecord] = {}
    asked = " and ".join(client.name for client in services.clients.values())
    entries = entries_elsewhere(references)
    for paper in (paper for paper in entries if paper.title or paper.doi):
        result = await enrich_paper(services, paper)
        if result["outcome"] == "not-found":
            named = f"DOI {paper.doi}" if paper.doi else f'title "{shorten(paper.title)}"'
            found[paper.key] = fault("entry-invented", f"{asked} know no work with the {named}.")
        elif result["outcome"] == "unsure":
            near = "".join(f': "{shorten(work["title"])}"' for work in result["candidates"][:1] if work["title"])
            found[paper.key] = fault("entry-unchecked", f"{asked} know only a similar work{near}.")
        elif result["outcome"] == "failed":
            found[paper.key] = fault("entry-unchecked", f"It could not be looked up: {result['failures'][0]}")
    said = "Its title was not recognised, so it was not looked up."
    return found | {one.key: fault("entry-unchecked", said) for one in entries if not (one.title or one.doi)}


def _service_differences(entry: Paper, paper: Paper | None, store: MetadataStore) -> list[FaultRecord]:
    known = differing(entry, paper) if paper is not None else {}
    found: dict[str, FaultRecord] = {}
    for item in differing_fields(entry, store.statements(find_doi(entry.doi))):
        one, other = item.own, item.said
        near = isinstance(one, int) and isinstance(other, int) and abs(one - other) <= _YEARS_APART
        if item.field in ("title", "authors", "year") and item.field not in known and not near:
            own, said = (", ".join(map(str, v)) if isinstance(v, list) else str(v) for v in (one, other))
            message = f'{item.field}: the entry says "{shorten(own)}", {item.service} "{shorten(said)}".'
            found.setdefault(item.field, fault("entry-differs", message))
    return list(found.values())


def citation_faults(
    sentence: ManuscriptSentence, references: ReferenceList, library: Mapping[str, Paper]
) -> list[FaultRecord]:
    """Citations of a sentence that name no entry, or several."""
    found: list[FaultRecord] = []
    for mark in sentence.marks:
        for work in mark.works:
            if work == CitedWork():
                found.append(fault("empty-citation", "A citation names no work: its key is missing."))
                continue
            if references.key_of(work):
                continue
            if work.key == "?":
                message = "Its citation is broken: a question mark was printed, since the key has no entry."
                found.append(fault("key-without-entry", message))
                continue
            several = references.index.find_papers(work) if work.authors else []
            if len(several) > 1:
                message = f"{work.shown} may be any of {', '.join(several)}; name more authors or add a letter."
                found.append(fault("ambiguous-citation", message))
            elif work.key or work.number is not None or references.complete:
                hint = " The library has a paper with this key." if references.complete else ""
                if work.key not in library:
                    near = near_keys(work.key, references.entries) or near_keys(work.key, library)
                    hint = f" Did you mean {' or '.join(near)}?" if near else ""
                found.append(
                    fault("key-without-entry", f"{work.shown} is cited, but the reference list lacks it.{hint}")
                )
    return found


def near_keys(key: str, known: Iterable[str]) -> list[str]:
    """The keys that this one probably misspells or begins, nearest first."""
    plain = {other.casefold(): other for other in known}
    near = difflib.get_close_matches(key.casefold(), plain, n=2, cutoff=_NEAR_KEY)
    begun = [other for other in plain if len(key) >= _BEGUN_KEY and other.startswith(key.casefold())]
    return [plain[other] for other in dict.fromkeys([*begun[:2], *near])][:2]


def pointer_faults(manuscript: Manuscript, sentences: Sequence[ManuscriptSentence]) -> dict[int, list[FaultRecord]]:
    """References to figures, tables, sections and labels that the text does not have, by the sentence's position."""
    found: dict[int, list[FaultRecord]] = {}
    targets = {kind: set(names) for kind, names in manuscript.targets.items()}
    for pointer in manuscript.pointers:
        known = targets.get(pointer.kind, set())
        inside = any(name.startswith(f"{pointer.name}.") for name in known)
        if pointer.name in known or (pointer.kind == "section" and (inside or not known)):
            continue
        here = next((item for item in sentences if item.start <= pointer.start < item.end), None)
        # A number beside a citation may be that of the cited paper; a PDF is read without its captions.
        if here is None or (pointer.kind != "label" and not known and (here.marks or manuscript.format == "pdf")):
            continue
        if any(mark.start <= pointer.start < mark.end for mark in here.marks):
            continue
        what = "label" if pointer.kind == "label" else pointer.kind
        message = f"It points to {what} {pointer.name}, which the text does not have."
        if pointer.name.startswith("Error!"):
            message = "Word lost what this reference points to."
        found.setdefault(here.position, []).append(fault("pointer-to-nothing", message))
    return found
