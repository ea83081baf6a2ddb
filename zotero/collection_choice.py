"""Chooses the items of a library: all, or those in named collections and the collections below them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from ..errors import InputError
from .zotero_records import ZoteroCollection, ZoteroContent, ZoteroItem, ZoteroLibrary

WHOLE = ""  # the scope of a whole library, beside keys of collections


def choose_library(groups: Sequence[ZoteroLibrary], wanted: str) -> ZoteroLibrary:
    """The group with this name or id; raises `InputError` that names similar ones."""
    found = [group for group in groups if wanted.casefold() == group.name.casefold() or wanted == str(group.group)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(str(group.group) for group in found)
        raise InputError(f"--group {wanted}: several groups have this name.", help=f"Give its id: {ids}.")
    raise InputError(
        f"--group {wanted}: Zotero has no such group.", help=_nearest(wanted, [one.name for one in groups])
    )


def scopes_of(names: Sequence[str], content: ZoteroContent) -> frozenset[str]:
    """The keys of the named collections; `WHOLE` if none is named.

    A collection is named by its name, its path (`Thesis/Methods`) or its key. Raises `InputError` for an unknown or
    ambiguous one.
    """
    paths = _paths(content.collections) if names else {}
    return frozenset(_collection(name, paths) for name in names) or frozenset({WHOLE})


def members_of(scopes: Iterable[str], content: ZoteroContent) -> dict[str, frozenset[str]]:
    """The keys of the items in each scope; of a collection, those in the collections below it too."""
    members: dict[str, frozenset[str]] = {}
    for scope in scopes:
        below = _below(scope, content.collections) if scope else frozenset()
        members[scope] = frozenset(item.key for item in content.items if not scope or item.collections & below)
    return members


def chosen(keys: frozenset[str], content: ZoteroContent) -> list[ZoteroItem]:
    """The items with these keys, oldest first, so that an earlier item keeps its key when two have the same."""
    return sorted((item for item in content.items if item.key in keys), key=lambda item: (item.added, item.key))


def _paths(collections: Sequence[ZoteroCollection]) -> dict[str, str]:
    """The path of each collection by key."""
    by_key = {collection.key: collection for collection in collections}
    paths: dict[str, str] = {}
    for collection in collections:
        parts: list[str] = []
        above: ZoteroCollection | None = collection
        seen: set[str] = set()
        while above is not None and above.key not in seen:  # a damaged database may have a cycle
            seen.add(above.key)
            parts.insert(0, above.name)
            above = by_key.get(above.parent)
        paths[collection.key] = "/".join(parts)
    return paths


def _collection(wanted: str, paths: Mapping[str, str]) -> str:
    name = wanted.strip().strip("/").casefold()
    whole = [key for key, path in paths.items() if key == wanted or path.casefold() == name]
    found = whole or [key for key, path in paths.items() if path.casefold().endswith(f"/{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        listed = "; ".join(f"{paths[key]} ({key})" for key in sorted(found, key=lambda key: paths[key]))
        raise InputError(
            f"--collection {wanted}: several collections have this name.", help=f"Give the path or key: {listed}."
        )
    names = [*paths.values(), *(path.rpartition("/")[2] for path in paths.values())]
    raise InputError(f"--collection {wanted}: Zotero has no such collection.", help=_nearest(wanted, names))


def _nearest(wanted: str, names: Sequence[str]) -> str:
    by_form = {name.casefold(): name for name in names}
    near = [by_form[form] for form in get_close_matches(wanted.casefold(), by_form, n=3, cutoff=0.6)]
    listed = near or sorted(dict.fromkeys(names))[:10]
    shown = ", ".join(repr(name) for name in listed)
    return f"Did you mean {shown}?" if near else f"There are {shown}." if listed else "There is none."


def _below(key: str, collections: Sequence[ZoteroCollection]) -> frozenset[str]:
    """The collection and all below it."""
    children: dict[str, list[str]] = {}
    for collection in collections:
        children.setdefault(collection.parent, []).append(collection.key)
    found: set[str] = set()
    waiting = [key]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += children.get(one, ())
    return frozenset(found)
