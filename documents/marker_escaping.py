"""Escapes brackets in text of a user or a paper that would read as an evidence marker.

Drafts cite by `[E3]`. If an experiment, a note or a quoted paper contains "[E1]" or "estradiol (E2)" itself, its
brackets are replaced by placeholder characters until rendering, one for one, so that positions stay valid. Models
cannot write these: they are stripped from server responses (`models/http/responses.py`).
"""

from __future__ import annotations

import re
from typing import Final

# Everything that folding treats as a bracket (`citations/checks/unicode_folding.py`), and the characters of "&#91;".
_OPENING: Final = "[({\u3010\u3014\u3016\u301a\u27e6\u2772\u2045\u298b\u27ec\u2768\u276a\u27ee\u2985\uff3b\uff08&"
_CLOSING: Final = "])}\u3011\u3015\u3017\u301b\u27e7\u2773\u2046\u298c\u27ed\u2769\u276b\u27ef\u2986\uff3d\uff09;"
_FIRST: Final = 0xE100  # in the private use area
_STAND_INS: Final = {ord(sign): _FIRST + place for place, sign in enumerate(_OPENING + _CLOSING)}
_WRITTEN: Final = {stand_in: sign for sign, stand_in in _STAND_INS.items()}
_REMOVED: Final = dict.fromkeys(_WRITTEN)

_IN: Final = re.escape(_OPENING + _CLOSING)
_E: Final = "Ee\u0415\u0435\u0395\u03b5\uff25\uff45"
_DRESS: Final = rf"(?:<[^<>{_IN}]{{0,40}}>|[^{_IN}\w]|_){{0,8}}"
# A bracketed group without nested brackets that contains an E before a number, in any decoration.
_GROUP: Final = re.compile(
    rf"[{re.escape(_OPENING)}](?=[^{_IN}]{{0,200}}[{re.escape(_CLOSING)}])"
    rf"[^{_IN}]*?(?<![^\W\d_])[{_E}]{_DRESS}\d[^{_IN}]*[{re.escape(_CLOSING)}]"
)
_ENTITY: Final = re.compile(r"&(?=#?\w{1,32};)")
_DEEPEST: Final = 8


def escape_markers(words: str) -> str:
    """Replace the brackets of apparent markers by placeholders; keeps the length."""
    words = _ENTITY.sub(chr(_STAND_INS[ord("&")]), words)
    for _ in range(_DEEPEST):
        marked = _GROUP.sub(lambda match: match[0].translate(_STAND_INS), words)
        if marked == words:
            break
        words = marked
    return words


def unescape(text: str) -> str:
    """Replace placeholders by the original brackets; keeps the length."""
    return text.translate(_WRITTEN)


def strip_placeholders(text: str) -> str:
    """Remove placeholders from untrusted text."""
    return text.translate(_REMOVED)
