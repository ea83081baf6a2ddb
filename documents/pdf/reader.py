"""Opens a PDF, refuses unusable ones with a one-line reason, and reads its text, title and DOI."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ...text.words import one_line, unescape_html
from ..front_matter import find_doi
from ..safe_files import FileRefusedError
from .dehyphenation import lacks_ligatures, plain
from .headings import confirm_authors, read_year
from .lines import read_lines
from .ocr import Ocr, read_scanned
from .pages import FEW_LETTERS, Page, read_page
from .structure import PdfText, structure

_TAIL = 2048  # bytes at the end that must contain the end mark
_SAMPLE = 100_000  # characters, enough to judge the text
_READABLE = 0.5  # minimum share of letters among the characters
_STRAY = 0.02  # maximum share of control or undefined characters
_RIGHT_TO_LEFT = 0.3  # of the letters
_ODD_WORDS = 0.4  # maximum share of words with digits or signs between letters

_OCR = "--ocr or CITELOOM_OCR=auto has tesseract read it"
NO_MAP = f"its fonts do not say which letters they draw (no Unicode map), so its text cannot be read; {_OCR}"
SCANNED = f"holds pictures of pages without any text (scanned?); {_OCR}"
RIGHT_TO_LEFT = "is written from right to left, which a PDF gives in the wrong order; ingest its text instead"


class PdfRefusedError(FileRefusedError):
    """A PDF that cannot be used; the message is the reason in one line, `unread` are the pages that OCR may read."""

    def __init__(self, reason: str, unread: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.unread = tuple(unread)


def pdf_record(path: str, ocr: Mapping[str, str] | None) -> dict[str, Any]:
    """A PDF as the fields of `PdfText`, or why it is `refused` and which pages OCR may read. To be called in a sandbox.

    A damaged file can hang or crash the parser.
    """
    try:
        return asdict(read_pdf(Path(path), Ocr(**ocr) if ocr else None))
    except PdfRefusedError as error:
        return {"refused": str(error), "unread": error.unread}


def read_pdf(path: Path, ocr: Ocr | None = None) -> PdfText:
    """The text of a PDF with its structure, pages without text read by `ocr`; raises `PdfRefusedError`."""
    data = path.read_bytes()
    document = _open(path, data)
    try:
        count = document.page_count()
        pages = [read_page(document, number) for number in range(count)]
    except Exception as error:
        raise PdfRefusedError(f"cannot be read as PDF ({_one_line(error)})") from error
    refusal = _refusal(document, data, pages)
    # Pages for OCR, from 1: all pages if their text is meaningless.
    unread = tuple(
        number
        for number, page in enumerate(pages, 1)
        if refusal != RIGHT_TO_LEFT and (page.pictures or not page.runs or refusal == NO_MAP)
    )
    if ocr is None or not unread:
        if refusal:
            raise PdfRefusedError(refusal, unread)
        return _build_text(data, pages, unread)
    scanned = read_scanned(path, unread, ocr)
    if refusal and not any(page.runs for page in scanned.read.values()):
        if scanned.failed:
            number, reason = min(scanned.failed.items())
            raise PdfRefusedError(f"could not be read by OCR: page {number} {reason}")
        raise PdfRefusedError("holds no text, nor did OCR find any on its pages")
    without = {number: replace(pages[number - 1], runs=(), tables=()) for number in unread}
    merged = [{**without, **scanned.read}.get(number, page) for number, page in enumerate(pages, 1)]
    return replace(
        _build_text(data, merged, scanned.failed),
        ocr=ocr.languages,
        ocr_pages=tuple(number for number in sorted(scanned.read) if scanned.read[number].runs),
        ocr_failed=tuple(sorted(scanned.failed.items())),
    )


def _build_text(data: bytes, pages: Sequence[Page], unread: Iterable[int]) -> PdfText:
    count = len(pages)
    lost = lacks_ligatures(run.text for page in pages for run in page.runs)
    read = structure(read_lines(pages, lost), count)
    if not read.blocks:
        raise PdfRefusedError("holds no text")
    stated, stated_authors = read_metadata(data)
    title = choose_title(stated, read.title, pages[0])
    on_page = tuple(name for name in read.authors if name.casefold() not in title.casefold())
    first_page = read.text[: read.pages[1]] if count > 1 else read.text
    printed = " ".join(run.text for run in pages[0].runs)
    lead = read.text[: read.headings[1][2]] if len(read.headings) > 1 and read.opens_with_names else ""
    dois = {find_doi(match) for match in re.findall(r"10\.\d{4,9}/\S+", first_page)}
    return replace(
        read,
        title=title,
        title_source="metadata of the PDF" if title == stated else read.title_source,
        doi=dois.pop() if len(dois) == 1 else "",
        authors=max(on_page, confirm_authors(stated_authors, printed), key=len),
        year=read_year(printed, lead),
        unread=tuple(sorted(unread)),
    )


def _open(path: Path, data: bytes) -> Any:
    """Open the document; if the parser fails, examine the file to report the actual reason."""
    if not data:
        raise PdfRefusedError("is empty (0 bytes)")
    if b"%PDF-" not in data[:1024]:
        kind = "an HTML page" if re.match(rb"\s*<(?:!doctype html|html)", data, re.IGNORECASE) else "something else"
        raise PdfRefusedError(f"is not a PDF but {kind} under that name")
    import pdf_oxide

    pdf_oxide.disable_logging()
    try:
        document = pdf_oxide.PdfDocument(str(path))
        locked = b"/Encrypt" in data and re.search(rb"/Encrypt\b", data) and not document.authenticate("")
    except Exception as error:
        if b"%%EOF" not in data[-_TAIL:]:
            raise PdfRefusedError("is cut off: its end is missing; download or copy it again") from error
        if not re.search(rb"\d\s+\d\s+obj\b", data):
            raise PdfRefusedError("is damaged: there is nothing between its head and its end") from error
        raise PdfRefusedError(f"is damaged ({_one_line(error)})") from error
    if locked:
        raise PdfRefusedError("is encrypted and asks for a password; save a copy without one")
    return document


def _one_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error)).strip().rstrip(".")[:160] or type(error).__name__


def _refusal(document: Any, data: bytes, pages: Sequence[Page]) -> str:
    """Why a document without text, or without meaningful text, is refused; empty otherwise."""
    if not pages:
        return "has no pages"
    text = " ".join(run.text for page in pages for run in page.runs)
    shown = "".join(text[:_SAMPLE].split())
    letters = [character for character in shown if character.isalpha()]
    if not shown:
        if any(page.pictures for page in pages):
            return SCANNED
        if re.search(rb"/Type3\b|/FontFile\d?\b", data):
            return NO_MAP
        if document.has_xfa() or b"/XFA" in data:
            return "is a form whose pages hold no text (XFA); print it to a PDF first"
        return "holds no text: its pages are blank"
    # Glyph numbers rather than letters: undefined characters, or words with digits and signs between letters.
    stray = sum(unicodedata.category(character) in {"Cc", "Co", "Cn"} or character == "\ufffd" for character in shown)
    unreadable = len(letters) < min(_READABLE * len(shown), 5 * FEW_LETTERS)
    words = [word for word in text[:_SAMPLE].split() if sum(character.isalpha() for character in word) >= 2]
    odd = sum(bool(re.search(r"[^\W\d_][\d%$&#@*+<>=\\^]+[^\W\d_]", word)) for word in words)
    if unreadable or stray > _STRAY * len(shown) or odd > _ODD_WORDS * len(words):
        return NO_MAP
    if len(letters) < FEW_LETTERS and any(page.pictures for page in pages):
        return SCANNED
    leftward = sum(unicodedata.bidirectional(character) in {"R", "AL"} for character in letters)
    if leftward > _RIGHT_TO_LEFT * len(letters):
        return RIGHT_TO_LEFT
    return ""


_XMP = re.compile(rb"<dc:title>((?:[^<]|<(?!/?dc:title>)){0,2000}+)</dc:title>")
_NO_TITLE = re.compile(
    r"(?:untitled|title|document|microsoft word|slide ?\d*|layout \d|adobe photoshop pdf"
    r"|.*\.(?:docx?|tex|dvi|pdf|indd|qxd|html?))\b.*",
    re.IGNORECASE,
)
_LEAST = 8  # characters


def choose_title(stated: str, largest: str, page: Page) -> str:
    """The title in the metadata if the first page has it, else its largest line, without the mark of a footnote.

    The metadata may name another document; a page read by OCR has the title with other letters.
    """
    printed = _letters("".join(plain(run.text) for run in page.runs))
    if stated and _letters(stated) in printed:
        return stated
    mark = re.search(r"(?<=[^\W\d_])\d{1,2}\Z", largest)
    sizes = [run.size for run in page.runs if mark and run.text.strip() == mark[0]]
    if mark and sizes and min(sizes) < 0.75 * max(run.size for run in page.runs):
        largest = largest[: mark.start()]
    shared = set(stated.casefold().split()) & set(largest.casefold().split())
    alike = bool(stated) and 2 * len(shared) >= len(stated.split()) and _letters(largest) not in _letters(stated)
    return stated if alike or not largest else largest


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def read_metadata(data: bytes) -> tuple[str, str]:
    """The title and the authors in a PDF's metadata; no title if there is none, or only a file name."""
    import pypdfium2

    known: dict[str, str] = {}
    with suppress(pypdfium2.PdfiumError):
        known = pypdfium2.PdfDocument(data).get_metadata_dict()
    xmp = _XMP.search(data)
    described = re.sub(r"<[^>]*>", " ", xmp[1].decode("utf-8", "ignore") if xmp else "")  # bounded: 2,000 characters
    titles = (one_line(plain(found)) for found in (known.get("Title", ""), unescape_html(described)))
    named = (title for title in titles if len(title) >= _LEAST and " " in title and not _NO_TITLE.fullmatch(title))
    return next(named, ""), one_line(plain(known.get("Author", "")))
