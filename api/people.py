"""The accounts of a group's server: invitations, passwords, sign-in and roles."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from ..errors import ConfigurationError, InputError
from ..stores.accounts import LIFETIMES, RIGHTS, AccountError, Accounts, Person, Role, Scope, Secret, SecretKind
from ..stores.home import Home
from ..stores.run_register import EVERYBODY as EVERYBODY, ConversationEntry
from ..stores.tables import PERSON, acting
from .messages import install_hint

if TYPE_CHECKING:
    from argon2 import PasswordHasher

ISSUER: Final = "CITELOOM_OIDC_ISSUER"
SHORTEST_PASSWORD: Final = 12  # characters
_hash_slots: Final = BoundedSemaphore(4)  # each takes 64 MiB


class WrongPasswordError(InputError):
    """No account has this name and password."""


def has_accounts(home: Home) -> bool:
    """Whether a home has accounts: somebody was invited, or single sign-on is configured. Blocks."""
    return bool(os.environ.get(ISSUER)) or (home.exists() and bool(home.accounts().people()))


def invite(home: Home, name: str, role: Role) -> str:
    """Invite somebody, or let an account set a new password; returns the secret of the link. Blocks.

    The first account becomes the owner of all existing runs and conversations.
    """
    home.require_place()
    home.prepare()
    _hasher()  # raises now, not when the invited person signs in
    with _new_account(home, role) as accounts:
        if not home.exists():  # a new home: people come before the papers
            home.open_library().close()
        return accounts.invite(name, role)


def begin_group(home: Home, name: str, password: str) -> Person:
    """Create the first account, an owner's, who gets all existing runs and conversations. Blocks.

    Raises `AccountError` if there is an account, and `InputError` for an invalid name or password.
    """
    if home.accounts().people():
        raise AccountError("There are accounts already.", help="Ask an owner of this server for an invitation.")
    _require_length(password)
    return join(home.accounts(), invite(home, name, "owner"), password)


def enter(home: Home, subject: str, like: str, role: Role | None) -> Person:
    """Sign in a person from single sign-on, whose rules give them this role (`Accounts.enter`). Blocks."""
    home.require_library()
    with _new_account(home.prepare(), role) as accounts:
        return accounts.enter(subject, like, role)


@contextmanager
def _new_account(home: Home, role: Role | None) -> Iterator[Accounts]:
    """Require that the first account is an owner's, and give it all existing runs; raises `InputError`."""
    accounts = home.accounts()
    known = accounts.people()
    if role != "owner" and not any(person.role == "owner" for person in known):
        raise InputError("The first account is an owner's.", help="Invite an owner first: --role owner.")
    yield accounts
    if not known and (made := accounts.people()):
        home.runs().give_unowned(made[0].name)


def join(accounts: Accounts, invitation: str, password: str) -> Person:
    """Set an invited person's password; raises `InputError` for its length, and `AccountError`. Blocks."""
    _require_length(password)
    valid = accounts.holder("invitation", invitation) is not None
    return accounts.accept(invitation, _hasher().hash(password) if valid else None)  # raises for an invalid one


def _require_length(password: str) -> None:
    if not SHORTEST_PASSWORD <= len(password) <= 1000:
        message = f"A password has at least {SHORTEST_PASSWORD} characters."
        raise InputError(message, help="A few words are easy to remember.")


def check_password(accounts: Accounts, name: str, password: str) -> Person:
    """Check a name and password; raises `WrongPasswordError`, equally late for an unknown name. Blocks."""
    hasher, person = _hasher(), accounts.find(name)
    from argon2.exceptions import Argon2Error, InvalidHashError

    stored = person.password if person is not None and person.joined else ""
    try:
        with _hash_slots:
            hasher.verify(stored or _dummy_hash(), password[:1000])
    except (Argon2Error, InvalidHashError):
        person = None
    if person is None or not stored:
        raise WrongPasswordError("The name or the password is wrong.")
    return person


def owned_runs(home: Home) -> list[str] | None:
    """The ids of all runs that the current user paid for; None if there are no accounts. Blocks."""
    return home.runs().owned_ids(person) if (person := acting.get()) else None


def share(home: Home, thread_id: str, readers: Collection[str]) -> list[str]:
    """Let these people, or `EVERYBODY`, read a conversation, and nobody else; returns their names. Blocks.

    Raises `AccountError` for somebody who has no account.
    """
    accounts, names = home.accounts(), set(readers)
    chosen = {EVERYBODY} if EVERYBODY in names else {accounts.get(name).name for name in names} - {acting.get()}
    home.conversations().share(thread_id, sorted(chosen))
    return sorted(chosen)


def sharing_owner(home: Home, thread_id: str) -> str:
    """Return who shares a conversation with the current user; empty if it is their own, or not shared. Blocks."""
    person = acting.get()
    owner = home.conversations().sharing_owners(person, thread_id).get(thread_id, "") if person else ""
    return owner if owner and home.accounts().find(owner) else ""  # conversations of removed people stay hidden


def shared_conversations(home: Home, words: str = "") -> list[tuple[ConversationEntry, str]]:
    """Return the conversations with these words that others share with the current user, and their owners. Blocks."""
    if not (person := acting.get()) or not (owners := home.conversations().sharing_owners(person)):
        return []
    known = {each.name for each in home.accounts().people()}
    entries = home.conversations().all(words, person)
    return [(entry, owners[entry.thread_id]) for entry in entries if owners.get(entry.thread_id) in known]


@cache
def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError as error:
        missing = f"Accounts need {error.name}, which is not installed."
        raise ConfigurationError(missing, help=f"{install_hint('people')}.") from error
    return PasswordHasher()  # Argon2id with the parameters of RFC 9106 for little memory


@cache
def _dummy_hash() -> str:
    return _hasher().hash("a password that nobody has")
