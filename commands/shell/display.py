"""Output of the shell: panels and tables on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from ..output import notice, result
from ..run_display import show_markdown

_SIGNS = {"🔍": "", "📚": "", "✍️ ": "", "❌": "Error:", "⚠️ ": "Note:", "💾": "", "✅": "", "💡": "", "⏸️ ": "", "📝": ""}


def sign(emoji: str) -> str:
    """The emoji if the output can show it, else its text form, followed by a space."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    mark = emoji if encoding.startswith("utf") else _SIGNS[emoji]
    return f"{mark} " if mark else ""


def stage(emoji: str, text: str) -> None:
    notice(f"{sign(emoji)}{text}")


failure, warning = partial(stage, "❌"), partial(stage, "⚠️ ")


def panel(title: str, markdown: str) -> None:
    """Print a result: framed markdown on a terminal, plain elsewhere."""
    show_markdown(f"{markdown.strip()}\n", title=f"{sign('📝')}{title}")


def next_steps(steps: Sequence[str]) -> None:
    if sys.stdout.isatty():
        result("\n".join([f"{sign('💡')}Next steps:", *(f"• {step}" for step in steps)]))
