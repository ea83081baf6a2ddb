"""Settings in force and the state of a library, for `doctor` and the server."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..documents.pdf.ocr import find_ocr, tesseract_version
from ..errors import InputError
from ..ingestion.doctor import DoctorFinding, examine
from ..runs.publication_notices import retraction_problems
from ..settings.config import Settings
from ..settings.key_trust import shown_address
from ..settings.service_settings import MetadataSettings
from ..stores.library import Library


def settings_in_force(settings: Settings) -> dict[str, tuple[str, str]]:
    """Every setting with its value and origin; keys are only shown to be set, and what is empty as "not set"."""
    shown: dict[str, tuple[str, str]] = {}
    # Those of the metadata services last, as they are documented.
    for name in sorted(type(settings).model_fields, key=lambda name: name in MetadataSettings.model_fields):
        value = getattr(settings, name)
        if name.endswith("_api_key"):
            value = "set" if value else "not set"
        elif name.endswith("_base_url") and value is not None:
            value = shown_address(value)
        shown[name] = ("not set" if value in (None, "", {}) else str(value), settings.origin(name))
    return shown


def library_counts(library: Library) -> dict[str, Any]:
    """Papers, chunks, embedding and version of a library; blocks."""
    return {
        "papers": len(library.papers()),
        "chunks": library.chunk_count(),
        "embedding": library.embedding.name,
        "version": library.version(),
    }


def findings(library: Library, settings: Settings) -> list[dict[str, Any]]:
    """What is fine with a library, its papers and OCR, and what is not; changes nothing. Blocks."""
    retracted = retraction_problems(library.home, library, allowed=settings.cite_retracted)
    return [asdict(finding) for finding in [*examine(library), *retracted, _ocr(settings)]]


def _ocr(settings: Settings) -> DoctorFinding:
    """Whether scanned pages can be read; where OCR is off, it may be missing."""
    try:
        found = find_ocr(settings.ocr_languages)
        version = tesseract_version(found.program)
    except InputError as error:
        if settings.ocr == "off":
            return DoctorFinding("fine", "OCR", f"off, and not available ({error.message.rstrip('.')})")
        return DoctorFinding("problem", "OCR", error.message.rstrip("."), error.help)
    state = "on" if settings.ocr == "auto" else "off unless 'ingest --ocr' or CITELOOM_OCR=auto asks for it"
    return DoctorFinding("fine", "OCR", f"{version} with {found.languages}; {state}")
