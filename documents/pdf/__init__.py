"""PDF files as the text of a paper, with headings, tables and the page of every character.

`python -m citeloom.documents.pdf FILE` prints it as one JSON object; a damaged file can hang or end the parser,
so nothing else of Citeloom runs in that process (`ingestion/pdf_subprocess.py` starts and watches it).
"""

from .reader import PdfRefusedError, read_pdf
from .structure import PdfText

__all__ = ["PdfRefusedError", "PdfText", "read_pdf"]
