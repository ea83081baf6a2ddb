"""Makes PDFs whose pages are pictures of text, and programs that stand in for tesseract."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pypdfium2
from PIL import Image

from tests.support.plain_pdf import Line, write_pdf

RESOLUTION = 200
PAGE = (
    "Node degree in biomedical networks",
    "Abstract",
    "The degree of a node is the number of its edges.",
    "Permuted networks keep the degree of every node.",
    "Predictions that ignore degree are often too hopeful.",
)


def write_scan(path: Path, pages: Sequence[Sequence[str]], *, turned: float = 0.0) -> None:
    """Write a PDF of pictures of these pages, each turned counter-clockwise; a page without lines is blank."""
    images = [_picture(path, lines).rotate(turned, expand=True, fillcolor=255) for lines in pages]
    images[0].save(path, "PDF", resolution=RESOLUTION, save_all=True, append_images=images[1:])


def write_mixed(path: Path, text: Sequence[str], scanned: Sequence[str]) -> None:
    """Write a PDF whose first page holds text and whose second is a picture."""
    parts = [path.with_suffix(".1"), path.with_suffix(".2")]
    write_pdf(parts[0], _lines(text))
    write_scan(parts[1], [scanned])
    whole = pypdfium2.PdfDocument.new()
    for part in parts:
        whole.import_pages(pypdfium2.PdfDocument(part.read_bytes()))
        part.unlink()
    whole.save(path)


def write_program(folder: Path, reading: str, languages: str = "eng") -> Path:
    """A `tesseract` for PATH that knows these languages and runs the lines of shell `reading` for each page."""
    folder.mkdir(exist_ok=True)
    program = folder / "tesseract"
    listed = "\\n".join(["Languages:", *languages.split()])
    program.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "--version) echo tesseract 9.9.9;;\n"
        f"--list-langs) printf '{listed}\\n';;\n"
        f"*) cat > /dev/null\n{reading}\n;;\nesac\n"
    )
    program.chmod(0o755)
    return program


def hocr(*lines: str, angle: float = 0.0, sure: int = 96) -> str:
    """What tesseract prints for a page of these lines, 30 pixels high."""
    rows = "".join(
        f"<p class='ocr_par' title='bbox 10 {40 * row} 900 {40 * row + 30}'>"
        f"<span class='ocr_line' title='bbox 10 {40 * row} 900 {40 * row + 30}; textangle {angle}; x_size 30'>"
        + "".join(
            f"<span class='ocrx_word' title='bbox {10 + 90 * at} {40 * row} {90 + 90 * at} {40 * row + 30}; "
            f"x_wconf {sure}'>{word}</span>"
            for at, word in enumerate(line.split())
        )
        + "</span></p>"
        for row, line in enumerate(lines, 1)
    )
    return f"<html><body><div class='ocr_page' title='bbox 0 0 1000 1400; scan_res 300 300'>{rows}</div></body></html>"


def printing(*lines: str) -> str:
    """Shell that prints the hOCR of these lines."""
    return f"cat <<'END'\n{hocr(*lines)}\nEND"


def _picture(path: Path, lines: Sequence[str]) -> Image.Image:
    page = path.with_suffix(".page")
    write_pdf(page, _lines(lines))
    drawn = pypdfium2.PdfDocument(page.read_bytes())[0].render(scale=RESOLUTION / 72, grayscale=True)
    page.unlink()
    return drawn.to_pil().convert("L")


def _lines(lines: Sequence[str]) -> list[Line]:
    return [Line(line, 18 if number == 0 else 12) for number, line in enumerate(lines)]
