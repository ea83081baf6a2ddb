"""Validates a question: one line of words."""

from __future__ import annotations

import unicodedata
from typing import Final

from ...errors import InputError
from ..scope import require_words

MOST_WORDS: Final = 400
_MOST_CHARACTERS: Final = 4000  # also for scripts without spaces between words


class QuestionError(InputError):
    """The question is not valid."""

    default_help = "Ask in a sentence or two."


def plain_question(text: object) -> str:
    """The question on one line with white space folded; raises `QuestionError`.

    A control character is rejected rather than dropped: whoever pasted it should see what is asked.
    """
    if not isinstance(text, str):
        raise QuestionError(f"The question must be text, not {type(text).__name__}.")
    question = " ".join(text.split())
    odd = next((character for character in question if unicodedata.category(character) in ("Cc", "Cs")), None)
    if odd is not None:
        raise QuestionError(f"The question contains the control character U+{ord(odd):04X}.", help="Type it again.")
    require_words(question)
    if len(question.split()) > MOST_WORDS or len(question) > _MOST_CHARACTERS:
        raise QuestionError(
            f"The question has {len(question.split()):,} words; at most {MOST_WORDS} can be asked at once."
        )
    return question
