"""Opens a PDF, refuses unusable ones with a one-line reason, and assembles its pieces with their headings and pages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...text.words import letters_of, one_line, unescape_html
from ..front_matter import FrontMatter, find_doi
from ..markdown import BlockKind, Heading, ParsedPaper, Span, assemble
from ..safe_files import FileRefusedError
from . import headings
from .dehyphenation import Hyphens, lacks_ligatures, plain
from .headings import ENDS, SMALLER, Piece
from .lines import CAPTION, Line, read_lines
from .ocr import Ocr, read_scanned
from .pages import FEW_LETTERS, Page, read_page

_TAIL = 2048  # bytes at the end that must contain the end mark
_SAMPLE = 100_000  # characters, enough to judge the text
_READABLE = 0.5  # minimum share of letters among the characters
_STRAY = 0.02  # maximum share of control or undefined characters
_RIGHT_TO_LEFT = 0.3  # of the letters
_ODD_WORDS = 0.4  # maximum share of words with digits or signs between letters

BY_OCR = "--ocr or CITELOOM_OCR=auto has tesseract read it"
NO_MAP = f"its fonts do not say which letters they draw (no Unicode map), so its text cannot be read; {BY_OCR}"
SCANNED = f"holds pictures of pages without any text (scanned?); {BY_OCR}"
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
    scanned, failed = read_scanned(path, unread, ocr)
    if refusal and not any(page.runs for page in scanned.values()):
        if failed:
            number, reason = min(failed.items())
            raise PdfRefusedError(f"could not be read by OCR: page {number} {reason}")
        raise PdfRefusedError("holds no text, nor did OCR find any on its pages")
    without = {number: replace(pages[number - 1], runs=(), tables=()) for number in unread}
    merged = [{**without, **scanned}.get(number, page) for number, page in enumerate(pages, 1)]
    return replace(
        _build_text(data, merged, failed),
        ocr=ocr.languages,
        ocr_pages=tuple(number for number in sorted(scanned) if scanned[number].runs),
        ocr_failed=tuple(sorted(failed.items())),
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
        authors=max(on_page, headings.confirm_authors(stated_authors, printed), key=len),
        year=headings.read_year(printed, lead),
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
    printed = letters_of("".join(plain(run.text) for run in page.runs))
    if stated and letters_of(stated) in printed:
        return stated
    mark = re.search(r"(?<=[^\W\d_])\d{1,2}\Z", largest)
    sizes = [run.size for run in page.runs if mark and run.text.strip() == mark[0]]
    if mark and sizes and min(sizes) < 0.75 * max(run.size for run in page.runs):
        largest = largest[: mark.start()]
    shared = set(stated.casefold().split()) & set(largest.casefold().split())
    alike = bool(stated) and 2 * len(shared) >= len(stated.split()) and letters_of(largest) not in letters_of(stated)
    return stated if alike or not largest else largest


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


_NUMBER = re.compile(r"[-−–+]?\d[\d.,]*%?")


@dataclass(frozen=True, slots=True)
class PdfText:
    """A PDF as text.

    `headings` are title, level, start of the line and start of the text below; `blocks` are kind, start and end;
    `pages` is the offset at which each page begins; `title_source` says where the title was found. `unread` are the
    numbers of the pages without text, `ocr_pages` of those that OCR read in the languages `ocr`, `ocr_failed` of those
    that it could not read, with the reason.
    """

    text: str
    headings: Sequence[tuple[str, int, int, int]]
    blocks: Sequence[Span]
    pages: Sequence[int]
    title: str
    title_source: str
    opens_with_names: bool
    doi: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    unread: tuple[int, ...] = ()
    ocr: str = ""
    ocr_pages: tuple[int, ...] = ()
    ocr_failed: tuple[tuple[int, str], ...] = ()


def structure(lines: Sequence[Line], page_count: int) -> PdfText:
    """The text of a paper from its lines in reading order."""
    body = headings.body_size(lines)
    hyphens = Hyphens(plain(line.text) for line in lines if not line.table)
    read = [
        piece
        for found in headings.group_lines(lines, body)
        if not is_scale(piece := headings.join_lines(found, hyphens))
    ]
    pieces = headings.mark_front_parts(read, body)
    title, opens = headings.find_title(pieces, body)
    whole = list(_rejoin(headings.assign_levels(pieces, title, opens, body), body, hyphens))
    return replace(_assemble(whole, page_count, opens is not None), authors=headings.read_authors(pieces, title, opens))


def is_scale(piece: Piece) -> bool:
    """Whether a text is the scale of a figure's axis: numbers, and at most single letters."""
    rest = [word for word in piece.text.split() if not _NUMBER.fullmatch(word)]
    several = len(piece.text.split()) - len(rest) > 1
    return several and not (piece.table or piece.code) and all(len(word) == 1 and word.isalpha() for word in rest)


def _rejoin(pieces: Sequence[Piece], body: float, hyphens: Hyphens) -> Iterator[Piece]:
    """Rejoin paragraphs split by a column or page break.

    Pieces between the parts are placed before the paragraph if they are on the page where it began, else after it, so
    that the pages stay in order.
    """
    begun: Piece | None = None
    behind: list[Piece] = []
    for piece in pieces:
        if begun is not None and _is_prose(begun, body) and len(begun.text) >= 40 and not ENDS.search(begun.text):
            if _is_aside(piece, body):
                if piece.page == begun.page:
                    yield piece
                else:
                    behind.append(piece)
                continue
            goes_on = piece.text[:1].islower() or piece.text[:1].isdigit() or piece.text[:1] in '([“"'
            if goes_on and _is_prose(piece, body) and all(piece.page == between.page for between in behind):
                text = hyphens.join(begun.text, piece.text)
                breaks = (len(text) - len(piece.text),) * (piece.page - begun.page - len(begun.breaks))
                begun = replace(begun, text=text, breaks=begun.breaks + breaks)
                continue
        if begun is not None:
            yield begun
        yield from behind
        begun, behind = piece, []
    if begun is not None:
        yield begun
    yield from behind


def _is_prose(piece: Piece, body: float) -> bool:
    return not (piece.level or piece.table or piece.code or _is_aside(piece, body))


def _is_aside(piece: Piece, body: float) -> bool:
    if piece.level or piece.table or piece.code:
        return False
    return piece.size < SMALLER * body or CAPTION.match(piece.text) is not None


def _assemble(pieces: Sequence[Piece], page_count: int, opens_with_names: bool) -> PdfText:
    text = ""
    starts: list[int] = []
    titles: list[tuple[str, int, int, int]] = []
    blocks: list[Span] = []
    title = ""
    for piece in pieces:
        if not piece.text:
            continue
        text += "\n\n" if text else ""
        start = len(text)
        starts += [start] * (piece.page + 1 - len(starts))
        if piece.level:
            text += "#" * piece.level + " "
        begins = len(text)
        text += piece.text
        starts += [begins + offset for offset in piece.breaks[len(starts) - piece.page - 1 :]]
        if piece.level:
            title = piece.text if piece.level == 1 else title
            titles.append((piece.text, piece.level, start, len(text)))
        else:
            kind: BlockKind = "table" if piece.table else "code" if piece.code else "prose"
            blocks.append((kind, start, len(text)))
    starts += [len(text)] * (page_count - len(starts))
    return PdfText(text, titles, blocks, starts, title, "largest line of the first page", opens_with_names)


def to_parsed_paper(read: PdfText) -> ParsedPaper:
    """Build the sections and blocks of a PDF; names and addresses before the abstract are not searchable."""
    front = FrontMatter(title=read.title, authors=read.authors, year=read.year, doi=read.doi)
    titles = [Heading(*heading) for heading in read.headings]
    has_title = bool(titles) and titles[0].level == 1
    paper = assemble(read.text, read.title, front, titles, list(read.blocks), has_title_heading=has_title)
    sections = paper.sections
    if read.opens_with_names and len(sections) > 1:
        sections = (replace(sections[0], searchable=False), *sections[1:])
    return replace(
        paper,
        sections=sections,
        page_starts=tuple(read.pages),
        title_source=read.title_source,
        ocr_pages=read.ocr_pages,
        warnings=tuple(f"OCR could not read page {number}: it {reason}" for number, reason in read.ocr_failed),
    )
