"""Reads the images of a paper's figures in a subprocess, so that a hostile one can neither hang nor crash an ingest."""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ..documents.figure_search import FoundFigure
from ..documents.figures import PaperFigure, image_hash, image_type
from ..documents.image_extraction import WantedFigure, is_remote
from ..documents.sandbox import OutOfTimeError, run

SECONDS: Final = 90.0
_EXTRACTOR: Final = "citeloom.documents.image_extraction"


@dataclass(frozen=True, slots=True)
class ReadFigures:
    """The figures of a paper with what is known of their images, and the images by hash."""

    figures: tuple[PaperFigure, ...] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)


def read_figures(
    file: Path | None, text: str, found: Sequence[FoundFigure], *, seconds: float = SECONDS
) -> ReadFigures:
    """The figures found in a paper's `text` with their images, read from its file if there is one.

    Figures without an image say why. Never raises for what a file holds.
    """
    wanted = [_wanted(each, text) for each in found if _may_have_image(file, each)] if file else []
    answers = _extracted(file, wanted, seconds) if file and wanted else {}
    images: dict[str, bytes] = {}
    figures: list[PaperFigure] = []
    for each in found:
        answer = answers.get(str(each.figure.number), {})
        content = _content(answer)
        if content is None:
            figures.append(replace(each.figure, no_image=str(answer.get("refused") or _reason(each))))
            continue
        images[image_hash(content)] = content
        width, height = int(answer["width"]), int(answer["height"])
        kind = image_type(content)
        named = replace(each.figure, image_hash=image_hash(content), media_type=kind, width=width, height=height)
        figures.append(named)
    return ReadFigures(tuple(figures), images)


def _may_have_image(file: Path, found: FoundFigure) -> bool:
    if file.suffix.lower() == ".pdf":
        return found.figure.start is not None
    return bool(found.address) and not is_remote(found.address)


def _reason(found: FoundFigure) -> str:
    return "is on the network, from where nothing is fetched" if found.address and is_remote(found.address) else ""


def _wanted(found: FoundFigure, text: str) -> WantedFigure:
    figure = found.figure
    words = text[figure.start : figure.end] if figure.start is not None else ""
    return WantedFigure(figure.number, figure.kind, figure.page, words, found.address)


def _content(answer: Mapping[str, Any]) -> bytes | None:
    """The image in an answer; None if there is none, or it is not of a type that is stored."""
    try:
        content = base64.b64decode(answer["content"], validate=True)
        return content if image_type(content) and int(answer["width"]) and int(answer["height"]) else None
    except (KeyError, ValueError, TypeError):
        return None


def _extracted(file: Path, wanted: Sequence[WantedFigure], seconds: float) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="citeloom-figures-") as folder:
        job = Path(folder) / "job.json"
        job.write_text(json.dumps([asdict(each) for each in wanted]), encoding="utf-8")
        # -P: a json.py in the current folder must not be imported.
        command = [sys.executable, "-P", "-m", _EXTRACTOR, str(file.resolve()), str(job)]
        try:
            done = run(command, seconds=seconds)
            return dict(json.loads(done.output))
        except OutOfTimeError:
            reason = f"the images of the paper were not read within {seconds:g} seconds"
        except ValueError:
            reason = f"its file made the image reader fail (exit code {done.code})"
    return {str(each.number): {"refused": reason} for each in wanted}
