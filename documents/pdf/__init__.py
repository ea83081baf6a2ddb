"""Reads PDF files as the text of a paper, with headings, tables and the page of every character.

`python -m citeloom.documents.pdf FILE` prints it as one JSON object; a damaged file can hang or crash the parser, so
nothing else runs in that process (`ingestion/reading.py` starts and monitors it).
"""

from .reader import PdfRefusedError, read_pdf
from .structure import PdfText

__all__ = ["PdfRefusedError", "PdfText", "read_pdf"]
