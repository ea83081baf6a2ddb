"""Writes a PDF page from lines of text, each with a size and a grey value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Line:
    """A line of ASCII; `size` in points, `grey` from 0 (black) to 1 (white); one that is not `painted` is invisible."""

    text: str
    size: int = 10
    grey: float = 0
    painted: bool = True


def write_pdf(path: Path, lines: Sequence[Line], drawing: str = "") -> None:
    """Write the page, its first line at the top (at y = 760, each 16 below the one before), over a drawing."""
    letters = "\n".join(
        f"BT /F1 {line.size} Tf {line.grey:g} g {0 if line.painted else 3} Tr 60 {760 - 16 * number} Td "
        f"({_escaped(line.text)}) Tj ET"
        for number, line in enumerate(lines)
    )
    drawn = f"{drawing}\n{letters}".encode("ascii")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    written = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(b"%010d 00000 n \n" % len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, b"".join(places))
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(written))
    path.write_bytes(written + table + trailer)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
