"""Images of the user's plots, uploaded for an experiment: each set has a folder of its own, named after its content.

The same images thus get the same folder, and an experiment with them is the same request. A set stays as long as a run
names it. Servers of one database share it.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ..api.homes import Home
from ..api.writing import (
    PLOT_SET,
    PLOTS_KEPT,
    Experiment,
    image_problem,
    named_plot_sets,
    plot_files,
    with_plot_files,
    without_plot_files,
)
from .problems import ServerError
from .uploaded_files import refusal, safe_name, store_file

MOST_PLOTS: Final = 50


def plots_folder(home: Home, upload_id: str) -> Path:
    """The folder of a set of images on this computer, kept for another day; raises `ServerError` for an unknown one."""
    plots = plot_files(home)
    if not PLOT_SET.fullmatch(upload_id) or not plots.names(upload_id):
        raise ServerError(404, f"There are no uploaded plots {upload_id!r:.60}.", help="Upload the images again.")
    plots.fetch(upload_id)
    plots.publish(upload_id)
    return plots.folder(upload_id)


def store_plots(
    given: Sequence[tuple[str, bytes]], home: Home, base: str = ""
) -> tuple[str, list[str], list[dict[str, Any]]]:
    """Store images; returns the id of their set, all names in it, and what was refused with the reason of each.

    With `base`, the images of that set are in the new one too, unless one of the same name was given; blocks. Raises
    `ServerError` if no image is left, there are too many, or they cannot be stored.
    """
    images = {path.name: path.read_bytes() for path in sorted(plots_folder(home, base).iterdir())} if base else {}
    taken: dict[str, bytes] = {}
    refused: list[dict[str, Any]] = []
    for name, data in ((safe_name(name), data) for name, data in given):
        if reason := _reason_to_refuse(name, data, taken):
            refused.append(refusal(name or "file", reason))
        else:
            taken[name] = data
    again = {name.casefold() for name in taken}
    images = {**{name: data for name, data in images.items() if name.casefold() not in again}, **taken}
    if not taken:
        errors = [{"field": item["name"], "message": item["reason"]} for item in refused]
        raise ServerError(422, "None of the images can be used.", errors=errors)
    if len(images) > MOST_PLOTS:
        raise ServerError(422, f"There are {len(images)} images, more than {MOST_PLOTS}.", help="Leave some out.")
    return _store_images(images, home), sorted(images), refused


def with_uploaded_plots(experiment: Experiment, home: Home, upload_id: str) -> Experiment:
    """The experiment with the images of a set, found by the names of its plots without their folders; blocks.

    A name that several plots have belongs to none of them. Raises `ServerError` if there is no such set.
    """
    bare = without_plot_files(experiment)
    if not upload_id:
        return bare
    folder = plots_folder(home, upload_id)
    stored = {path.name.casefold(): path.name for path in folder.iterdir()}
    names = Counter(_plot_name(plot if isinstance(plot, str) else plot.path) for plot in bare.plots)

    def uploaded(written: str) -> str:
        name = _plot_name(written)
        return stored.get(name, "") if names[name] == 1 else ""

    return with_plot_files(bare, folder, uploaded, plot_files(home).reference)


def tidy_plots(home: Home) -> None:
    """Delete the sets that no run names and nobody used for a day; blocks."""
    plots = plot_files(home)
    idle, copies = set(plots.idle()), _old_folders(home.plots)
    named = named_plot_sets(home) if idle or copies else set()
    for upload_id in idle - named:
        plots.remove(upload_id, plots.names(upload_id))
    for folder in copies:
        if folder.name not in named:
            shutil.rmtree(folder, ignore_errors=True)


def _old_folders(root: Path) -> list[Path]:
    """What was not touched for a day: also copies of deleted sets, and uploads that were cut off."""
    before = time.time() - PLOTS_KEPT
    return [folder for folder in root.iterdir() if folder.stat().st_mtime < before] if root.is_dir() else []


def _reason_to_refuse(name: str, data: bytes, taken: Collection[str]) -> str:
    if not name:
        return "has no usable name"
    if name.casefold() in {other.casefold() for other in taken}:
        return "has the same name as another image of this upload; rename one, also in the experiment"
    return image_problem(name, data)


def _store_images(images: Mapping[str, bytes], home: Home) -> str:
    """Write a set, whole or not at all, and return its id."""
    content = hashlib.sha256()
    for name, data in sorted(images.items()):
        content.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    upload_id = f"plots-{content.hexdigest()[:24]}"
    folder = home.plots / upload_id
    if not folder.is_dir():
        begun = home.plots / f".{secrets.token_hex(8)}"
        try:
            for name, data in images.items():
                store_file(io.BytesIO(data), begun, name)
            begun.rename(folder)
        except OSError as error:
            if not folder.is_dir():  # another request stored the same
                raise ServerError(507, f"The images cannot be stored ({error.strerror}).") from error
        finally:
            shutil.rmtree(begun, ignore_errors=True)
    plot_files(home).publish(upload_id)
    return upload_id


def _plot_name(written: str) -> str:
    return safe_name(PurePosixPath(written.replace("\\", "/")).name).casefold()
