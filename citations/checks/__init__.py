"""Checks of a draft: citations, numbers, copied text, injection, repetition."""
