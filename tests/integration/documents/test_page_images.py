"""Page images are drawn in a separate process, and a file without the page is refused with a reason."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from citeloom.documents.pdf.drawing import draw_page_apart
from citeloom.documents.safe_files import FileRefusedError
from tests.support.plain_pdf import Line, write_pdf


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pdf") / "seeds.pdf"
    write_pdf(path, [Line("Nothing is said here."), Line("Ten seeds change the accuracy by three points.")])
    return path


def _yellow_rows(image: bytes) -> list[int]:
    drawn = Image.open(io.BytesIO(image)).convert("RGB")
    across, down = drawn.size
    pixels = drawn.load()
    assert pixels is not None
    return [y for y in range(down) if any(pixels[x, y][2] < 200 < pixels[x, y][0] for x in range(across))]


def test_quoted_words_are_marked_only_on_their_own_line(pdf: Path) -> None:
    rows = _yellow_rows(draw_page_apart(pdf, 1, words="seeds change the accuracy", width=612))

    assert rows and min(rows) > 792 - 760 and max(rows) < 792 - 760 + 32  # the second line, 16 points below the first
    assert _yellow_rows(draw_page_apart(pdf, 1, width=612)) == []


def test_the_image_has_the_requested_width(pdf: Path) -> None:
    assert Image.open(io.BytesIO(draw_page_apart(pdf, 1, width=300))).size[0] == 300


@pytest.mark.parametrize(
    ("content", "page", "reason"),
    [
        (None, 1, "cannot be read"),
        (b"", 1, "cannot be opened"),
        (b"<html>", 1, "cannot be opened"),
        (b"%PDF-1.7\n%%EOF", 1, "cannot be opened"),
        ("same", 2, "has 1 page$"),
    ],
    ids=["missing", "empty", "html", "hollow", "no such page"],
)
def test_a_missing_page_is_refused_with_the_reason(
    content: bytes | str | None, page: int, reason: str, pdf: Path, tmp_path: Path
) -> None:
    path = pdf if content == "same" else tmp_path / "given.pdf"
    if isinstance(content, bytes):
        path.write_bytes(content)

    with pytest.raises(FileRefusedError, match=reason):
        draw_page_apart(path, page)


def test_a_page_of_endless_size_is_drawn_small(tmp_path: Path) -> None:
    path = tmp_path / "huge.pdf"
    write_pdf(path, [Line("A poster")])
    path.write_bytes(path.read_bytes().replace(b"[0 0 612 792]", b"[0 0 9 99999]"))

    width, height = Image.open(io.BytesIO(draw_page_apart(path, 1, width=2000))).size

    assert width * height <= 8_100_000


def test_a_page_that_takes_too_long_is_given_up(pdf: Path) -> None:
    with pytest.raises(FileRefusedError, match=r"drawing it took longer than 0\.01 seconds"):
        draw_page_apart(pdf, 1, seconds=0.01)
