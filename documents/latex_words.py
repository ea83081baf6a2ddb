"""The words of LaTeX commands that pandoc does not know and would leave out without a word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ..text.words import close_gaps
from .pandoc import pandoc

_MOST: Final = 2_000
_NESTED: Final = 3  # commands within one another
_SHOWN: Final = 200  # characters
_COMMAND: Final = re.compile(r"\\(?P<name>[A-Za-z]{1,60})\*?\s*(?:\[[^\[\]]*\]\s*)*")
_WORD: Final = re.compile(r"[^\W\d_]{2}|\d")
_REMARKS: Final = frozenset("todo note comment marginpar marginnote fixme fxnote fxwarning missingfigure".split())
_FIRST_ARGUMENTS: Final = {"replaced": 1, "deleted": 0}  # of tracked changes, which are taken as accepted
# Commands that stand for no words: those whose arguments are none, and those without, which pandoc takes braces from.
_WITHOUT_WORDS: Final = frozenset(
    """
    addcontentsline addtocounter addtolength begin bibliographystyle boolfalse booltrue captionsetup cellcolor cline
    cmidrule color definecolor end enlargethispage fontsize geometry graphicspath hphantom hspace hypersetup label
    linespread multirow newcolumntype pagebreak pagenumbering pagestyle phantom rowcolor rule selectlanguage setcounter
    setlength setstretch sisetup thispagestyle usetikzlibrary vphantom vspace
    """.split()
)
_LAYOUT: Final = frozenset(
    """
    appendix backmatter baselineskip bigskip bottomrule centering clearpage cleardoublepage columnwidth fill flushbottom
    flushleft flushright FloatBarrier footnotesize frontmatter hfil hfill hline hrule hskip huge Huge itemsep large
    Large LARGE leavevmode linewidth listoffigures listoftables mainmatter makeatletter makeatother maketitle medskip
    midrule newblock newline newpage noindent nolinebreak nonumber nopagebreak normalsize null onehalfspacing onecolumn
    par parindent parskip phantomsection printbibliography protect raggedbottom raggedright relax scriptsize selectfont
    sloppy small smallskip strut tableofcontents textheight textwidth tiny toprule twocolumn vfill vskip xspace
    """.split()
)


def with_words_of_commands(latex: str) -> tuple[str, list[str]]:
    """LaTeX with the words of unknown commands in their place, and a line about each that has no place in the text.

    Remarks such as `\\todo{...}` are none of its text. Blocks; raises `PandocError`.
    """
    preamble, begin, body = latex.rpartition("\\begin{document}")
    notices: dict[str, None] = {}
    for _ in range(_NESTED):
        before = body
        for content in islice(_left_out(f"{preamble}{begin}{body}"), _MOST):
            command = _COMMAND.match(content)
            if command is None or command["name"] in _WITHOUT_WORDS:
                continue
            name, arguments = command["name"], list(_arguments(content[command.end() :]))
            said = [words for words in arguments if _WORD.search(words) and "=" not in words]
            if name in _REMARKS and any(words in body for words in said):
                body = body.replace(f" {content}", "")
                notices[f"A remark, not taken over: {close_gaps(' '.join(said))[:_SHOWN]}"] = None
            elif content in body and (said or name in _FIRST_ARGUMENTS):
                kept = said[: _FIRST_ARGUMENTS.get(name, len(said))]
                body = body.replace(content, " ".join(kept))
            elif name not in _LAYOUT and (content.strip() in body or any(words in body for words in said)):
                notices[f"A command that is not defined, not taken over: {close_gaps(content)[:_SHOWN]}"] = None
        if body == before:
            break
    return f"{preamble}{begin}{body}", list(notices)


def _left_out(latex: str) -> dict[str, None]:
    """The commands that pandoc leaves out, with their arguments."""
    with TemporaryDirectory(prefix="citeloom-") as folder:
        log = Path(folder) / "log.json"
        pandoc(["--from", "latex", "--to", "plain", f"--log={log}", "text"], {"text": latex})
        messages = json.loads(log.read_text("utf-8"))
    return {message["contents"]: None for message in messages if message["type"] == "SkippedContent"}


def _arguments(braces: str) -> Iterator[str]:
    """What stands in each pair of braces."""
    depth, start = 0, 0
    for sign in re.finditer(r"\\.|[{}]", braces, re.DOTALL):
        if sign[0] == "{":
            depth += 1
            start = sign.end() if depth == 1 else start
        elif sign[0] == "}":
            depth -= 1
            if depth == 0:
                yield braces[start : sign.start()]
