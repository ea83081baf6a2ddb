"""papers figures: lists the figures and tables of a paper, and writes their images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..plurals import counted
from .completion import complete_keys
from .escaping import one_line
from .layout import table
from .library import papers_app
from .options import HomeOption, JsonOption, command_session, resolve
from .output import notice, result, result_json

if TYPE_CHECKING:
    from ..documents.figures import PaperFigure
    from ..stores.library import Library

_LONGEST = 240  # characters of a caption
_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg"}


class ImageNotWrittenError(InputError):
    """An image cannot be written where it should be."""


def register() -> None:
    """Add the command to `papers`."""
    papers_app.command("figures")(paper_figures)


def paper_figures(
    key: Annotated[
        str,
        typer.Argument(
            help="Citation key.",
            autocompletion=complete_keys,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write the images into this folder.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the figures and tables of a paper with label, page and caption.

    A figure without an image says why. Descriptions are a vision model's, not the paper's words.

    Example: citeloom papers figures smith2024quantum --out figures/
    """
    from ..tools.paper_records import load_figure_records

    settings, found = resolve(home)
    with command_session(settings, found, create=False, reading=True) as session:
        records = load_figure_records(session.library, key)
        written = list(_written(session.library, key, out)) if out is not None else []
        read = session.library.records()[key].figures_version
    if as_json:
        result_json([{**record, "file": _file_of(record, written)} for record in records] if out else records)
    elif records:
        _show(records)
    elif read:
        notice(f"{key} has no figures or tables.")
    else:
        notice(f"The figures of {key} were never read: ingest it again.")
    if out is not None and records and not as_json:
        result(f"{counted(len(written), 'image')} written to {out}.")


def _show(records: list[dict[str, Any]]) -> None:
    from ..tools.paper_records import count_kinds

    rows = [
        [
            one_line(record["name"]),
            record["kind"],
            str(record["page"] or ""),
            f"{record['width']}x{record['height']}" if record["image_hash"] else "none",
            one_line(_words(record)),
        ]
        for record in records
    ]
    table(
        count_kinds([record["kind"] for record in records]),
        ["name", "kind", "page", "image", "caption"],
        rows,
        prose=["caption"],
    )


def _words(record: dict[str, Any]) -> str:
    """The caption without its label, why there is no image, and the description marked as a model's."""
    parts = [shorten(record["caption"].removeprefix(record["label"]).lstrip(" .:|"), _LONGEST, placeholder=" …")]
    parts += [f"(No image: it {record['no_image']}.)"] if record["no_image"] else []
    parts += [f"(Described by {record['described_by']}: {record['description']})"] if record["description"] else []
    return " ".join(part for part in parts if part)


def _file_of(record: dict[str, Any], written: list[tuple[int, Path]]) -> str | None:
    return next((str(path) for number, path in written if number == record["number"]), None)


def _written(library: Library, key: str, folder: Path) -> Iterator[tuple[int, Path]]:
    """Write the images of a paper; a file that holds something else is never replaced."""
    from ..documents.safe_files import replace_file

    for figure in library.figures(key):
        content = library.figure_image(figure)
        if content is None:
            continue
        path = folder / f"{_stem(key, figure)}{_ENDINGS[figure.media_type]}"
        if folder.exists() and not folder.is_dir():
            raise ImageNotWrittenError(f"{folder}: is a file, not a folder.", help="Choose another --out.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() or (path.exists() and path.read_bytes() != content):
                raise ImageNotWrittenError(f"{path}: exists and holds something else.", help="Choose another --out.")
            replace_file(path, content)
        except OSError as error:
            raise ImageNotWrittenError(
                f"{path}: cannot be written ({error.strerror}).", help="Choose a writable folder with --out."
            ) from error
        yield figure.number, path


def _stem(key: str, figure: PaperFigure) -> str:
    from pathvalidate import sanitize_filename

    name = figure.label or f"{figure.kind} {figure.number + 1}"
    return str(sanitize_filename(f"{key}-{name.lower().replace(' ', '-')}", replacement_text="-"))
