"""Brackets in words of a user or a paper that would read as an evidence marker, kept from being read as one.

Drafts cite by `[E3]`. Where an experiment, a note or a quoted paper says "[E1]" or "estradiol (E2)" itself, its
brackets are replaced by stand-ins until the text is rendered, character for character, so that every position holds.
No model can write a stand-in: they are taken out of what a server answers (`models/http/response_validation.py`).
"""

from __future__ import annotations

import re
from typing import Final

# All that folding takes for a bracket (`citations/checks/unicode_folding.py`), and the signs of "&#91;".
_OPENING: Final = "[({\u3010\u3014\u3016\u301a\u27e6\u2772\u2045\u298b\u27ec\u2768\u276a\u27ee\u2985\uff3b\uff08&"
_CLOSING: Final = "])}\u3011\u3015\u3017\u301b\u27e7\u2773\u2046\u298c\u27ed\u2769\u276b\u27ef\u2986\uff3d\uff09;"
_FIRST: Final = 0xE100  # of the private use area
_STAND_INS: Final = {ord(sign): _FIRST + place for place, sign in enumerate(_OPENING + _CLOSING)}
_WRITTEN: Final = {stand_in: sign for sign, stand_in in _STAND_INS.items()}
_REMOVED: Final = dict.fromkeys(_WRITTEN)

_IN: Final = re.escape(_OPENING + _CLOSING)
_E: Final = "Ee\u0415\u0435\u0395\u03b5\uff25\uff45"
_DRESS: Final = rf"(?:<[^<>{_IN}]{{0,40}}>|[^{_IN}\w]|_){{0,8}}"
# A group without brackets inside in which an E stands before a number, however it is dressed.
_GROUP: Final = re.compile(
    rf"[{re.escape(_OPENING)}](?=[^{_IN}]{{0,200}}[{re.escape(_CLOSING)}])"
    rf"[^{_IN}]*?(?<![^\W\d_])[{_E}]{_DRESS}\d[^{_IN}]*[{re.escape(_CLOSING)}]"
)
_ENTITY: Final = re.compile(r"&(?=#?\w{1,32};)")
_DEEPEST: Final = 8


def as_text(words: str) -> str:
    """The words with stand-ins for the brackets of what reads as a marker; as long as they were."""
    words = _ENTITY.sub(chr(_STAND_INS[ord("&")]), words)
    for _ in range(_DEEPEST):
        marked = _GROUP.sub(lambda match: match[0].translate(_STAND_INS), words)
        if marked == words:
            break
        words = marked
    return words


def as_written(text: str) -> str:
    """The text with the brackets that its stand-ins are for; as long as it was."""
    return text.translate(_WRITTEN)


def without_stand_ins(text: str) -> str:
    """The text of a stranger, who has no stand-ins to write."""
    return text.translate(_REMOVED)
