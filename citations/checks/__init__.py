"""Checks of a draft: citations, numbers, copied text, prompt injection, repetition."""
