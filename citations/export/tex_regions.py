"""Marked regions in LaTeX files: what stands between `% citeloom:begin RUN SECTION HASH` and `% citeloom:end`.

The hash is that of the region's lines as they were written last: if it differs, a person has edited them. A second hash
is there if these lines are a person's own: it is that of the run's text at that time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...documents import Paper
from ...documents.bibliography import parse_bibliography
from ...errors import InputError
from ...text.words import read_rules
from ..cited_works import LATEX_CITATION

_MARK: Final = re.compile(
    r"(?m)^[ \t]*%[ \t]*citeloom:(?P<what>begin|end|here)\b(?P<rest>[^\r\n]*)(?P<newline>\r?\n|\Z)"
)
_COMMENT: Final = re.compile(r"(?<!\\)%[^\n]*")
_PACKAGE: Final = re.compile(r"\\usepackage\s*+(?:\[[^\[\]]*+\]\s*+)?+\{(?P<names>[^{}]*)\}")
_CITATION: Final = re.compile(LATEX_CITATION)
_BIB_KEYS: Final = re.compile(r"(?m)^[ \t]*@[ \t]*\w+[ \t]*[{(]\s*([^\s,{}()]+)")
_FIRST_KEY: Final = re.compile(r"(@\s*\w+\s*[{(]\s*)[^\s,{}()]+")
_RULES: Final = read_rules(__file__, "latex_rules")


@dataclass(frozen=True, slots=True)
class Region:
    """A region at `start:end` of a text, with its lines as `body`; without a run it is only a place for a section."""

    run: str
    section: str
    hash: str
    source: str
    start: int
    end: int
    newline: str
    body: str = ""

    @property
    def edited(self) -> bool:
        """Whether a person changed its lines since they were written."""
        return body_hash(self.body) != self.hash if self.hash else bool(self.body)


def body_hash(body: str) -> str:
    """The hash of a region's lines, however they end."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def find_regions(text: str, name: str) -> list[Region]:
    """The regions of a file, and its places for sections; raises `InputError` for marks that do not pair up."""
    regions: list[Region] = []
    begin: re.Match[str] | None = None
    for mark in [*_MARK.finditer(text), None]:
        named = mark["rest"].split() if mark else []
        start, end, newline = (mark.start(), mark.end(), mark["newline"] or "\n") if mark else (len(text), 0, "")
        if mark and mark["what"] == "here":
            regions.append(Region("", " ".join(named), "", "", end, end, newline))
        elif mark and mark["what"] == "begin" and begin is None and 2 <= len(named) <= 4:
            begin = mark
        elif mark and mark["what"] == "end" and begin is not None:
            body = text[begin.end() : start].replace("\r\n", "\n").strip("\n")
            run, section, *hashes = begin["rest"].split()
            kept, source = [*hashes, "", ""][:2]
            regions.append(Region(run, section, kept, source, begin.start(), end, begin["newline"], body))
            begin = None
        elif mark or begin:
            line = text.count("\n", 0, start if begin is None else begin.start()) + 1
            raise InputError(
                f"{name}:{line}: the marks of a region do not pair up.",
                help="It has '% citeloom:begin RUN SECTION HASH' and '% citeloom:end': restore both, or remove both.",
            )
    return regions


def region_text(run: str, section: str, body: str, newline: str, source: str = "") -> str:
    """A whole region, with its marks."""
    begin = f"% citeloom:begin {run} {section} {body_hash(body)} {source}".rstrip()
    return newline.join([begin, *body.split("\n"), "% citeloom:end", ""])


def without_comments(text: str) -> str:
    return _COMMENT.sub("", text)


def loaded_packages(project: str) -> set[str]:
    """The packages that a project loads."""
    return {name.strip() for match in _PACKAGE.finditer(project) for name in match["names"].split(",")}


def missing_packages(body: str, project: str) -> list[str]:
    """The packages that a region needs and the project does not seem to load."""
    return sorted({name for used, name in _RULES["packages"].items() if used in body} - loaded_packages(project))


def section_body(latex: str, project: str, keys: Mapping[str, str], images: Collection[str], folder: str) -> str:
    """The lines of a section for a region, from its LaTeX document: with the citation commands of the project's
    package, with keys renamed, and with its `images` in a folder.
    """
    body = latex.partition("\\begin{document}")[2].rpartition("\\end{document}")[0].strip()
    body = re.sub(r"\\bibliography\{[^{}]*\}\Z", "", body.removeprefix("\\maketitle")).strip()
    package = next((name for name in ("biblatex", "natbib") if name in loaded_packages(project)), "none")
    body = with_keys(body, keys, _RULES["commands"]["biblatex" if "\\addbibresource" in project else package])
    for image in images:
        body = body.replace(f"{{{image}}}", f"{{{folder}/{image}}}")
    used = [
        f"\\providecommand{{\\{name}}}{meaning}" for name, meaning in _RULES["defined"].items() if f"\\{name}" in body
    ]
    return "\n".join([*used, body])


def with_keys(latex: str, keys: Mapping[str, str], commands: Mapping[str, str] | None = None) -> str:
    """The text with keys of its citations, and commands, renamed."""

    def rename(match: re.Match[str]) -> str:
        options = match[0][1 + len(match["command"]) : match.start("keys") - match.start()]
        named = ",".join(keys.get(key.strip(), key.strip()) for key in match["keys"].split(","))
        return f"\\{(commands or {}).get(match['command'], match['command'])}{options}{named}}}"

    return _CITATION.sub(rename, latex)


def grow_bibliography(bibs: Mapping[str, str], papers: Sequence[Paper]) -> tuple[list[str], dict[str, str], list[str]]:
    """What a project's bibliographies, by file name, lack of these papers: the entries to append, new keys where it
    uses ours otherwise, and a line about each difference; blocks.
    """
    known: dict[str, tuple[str, Paper | None]] = {}
    for name, text in bibs.items():
        read = {key.casefold(): paper for key, paper in parse_bibliography(text, name).papers.items()}
        for key in _BIB_KEYS.findall(text):
            known.setdefault(key.casefold(), (name, read.get(key.casefold())))
    entries, keys, notes = list[str](), dict[str, str](), list[str]()
    for paper in papers:
        names = [paper.key, *(f"{paper.key}-{number}" for number in range(2, 1000))]
        free = next(
            name for name in names if name.casefold() not in known or _is_same(known[name.casefold()][1], paper)
        )
        entry = _FIRST_KEY.sub(rf"\g<1>{free}", paper.bibtex.strip(), count=1)
        if free != paper.key:
            notes.append(f"{known[paper.key.casefold()][0]}: {paper.key} is another work; ours is cited as {free}.")
        file, theirs = known.get(free.casefold(), ("", None))
        if theirs is None:
            entries.append(entry)
            known[free.casefold()] = ("this", paper)
        elif file != "this" and _letters(theirs.bibtex) != _letters(entry):
            notes.append(f"{file}: {theirs.key} differs from the entry in the library; yours is kept.")
        keys[paper.key] = theirs.key if theirs else free
    return entries, {old: new for old, new in keys.items() if old != new}, notes


def _is_same(theirs: Paper | None, ours: Paper) -> bool:
    """Whether two entries are of one work."""
    if theirs is None:
        return False
    if theirs.doi and ours.doi:
        return theirs.doi.casefold() == ours.doi.casefold()
    return _letters(theirs.title) == _letters(ours.title) != ""


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
