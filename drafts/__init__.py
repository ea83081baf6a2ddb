"""Processes a written draft: judges and repairs sentences, finishes the text and builds its record."""
