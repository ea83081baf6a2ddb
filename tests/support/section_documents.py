"""Writes a section's three files."""

from __future__ import annotations

import json
from pathlib import Path

from citeloom.citations.export.section_files import SectionDocument, bibliography, markdown_document, write_texts


def write_section(folder: Path, kind: str, document: SectionDocument) -> dict[str, str]:
    """The paths of the files named after `kind`, by format."""
    contents = {"md": markdown_document(document), "bib": bibliography(document.papers)}
    return write_texts(
        folder, kind, contents, lambda files: json.dumps({**document.as_dict(), "files": dict(files)}, indent=2)
    )
