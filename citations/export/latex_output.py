"""Makes LaTeX printable, prints it as PDF, and puts sections into marked regions of a user's LaTeX files.

Latin Modern has no ≤ or α outside formulas: xelatex leaves them out without an error, and pdflatex stops. pandoc knows
commands for the mathematical ones. The others are set in a font that has them, if one is installed; pdflatex prints
their names.

A region lies between `% citeloom:begin RUN SECTION HASH` and `% citeloom:end`. The hash is that of its lines as last
written: if it differs, a person has edited them. A second hash is that of the run's text at that time.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from ...documents import Paper
from ...documents.bibliography import parse_bibliography
from ...documents.pandoc import pandoc
from ...documents.sandbox import OutOfTimeError, run
from ...errors import InputError
from ...text.sentences import replace_spans
from ...text.words import read_rules
from ..cited_works import LATEX_CITATION
from .section_files import ExportError

_LAST_LATIN: Final = 0x24F
_VIETNAMESE: Final = range(0x1E00, 0x1F00)
# In T1, TS1 and Latin Modern, besides the blanks and marks that pandoc writes as commands.
_IN_FONTS: Final = frozenset("–—‘’‚“”„•…†‡‰‹›⁄€℗№™←↑→↓")
_LEFT_AS_IT_IS = re.compile(
    r"\\begin\{(?P<name>verbatim|Highlighting)\}.*?(?:\\end\{(?P=name)\}|\Z)"
    r"|\\(?:url|href|nolinkurl|includegraphics|[a-z]*cite[a-z]*|label|ref|hyperlink|hypertarget|bibliography)"
    r"(?:\[[^\[\]]*\])*\{[^{}]*\}",
    re.DOTALL,
)
_FORMULA = re.compile(r"\\\(((?:(?!\\\().)*?)\\\)", re.DOTALL)
_OWN: Final = {
    **{"√": r"\surd", "″": r"\prime\prime", "‴": r"\prime\prime\prime"},
    **{sign: sign for sign in "∙∛★"},  # shown as other characters, or missing
}
_FONTS: Final = ("DejaVu Sans", "FreeSerif", "Segoe UI Symbol", "Arial Unicode MS")
_FONT_COMMAND: Final = r"\symbolfont"


def with_printable_characters(latex: str, bibliography: str) -> str:
    """Rewrite LaTeX and its `.bib` so that the PDF loses no character; blocks, raises `PandocError`."""
    head, begin, body = latex.partition("\\begin{document}")
    commands = _commands(
        frozenset(
            sign
            for sign in set(body) | set(bibliography)
            if not (ord(sign) <= _LAST_LATIN or ord(sign) in _VIETNAMESE or sign in _IN_FONTS or sign.isspace())
            and unicodedata.category(sign) not in ("Mn", "Cf", "Co", "Cn", "Cs", "Cc")
        )
    )
    if not commands:
        return latex
    special = re.compile("[" + "".join(map(re.escape, commands)) + "]")
    left = ((*match.span(), match[0]) for match in _LEFT_AS_IT_IS.finditer(body))
    printable = replace_spans(body, left, lambda words: special.sub(lambda match: commands[match[0]], words))
    cited = {sign: command for sign, command in commands.items() if sign in bibliography}
    return f"{head}{_definitions(commands, cited)}{begin}{printable}"


@lru_cache(maxsize=64)
def _commands(signs: frozenset[str]) -> dict[str, str]:
    if not signs:
        return {}
    ordered = sorted(signs)
    html = "".join(f"<p><math><mi>{sign}</mi></math></p>" for sign in ordered)
    written = pandoc(["--from", "html", "--to", "latex", "--wrap=none", "signs.html"], {"signs.html": html}).decode()
    commands: dict[str, str] = {}
    for sign, formula in zip(ordered, _FORMULA.findall(written), strict=True):
        form, _, parts = unicodedata.decomposition(sign).partition(" ")
        plain = "".join(chr(int(part, 16)) for part in parts.split()) if form.startswith("<") else ""
        formula = _OWN.get(sign, formula)
        commands[sign] = rf"\ensuremath{{{formula}}}" if formula.isascii() else f"{{{_FONT_COMMAND} {sign}}}"
        if form in ("<super>", "<sub>") and plain:
            ascii = plain.replace("\u2212", r"\ensuremath{-}")
            commands[sign] = rf"\text{form[1:-1]}script{{{ascii}}}"
        elif form == "<fraction>":
            over, _, under = plain.partition("\u2044")
            commands[sign] = rf"\textsuperscript{{{over}}}\textfractionsolidus\textsubscript{{{under}}}"
    return commands


def _definitions(commands: dict[str, str], cited: dict[str, str]) -> str:
    """Definitions for the preamble: a font for characters without a command, and the characters of the `.bib`."""
    lines = [r"\tracinglostchars=2 % a character that no font has is named on the terminal"]
    if any(_FONT_COMMAND in command for command in commands.values()):
        choice = rf"\let{_FONT_COMMAND}\relax"
        for font in reversed(_FONTS):
            choice = rf"\IfFontExistsTF{{{font}}}{{\newfontfamily{_FONT_COMMAND}{{{font}}}}}{{{choice}}}"
        lines.append(rf"\ifPDFTeX\let{_FONT_COMMAND}\relax\else{choice}\fi")
    # pdflatex cannot use these fonts: it prints the name of the character.
    named = [sign for sign, command in sorted(commands.items()) if _FONT_COMMAND in command]
    for sign in named:
        name = unicodedata.name(sign, f"U+{ord(sign):04X}").lower()
        lines.append(rf"\ifPDFTeX\DeclareUnicodeCharacter{{{ord(sign):04X}}}{{[{name}]}}\fi")
    for sign, command in sorted(cited.items()):
        code = f"{ord(sign):04X}"
        if _FONT_COMMAND in command:
            command = rf'{{{_FONT_COMMAND}\char"{code} }}'  # by code, since the character itself is redefined
        active = rf'\begingroup\lccode`\~="{code}\lowercase{{\endgroup\protected\def~}}{{{command}}}\catcode"{code}=13'
        declared = "" if sign in named else rf"\DeclareUnicodeCharacter{{{code}}}{{{command}}}"
        lines.append(rf"\ifPDFTeX{declared}\else{active}\fi")
    return "\n".join([*lines, ""])


_ENGINES: Final = ("xelatex", "tectonic", "lualatex")
_PDF_SECONDS: Final = 180.0
_RUNS: Final = 2  # the second knows the labels of the first
# Whatever the text contains, the engine reads nothing above its own folder and starts no program.
_LIMITS: Final = {"openin_any": "p", "openout_any": "p", "shell_escape": "f", "max_print_line": "1000"}
_PASSED_ON: Final = ("HOME", "PATH", "LANG", "TMPDIR", "TEXMFHOME", "TEXMFVAR", "XDG_CACHE_HOME", "SYSTEMROOT")
_ERROR = re.compile(r"(?m)^(?:! |error: )(.+)$")


def find_engine() -> str:
    """The path of the installed LaTeX engine; empty if there is none."""
    return next((path for name in _ENGINES if (path := shutil.which(name))), "")


def make_pdf(latex: bytes, images: Mapping[str, bytes]) -> bytes:
    """The PDF of a LaTeX document with its images by file name; blocks. Raises `ExportError`."""
    engine = find_engine()
    if not engine:
        raise ExportError(
            "The pdf file could not be made: no xelatex, lualatex or tectonic is installed.",
            help="Install one (on Debian: texlive-xetex and texlive-fonts-recommended), or use --format tex or zip.",
        )
    with tempfile.TemporaryDirectory(prefix="citeloom-") as name:
        folder = Path(name)
        for file, image in images.items():
            (folder / file).write_bytes(image)
        source = folder / "text.tex"
        source.write_bytes(latex)
        tectonic = Path(engine).name == "tectonic"
        options = ["--outdir", str(folder)] if tectonic else ["-interaction=nonstopmode", f"-output-directory={folder}"]
        env = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        env |= {**_LIMITS, "TEXINPUTS": f"{folder}{os.pathsep}", "TEXMFOUTPUT": str(folder)}
        said = ""
        try:
            for _ in range(1 if tectonic else _RUNS):
                ended = run([engine, *options, str(source)], seconds=_PDF_SECONDS, env=env)
                said = ended.output.decode("utf-8", "replace") + ended.errors
        except OutOfTimeError:
            raise ExportError(f"The pdf file could not be made within {_PDF_SECONDS:g} seconds.") from None
        except OSError as error:
            raise ExportError(f"The pdf file could not be made ({error}).") from error
        made = folder / "text.pdf"
        if not made.is_file():
            reason = _ERROR.search(said)
            raise ExportError(f"The pdf file could not be made ({reason[1] if reason else 'no output'}).")
        return made.read_bytes()


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
    """Compare papers with a project's bibliographies (by file name): returns the entries to append, new keys where the
    project uses ours for other works, and a line about each difference. Blocks.
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
