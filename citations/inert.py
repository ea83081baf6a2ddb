"""Markdown in which no HTML comes alive: a tag of a model or a source stays the characters it is made of."""

from __future__ import annotations

import re

# A tag, comment, instruction or declaration as CommonMark begins one, and an address in angle brackets, but for those
# of the web. `a<b` is none of these: formulas hold it.
_LIVE = re.compile(r"<(?!https?://[^\s<>]+>)(?=[!?]|/?[A-Za-z][A-Za-z0-9-]*(?:[\s/>:]|\Z)|[A-Za-z][\w.+-]*[:@])")
_SCRIPT = re.compile(r"(?<=\])(?=[(:]\s*<?\s*(?:javascript|vbscript|data):)", re.IGNORECASE)


def inert(markdown: str) -> str:
    """The text for a `.md` file; it reads the same, its `text` in the JSON stays as it was."""
    return _SCRIPT.sub("\\\\", _LIVE.sub("&lt;", markdown))
