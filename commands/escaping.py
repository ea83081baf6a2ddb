"""Escapes control and bidirectional characters in untrusted text for the terminal."""

from __future__ import annotations

import json
import re

# Control characters but for tab and line feed, half characters, and what turns the direction of writing.
_OBEYED = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_TEXT = re.compile(f"[{_OBEYED}]")
# In a name nothing may be unseen, nor begin a line that looks like one of ours.
_IN_NAME = re.compile(f"[{_OBEYED}\t\n\u00ad\u200b\ufeff]")


def shown(text: str) -> str:
    """Text of papers and models with line breaks kept and control characters escaped (`\\u202e`)."""
    return _IN_TEXT.sub(_escape, text)


def one_line(text: str) -> str:
    """A name (of a file, key, title, model, home) or a message, on one line: `\\n` for a line break."""
    return _IN_NAME.sub(_escape, text)


def json_text(record: object) -> str:
    """A record as JSON that is safe on a terminal and parses back to the same strings."""
    written = json.dumps(record, ensure_ascii=False, indent=2)
    return _IN_TEXT.sub(lambda match: json.dumps(match[0])[1:-1], written)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
