"""Makes LaTeX printable: characters missing from its usual fonts become commands, and an engine makes the PDF.

Latin Modern has no ≤ or α outside formulas: xelatex leaves them out without an error, and pdflatex stops. pandoc knows
commands for the mathematical ones. The others are set in a font that has them, if one is installed; pdflatex prints
their names.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from ...documents.pandoc import pandoc
from ...documents.sandbox import OutOfTimeError, run
from ...text.sentences import replace_spans
from .section_files import ExportError

_LAST_LATIN: Final = 0x24F
_VIETNAMESE: Final = range(0x1E00, 0x1F00)
# In T1, TS1 and Latin Modern, besides the blanks and marks that pandoc writes as commands.
_IN_FONTS: Final = frozenset("–—‘’‚“”„•…†‡‰‹›⁄€℗№™←↑→↓")
_LEFT_AS_IT_IS = re.compile(
    r"\\begin\{(?P<name>verbatim|Highlighting)\}.*?(?:\\end\{(?P=name)\}|\Z)"
    r"|\\(?:url|href|nolinkurl|includegraphics|[a-z]*cite[a-z]*|label|ref|hyperlink|hypertarget|bibliography)"
    r"(?:\[[^\[\]]*\])*\{[^{}]*\}",
    re.DOTALL,
)
_FORMULA = re.compile(r"\\\(((?:(?!\\\().)*?)\\\)", re.DOTALL)
_OWN: Final = {
    **{"√": r"\surd", "″": r"\prime\prime", "‴": r"\prime\prime\prime"},
    **{sign: sign for sign in "∙∛★"},  # shown as other characters, or missing
}
_FONTS: Final = ("DejaVu Sans", "FreeSerif", "Segoe UI Symbol", "Arial Unicode MS")
_FONT_COMMAND: Final = r"\symbolfont"


def with_printable_characters(latex: str, bibliography: str) -> str:
    """Rewrite LaTeX and its `.bib` so that the PDF loses no character; blocks, raises `PandocError`."""
    head, begin, body = latex.partition("\\begin{document}")
    commands = _commands(
        frozenset(
            sign
            for sign in set(body) | set(bibliography)
            if not (ord(sign) <= _LAST_LATIN or ord(sign) in _VIETNAMESE or sign in _IN_FONTS or sign.isspace())
            and unicodedata.category(sign) not in ("Mn", "Cf", "Co", "Cn", "Cs", "Cc")
        )
    )
    if not commands:
        return latex
    special = re.compile("[" + "".join(map(re.escape, commands)) + "]")
    left = ((*match.span(), match[0]) for match in _LEFT_AS_IT_IS.finditer(body))
    printable = replace_spans(body, left, lambda words: special.sub(lambda match: commands[match[0]], words))
    cited = {sign: command for sign, command in commands.items() if sign in bibliography}
    return f"{head}{_definitions(commands, cited)}{begin}{printable}"


@lru_cache(maxsize=64)
def _commands(signs: frozenset[str]) -> dict[str, str]:
    if not signs:
        return {}
    ordered = sorted(signs)
    html = "".join(f"<p><math><mi>{sign}</mi></math></p>" for sign in ordered)
    written = pandoc(["--from", "html", "--to", "latex", "--wrap=none", "signs.html"], {"signs.html": html}).decode()
    commands: dict[str, str] = {}
    for sign, formula in zip(ordered, _FORMULA.findall(written), strict=True):
        form, _, parts = unicodedata.decomposition(sign).partition(" ")
        plain = "".join(chr(int(part, 16)) for part in parts.split()) if form.startswith("<") else ""
        formula = _OWN.get(sign, formula)
        commands[sign] = rf"\ensuremath{{{formula}}}" if formula.isascii() else f"{{{_FONT_COMMAND} {sign}}}"
        if form in ("<super>", "<sub>") and plain:
            ascii = plain.replace("\u2212", r"\ensuremath{-}")
            commands[sign] = rf"\text{form[1:-1]}script{{{ascii}}}"
        elif form == "<fraction>":
            over, _, under = plain.partition("\u2044")
            commands[sign] = rf"\textsuperscript{{{over}}}\textfractionsolidus\textsubscript{{{under}}}"
    return commands


def _definitions(commands: dict[str, str], cited: dict[str, str]) -> str:
    """Definitions for the preamble: a font for characters without a command, and the characters of the `.bib`."""
    lines = [r"\tracinglostchars=2 % a character that no font has is named on the terminal"]
    if any(_FONT_COMMAND in command for command in commands.values()):
        choice = rf"\let{_FONT_COMMAND}\relax"
        for font in reversed(_FONTS):
            choice = rf"\IfFontExistsTF{{{font}}}{{\newfontfamily{_FONT_COMMAND}{{{font}}}}}{{{choice}}}"
        lines.append(rf"\ifPDFTeX\let{_FONT_COMMAND}\relax\else{choice}\fi")
    # pdflatex cannot use these fonts: it prints the name of the character.
    named = [sign for sign, command in sorted(commands.items()) if _FONT_COMMAND in command]
    for sign in named:
        name = unicodedata.name(sign, f"U+{ord(sign):04X}").lower()
        lines.append(rf"\ifPDFTeX\DeclareUnicodeCharacter{{{ord(sign):04X}}}{{[{name}]}}\fi")
    for sign, command in sorted(cited.items()):
        code = f"{ord(sign):04X}"
        if _FONT_COMMAND in command:
            command = rf'{{{_FONT_COMMAND}\char"{code} }}'  # by code, since the character itself is redefined
        active = rf'\begingroup\lccode`\~="{code}\lowercase{{\endgroup\protected\def~}}{{{command}}}\catcode"{code}=13'
        declared = "" if sign in named else rf"\DeclareUnicodeCharacter{{{code}}}{{{command}}}"
        lines.append(rf"\ifPDFTeX{declared}\else{active}\fi")
    return "\n".join([*lines, ""])


_ENGINES: Final = ("xelatex", "tectonic", "lualatex")
_PDF_SECONDS: Final = 180.0
_RUNS: Final = 2  # the second knows the labels of the first
# Whatever the text contains, the engine reads nothing above its own folder and starts no program.
_LIMITS: Final = {"openin_any": "p", "openout_any": "p", "shell_escape": "f", "max_print_line": "1000"}
_PASSED_ON: Final = ("HOME", "PATH", "LANG", "TMPDIR", "TEXMFHOME", "TEXMFVAR", "XDG_CACHE_HOME", "SYSTEMROOT")
_ERROR = re.compile(r"(?m)^(?:! |error: )(.+)$")


def find_engine() -> str:
    """The path of the installed LaTeX engine; empty if there is none."""
    return next((path for name in _ENGINES if (path := shutil.which(name))), "")


def make_pdf(latex: bytes, images: Mapping[str, bytes]) -> bytes:
    """The PDF of a LaTeX document with its images by file name; blocks. Raises `ExportError`."""
    engine = find_engine()
    if not engine:
        raise ExportError(
            "The pdf file could not be made: no xelatex, lualatex or tectonic is installed.",
            help="Install one (on Debian: texlive-xetex and texlive-fonts-recommended), or use --format tex or zip.",
        )
    with tempfile.TemporaryDirectory(prefix="citeloom-") as name:
        folder = Path(name)
        for file, image in images.items():
            (folder / file).write_bytes(image)
        source = folder / "text.tex"
        source.write_bytes(latex)
        tectonic = Path(engine).name == "tectonic"
        options = ["--outdir", str(folder)] if tectonic else ["-interaction=nonstopmode", f"-output-directory={folder}"]
        env = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        env |= {**_LIMITS, "TEXINPUTS": f"{folder}{os.pathsep}", "TEXMFOUTPUT": str(folder)}
        said = ""
        try:
            for _ in range(1 if tectonic else _RUNS):
                ended = run([engine, *options, str(source)], seconds=_PDF_SECONDS, env=env)
                said = ended.output.decode("utf-8", "replace") + ended.errors
        except OutOfTimeError:
            raise ExportError(f"The pdf file could not be made within {_PDF_SECONDS:g} seconds.") from None
        except OSError as error:
            raise ExportError(f"The pdf file could not be made ({error}).") from error
        made = folder / "text.pdf"
        if not made.is_file():
            reason = _ERROR.search(said)
            raise ExportError(f"The pdf file could not be made ({reason[1] if reason else 'no output'}).")
        return made.read_bytes()
