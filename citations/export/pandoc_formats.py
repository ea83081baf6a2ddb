"""Exports a section as LaTeX, Word, LibreOffice or HTML with pandoc, with native citations of that format.

pandoc's input is the section's text, with everything that could be markup escaped, plus our own citations. So
`\\input`, HTML, images and another paper's `[@key]` stay plain text.

This module blocks; call it in a thread.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final, Literal, get_args

from ...documents.pandoc import PandocError, pandoc
from ...text.sentences import replace_spans
from ..citation_styles import CitationPlace, Rendered, pandoc_key
from ..cited_works import LATEX_CITATION
from ..references import read_style
from ..user_citations import UserCitation
from .latex_output import with_printable_characters
from .section_files import ExportError, without_title
from .word_fields import MARK, CitedEvidence, DocumentOptions, WordFields, check_reference, mark_tables

PandocFormat = Literal["tex", "docx", "odt", "html"]
Format = Literal["tex", "docx", "odt", "html", "pdf", "zip"]
PANDOC_FORMATS: Final[tuple[PandocFormat, ...]] = get_args(PandocFormat)
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

PLAIN_DOCUMENT: Final = DocumentOptions()
# The enabled extensions: no raw HTML or TeX, no attributes, no notes, no includes.
_READER = (
    "markdown_strict+implicit_figures-raw_html-shortcut_reference_links-spaced_reference_links+citations+pipe_tables+tex_math_dollars"
    "+all_symbols_escapable+backtick_code_blocks+intraword_underscores+lists_without_preceding_blankline"
)
_MATH = r"\$\$(?:[^$]+)\$\$|\$(?=\S)[^$\n]*[^\s$\\]\$(?!\d)"
_KEPT = re.compile(rf"(?<!`)(?P<code>`++)[^`\n]+(?P=code)(?!`)|(?P<math>{_MATH})")
_MEANING = re.compile(r"[\[\]@<&]")
# Commands that read, write or define; formulas in papers do not need them.
_UNSAFE = re.compile(
    r"\\(?:input|include|openin|openout|read|write|immediate|[egx]?def|let|futurelet|csname|catcode|special|directlua"
    r"|usepackage|require|newcommand|renewcommand|loop|output|jobname|scantokens|every|href|url|verb|lst|bibliography"
    r"|end\s*\{document)"
)
_UNPRINTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

_COMMAND = re.compile(LATEX_CITATION)
_BY_KEY = re.compile(r"\[[^\[\]]*@[^\[\]]*\]|@\S+")
_KEYS = re.compile(r"@\{?([\w:.#$%&+?<>~/-]*\w)\}?")
_PLAIN_GROUP = re.compile(r"\[-?@[\w:.-]*\w(?:, pp?\. ?[\d, -]++)?(?:; -?@[\w:.-]*\w(?:, pp?\. ?[\d, -]++)?)*+\]")
_SECTION = re.compile(r', in section "[^"]*"(?:, "[^"]*")*')
_IN_TEXT: Final = ("citet", "textcite", "citeauthor")


def manuscript(text: str, places: Sequence[CitationPlace], *, title: str, sections: bool = False) -> str:
    """The section as input for pandoc, with citations at `places`; `sections` locates sources without pages."""
    citations: list[tuple[int, int, str]] = []
    for place in sorted(places, key=lambda place: place.start):
        # Straight quotes around a section's title would be typeset as two closing ones.
        words = text[place.start : place.end] if sections else _SECTION.sub("", text[place.start : place.end])
        citations.append((place.start, place.end, place.instead or re.sub(r'"([^"]*)"', r"“\1”", words)))
    return f"# {title}\n\n{without_title(replace_spans(text, citations, _escape_markup), title)}\n"


def pandoc_place(citation: UserCitation, shown: Rendered) -> CitationPlace | None:
    """The user's citation as input for pandoc, native if its paper is known; None if its words stay unchanged."""
    command = _COMMAND.fullmatch(citation.citation)
    written = command or _BY_KEY.fullmatch(citation.citation)
    keys = [key.strip() for key in command["keys"].split(",")] if command else _KEYS.findall(citation.citation)
    if not written or not keys or not set(keys) <= set(citation.keys):
        return None
    named = [pandoc_key(key) for key in keys]
    place = re.sub(r"[^\w .,-]+", " ", (command["place"] if command else "") or "").strip()
    within = command is not None and command["command"].lower() in _IN_TEXT
    bare = command is None and citation.citation[0] != "["
    group = "; ".join(named) + (f", {place}" if place else "")
    instead = named[0] if len(named) == 1 and not place and (within or bare) else f"[{group}]"
    start, end = shown.span(citation.start, citation.end)
    return CitationPlace(start, end, (), citation.citation if _PLAIN_GROUP.fullmatch(citation.citation) else instead)


def convert(
    source: str,
    bibliography: str,
    target: PandocFormat,
    *,
    csl: Path | None = None,
    bibliography_name: str = "cited",
    title: str = "",
    cited_too: Sequence[str] = (),
    notice: str = "",
    numbered: bool = False,
    written_out: bool = False,
    mark: str = "",
    places: Sequence[CitedEvidence] = (),
    document: DocumentOptions = PLAIN_DOCUMENT,
) -> bytes:
    """Convert a manuscript and the `.bib` of its citations to a format; `title` is set for a whole paper.

    A section titled Abstract becomes the document's abstract. `cited_too` are keys listed in the references without a
    citation of ours; `notice` is a comment in LaTeX, and the document's description in the other formats. `mark` names
    the run. Word and LibreOffice files are written as `document` says, their citations with the evidence at `places`.

    Without a `csl`, citations are `numbered` or by author and year. LaTeX cites with `\\citep` from
    `bibliography_name`.bib, for the author's own style; with `csl`, or if `written_out`, its citations and references
    are written out, as in the other formats. Raises ExportError if pandoc fails, and InputError for an unsafe style.
    """
    office = target in ("docx", "odt")
    writer = ["--to", *_WRITERS[target], "--standalone", "--wrap=none"]
    if document.reference_doc is not None and office:
        writer.append(f"--reference-doc={check_reference(document.reference_doc, target)}")
    with_fields = office and (document.citations or ("zotero" if "zotero://" in bibliography else "text")) == "zotero"
    options = ["--from", _READER, *(("--to", "json") if office else writer)]
    # A section titled Abstract; pandoc reads metadata as paragraphs and lists only if it ends with a line break.
    # odt shows none, and tex and html only below a title: there it stays a section.
    found = _ABSTRACT.search(source) if target == "docx" or (title and target != "odt") else None
    abstract = found["words"].strip() + "\n\n" if found else ""
    source = _ABSTRACT.sub("", source, count=1) if found else source
    if title := " ".join(_UNPRINTED.sub("", title).split()):
        options += [f"--metadata=title:{title}", f"--metadata=pagetitle:{title}"]
    elif target == "html":
        options.append("--metadata=pagetitle:Section")
    files = {"cited.bib": bibliography, "section.md": mark_tables(source) if office else source}
    fields = {"nocite": ", ".join(map(pandoc_key, cited_too)), "abstract": abstract}
    if any(fields.values()):
        files["metadata.json"] = json.dumps({name: value for name, value in fields.items() if value})
        options.append("--metadata-file=metadata.json")
    if target != "tex" and (description := " ".join(_UNPRINTED.sub("", notice).split())):
        options += [f"--metadata=description:{description}", f"--variable=description-meta:{html.escape(description)}"]
    if target == "tex" and csl is None and not written_out:
        style_name, how = ("unsrtnat", "numbers") if numbered else ("plainnat", "")
        options += ["--natbib", f"--variable=bibliography:{bibliography_name}", f"--variable=natbiboptions:{how}"]
        options.append(f"--variable=biblio-style:{style_name}")
    else:
        files["style.csl"] = read_style(
            csl, numbered=numbered
        )  # the validated text, in case the file changes meanwhile
        options += ["--citeproc", "--bibliography=cited.bib", "--csl=style.csl"]
        options += [] if with_fields else ["--metadata=link-citations:true"]
        options.append("--metadata=reference-section-title:References")
    try:
        made = pandoc([*options, "--output=-", "section.md"], files)
        if office:
            listed = json.loads(pandoc(["--from=biblatex", "--to=csljson", "cited.bib"], files))
            items, remarks = {item.pop("id"): item for item in listed}, document.evidence_comments
            style = files["style.csl"]
            fields_of = WordFields(target, items, bibliography, places, style, mark, with_fields, remarks, cited_too)
            files["section.json"] = json.dumps(fields_of.add_to(json.loads(made)))
            made = pandoc(["--from=json", *writer, "--output=-", "section.json"], files)
        if target == "tex":
            latex = made.replace(_WHOLE_PAGE, _ROOM_FOR_CAPTION, 1).decode("utf-8")
            cited_in_tex = bibliography if csl is None and not written_out else ""
            made = with_printable_characters(latex, cited_in_tex).encode()
    except (PandocError, OSError) as error:
        raise ExportError(f"The {target} file could not be made ({' '.join(str(error).split())[:300]}).") from error
    said = [" ".join(_UNPRINTED.sub("", line).split()) for line in (f"{MARK}: {mark}" if mark else "", notice)]
    comments = "".join(f"% {line}\n" for line in said if line) if target == "tex" else ""
    return comments.encode() + made


# In pandoc's preamble: the height to which larger images are scaled, so that the caption fits on the same page.
_WHOLE_PAGE: Final = rb"\Gscale@div\@tempa{\textheight}"
_ROOM_FOR_CAPTION: Final = rb"\Gscale@div\@tempa{0.8\textheight}"
_ABSTRACT = re.compile(r"(?ms)^# Abstract[ \t]*\n(?P<words>.*?)(?=^# |\Z)")
_WRITERS: Final[Mapping[PandocFormat, tuple[str, ...]]] = {
    "tex": ("latex",),
    "docx": ("docx",),
    "odt": ("odt",),
    "html": ("html", "--mathml"),
}


def _escape_markup(text: str) -> str:
    """Escape everything that pandoc would read as a citation, link, image or tag, but for code and formulas."""

    def plain(words: str) -> str:
        return _MEANING.sub(r"\\\g<0>", words)

    text = _UNPRINTED.sub("", text)
    kept: list[tuple[int, int, str]] = []
    for match in _KEPT.finditer(text):
        formula = match["math"] or ""
        # Safe to typeset: no commands with side effects, and balanced braces.
        depths = [0, *accumulate(1 if brace == "{" else -1 for brace in re.findall(r"(?<!\\)[{}]", formula))]
        harmless = min(depths) == 0 == depths[-1] and not _UNSAFE.search(formula)
        kept.append((*match.span(), match[0] if harmless else plain(match[0]).replace("$", "\\$")))
    return replace_spans(text, kept, plain)
