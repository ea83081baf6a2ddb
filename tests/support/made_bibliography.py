"""A `.bib` of a given size, of entries as reference managers export them."""

from __future__ import annotations


def made_bibliography(size: int) -> str:
    """So many characters of entries with abstracts."""
    entry = (
        '@article{{made{n},\n  author = {{Doe, Jane and R{{\\"o}}e, Richard}},\n  title = {{Calibration of network {n}}},\n'
        "  journal = {{Journal of Made Results}},\n  year = {{{year}}},\n  doi = {{10.1000/made.{n}}},\n"
        "  abstract = {{{abstract}}},\n}}\n\n"
    )
    abstract = "We compare single networks with ensembles of five members on new wearers. " * 8
    entries = []
    while size > 0:
        entries.append(entry.format(n=len(entries), year=1990 + len(entries) % 35, abstract=abstract))
        size -= len(entries[-1])
    return "".join(entries)
