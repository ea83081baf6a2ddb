"""Finds the tesseract that reads pages without text, and the languages that it knows."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Final

from ..documents.pdf.ocr import Ocr
from ..documents.subprocesses import OutOfTimeError, run
from ..errors import InputError
from ..program import install_hint
from ..settings.config import Settings

_SECONDS: Final = 20.0
_PACKAGES: Final = ("pypdfium2", "PIL")
_ORIENTATION: Final = "osd"  # the model that finds out how a page lies
_UPRIGHT, _ANY_WAY_UP = "3", "1"  # tesseract's numbers for its layout analysis without and with that model
_OTHERWISE: Final = "or leave --ocr and CITELOOM_OCR out"


def ocr_of(settings: Settings, *, required: bool = False) -> Ocr | None:
    """The tesseract that the settings ask for; None if OCR is off, or automatic and not installed.

    Raises `InputError` if it is `required` but cannot run, and if it does not know a language.
    """
    if not required and (settings.ocr == "off" or not _is_installed()):
        return None
    return find_ocr(settings.ocr_languages)


def find_ocr(languages: str) -> Ocr:
    """The installed tesseract; raises `InputError` if something that it needs is missing."""
    program = shutil.which("tesseract")
    if program is None:
        raise InputError(
            "OCR needs tesseract: no 'tesseract' in PATH.",
            help=f"Install it (apt install tesseract-ocr, brew install tesseract), {_OTHERWISE}.",
        )
    if not _has_packages():
        raise InputError("OCR needs pypdfium2 and pillow.", help=f"{install_hint('ocr')}.")
    known = _listed(program)
    missing = [name for name in languages.split("+") if name not in known]
    if missing:
        raise InputError(
            f"CITELOOM_OCR_LANGUAGES: tesseract has no language {missing[0]}; it has {', '.join(known) or 'none'}.",
            help=f"Install it (apt install tesseract-ocr-{missing[0].replace('_', '-')}), or name others.",
        )
    return Ocr(str(Path(program).absolute()), languages, _ANY_WAY_UP if _ORIENTATION in known else _UPRIGHT)


def tesseract_version(program: str) -> str:
    """What the program says of itself, such as "tesseract 5.3.0"; raises `InputError` if it does not start."""
    return (_printed(program, "--version").splitlines() or ["tesseract"])[0].strip()


def _is_installed() -> bool:
    return shutil.which("tesseract") is not None and _has_packages()


def _has_packages() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in _PACKAGES)


def _listed(program: str) -> list[str]:
    lines = _printed(program, "--list-langs").splitlines()
    return [line.strip() for line in lines if re.fullmatch(r"[\w/]+", line.strip())]


def _printed(program: str, option: str) -> str:
    try:
        done = run([str(Path(program).absolute()), option], seconds=_SECONDS)
    except (OutOfTimeError, OSError):
        done = None
    if done is None or done.code:
        raise InputError(f"OCR needs tesseract, but {program} does not start.", help=f"Repair it, {_OTHERWISE}.")
    return done.output.decode("utf-8", "replace") or done.errors
