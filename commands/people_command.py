"""people: the accounts of a group's server."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import typer

from .. import api
from .options import command_group, resolve
from .output import Printed, notice, result

people_app = command_group("Accounts of a group's server; without any it is one person's.")
NameArgument = Annotated[str, "Name of the account, such as ada."]
RoleName = Literal["reader", "writer", "owner"]
_HERE: Final = "(command line)"  # who did it, in the log


@people_app.command("invite")
def invite_person(
    name: NameArgument,
    role: Annotated[RoleName, "Search and read; also ask, write and add papers; or also own the server."] = "writer",
    address: Annotated[str, "Address under which the server is reached."] = "http://127.0.0.1:8765",
) -> None:
    """Print the link by which somebody joins, or sets another password; it is valid once, for a week."""
    home = resolve()[1]
    result(f"{address.rstrip('/')}/join?invitation={api.people.invite(home, name, role)}")
    home.accounts().log(_HERE, f"invited {name}")
    notice(
        "A server that runs without accounts has to be started again. Earlier conversations and runs are those of the "
        "first owner."
    )


@people_app.command("list")
def list_people() -> Printed:
    """List the accounts."""
    return _listed(_accounts().people(), "account", "name role joined budget")


@people_app.command("role")
def change_role(
    name: NameArgument,
    role: Annotated[RoleName, "The new role."],
    budget: Annotated[float | None, "What the person may spend in all; below 0: no limit."] = None,
) -> None:
    """Change somebody's role, and their budget."""
    accounts = _accounts()
    accounts.change(name, role=role, budget=budget)
    accounts.log(_HERE, f"gave {name} the role {role}")


@people_app.command("remove")
def remove_person(name: NameArgument) -> None:
    """Remove an account with its sessions and tokens; its conversations stay, and nobody sees them on the page."""
    accounts = _accounts()
    accounts.remove(name)
    accounts.log(_HERE, f"removed {name}")


@people_app.command("tokens")
def list_tokens(name: NameArgument, revoke: Annotated[str | None, "Id of a token to revoke."] = None) -> Printed:
    """List somebody's tokens for the API and MCP, which people create on the page."""
    accounts = _accounts()
    person = accounts.get(name).name
    if revoke is not None:
        accounts.revoke(person, revoke)
        accounts.log(_HERE, f"revoked a token of {person}")
    return _listed(accounts.secrets_of(person), "token", "id label scopes expires_at")


@people_app.command("audit")
def show_audit(
    name: Annotated[str, "Only what this person did."] = "",
    most: Annotated[int, typer.Option(min=1, help="Number of lines.")] = 200,
) -> Printed:
    """Show who did what, the latest first."""
    return _listed(_accounts().deeds(name, most), "line", "number at person action outcome")


def _accounts() -> api.people.Accounts:
    home = resolve()[1]
    home.require_library()
    return home.accounts()


def _listed(items: Iterable[Any], noun: str, fields: str) -> Printed:
    """A table of these fields; times are shown in words."""
    names = fields.split()
    records = [
        {name: item[name] if isinstance(item, dict) else getattr(item, name) for name in names} for item in items
    ]

    def shown(name: str) -> Any:
        if name in ("at", "expires_at"):
            return lambda record: datetime.fromtimestamp(record[name]).isoformat(" ", "seconds")
        return lambda record: "yes" if record[name] is True else record[name] or ""

    return Printed.listed(records, noun, {name: shown(name) for name in names}, names[:1])
