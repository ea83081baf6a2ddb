"""Output of the shell: panels and tables on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..output import notice, result
from ..run_report import show_markdown
from ..terminal_text import one_line, printable, terminal_width, wrap

_SIGNS = {"🔍": "", "📚": "", "✍️ ": "", "❌": "Error:", "⚠️ ": "Note:", "💾": "", "✅": "", "💡": "", "⏸️ ": "", "📝": ""}


def sign(emoji: str) -> str:
    """The emoji if the output can show it, else its text form, followed by a space."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    mark = emoji if encoding.startswith("utf") else _SIGNS[emoji]
    return f"{mark} " if mark else ""


def stage(emoji: str, text: str) -> None:
    """Print a starting stage."""
    notice(f"{sign(emoji)}{text}")


def failure(text: str) -> None:
    """Print an error in one line."""
    notice(f"{sign('❌')}{text}")


def warning(text: str) -> None:
    """Print a warning about a result."""
    notice(f"{sign('⚠️ ')}{text}")


def panel(title: str, markdown: str) -> None:
    """Print a result: framed markdown on a terminal, plain elsewhere."""
    show_markdown(f"{markdown.strip()}\n", title=f"{sign('📝')}{title}")


def listing(title: str, items: Iterable[tuple[int, str, str]]) -> None:
    """Print numbered papers: number and head, details below."""
    result(one_line(title))
    for number, head, below in items:
        if not sys.stdout.isatty():
            result("\n     ".join([f"{number:3}. {one_line(head)}", *below.splitlines()]))
            continue
        width = terminal_width(sys.stdout)
        lines = [one_line(head), *(printable(line) for line in below.splitlines())]
        indented = wrap("\n".join(f"     {line}" for line in lines), width)
        result(f"{number:3}. {indented.lstrip()}")
    sys.stdout.flush()


def next_steps(steps: Sequence[str]) -> None:
    """Print suggested next steps; on a terminal only."""
    if sys.stdout.isatty():
        result("\n".join([f"{sign('💡')}Next steps:", *(f"• {step}" for step in steps)]))


def paper_head(paper: Mapping[str, Any]) -> str:
    """A paper on one line: key, title, authors, year."""
    authors = paper["authors"]
    by = "" if not authors else authors[0] if len(authors) == 1 else f"{authors[0]} et al."
    source = ", ".join(part for part in (by, str(paper["year"] or "")) if part)
    return f"{paper['key']} - {' '.join(paper['title'].split())}{f' ({source})' if source else ''}"
