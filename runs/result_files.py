"""Renders the files of a finished run from its stored record, for the output folder and downloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..citations.csl_styles import style_file
from ..citations.export.evidence_report import ReportImages, evidence_report
from ..citations.export.latex_output import find_engine, make_pdf
from ..citations.export.pandoc_formats import FORMATS, PANDOC_FORMATS, PandocFormat, convert
from ..citations.export.plot_figures import as_references, images_of, with_figures
from ..citations.export.section_files import as_bytes, file_stem, slug, zip_files
from ..errors import InputError
from ..stores.backends import backend_of
from ..stores.home import Home
from .result_record import StoredRecord, public_record

ALWAYS: Final = ("md", "bib", "evidence.html", "json")


class UnknownFileError(InputError):
    """A result has no file of this name."""


def stem_of(record: StoredRecord) -> str:
    """The name of a record's files, without extension."""
    return file_stem(name_of(record))


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """The files of a record, named `stem`; `images` are its figures' by file name.

    `shown` are the evidence report's.
    """

    record: StoredRecord
    stem: str
    images: Mapping[str, bytes]
    shown: ReportImages = field(default_factory=ReportImages)

    @classmethod
    def of(
        cls, record: StoredRecord, home: Home | None, stem: str = "", shown: ReportImages | None = None
    ) -> ResultFiles:
        """Create from a record; blocks to read the images of its figures.

        For a library in a database, uploaded images are fetched from its `home`.
        """
        name = stem_of(record)
        named = _with_figures_called(record, name, stem or name)
        find = Path if home is None else backend_of(home).plots().file
        return cls(named, stem or name, images_of(named["figures"], find), shown or ReportImages())

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
        """The file names."""
        return [f"{self.stem}.{suffix}" for suffix in self.suffixes]

    def named(self, name: str) -> bytes:
        """Render a file by name; raises `UnknownFileError`, and as `content`."""
        if name not in self.names():
            raise UnknownFileError(f"This result has no file {name!r}.", help=f"It has {', '.join(self.names())}.")
        return self.content(name.removeprefix(f"{self.stem}."))

    def content(self, suffix: str) -> bytes:
        """Render a file; blocks. Raises `ExportError` if pandoc rejects a format."""
        if suffix in self.image_suffixes:
            return self.images[f"{self.stem}.{suffix}"]
        if suffix == "md":
            return as_bytes(self.record["markdown"])
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
            return make_pdf(self._converted("tex", written_out=True), self.images)
        return self._converted(next(target for target in PANDOC_FORMATS if target == suffix))

    def _converted(self, target: PandocFormat, *, written_out: bool = False) -> bytes:
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
        )
        return as_references(made.decode("utf-8"), self.figures).encode() if target == "tex" else made


def json_text(record: StoredRecord, files: Mapping[str, str] | None = None) -> str:
    """The content of the JSON file; `files` maps each format to its path."""
    return json.dumps(public_record(record, files), ensure_ascii=False, indent=2) + "\n"


def name_of(record: StoredRecord) -> str:
    """A file name for a record: the section, or the question's first words."""
    return str(record["section"]) if "section" in record else slug(record["question"])


def _with_figures_called(record: StoredRecord, name: str, stem: str) -> StoredRecord:
    """Rename the record's figure files from `name` to `stem`."""
    if name == stem or not record["figures"]:
        return record
    figures = [{**item, "file": f"{stem}.{item['file'].partition('.')[2]}"} for item in record["figures"]]
    markdown = record["markdown"]
    for old, new in zip(record["figures"], figures, strict=True):
        for shown in ("[{0}]({0})", "]({0})"):
            markdown = markdown.replace(shown.format(old["file"]), shown.format(new["file"]))
    return {**record, "figures": figures, "markdown": markdown}
