"""Reads back the text of an exported file (markdown, LaTeX, Word, HTML), with citations as `[@key]`."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import InputError
from .pandoc import PandocError, pandoc

_READERS: Final = {".tex": "latex", ".docx": "docx+citations", ".odt": "odt", ".html": "html"}
SUFFIXES: Final = (".md", *_READERS)
_MOST_BYTES: Final = 50_000_000
_SECONDS: Final = 60.0
_MEGABYTES: Final = 1500
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_REFERENCES = re.compile(r"(?ms)^#{1,3} References\b[^\n]*\n.*?(?=^#|\Z)")
_HEADING = re.compile(r"(?m)^#{1,6} .*$")
_FENCED_DIV = re.compile(r"(?m)^:{3,}.*$")
_TEMPLATE: Final = "$if(abstract)$\n$abstract$\n\n$endif$\n$body$\n"  # a Word or LaTeX abstract is metadata to pandoc
_LATEX_FIGURE = re.compile(r"\\begin\{figure\}(?:(?!\\begin\{figure\}).)*?\\end\{figure\}", re.DOTALL)
_LATEX_REFERENCE = re.compile(r"~?\\ref\{fig:(?P<number>\d+)\}")
_IMAGE = re.compile(r"!\[[^\[\]]*\]\([^()\s]*\)(?:\{[^{}]*\})?")
_FIGURE_NUMBER = re.compile(r"\[(?P<number>\d*)\](?:\(#_Ref_figure_\d+\)|\{#_Ref_figure_\d+ \.anchor\})")
_LINK = re.compile(r"\[(?P<label>[^\[\]]+)\]\(#ref-(?P<key>[^()\s]+)\)(?:\{[^{}]*\})?")
_LABELLED = re.compile(r"\[(?P<label>(?:\\[\[\]]|[^\[\]\\])++)\]\(#ref-(?P<key>[^()\s]++)\)")
_PAGE = re.compile(r", (?:pp?\. )?(\d{1,3})(?:\\\])?$")
_BRACKET = re.compile(r"\^?\((?P<inner>[^()]*+)\)")
_CITED = re.compile(r"\[(@[^\[\]]*)\]")
_PLACE = re.compile(r"(?<=\]),(?:\\? )in(?:\\? )section(?:\\? )“[^”]{0,300}”")
_FURNITURE = re.compile(r"\[@[^\[\]]*\]|[;,]")
_BETWEEN = re.compile(r"\](?:\^\(,\)|, ?)\[@")
_SPAN = re.compile(r"\[(?P<inner>(?:[^\[\]]|\[@[^\[\]]*+\])*+)\]\{\.citation[^{}]*\}")
_BY_KEY = re.compile(r"\[[^\[\]@]*+@[^\[\]]*+\]")
_KEYS = re.compile(r"@\{?([\w:.#$%&+?<>~/-]*\w)\}?")
_AROUND = re.compile(r"\((?P<inner>[^()@]*\[@[^\[\]]*\](?:[^()]|\([^()]*\))*)\)")


@dataclass(frozen=True, slots=True)
class ExportedText:
    """The text without headings and references; `labels` pairs each linked citation's visible text with its key."""

    text: str
    labels: tuple[tuple[str, str], ...] = ()


def read_exported(file: Path) -> ExportedText:
    """The text of an exported or edited file; blocks. Raises `InputError`."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise InputError(f"{file}: is larger than {_MOST_BYTES // 1_000_000} MB.")
        if file.suffix == ".md":
            return ExportedText(without_frame(file.read_bytes().decode("utf-8")))
        with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
            template, source = Path(folder) / "template.md", file
            template.write_text(_TEMPLATE, "utf-8")
            if file.suffix == ".tex":
                source = Path(folder) / "text.tex"
                source.write_text(latex_without_figures(file.read_text("utf-8")), "utf-8")
            options = ["--from", _READERS[file.suffix], "--to", "markdown-smart", "--wrap=none"]
            command = [*options, f"--template={template}", "--", str(source)]
            made = pandoc(command, seconds=_SECONDS, megabytes=_MEGABYTES)
        return restore_keys(made.decode("utf-8", "replace"))
    except (OSError, UnicodeDecodeError, PandocError) as error:
        raise InputError(f"{file}: cannot be read ({' '.join(str(error).split())[:160]}).") from error


def latex_without_figures(latex: str) -> str:
    """LaTeX without figures, with the number of each figure that the text mentions, and with links for citations.

    With a citation style, pandoc writes these into a command of its own, which it cannot read back.
    """
    linked = latex.replace("\\citeproc{ref-", "\\hyperlink{ref-")
    return _LATEX_REFERENCE.sub(r" \g<number>", _LATEX_FIGURE.sub("", linked))


def without_frame(markdown: str) -> str:
    """The text of a section's markdown without headings, images, comments and references."""
    return _IMAGE.sub("", _HEADING.sub("", without_comments_and_references(markdown))).strip()


def without_images(markdown: str) -> str:
    """Pandoc's markdown without images; references to figures are their numbers."""
    return _IMAGE.sub("", _FIGURE_NUMBER.sub(r"\g<number>", markdown))


def without_comments_and_references(markdown: str) -> str:
    """The text of a section's markdown without comments and references, but with headings and images."""
    text = markdown.replace("\r\n", "\n")
    closed = text.rfind("-->") + len("-->")  # comments are not searched for after the last end mark
    return _REFERENCES.sub("", _COMMENT.sub("", text[:closed]) + text[closed:]).strip()


def restore_keys(markdown: str) -> ExportedText:
    """Replace links to references in pandoc's markdown by `[@key]`."""
    text = without_frame(_FIGURE_NUMBER.sub(r"\g<number>", _FENCED_DIV.sub("", markdown)))
    labels = tuple((match["label"], match["key"]) for match in _LINK.finditer(text))
    text = _SPAN.sub(lambda match: match["inner"], _LINK.sub(lambda match: f"[@{match['key']}]", text))
    text = _AROUND.sub(lambda match: _group(match["inner"]), text)
    return ExportedText(_BY_KEY.sub(lambda match: _group(match[0]), text), labels)


def linked_keys(markdown: str) -> str:
    """The text with `[@key, p. 4; @other]` for citations that link to references; other words of theirs stay."""

    def group(found: re.Match[str]) -> str:
        if not (cited := _CITED.findall(found["inner"])):
            return found[0]
        rest = _FURNITURE.sub(" ", found["inner"]).split()
        return f"[{'; '.join(cited)}]{f' ({chr(32).join(rest)})' if rest else ''}"

    def link(found: re.Match[str]) -> str:
        page = _PAGE.search(found["label"])
        return f"[@{found['key']}{f', p. {page[1]}' if page else ''}]"

    return _BETWEEN.sub("; @", _BRACKET.sub(group, _PLACE.sub("", _LABELLED.sub(link, markdown))))


def _group(words: str) -> str:
    return f"[{'; '.join(f'@{key}' for key in _KEYS.findall(words))}]"
