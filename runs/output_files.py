"""Renders the files of a finished run from its stored record, for the output folder and for downloads.

The evidence report may show cited PDF pages, and figures whose captions are cited.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..citations.export.evidence_report import VERDICTS, ReportFigure, ReportImages, evidence_report, report_view
from ..citations.export.latex_output import find_engine, make_pdf
from ..citations.export.pandoc_formats import FORMATS, PANDOC_FORMATS, PLAIN_DOCUMENT, Format, PandocFormat, convert
from ..citations.export.plot_figures import as_references, read_images, unshown_figures, with_figures
from ..citations.export.section_files import (
    ExportError,
    as_bytes,
    comment,
    file_stem,
    free_name,
    slug,
    write_files,
    write_texts,
    zip_files,
)
from ..citations.export.word_fields import MARK, CitedEvidence, DocumentOptions
from ..citations.html_escaping import inert
from ..citations.references import style_file
from ..documents.pdf.drawing import draw_page_apart
from ..documents.safe_files import FileRefusedError
from ..errors import InputError
from ..plurals import counted
from ..stores.home import Home, written_files
from ..stores.library import Library, UnknownPaperError
from ..tools.paper_search import find_cited_figures
from .result_record import ResultRecord, StoredRecord, edit_lost_warning, public_record as public_record, stored

ALWAYS: Final = ("md", "bib", "evidence.html", "json")


class UnknownFileError(InputError):
    """A result has no file with this name."""


def stem_of(record: StoredRecord, stem: str = "") -> str:
    """Return the name of a record's files without suffix: `stem`, else the section or the question's first words."""
    return file_stem(stem or (str(record["section"]) if "section" in record else slug(record["question"])))


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """The files of a record, named `stem`."""

    record: StoredRecord
    stem: str
    images: Mapping[str, bytes]  # of the record's figures, by file name
    shown: ReportImages = field(default_factory=ReportImages)  # those of the evidence report
    document: DocumentOptions = PLAIN_DOCUMENT

    @classmethod
    def of(
        cls,
        record: StoredRecord,
        home: Home | None,
        stem: str = "",
        shown: ReportImages | None = None,
        document: DocumentOptions = PLAIN_DOCUMENT,
    ) -> ResultFiles:
        """Create from a record; blocks to read its figures' images, from `home` if that is a database."""
        name = stem_of(record)
        named = _rename_figures(record, name, stem or name)
        find = Path if home is None else home.plots().file
        return cls(named, stem or name, read_images(named["figures"], find), shown or ReportImages(), document)

    @property
    def figures(self) -> list[dict[str, Any]]:
        """Figures with an image."""
        return [figure for figure in self.record["figures"] if figure["file"] in self.images]

    @property
    def image_suffixes(self) -> list[str]:
        """File suffixes of the figures' images, after `stem` and a dot."""
        return [file.removeprefix(f"{self.stem}.") for file in self.images]

    @property
    def suffixes(self) -> list[str]:
        """Suffixes of all available files: those always written, other formats, and images of figures."""
        formats = [name for name in FORMATS if name != "pdf" or find_engine()]
        return [*ALWAYS, *formats, *self.image_suffixes]

    def names(self) -> list[str]:
        return [f"{self.stem}.{suffix}" for suffix in self.suffixes]

    def render(self, name: str) -> bytes:
        """Render a file by name; raises `UnknownFileError`, and what `content` raises."""
        if name not in self.names():
            raise UnknownFileError(f"This result has no file {name!r}.", help=f"It has {', '.join(self.names())}.")
        return self.content(name.removeprefix(f"{self.stem}."))

    def content(self, suffix: str) -> bytes:
        """The content of the file with this suffix; blocks. Raises `ExportError` if pandoc rejects a format."""
        if suffix in self.image_suffixes:
            return self.images[f"{self.stem}.{suffix}"]
        if suffix == "md":
            return as_bytes(self.record["markdown"] + f"\n{comment([f'{MARK}: {run_mark(self.record)}'])}\n")
        if suffix == "bib":
            return as_bytes(self.record["bibliography"])
        if suffix == "evidence.html":
            return as_bytes(evidence_report(self.record, self.shown))
        if suffix == "json":
            return as_bytes(json_text(self.record))
        if suffix == "zip":
            return zip_files(
                {f"{self.stem}.{name}": self.content(name) for name in ("tex", "bib", *self.image_suffixes)}
            )
        if suffix == "pdf":
            return make_pdf(self._convert("tex", written_out=True), self.images)
        return self._convert(next(target for target in PANDOC_FORMATS if target == suffix))

    def _convert(self, target: PandocFormat, *, written_out: bool = False) -> bytes:
        record = self.record
        made = convert(
            with_figures(record["manuscript"], self.figures, target, None if target == "tex" else self.images),
            record["bibliography"],
            target,
            csl=style_file(record["csl"]),
            bibliography_name=self.stem,
            title=record.get("title", ""),
            cited_too=sorted({key for citation in record["own_citations"] for key in citation["keys"]}),
            notice=record["report"]["notice"],
            numbered=record["cite_style"] == "numeric",
            written_out=written_out,
            mark=run_mark(record),
            places=cited_evidence(record) if target in ("docx", "odt") else (),
            document=self.document,
        )
        return as_references(made.decode("utf-8"), self.figures).encode() if target == "tex" else made


def run_mark(record: StoredRecord) -> str:
    """Return the mark of origin in a file: the run and the section."""
    return f"{record['thread_id']} {record.get('section', 'research')}"


def cited_evidence(record: StoredRecord) -> list[CitedEvidence]:
    """Return a text's citations in order, each with its evidence and a comment that quotes it."""
    keys = {item["id"]: item["key"] for item in record["evidence"]}
    found = [(item["start"], CitedEvidence(frozenset(item["keys"]), ())) for item in record["own_citations"]]
    for card, place in zip(report_view(record).cards, record["report"]["places"], strict=True):
        said: dict[str, str] = {}
        for support in card.supports:
            paper, citation = support.found.paper, support.citation
            page = f", p. {citation['page']}" if citation["page"] else ""
            source = f"{', '.join(paper['authors'][:3])} {paper['year'] or ''}{page}"
            verdict = ": ".join(filter(None, [VERDICTS[citation["verdict"]][0], citation["reason"]]))
            said[citation["evidence_id"]] = f"\u201c{support.quote}\u201d ({source}) {verdict}"
        cited = frozenset(keys[name] for name in place["ids"] if name in keys)
        found.append((card.start, CitedEvidence(cited, tuple(place["ids"]), "; ".join(said.values()))))
    return [item for _, item in sorted(found, key=lambda one: one[0] or 0)]


def json_text(record: StoredRecord, files: Mapping[str, str] | None = None) -> str:
    """Format the JSON file; `files` maps each format to its path."""
    return json.dumps(public_record(record, files), ensure_ascii=False, indent=2) + "\n"


def _rename_figures(record: StoredRecord, name: str, stem: str) -> StoredRecord:
    if name == stem or not record["figures"]:
        return record
    figures = [{**item, "file": f"{stem}.{item['file'].partition('.')[2]}"} for item in record["figures"]]
    markdown = record["markdown"]
    for old, new in zip(record["figures"], figures, strict=True):
        for shown in ("[{0}]({0})", "]({0})"):
            markdown = markdown.replace(shown.format(old["file"]), shown.format(new["file"]))
    return {**record, "figures": figures, "markdown": markdown}


def complete_section(section: StoredRecord, whole: Mapping[str, Any]) -> StoredRecord:
    """Complete a section's report from its paper, which stores texts and papers once for all sections."""
    searches = [search for search in whole["searches"] if search["section"] == section["section"]]
    return {**section, "report": {**whole, **section["report"], "searches": searches}}


def save(
    record: StoredRecord,
    out: Path,
    formats: Sequence[Format] = (),
    *,
    stem: str = "",
    home: Home | None = None,
    force: bool = False,
    images: ReportImages | None = None,
    edited: Mapping[str, Path] | None = None,
    document: DocumentOptions = PLAIN_DOCUMENT,
) -> ResultRecord:
    """Write `<section>.md`, `.bib`, `.evidence.html` and `.json`, and the given formats; returns the JSON.

    A paper's sections are written too, but without `formats`; `edited` are section files that the user edited, which
    are kept. Unless `force` is given, files edited, not written by Citeloom from `home`, or of another run that the
    user edited are kept: then all new files are numbered (`discussion.2.md`), with a warning. Formats left by an
    earlier run are regenerated, or a warning names them. `stem` overrides the file name; `images` are the report's.

    Blocks. Raises `InputError` if writing fails, and `ExportError` if pandoc rejects a format, after writing all other
    files. The finished run stays in the register, so repeating the command writes it again.
    """
    sections: list[ResultRecord] = []
    notices: list[str] = []
    for section in record.get("sections", ()):
        if edited and section["section"] in edited:
            sections.append(public_record(stored({**section, "files": {"md": str(edited[section["section"]])}})))
            continue
        complete = complete_section(section, record["report"])
        saved = save(complete, out, home=home, force=force, images=images)
        own = {inert(line) for line in section["warnings"]}
        notices += [line for line in saved["warnings"] if line not in own]
        sections.append(saved)
    if sections:
        warnings = list(dict.fromkeys([*notices, *record["warnings"]]))
        record = stored({**record, "sections": sections, "warnings": warnings})
    wanted = tuple(dict.fromkeys(formats))
    name = stem_of(record, stem)
    written = written_files(home)
    suffixes = [*ALWAYS, *wanted, *(figure["file"].partition(".")[2] for figure in record["figures"])]
    edited_runs = set() if home is None else {*home.runs().edited_ids()} - {record["thread_id"]}

    def replaceable(path: Path) -> bool:
        return written.has(path) and not (path.suffix == ".json" and _read_run_id(path) in edited_runs)

    find_name = partial(free_name, out, name, suffixes, replaceable, force=force)
    while True:
        free = find_name()
        files = ResultFiles.of(record, home, free.stem, images, document)
        beside = [kind for kind in FORMATS if kind not in wanted and os.path.lexists(out / f"{free.stem}.{kind}")]
        ours = [kind for kind in beside if written.has(out / f"{free.stem}.{kind}")]
        made: dict[str, bytes] = {}
        failed: dict[str, ExportError] = {}
        for target in (*wanted, *ours):
            try:
                made[target] = files.content(target)
            except ExportError as problem:
                failed[target] = problem
        if free == find_name():  # unless edited meanwhile
            break
    formats_left = [f"{free.stem}.{kind}" for kind in (*wanted, *beside) if kind not in made]
    old = [file for file in formats_left if os.path.lexists(out / file)]
    of_runs = [path for path in free.kept if written.has(path)]
    notices = [
        *(edit_lost_warning(_read_run_id(path)) for path in of_runs),
        *replace(free, kept=tuple(path for path in free.kept if path not in of_runs)).notices(),
        *([f"{', '.join(old)}: kept from an earlier run."] if old else []),
        *unshown_figures(files.figures, free.stem, ["md", *made]),
    ]
    whole: StoredRecord = {**files.record, "warnings": list(dict.fromkeys([*notices, *record["warnings"]]))}
    beside_it = {suffix: files.content(suffix) for suffix in (*files.image_suffixes, "md", "bib", "evidence.html")}
    saved = public_record(
        whole,
        write_texts(out, free.stem, {**beside_it, **made}, lambda paths: json_text(whole, paths), written.note),
    )
    for error in (failed[kind] for kind in wanted if kind in failed):
        raise error
    return saved


def _read_run_id(file: Path) -> str:
    """Return the id of the run whose record is in a file."""
    return str(json.loads(file.read_text("utf-8")).get("thread_id", ""))


def write_own_file(
    path: Path, content: str, *, home: Home | None = None, force: bool = False
) -> tuple[Path, list[str]]:
    """Write one file, numbered and with a warning if the existing one was edited; blocks. Raises `InputError`."""
    written = written_files(home)
    free = free_name(path.parent, path.stem, [path.suffix[1:]], written.has, force=force)
    target = path.with_name(f"{free.stem}{path.suffix}")
    write_files({target: content}, written.note)
    return target, free.notices()


_WIDTH: Final = 800  # pixels
_MOST_BYTES: Final = 16_000_000  # for all images, so that mail servers accept the report
_MOST_PAGES: Final = 120
_NAMED: Final = 3  # missing pages to name
_QUOTED: Final = 1500  # characters of a quote to highlight on its page


def report_images(
    record: Mapping[str, Any], library: Library, *, pages: bool, file_of: Callable[[str], Path] = Path
) -> tuple[ReportImages, list[str]]:
    """Draw the images of the evidence report, with `pages` also cited PDF pages; also returns lines on missing ones.

    At most 120 pages and 16 MB in total, with the quotes highlighted; `file_of` finds a paper's file by its source.
    Blocks.
    """
    found: dict[str, bytes] = {}
    refused: dict[str, list[str]] = {}
    size = 0
    for identifier, path, page, quote in _places(record, library, file_of) if pages else ():
        place = f"{path.name}, page {page}"
        if len(found) == _MOST_PAGES or size > _MOST_BYTES:
            refused.setdefault("the report would become too large", []).append(place)
            continue
        try:
            found[identifier] = draw_page_apart(path, page, words=quote, width=_WIDTH)
            size += len(found[identifier])
        except FileRefusedError as error:
            refused.setdefault(str(error), []).append(place)
    notices = []
    for why, places in refused.items():
        unique = list(dict.fromkeys(places))
        more = f" and {len(unique) - _NAMED} more" if len(unique) > _NAMED else ""
        left_out = f"{counted(len(places), 'page image')} left out of the report ({why})"
        notices.append(f"{left_out}: {'; '.join(unique[:_NAMED])}{more}.")
    return ReportImages(found, report_figures(record, library)), notices


def _places(
    record: Mapping[str, Any], library: Library, file_of: Callable[[str], Path]
) -> Iterator[tuple[str, Path, int, str]]:
    """Yield id, file, page and quote of evidence cited from PDFs in the library, without repeats."""
    done: set[str] = set()
    for citation in record["citations"]:
        identifier = citation["evidence_id"]
        if citation["page"] is None or identifier in done:
            continue
        done.add(identifier)
        try:
            path = Path(library.paper(citation["key"]).source)
        except UnknownPaperError:
            continue
        if path.suffix.lower() == ".pdf":
            yield identifier, file_of(str(path)), citation["page"], citation["quote"][:_QUOTED]


_LARGEST_FIGURE: Final = 500_000  # per image
_MOST_FIGURE_BYTES: Final = 5_000_000


def report_figures(record: Mapping[str, Any], library: Library) -> dict[str, ReportFigure]:
    """Return cited figures by evidence id; omits images over 500 kB each or 5 MB in total. Blocks."""
    times = Counter(citation["evidence_id"] for citation in record["citations"])
    evidence = {cited["evidence_id"]: {**cited, "id": cited["evidence_id"]} for cited in record["citations"]}
    left = _MOST_FIGURE_BYTES
    shown: dict[str, ReportFigure] = {}
    for identifier, figure in find_cited_figures(library, evidence.values()).items():
        content = library.figure_image(figure) or b""
        if len(content) > min(_LARGEST_FIGURE, left // times[identifier]):
            content = b""
        left -= len(content) * times[identifier]
        shown[identifier] = ReportFigure(
            figure.name, content, figure.media_type, figure.description, figure.described_by
        )
    return shown
