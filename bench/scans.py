"""How many words of scanned pages OCR reads: pages rendered as images, against the text in their PDFs.

`python -m bench scans`: ten pages of the corpus' PDFs, straight, and degraded like scans. Recall is the share of the
words of a page (as pdfium extracts them, hyphens at line ends joined) that were read, precision the share of the words
read that are on the page; both count repeated words.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.papers import PDFS, available_pdfs
from citeloom.documents.pdf.ocr import find_ocr
from citeloom.ingestion.reading import read_pdf_apart

if TYPE_CHECKING:
    from PIL.Image import Image

PAGES: Final = (
    *(("zietz2018network", 2), ("zietz2018network", 6), ("le2020treeheatr", 3), ("banerjee2023machine", 4)),
    *(("ching2018opportunities", 11), ("irber2022lightweight", 5), ("lee2022ten", 6), ("gao2023enabling", 1)),
    *(("gao2023enabling", 4), ("susmann2024adaptiveconformal", 8)),
)
SPOILT: Final[dict[str, tuple[int, Callable[[Image], Image]]]] = {
    "200 dpi": (200, lambda image: image),
    "300 dpi": (300, lambda image: image),
    "150 dpi": (150, lambda image: image),
    "200 dpi, skewed by 2 degrees": (200, lambda image: _rotate(image, 2)),
    "200 dpi, on its side": (200, lambda image: _rotate(image, 90)),
    "200 dpi, strongly compressed": (200, lambda image: _compress(image)),
}


def measure() -> None:
    """Print a row for each way of scanning, and one for each page as scanned at 200 dpi, if the PDFs are there."""
    available = available_pdfs("scans", (key for key, _ in PAGES))
    if not available:
        return
    if shutil.which("tesseract") is None:
        print("scans: skipped (no tesseract in PATH)")
        return
    pages = [page for page in PAGES if page[0] in available]
    print("| pages | recall | precision | least recall of a page | seconds per page |\n| - | - | - | - | - |")
    for name, (dpi, spoil) in SPOILT.items():
        began = time.perf_counter()
        found = [(_words_of(*page), _read_words(*page, dpi, spoil)) for page in pages]
        seconds = (time.perf_counter() - began) / len(pages)
        recall, precision = _share(found), _share([(read, held) for held, read in found])
        least = min(_share([pair]) for pair in found)
        print(f"| {name} | {recall:.3f} | {precision:.3f} | {least:.3f} | {seconds:.1f} |")
        if name == "200 dpi":
            by_page = [
                f"| {key}, page {number} | {_share([pair]):.3f} |"
                for (key, number), pair in zip(pages, found, strict=True)
            ]
    print("\n| page at 200 dpi | recall |\n| - | - |", *by_page, sep="\n")


def _read_words(key: str, number: int, dpi: int, spoil: Callable[[Image], Image]) -> Counter[str]:
    import pypdfium2

    page = pypdfium2.PdfDocument(_path(key))[number - 1]
    image = spoil(page.render(scale=dpi / 72, grayscale=True).to_pil().convert("L"))
    with tempfile.TemporaryDirectory() as folder:
        scan = Path(folder) / "scan.pdf"
        image.save(scan, "PDF", resolution=dpi)
        read = read_pdf_apart(scan, ocr=find_ocr("eng"))
    return _words(read.text)


def _words_of(key: str, number: int) -> Counter[str]:
    import pypdfium2

    text = pypdfium2.PdfDocument(_path(key))[number - 1].get_textpage().get_text_range()
    return _words(re.sub(r"(?:-|\ufffe|\u00ad)\r?\n", "", text).replace("\ufffe", ""))


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold()))


def _share(pairs: Sequence[tuple[Counter[str], Counter[str]]]) -> float:
    return sum((held & read).total() for held, read in pairs) / sum(held.total() for held, _ in pairs)


def _rotate(image: Image, degrees: float) -> Image:
    return image.rotate(degrees, expand=True, fillcolor=255)


def _compress(image: Image) -> Image:
    from PIL import Image as Images

    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=12)
    return Images.open(io.BytesIO(buffer.getvalue())).convert("L")


def _path(key: str) -> Path:
    return PDFS / f"{key}.pdf"
