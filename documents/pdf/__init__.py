"""Reads and draws PDF files: the text of a paper with headings, tables and the page of every character."""
