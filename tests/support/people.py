"""People with accounts at a server of a test, and requests made up from the descriptions of its routes and tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from citeloom.api.people import Role, invite, join
from citeloom.settings.addresses import HomeAddress
from citeloom.stores.folder_home import find_home

PASSWORD = "correct horse battery staple"


def add_person(home: HomeAddress, name: str, role: Role) -> None:
    """An account with a password, without the page."""
    found = find_home(home)
    join(found.accounts(), invite(found, name, role), PASSWORD)


@contextmanager
def signed_in(url: str, name: str) -> Iterator[httpx.Client]:
    """A browser of this person, without scripts."""
    with httpx.Client(base_url=url, timeout=300, headers={"Origin": url}) as browser:
        answer = browser.post("/sign-in", data={"name": name, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        yield browser


def token_of(home: HomeAddress, name: str, *scopes: Any) -> str:
    return find_home(home).accounts().grant("token", name, "test", scopes)


def minimal(schema: dict[str, Any], document: dict[str, Any], known: dict[str, Any], name: str = "") -> Any:
    """A small value that a JSON schema accepts; properties and parameters named in `known` have its values."""
    if name in known:
        return known[name]
    if "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return minimal(target, document, known, name)
    for one in ("default", "const"):
        if one in schema:
            return schema[one]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema or "oneOf" in schema:
        return minimal((schema.get("anyOf") or schema["oneOf"])[0], document, known, name)
    if schema.get("type") == "object":
        return {
            each: minimal(schema.get("properties", {}).get(each, {}), document, known, each)
            for each in schema.get("required", [])
        }
    if schema.get("type") == "array":
        return [minimal(schema.get("items", {}), document, known, name)] * schema.get("minItems", 1)
    if schema.get("type") in ("integer", "number"):
        return schema.get("minimum", 1)
    return {"boolean": True}.get(schema.get("type", ""), "x" * max(1, schema.get("minLength", 1)))
