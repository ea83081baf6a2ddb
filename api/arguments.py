"""Validates the arguments of the API."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_args

from ..errors import InputError
from ..graph.session import Session
from .run_options import CitationFields, WordOptions

if TYPE_CHECKING:
    from ..citations.export.pandoc_formats import Format

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Item = TypeVar("Item")


class ArgumentError(InputError):
    """An argument of an API call is invalid."""


class ClosedLibraryError(ArgumentError):
    """The library was already closed, for example at the end of a `with` block."""

    default_help = "Open it again with open_library(), and use it before it is closed."


class ReadOnlyLibraryError(ArgumentError):
    """A call that writes was given a read-only library."""

    default_help = "It can be searched and listed; copy it to a writable folder for anything else."


def requires_open(call: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a call so that it raises unless its first argument is an open library."""

    @functools.wraps(call)
    def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        require_open(args[0] if args else options.get("session"))
        return call(*args, **options)

    return checked


def require_open(session: object) -> None:
    """Raise `ArgumentError` if the value is not a library, `ClosedLibraryError` if it is closed."""
    if not isinstance(session, Session):
        raise ArgumentError(
            f"library: expected an open library, got {type(session).__name__}.", help="Open one with open_library()."
        )
    if session.closed:
        raise ClosedLibraryError(f"{session.home.name}: the library is closed.")


def require_writable(session: Session) -> None:
    """Raise `ReadOnlyLibraryError` if read-only: writes would go to a copy and be lost."""
    if session.home.copy_of is not None:
        raise ReadOnlyLibraryError(f"{session.home.name}: the library cannot be written.")


def parse_formats(given: Sequence[str] | str, out: Path | str | None) -> tuple[Format, ...]:
    """Return the formats to write besides Markdown; raises `ArgumentError` if one is unknown or `out` is missing."""
    from ..citations.export.pandoc_formats import FORMATS

    names = [name for name in ((given,) if isinstance(given, str) else given) if name != "md"]
    wanted = tuple(one_of("format", name, FORMATS, "md") for name in names)
    if out is None and given:
        raise ArgumentError(
            "formats: files are written only if out is given.",
            help="Give a folder as `out` (--out FOLDER on the command line).",
        )
    return wanted


def word_options(given: Mapping[str, Any]) -> WordOptions:
    """Read the options for Word and LibreOffice files; raises `ArgumentError`."""
    if (citations := given.get("citations")) is not None:
        require_choice("citations", citations, CitationFields)
    reference = given.get("reference_doc")
    return WordOptions(
        citations=citations,
        evidence_comments=bool(given.get("evidence_comments")),
        reference_doc=None if reference is None else Path(reference).expanduser(),
    )


def require_choice(what: str, given: object, literal: Any) -> None:
    """Raise `ArgumentError` unless `given` is one of the values of a `Literal`."""
    one_of(what, given, get_args(literal))


def one_or_more(given: Sequence[Item] | Item | None) -> tuple[Item, ...]:
    """Convert to a tuple: a single value becomes a tuple of one, None an empty tuple."""
    if given is None:
        return ()
    single = isinstance(given, str | bytes | Path) or not isinstance(given, Collection)
    return (given,) if single else tuple(given)  # type: ignore[return-value, arg-type]  # `single` was checked


def require_positive(what: str, given: int) -> None:
    """Raise `ArgumentError` unless `given` is an integer of at least 1."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ArgumentError(f"{what}: expected an integer of at least 1, got {given!r:.60}.")


def one_of(what: str, given: object, values: Sequence[Item], *others: str) -> Item:
    """Return `given` if it is one of `values`; else raise an `ArgumentError` that lists `others` and `values`."""
    for value in values:
        if value == given:
            return value
    known = [*others, *map(str, values)]
    near = difflib.get_close_matches(given, known, n=1) if isinstance(given, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ArgumentError(f"There is no {what} {given!r:.60}; there are {', '.join(known)}.{hint}")
