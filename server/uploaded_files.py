"""Files uploaded to the server: papers, and images of plots.

Each upload of papers has its own folder. A set of images is named by a hash of its content: the same images get the
same folder, and an experiment with them is the same request. A set stays as long as a run uses it; servers of one
database share it. A name from a request only ever becomes the last part of a path, after sanitizing.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import shutil
import time
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from pathvalidate import sanitize_filename
from typing_extensions import TypedDict

from ..api import homes, ingesting, running, serving
from ..api.messages import megabytes
from .problems import ServerError

_LONGEST_NAME: Final = 150  # bytes without extension
_BIB: Final = ".bib"


def safe_name(given: str) -> str:
    """Sanitize a file name for file systems and terminals, without folders; "" if nothing is left.

    Keeps the extension, which decides how the file is read.
    """
    text = unicodedata.normalize("NFC", given.encode("utf-8", "ignore").decode())
    path = PurePosixPath(PurePosixPath(text.replace("\\", "/")).name)
    ending = path.suffix.lower() if path.suffix.lower() in (*ingesting.PAPER_SUFFIXES, _BIB) else path.suffix
    stem = path.stem.lstrip(". ").encode()[:_LONGEST_NAME].decode("utf-8", "ignore")
    return sanitize_filename(f"{stem}{ending}", platform="universal") if stem else ""


def refusal_reason(name: str, taken: Collection[str]) -> str:
    """Why a file of this name is refused; "" if it is not."""
    if not name:
        return "has no usable name"
    ending = PurePosixPath(name).suffix
    if ending not in (*ingesting.PAPER_SUFFIXES, _BIB):
        return f"is not a paper ({', '.join(ingesting.PAPER_SUFFIXES)})"
    if name.casefold() in {other.casefold() for other in taken}:
        return "has the same name as another file of this upload"
    if ending == _BIB and any(other.endswith(_BIB) for other in taken):
        return "is a second .bib file; send one"
    return ""


def store_file(source: BinaryIO, folder: Path, name: str) -> bool:
    """Write a file to its upload's folder; returns whether it is non-empty. Blocks; raises `ServerError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("xb") as target:
            shutil.copyfileobj(source, target, 2**20)
            return target.tell() > 0
    except OSError as error:
        raise ServerError(507, f"The file cannot be stored ({error.strerror}).", help="Free some space.") from error


def require_space(session: serving.Session, receiving: Mapping[str, int]) -> None:
    limit = session.settings.max_library_size
    if limit is None:
        return
    used = ingesting.stored_bytes(session, without=receiving)
    if used + (adding := sum(receiving.values())) > limit:
        raise ServerError(
            507,
            f"The library's files take {megabytes(used)} of {megabytes(limit)}; these would add {megabytes(adding)}.",
            help="Delete papers, or runs with plots; the server's operator can raise CITELOOM_MAX_LIBRARY_SIZE.",
        )


def file_name(source: str) -> str:
    return source.replace("\\", "/").rpartition("/")[2]


def strip_folder(text: str, folder: Path) -> str:
    """Replace server paths of uploaded files in a message by their names."""
    return text.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")


class RefusedFile(TypedDict):
    """A file that was not stored, and why."""

    name: str
    reason: str


def refuse_all(what: str, refused: Sequence[RefusedFile]) -> ServerError:
    errors: list[running.FieldProblem] = [{"field": item["name"], "message": item["reason"]} for item in refused]
    return ServerError(422, f"None of the {what}.", errors=errors)


MOST_PLOTS: Final = 50


def plots_folder(home: homes.Home, upload_id: str) -> Path:
    """The local folder of a set of images, kept for another day; raises `ServerError` if unknown."""
    plots = home.plots()
    if not running.PLOT_SET.fullmatch(upload_id) or not plots.names(upload_id):
        raise ServerError(404, f"There are no uploaded plots {upload_id!r:.60}.", help="Upload the images again.")
    plots.fetch(upload_id)
    plots.publish(upload_id)
    return plots.folder(upload_id)


def store_plots(
    given: Sequence[tuple[str, bytes]], home: homes.Home, base: str = ""
) -> tuple[str, list[str], list[RefusedFile]]:
    """Store images; returns their set's id, all names in it, and the refused files with reasons.

    The new set includes the images of the set `base`, unless a new one has the same name; blocks. Raises `ServerError`
    if no image is left, there are too many, or they cannot be stored.
    """
    images = {path.name: path.read_bytes() for path in sorted(plots_folder(home, base).iterdir())} if base else {}
    taken: dict[str, bytes] = {}
    refused: list[RefusedFile] = []
    for name, data in ((safe_name(name), data) for name, data in given):
        if not name:
            reason = "has no usable name"
        elif name.casefold() in {other.casefold() for other in taken}:
            reason = "has the same name as another image of this upload; rename one, also in the experiment"
        else:
            reason = running.image_problem(name, data)
        if reason:
            refused.append(RefusedFile(name=name or "file", reason=reason))
        else:
            taken[name] = data
    again = {name.casefold() for name in taken}
    images = {**{name: data for name, data in images.items() if name.casefold() not in again}, **taken}
    if not taken:
        raise refuse_all("images can be used", refused)
    if len(images) > MOST_PLOTS:
        raise ServerError(422, f"There are {len(images)} images, more than {MOST_PLOTS}.", help="Leave some out.")
    return _store_images(images, home), sorted(images), refused


def with_uploaded_plots(experiment: running.Experiment, home: homes.Home, upload_id: str) -> running.Experiment:
    """The experiment with images from a set, matched by file name, ignoring folders; blocks.

    A name shared by several plots matches none. Raises `ServerError` if there is no such set.
    """
    bare = running.without_plot_files(experiment)
    if not upload_id:
        return bare
    folder = plots_folder(home, upload_id)
    stored = {path.name.casefold(): path.name for path in folder.iterdir()}
    names = Counter(_plot_name(plot if isinstance(plot, str) else plot.path) for plot in bare.plots)

    def uploaded(written: str) -> str:
        name = _plot_name(written)
        return stored.get(name, "") if names[name] == 1 else ""

    return running.with_plot_files(bare, folder, uploaded, home.plots().reference)


def tidy_plots(home: homes.Home) -> None:
    """Delete sets that no run uses and that were unused for a day; blocks."""
    plots = home.plots()
    idle, before = set(plots.idle()), time.time() - running.PLOTS_KEPT
    # Also copies of deleted sets, and broken uploads.
    folders = list(home.plots_folder.iterdir()) if home.plots_folder.is_dir() else []
    copies = [folder for folder in folders if folder.stat().st_mtime < before]
    named = home.runs().plot_sets() if idle or copies else set()
    for upload_id in idle - named:
        plots.remove(upload_id, plots.names(upload_id))
    for folder in copies:
        if folder.name not in named:
            shutil.rmtree(folder, ignore_errors=True)


def _store_images(images: Mapping[str, bytes], home: homes.Home) -> str:
    """Write a set atomically; returns its id."""
    content = hashlib.sha256()
    for name, data in sorted(images.items()):
        content.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    upload_id = f"plots-{content.hexdigest()[:24]}"
    folder = home.plots_folder / upload_id
    if not folder.is_dir():
        begun = home.plots_folder / f".{secrets.token_hex(8)}"
        try:
            for name, data in images.items():
                store_file(io.BytesIO(data), begun, name)
            begun.rename(folder)
        except OSError as error:
            if not folder.is_dir():  # another request stored the same set
                raise ServerError(507, f"The images cannot be stored ({error.strerror}).") from error
        finally:
            shutil.rmtree(begun, ignore_errors=True)
    home.plots().publish(upload_id)
    return upload_id


def _plot_name(written: str) -> str:
    return safe_name(PurePosixPath(written.replace("\\", "/")).name).casefold()
