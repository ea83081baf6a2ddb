"""PDF files as the text of a paper, with headings, tables and the page of every character.

`python -m citeloom.documents.pdf FILE` prints it as one JSON object; a damaged file can hang or end the parser,
so nothing else of Citeloom runs in that process (`stores/pdf_process.py` starts and watches it).
"""

from citeloom.documents.pdf.reading import PdfRefusedError, read_pdf
from citeloom.documents.pdf.structure import PdfText

__all__ = ["PdfRefusedError", "PdfText", "read_pdf"]
