"""Figures of real files: read with their paper, stored beside it, and never a way out of its folder."""

from __future__ import annotations

import asyncio
import base64
import io
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pypandoc
import pytest
from PIL import Image

from citeloom.documents import sandbox
from citeloom.documents.figures import PaperFigure
from citeloom.ingestion.doctor import examine, repair, repair_library
from citeloom.ingestion.ingest import ingest, remove_all
from citeloom.ingestion.ingest_events import IngestReport
from citeloom.stores.library import Library
from citeloom.stores.text_analysis import analyze
from tests.support.plain_pdf import Line, write_pdf

CAPTION = "Threads of a wooden loom, seen from above."
PROSE = "Looms weave threads into cloth, and fast looms break them more often than slow ones do."


def picture(kind: str = "PNG", colour: str = "red") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (300, 200), colour).save(file, kind)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "loom.png").write_bytes(picture())
    return folder


def markdown(address: str, caption: str = CAPTION) -> str:
    table = "Table 1: Speeds of looms.\n\n| Loom | Speed |\n|---|---|\n| Jacquard | 12.5 |\n| Drawloom | 3.1 |"
    return f"# On looms\n\n## Results\n\n{PROSE}\n\n![{caption}]({address})\n\n{table}\n\n{PROSE}\n"


def taken_in(library: Library, *paths: Path) -> IngestReport:
    report = asyncio.run(ingest(library, list(paths)))
    assert report.refused == ()
    return report


def figure_of(library: Library, path: Path) -> PaperFigure:
    report = taken_in(library, path)
    return library.figures((report.added or report.updated)[0])[0]


TEX = (
    "\\documentclass{article}\\usepackage{graphicx}\\graphicspath{{pictures/}}\\begin{document}\\section{Results}"
    f"{PROSE}\\begin{{figure}}\\includegraphics{{inside}}\\caption{{{CAPTION}}}\\end{{figure}}\\end{{document}}"
)
HTML = f'<h1>Looms</h1><p>{PROSE}</p><figure><img src="loom.png"><figcaption>{CAPTION}</figcaption></figure>'
JATS = (
    '<article xmlns:xlink="http://www.w3.org/1999/xlink"><body><sec><title>Results</title>'
    f"<p>{PROSE}</p><fig><caption><p>{CAPTION}</p></caption>"
    '<graphic xlink:href="loom"/></fig></sec></body></article>'
)


PAPERS = {"p.md": markdown("loom.png"), "p.html": HTML, "p.xml": JATS, "p.tex": TEX}


@pytest.mark.parametrize("name", PAPERS)
def test_an_image_beside_the_paper_is_kept_with_its_caption(library: Library, folder: Path, name: str) -> None:
    (folder / "pictures").mkdir()
    (folder / "pictures" / "inside.jpg").write_bytes(picture("JPEG"))
    (folder / name).write_text(PAPERS[name], encoding="utf-8")
    figure = figure_of(library, folder / name)
    assert (figure.caption, figure.width, figure.height) == (CAPTION, 300, 200)
    assert (library.figure_image(figure) or b"").startswith(b"\x89PNG")


@pytest.mark.parametrize("ending", ["docx", "epub"])
def test_an_image_inside_the_paper_is_kept_with_its_caption(library: Library, folder: Path, ending: str) -> None:
    source = folder / "source.txt"
    source.write_text(markdown("loom.png"), encoding="utf-8")
    paper = folder / f"paper.{ending}"
    pypandoc.convert_file(
        str(source), ending, format="markdown", outputfile=str(paper), extra_args=[f"--resource-path={folder}"]
    )
    (folder / "loom.png").unlink()
    figures = [figure_of(library, paper), *library.figures("paper")[1:]]
    assert [(figure.kind, figure.image_hash is not None) for figure in figures] == [("figure", True), ("table", False)]
    assert figures[0].caption == CAPTION
    assert figures[1].caption.endswith("Speeds of looms.")


def test_an_embedded_image_is_decoded(library: Library, folder: Path) -> None:
    address = f"data:image/png;base64,{base64.b64encode(picture()).decode()}"
    (folder / "p.md").write_text(markdown(address), encoding="utf-8")
    assert figure_of(library, folder / "p.md").width == 300


def test_a_figure_of_a_pdf_is_drawn_from_its_page(library: Library, folder: Path) -> None:
    words = [
        Line("On looms", 18),
        *[Line(PROSE)] * 3,
        *[Line("")] * 16,
        Line(f"Figure 1: {CAPTION}"),
        *[Line(PROSE)] * 5,
    ]
    write_pdf(folder / "p.pdf", words, drawing="1 0 0 rg 150 480 300 180 re f")
    figure = figure_of(library, folder / "p.pdf")
    assert (figure.label, figure.page, figure.no_image) == ("Figure 1", 1, "")
    image = Image.open(io.BytesIO(library.figure_image(figure) or b""))
    assert (image.width / 2.5, image.height / 2.5) == (pytest.approx(300, abs=10), pytest.approx(180, abs=10))
    assert image.getpixel((image.width // 2, image.height // 2)) == (255, 0, 0)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:9/loom.png", "on the network"),
        ("//127.0.0.1/loom.png", "on the network"),
        ("file:///etc/hostname", "on the network"),
        ("../secret.png", "leads out of"),
        ("a/../../secret.png", "leads out of"),
        ("%2e%2e/secret.png", "leads out of"),
        ("/etc/hostname", "absolute path"),
        ("link.png", "leads out of"),
        ("linked/secret.png", "leads out of"),
        ("pipe.png", "is not in the paper's folder"),
        ("missing.png", "is not in the paper's folder"),
        ("empty.png", "is empty"),
        ("text.png", "is not an image"),
        ("drawing.svg", "is a drawing in a format"),
        ("data:image/png;base64,AAA", "damaged"),
    ],
)
def test_an_image_that_is_not_read_has_a_reason(library: Library, folder: Path, address: str, reason: str) -> None:
    import os

    (folder.parent / "secret.png").write_bytes(picture(colour="blue"))
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    (folder / "linked").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe.png")
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.png").write_text("no image")
    (folder / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "p.md").write_text(markdown(address), encoding="utf-8")
    figure = figure_of(library, folder / "p.md")
    assert figure.image_hash is None
    assert reason in figure.no_image
    assert not library.home.figures.exists()


def test_an_archive_that_expands_endlessly_loses_only_its_images(library: Library, folder: Path) -> None:
    source = folder / "source.txt"
    source.write_text(markdown("loom.png"), encoding="utf-8")
    whole = folder.parent / "whole.docx"
    pypandoc.convert_file(
        str(source), "docx", format="markdown", outputfile=str(whole), extra_args=[f"--resource-path={folder}"]
    )
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(folder / "p.docx", "w", zipfile.ZIP_DEFLATED) as bomb:
        for item in old.infolist():
            is_image = item.filename.startswith("word/media/")
            bomb.writestr(item.filename, b"\0" * (60 << 20) if is_image else old.read(item))
    figure = figure_of(library, folder / "p.docx")
    assert "larger than 50 MB" in figure.no_image


def test_a_crashing_image_reader_loses_only_the_images(
    library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_THIS", "no_such_module_anywhere")
    (folder / "p.md").write_text(markdown("loom.png"), encoding="utf-8")
    figure = figure_of(library, folder / "p.md")
    assert figure.caption == CAPTION
    assert "the image reader ended with exit code 1" in figure.no_image


def test_unchanged_figures_are_not_read_again(library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "p.md").write_text(markdown("loom.png"), encoding="utf-8")
    taken_in(library, folder)
    monkeypatch.setattr(sandbox, "_THIS", "no_such_module_anywhere")
    assert taken_in(library, folder).unchanged == ("p",)
    assert library.figures("p")[0].width == 300


def test_a_library_older_than_figures_gets_them_without_embedding(
    folder: Path, open_library: Callable[[], Library]
) -> None:
    (folder / "p.md").write_text(markdown("loom.png"), encoding="utf-8")
    library = open_library()
    taken_in(library, folder)
    library.close()
    with sqlite3.connect(library.home.catalog) as catalog:
        catalog.execute("DROP TABLE figures")
    catalog.close()
    library = open_library()
    assert "were never read for: p" in next(item.message for item in examine(library) if item.topic == "figures")
    report = taken_in(library, folder)
    assert (report.updated, report.chunks_embedded) == (("p",), 0)
    assert library.figures("p")[0].width == 300
    (finding,) = [item for item in examine(library) if item.topic == "figures"]
    assert finding.level == "fine"
    assert finding.message == "1 figure and 1 table; 0 of 1 image described by a vision model"


def test_a_description_stays_with_its_image(library: Library, folder: Path) -> None:
    (folder / "p.md").write_text(markdown("loom.png"), encoding="utf-8")
    taken_in(library, folder)
    described = [replace(figure, description="A red loom.") for figure in library.figures("p")]
    library.catalog.describe("p", described)
    (folder / "p.md").write_text(markdown("loom.png", "Another caption of this loom."), encoding="utf-8")
    assert figure_of(library, folder / "p.md").description == "A red loom."
    (folder / "loom.png").write_bytes(picture(colour="blue"))
    (folder / "p.md").write_text(markdown("loom.png", "One more caption of this loom."), encoding="utf-8")
    assert figure_of(library, folder / "p.md").description == ""


def test_images_are_deleted_with_their_paper(library: Library, folder: Path) -> None:
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"{markdown('loom.png')}\n\nThis is {name}.\n", encoding="utf-8")
    taken_in(library, folder)
    assert len(list(library.home.figures.iterdir())) == 1
    asyncio.run(remove_all(library, ["a"]))
    assert len(list(library.home.figures.iterdir())) == 1
    asyncio.run(remove_all(library, ["b"]))
    assert list(library.home.figures.iterdir()) == []


def test_doctor_restores_a_lost_image_and_drops_one_without_a_paper(library: Library, folder: Path) -> None:
    (folder / "p.md").write_text(markdown("loom.png"), encoding="utf-8")
    taken_in(library, folder)
    (image,) = library.home.figures.iterdir()
    image.write_bytes(b"damaged")
    (library.home.figures / ("0" * 64)).write_bytes(b"stray")
    problems = {item.topic: item.message for item in examine(library) if item.level == "problem"}
    assert problems["figures"] == "images are missing or damaged for: p"
    assert "1 record without a paper: image 000" in problems["vectors"]
    asyncio.run(repair_library(library))
    assert [item for item in examine(library) if item.level == "problem"] == []
    assert [file.name for file in library.home.figures.iterdir()] == [image.name]
    assert asyncio.run(repair(library)) == []


def test_a_table_is_one_chunk_with_its_caption(library: Library, folder: Path) -> None:
    (folder / "p.md").write_text(markdown("loom.png"), encoding="utf-8")
    taken_in(library, folder)
    figure = library.figures("p")[1]
    assert figure.span is not None
    (holding,) = [chunk for chunk in library.paper_chunks("p") if chunk.start <= figure.span[0] < chunk.end]
    assert "Table 1: Speeds of looms." in holding.text
    assert "| Drawloom | 3.1 |" in holding.text
    (best, *_) = library.matching(analyze("Drawloom 3.1"), 3)
    assert best[0] == holding.id


def test_the_words_of_an_ingested_table_weigh_more_in_a_search(library: Library, folder: Path) -> None:
    (folder / "p.md").write_text(markdown("loom.png"), encoding="utf-8")
    (folder / "q.md").write_text(f"# On cloth\n\n## Results\n\n{PROSE}\n", encoding="utf-8")
    taken_in(library, folder)
    (chunk,) = library.paper_chunks("p")
    assert "Jacquard" in chunk.text
    assert library.described.chunks_of_tables([chunk.id, "q:00000"]) == {chunk.id}
