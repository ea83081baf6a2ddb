"""Finds the plots of an experiment: images in the folder of its `exp.json`, and nowhere else.

Paths are untrusted input: they must not lead out of that folder, and a file is only included in a document if its first
bytes are those of an image.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...documents.marker_escaping import unescape
from ...documents.safe_files import FileRefusedError, read_regular
from ...experiment import PLOT_FILE, Experiment, Plot
from ..markers import SpanSet, quoted_spans

MOST_BYTES: Final = 20_000_000
_BITMAP: Final = frozenset({"md", "html", "tex", "docx", "odt"})


# Image types by suffix: how they begin, their media type, and the result formats that can show them.
_KINDS: Final[Mapping[str, tuple[re.Pattern[bytes], str, frozenset[str]]]] = {
    ".png": (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png", _BITMAP),
    **dict.fromkeys((".jpg", ".jpeg"), (re.compile(rb"\xff\xd8\xff"), "image/jpeg", _BITMAP)),
    ".svg": (
        re.compile(
            rb"\A(?:\xef\xbb\xbf)?\s*+(?:(?><\?xml[^>]*+>|<!--(?s:.{0,4000}?)-->"
            rb"|<!DOCTYPE svg\b[^>\[]*+(?:\[[^\]]*+\]\s*+)?>)\s*+){0,8}+<svg\b"
        ),
        "image/svg+xml",
        frozenset({"md", "html"}),
    ),
    ".pdf": (re.compile(rb"%PDF-"), "application/pdf", frozenset({"tex"})),
    ".webp": (re.compile(rb"RIFF(?s:.{4})WEBP"), "image/webp", frozenset({"md", "html"})),
}
_REFERENCE: Final = ("\ue200", "\ue201")  # around the number of a mentioned figure, until it is made a reference
_MEANING: Final = re.compile(r"[\\`*_\[\]<>@!#&$^~|]")


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot mentioned in a text; `file` is its name next to the text, `path` the path of its image."""

    number: int
    caption: str
    path: str
    file: str


def with_plot_files(
    experiment: Experiment,
    folder: Path,
    file_of: Callable[[str], str] = lambda written: written,
    reference: Callable[[Path], str] = str,
) -> Experiment:
    """The experiment with image paths added to the plots whose image is in `folder`; blocks.

    `file_of` maps a plot's path to a file in the folder, by default the path itself. `reference` gives the name of an
    image in the experiment.
    """
    plots: list[Plot] = []
    for plot in map(_without_file, experiment.plots):
        path, written = None, file_of(plot.path)
        with suppress(OSError, ValueError, RuntimeError):
            root = folder.resolve()
            path = (root / written).resolve()  # after links, it must still lie in the folder
        shown = path and written and path.is_relative_to(root) and path.suffix.lower() in _KINDS and _image(path)
        plots.append(Plot.model_validate({**plot.model_dump(), PLOT_FILE: reference(path)}) if path and shown else plot)
    return experiment.model_copy(update={"plots": plots})


def without_plot_files(experiment: Experiment) -> Experiment:
    """Remove images from all plots, for a user who may not refer to files on this machine."""
    return experiment.model_copy(update={"plots": [_without_file(plot) for plot in experiment.plots]})


def figures_in(text: str, experiment: Experiment, stem: str, *, every: bool = False) -> list[Figure]:
    """The plots that a text mentions by number, or `every` plot, with file names derived from `stem`."""
    figures = []
    for number, plot in experiment.figures():
        path = str((plot.model_extra or {})[PLOT_FILE])
        if every or find_mentions(number, text):
            file = f"{stem}.figure-{number}{Path(path).suffix.lower()}"
            figures.append(Figure(number, " ".join(plot.caption.split()), path, file))
    return figures


def find_mentions(number: int | str, text: str, name: str = r"[Ff]ig(?:ure|\.)?") -> list[re.Match[str]]:
    """Find where a text mentions a figure, or something else called `name` (a pattern), outside quotations of papers.

    `number` is the figure's number, or a pattern of numbers.
    """
    quoted = SpanSet(quoted_spans(text))
    found = re.finditer(rf"\b{name}\s*(?P<number>{number})\b", text)
    return [match for match in found if not quoted.holds(match.start())]


def with_figures(
    manuscript: str, figures: Sequence[Mapping[str, Any]], target: str, images: Mapping[str, bytes] | None
) -> str:
    """Insert each figure after its first mention or at the end; LaTeX, Word and LibreOffice link the mentions."""
    paragraphs = manuscript.split("\n\n")
    behind: dict[int, list[str]] = {}
    for figure in figures:
        number = figure["number"]
        mentioned = [place for place, words in enumerate(paragraphs) if find_mentions(number, words)]
        place = mentioned[0] if mentioned else len(paragraphs) - 1
        shown = figure_lines([figure], target, images)
        if _shows(target, figure["file"]):  # an image with its caption as pandoc reads it; LaTeX numbers it itself
            caption, title, address = _caption(figure, images)
            shown = f"![{(caption if target == 'tex' else title) or NO_CAPTION}]({address})"
        behind.setdefault(place, []).append(shown)
        if target in ("tex", "docx", "odt") and _shows(target, figure["file"]):
            for index in mentioned:
                for match in reversed(find_mentions(number, paragraphs[index])):
                    before, after = paragraphs[index][: match.start("number")], paragraphs[index][match.end() :]
                    paragraphs[index] = f"{before.rstrip()}{_REFERENCE[0]}{number}{_REFERENCE[1]}{after}"
    return "\n\n".join(part for place, words in enumerate(paragraphs) for part in (words, *behind.get(place, ())))


def as_references(latex: str, figures: Sequence[Mapping[str, Any]]) -> str:
    """Add labels and original numbers to the figures in LaTeX, and turn mentions into references."""
    for figure in figures:
        number, file = figure["number"], re.escape(figure["file"])
        environment = rf"\\begin\{{figure\}}(?P<body>(?:(?!\\end\{{figure\}}).)*?\{{{file}\}}.*?)\\end\{{figure\}}"
        before = rf"\\setcounter{{figure}}{{{number - 1}}}\n\\begin{{figure}}"
        labelled = rf"{before}\g<body>\\label{{fig:{number}}}\n\\end{{figure}}"
        latex = re.sub(environment, labelled, latex, count=1, flags=re.DOTALL)
    return re.sub(rf"(?<!\s)\s*+{_REFERENCE[0]}(\d+){_REFERENCE[1]}", r"~\\ref{fig:\1}", latex)


# Without any text pandoc makes no figure, and a mention would refer to a missing label.
NO_CAPTION: Final = "\\ "


def _caption(figure: Mapping[str, Any], images: Mapping[str, bytes] | None) -> tuple[str, str, str]:
    file = figure["file"]
    caption = _MEANING.sub(r"\\\g<0>", unescape(figure["caption"]))
    title = f"Figure {figure['number']}. {caption}".rstrip(". ") + "."
    if images is None:
        return caption, title, file
    data = base64.b64encode(images[file]).decode()
    return caption, title, f"data:{_KINDS[Path(file).suffix][1]};base64,{data}"


def figure_lines(
    figures: Sequence[Mapping[str, Any]], target: str = "md", images: Mapping[str, bytes] | None = None
) -> str:
    """The figures as markdown; with `images`, embedded. A caption names the file if its type cannot be shown."""
    blocks = []
    for figure in figures:
        shows = _shows(target, figure["file"])
        _, title, address = _caption(figure, images if shows else None)
        image = f"![Figure {figure['number']}]({address})\n\n{title}"
        blocks.append(image if shows else f"{title} The image is [{address}]({address}).")
    return "\n\n".join(blocks)


def unshown_figures(figures: Sequence[Mapping[str, Any]], name: str, formats: Sequence[str]) -> list[str]:
    """A line for each format of the result `name` that cannot show some figure, naming the image file."""
    return [
        f"{name}.{target} cannot hold {figure_name}: {target} shows no {kind}; the image is {file}."
        for target in formats
        for figure in figures
        for file, figure_name in [(figure["file"], f"Figure {figure['number']}")]
        for kind in [Path(file).suffix[1:]]
        if not _shows(target, file)
    ]


def read_images(figures: Sequence[Mapping[str, Any]], find: Callable[[str], Path] = Path) -> dict[str, bytes]:
    """Read the images, by file name, from where `find` maps their paths; skips missing and invalid ones. Blocks."""
    images = {figure["file"]: _image(find(figure["path"])) for figure in figures}
    return {file: image for file, image in images.items() if image}


def image_problem(name: str, data: bytes) -> str:
    """Why a file with this name and content cannot be shown as an image in a result; empty if it can."""
    kind = _KINDS.get(Path(name).suffix.lower())
    if kind is None:
        return f"is not an image ({', '.join(_KINDS)})"
    if not data:
        return "is empty"
    if len(data) > MOST_BYTES:
        return f"is larger than {MOST_BYTES // 1_000_000} MB"
    return "" if kind[0].match(data) else f"is not the {Path(name).suffix.lower()[1:]} image that its name says"


def image_type(name: str) -> str:
    """The media type of an image by its name; empty if it is not an image."""
    kind = _KINDS.get(Path(name).suffix.lower())
    return kind[1] if kind else ""


def _without_file(plot: Plot) -> Plot:
    return Plot.model_validate({name: value for name, value in plot.model_dump().items() if name != PLOT_FILE})


def _image(path: Path) -> bytes:
    try:
        data = read_regular(path, MOST_BYTES)
    except (OSError, ValueError, FileRefusedError):
        return b""
    return b"" if image_problem(path.name, data) else data


def _shows(target: str, file: str) -> bool:
    return ("tex" if target in ("pdf", "zip") else target) in _KINDS[Path(file).suffix][2]
