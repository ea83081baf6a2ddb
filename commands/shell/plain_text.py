"""Decides which lines without a command are sent as questions, since an answer may cost money."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from .shell import Shell
from .state import NotNowError

if TYPE_CHECKING:
    from ...stores.library import Library

_MOST_WORDS: Final = 2  # longer lines are questions, whatever they say and in whichever language
_ASKING: Final = frozenset("what which who whom whose when where why how is are was were does do did can could".split())
_WORD = re.compile(r"[^\W_]+")


async def require_question(shell: Shell, text: str) -> None:
    """Raise `NotNowError` for a line of one or two words of which one occurs nowhere in the library.

    A line with a question mark or a question word is a question, and so is one that `ask` begins.
    """
    words = text.split()
    if len(words) > _MOST_WORDS or not text.isascii() or "?" in text or words[0].casefold() in _ASKING:
        return
    session = await shell.session()
    unknown = await asyncio.to_thread(_unknown_words, session.library, words)
    if unknown:
        named = " and ".join(f"'{word}'" for word in unknown)
        verb = "occurs" if len(unknown) == 1 else "occur"
        raise NotNowError(
            f"'{text}' is neither a command nor a question: {named} {verb} nowhere in the library.",
            help=f"'ask {text}' asks it anyway; 'help' lists the commands.",
        )


def _unknown_words(library: Library, words: list[str]) -> list[str]:
    """Those of the words that are in no passage, title, author, year or key."""
    from ...stores.search_records import FullTextError

    terms = {word: library.terms(word) for word in words}
    try:
        rarity = library.fulltext.rarity([term for found in terms.values() for term in found])
    except FullTextError:
        return []  # the search says what is wrong with the index
    missing = [word for word, found in terms.items() if found and all(rarity[term] == 1.0 for term in found)]
    if not missing:
        return []
    known: set[str] = set()
    for paper in library.papers():
        metadata = f"{paper.key} {paper.title} {paper.venue} {paper.year} {' '.join(paper.authors)}".casefold()
        known.update(_WORD.findall(metadata), [paper.key.casefold()])
    return [word for word in missing if not known.intersection([word.casefold(), *_WORD.findall(word.casefold())])]
