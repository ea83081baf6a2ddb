"""Decides which lines without a command are sent as questions, since an answer may cost money."""

from __future__ import annotations

from typing import Final

from .shell import Shell
from .state import NotNowError

_MOST_WORDS: Final = 2  # longer lines are questions, whatever they say and in whichever language
_ASKING: Final = frozenset("what which who whom whose when where why how is are was were does do did can could".split())


async def require_question(shell: Shell, text: str) -> None:
    """Raise `NotNowError` for a line of one or two words of which one occurs nowhere in the library.

    A line with a question mark or a question word is a question, and so is one that `ask` begins.
    """
    words = text.split()
    if len(words) > _MOST_WORDS or not text.isascii() or "?" in text or words[0].casefold() in _ASKING:
        return
    from ...api.library_search import aunknown_words

    unknown = await aunknown_words(await shell.session(), words)
    if unknown:
        named = " and ".join(f"'{word}'" for word in unknown)
        verb = "occurs" if len(unknown) == 1 else "occur"
        raise NotNowError(
            f"'{text}' is neither a command nor a question: {named} {verb} nowhere in the library.",
            help=f"'ask {text}' asks it anyway; 'help' lists the commands.",
        )
