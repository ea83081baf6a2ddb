"""Evidence reports with images of the PDF pages that citations rest on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from citeloom import ingest, open_library, research
from tests.support.plain_pdf import Line, write_pdf

QUESTION = "How does the tension of the warp change the width of the cloth?"
TEXT = (
    "Abstract",
    "The width of the cloth fell by two percent for each newton of tension of the warp.",
    "The tension of the warp was set with weights and checked with a spring balance.",
)


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    path = tmp_path / "weaver2024tension.pdf"
    write_pdf(path, [Line("Warp tension and the width of linen cloth", 20), *(Line(line) for line in TEXT)])
    return path


def report(home: Path, out: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    """The evidence report of an answer, and the answer's record."""
    with open_library(home) as library:
        record = research(library, QUESTION, out=out, **options)
    return next(out.glob("*.evidence.html")).read_text(encoding="utf-8"), dict(record)


def test_a_report_shows_the_cited_pdf_page_on_request(tmp_path: Path, pdf: Path) -> None:
    home = tmp_path / "home"
    with open_library(home) as library:
        assert ingest(library, pdf)["papers_added"] == 1
    plain, record = report(home, tmp_path / "plain")
    assert {citation["page"] for citation in record["citations"]} == {1}
    assert "<img" not in plain
    with_pages, again = report(home, tmp_path / "pages", page_images=True)
    assert again["text"] == record["text"]
    images = re.findall(r'<img src="data:image/png;base64,([^"]{1000,})"', with_pages)
    assert len(images) == len(record["citations"]) >= 1
    assert not re.findall(r'(?:src|href)="(?!data:image/png|#|https://doi\.org/)', with_pages), "it stays one file"

    pdf.unlink()
    without, _ = report(home, tmp_path / "gone", page_images=True)
    assert "<img" not in without and "cannot be read" not in without, "a report is written without the file too"
