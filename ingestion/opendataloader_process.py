"""Runs opendataloader-pdf, a Java program, on one PDF; `documents/pdf` turns its output into a paper.

Java is started directly rather than through the package's own function, so that it can be stopped on a timeout and
its memory can be limited.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from ..documents.pdf import PdfRefusedError
from ..documents.subprocesses import OutOfTimeError, run
from ..errors import InputError
from ..program import install_hint

OPENDATALOADER = "opendataloader"
_PACKAGE = "opendataloader-pdf"
_PROGRAM = "opendataloader_pdf/jar/opendataloader-pdf-cli.jar"
_OLDEST_JAVA = 11
_MEMORY = "2g"
_OTHERWISE = "set CITELOOM_PDF_READER=pdf-oxide"


def reader_version() -> str:
    """The installed version of the package; raises `InputError` if it is not installed."""
    try:
        return metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        raise InputError(
            f"CITELOOM_PDF_READER is {OPENDATALOADER}, but the package {_PACKAGE} is not installed.",
            help=f"{install_hint(OPENDATALOADER)}; or {_OTHERWISE}.",
        ) from None


def require_java() -> str:
    """The path of the `java` executable; raises `InputError` if it is missing, does not start, or is too old."""
    remedy = f"Install Java {_OLDEST_JAVA} or newer so that 'java -version' runs; or {_OTHERWISE}."
    java = shutil.which("java")
    if java is None:
        raise InputError(f"CITELOOM_PDF_READER is {OPENDATALOADER}, which needs Java: no 'java' in PATH.", help=remedy)
    try:
        done = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        done = None
    # "17.0.15"; old releases: "1.8.0"
    version = re.search(rb'version "(?:1\.)?(\d+)', done.stderr) if done is not None and done.returncode == 0 else None
    if version is None:
        raise InputError(f"CITELOOM_PDF_READER is {OPENDATALOADER}, but {java} does not start.", help=remedy)
    if int(version.group(1)) < _OLDEST_JAVA:
        raise InputError(
            f"CITELOOM_PDF_READER is {OPENDATALOADER}, but {java} is Java {int(version.group(1))}.", help=remedy
        )
    return java


def read_layout(path: Path, java: str, seconds: float) -> dict[str, Any]:
    """The program's JSON for a PDF; raises `PdfRefusedError` if it fails or takes longer than `seconds`."""
    program = Path(str(metadata.distribution(_PACKAGE).locate_file(_PROGRAM)))
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        options = [f"-Xmx{_MEMORY}", "-Djava.awt.headless=true", f"-Djava.io.tmpdir={folder}"]
        asked = ["--quiet", "--format", "json", "--image-output", "off", "--keep-line-breaks", "--output-dir", folder]
        try:
            done = run([java, *options, "-jar", str(program), *asked, str(path.resolve())], seconds=seconds)
        except OutOfTimeError:
            raise PdfRefusedError(f"was not read by {_PACKAGE} within {seconds:g} seconds") from None
        failed = PdfRefusedError(f"made {_PACKAGE} fail (exit code {done.code}); {_OTHERWISE} to use another reader")
        written = list(Path(folder).glob("*.json"))
        if not written:
            raise failed
        try:
            document = json.loads(written[0].read_bytes())
        except (ValueError, RecursionError):
            raise failed from None
    if not isinstance(document, dict):
        raise failed
    return document
