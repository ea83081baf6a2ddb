"""Makes a PDF of our LaTeX with the engine that is installed: xelatex, lualatex or tectonic."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...documents.sandbox import OutOfTimeError, run
from .pandoc_formats import ExportError

_ENGINES: Final = ("xelatex", "tectonic", "lualatex")
_SECONDS: Final = 180.0
_RUNS: Final = 2  # the second knows the labels of the first
# Reads nothing above its own folder and starts no program, whatever the text contains.
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
        said = _compile(engine, source)
        made = folder / "text.pdf"
        if not made.is_file():
            reason = _ERROR.search(said)
            raise ExportError(f"The pdf file could not be made ({reason[1] if reason else 'no output'}).")
        return made.read_bytes()


def _compile(engine: str, source: Path) -> str:
    """Run the engine; what it printed."""
    folder = source.parent
    tectonic = Path(engine).name == "tectonic"
    options = ["--outdir", str(folder)] if tectonic else ["-interaction=nonstopmode", f"-output-directory={folder}"]
    env = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
    env |= {**_LIMITS, "TEXINPUTS": f"{folder}{os.pathsep}", "TEXMFOUTPUT": str(folder)}
    said = ""
    try:
        for _ in range(1 if tectonic else _RUNS):
            ended = run([engine, *options, str(source)], seconds=_SECONDS, env=env)
            said = ended.output.decode("utf-8", "replace") + ended.errors
    except OutOfTimeError:
        raise ExportError(f"The pdf file could not be made within {_SECONDS:g} seconds.") from None
    except OSError as error:
        raise ExportError(f"The pdf file could not be made ({error}).") from error
    return said
