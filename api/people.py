"""The accounts of a group's server: who may sign in, with which role, and what was done."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from ..errors import ConfigurationError, InputError
from ..stores.accounts import LIFETIMES, RIGHTS, Accounts, Person, Role, Scope, Secret, SecretKind
from ..stores.home import Home
from ..stores.run_register import EVERYBODY as EVERYBODY
from ..stores.tables import PERSON, acting
from .messages import install_hint

if TYPE_CHECKING:
    from argon2 import PasswordHasher

ISSUER: Final = "CITELOOM_OIDC_ISSUER"
SHORTEST_PASSWORD: Final = 12  # characters
_hashing: Final = BoundedSemaphore(4)  # each takes 64 MiB


class WrongPasswordError(InputError):
    """Nobody signs in with this name and password."""


def has_accounts(home: Home) -> bool:
    """Whether a home is a group's: somebody was invited, or the group's own sign-in is set. Blocks."""
    return bool(os.environ.get(ISSUER)) or (home.exists() and bool(home.accounts().people()))


def invite(home: Home, name: str, role: Role) -> str:
    """Invite somebody, or let an account set another password; returns the secret of the link. Blocks.

    All runs and conversations of before are those of the first account.
    """
    home.require_place()
    home.prepare()
    _hasher()  # a server without it could let nobody in
    with _new_account(home, role) as accounts:
        if not home.exists():  # a new home: people come before the papers
            home.open_library().close()
        return accounts.invite(name, role)


def enter(home: Home, subject: str, like: str, role: Role | None) -> Person:
    """Who comes from the group's own sign-in, to whom its rules give this role (`Accounts.enter`). Blocks."""
    home.require_library()
    with _new_account(home.prepare(), role) as accounts:
        return accounts.enter(subject, like, role)


@contextmanager
def _new_account(home: Home, role: Role | None) -> Iterator[Accounts]:
    """Make the first account an owner's, who has all that there was before; raises `InputError`."""
    accounts = home.accounts()
    known = accounts.people()
    if role != "owner" and not any(person.role == "owner" for person in known):
        raise InputError("The first account is an owner's.", help="Invite an owner first: --role owner.")
    yield accounts
    if not known and (made := accounts.people()):
        home.runs().give_unowned(made[0].name)


def join(accounts: Accounts, invitation: str, password: str) -> Person:
    """Set the password of an invited person; raises `InputError` for a short one, and `AccountError`. Blocks."""
    if not SHORTEST_PASSWORD <= len(password) <= 1000:
        message = f"A password has at least {SHORTEST_PASSWORD} characters."
        raise InputError(message, help="A few words are easy to keep.")
    valid = accounts.holder("invitation", invitation) is not None
    return accounts.accept(invitation, _hasher().hash(password) if valid else None)  # which refuses any other


def with_password(accounts: Accounts, name: str, password: str) -> Person:
    """Who signs in; raises `WrongPasswordError`, as late for an unknown name as for a wrong password. Blocks."""
    hasher, person = _hasher(), accounts.find(name)
    from argon2.exceptions import Argon2Error, InvalidHashError

    stored = person.password if person is not None and person.joined else ""
    try:
        with _hashing:
            hasher.verify(stored or _of_nobody(), password[:1000])
    except (Argon2Error, InvalidHashError):
        person = None
    if person is None or not stored:
        raise WrongPasswordError("This name and password do not belong together.")
    return person


def owned_runs(home: Home) -> list[str] | None:
    """The ids of all that the person who acts paid for; None without accounts. Blocks."""
    return home.runs().owned(person) if (person := acting.get()) else None


def share(home: Home, thread_id: str, readers: Collection[str]) -> list[str]:
    """Let these people, or `EVERYBODY`, read a conversation, and nobody else; returns their names. Blocks.

    Raises `AccountError` for somebody who has no account.
    """
    accounts, names = home.accounts(), set(readers)
    chosen = {EVERYBODY} if EVERYBODY in names else {accounts.get(name).name for name in names} - {acting.get()}
    home.conversations().share(thread_id, sorted(chosen))
    return sorted(chosen)


def sharing_owner(home: Home, thread_id: str) -> str:
    """Who shares a conversation with the person who acts; empty if it is their own, or not for them. Blocks."""
    person = acting.get()
    owner = home.conversations().sharing_owner(thread_id, person) if person else ""
    return owner if owner and home.accounts().find(owner) else ""  # what somebody had who was removed stays unseen


@cache
def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError as error:
        missing = f"Accounts need {error.name}, which is not installed."
        raise ConfigurationError(missing, help=f"{install_hint('people')}.") from error
    return PasswordHasher()  # Argon2id with the parameters of RFC 9106 for little memory


@cache
def _of_nobody() -> str:
    return _hasher().hash("a password that nobody has")
