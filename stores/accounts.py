"""The accounts of a group's server: roles, secrets that prove identity, and the audit log.

Invitations, sessions and tokens are secrets that are shown once and stored as hashes, each with its person. A home
without accounts belongs to one person; its sessions belong to the server's token, identified by a fingerprint.
"""

from __future__ import annotations

import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from ..errors import InputError
from ..table_columns import FLAG, MOMENT, NAME, NUMBER, TEXT, TypedTable, choice, integer, optional
from .server_jobs import hash_name
from .tables import Register, TableConnection, columns_of

Role = Literal["reader", "writer", "owner"]
Scope = Literal["read", "write", "admin"]
SecretKind = Literal["invitation", "session", "token", "identity", "passkey", "challenge", "browser"]
RIGHTS: Final[dict[Role, tuple[Scope, ...]]] = {
    "reader": ("read",),
    "writer": ("read", "write"),
    "owner": ("read", "write", "admin"),
}
ACCOUNTS_REMEDY: Final = "Move it away: then there are no accounts, and everybody has to be invited again."
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")  # without dots, which namespaces of the memory do not allow
_DAY: Final = 86_400
LIFETIMES: Final[dict[SecretKind, int]] = {
    "invitation": 7 * _DAY,
    "session": 30 * _DAY,
    "token": 366 * _DAY,
    "identity": 36_600 * _DAY,
    "passkey": 36_600 * _DAY,
    "challenge": 300,  # of a passkey
    "browser": 366 * _DAY,  # where somebody has signed in
}
REMOVED: Final = "removed"  # in place of a role, so that nobody else gets the name and what belongs to it
_INVITED: Final = "invited"  # label of an identity that came with an invitation
_AUDIT_AGE: Final = 400 * _DAY


class AccountError(InputError):
    """An account, invitation or token does not exist, or the only owner would be lost."""


@dataclass(frozen=True, slots=True)
class Person:
    """An account; it can be used once the person `joined` with a password."""

    name: Annotated[str, NAME]
    role: Annotated[Role, choice(*get_args(Role), REMOVED)]  # `REMOVED` is never read
    password: Annotated[str, TEXT]  # as a hash of argon2; "" for none
    joined: Annotated[bool, FLAG]
    budget: Annotated[float | None, optional(NUMBER)]  # limit of the total spending, in the currency of the prices
    invited_at: Annotated[float, MOMENT]


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that proves who somebody is, such as a session or token, by its hash, which begins with the id."""

    hash: Annotated[str, NAME]
    kind: Annotated[SecretKind, choice(*get_args(SecretKind))]
    person: Annotated[str, NAME]
    label: Annotated[str, TEXT]
    scopes: Annotated[str, TEXT]  # a token's scopes; a passkey's public key and use count
    expires_at: Annotated[float, MOMENT]

    @property
    def id(self) -> str:
        return self.hash[:12]


PEOPLE: Final = TypedTable("people", ("name",), columns_of(Person))
SECRETS: Final = TypedTable("secrets", ("hash",), columns_of(Secret), indexes={"secrets_by_person": "(person)"})
AUDIT: Final = TypedTable(
    "audit",
    ("number",),
    {"number": integer(), "at": MOMENT, "person": TEXT, "action": TEXT, "outcome": TEXT},
    number="number",
)
NOTES: Final = TypedTable("own_notes", ("person", "key"), {"person": NAME, "key": NAME, "text": TEXT})
ACCOUNT_TABLES: Final = (PEOPLE, SECRETS, AUDIT, NOTES)
_OTHER_OWNERS: Final = "EXISTS (SELECT 1 FROM people WHERE role = 'owner' AND joined = 1 AND name <> ?)"
_DEEDS: Final = ("at", "person", "action", "outcome")


class Accounts(Register):
    """The accounts of a home; blocking and thread-safe."""

    def people(self) -> list[Person]:
        return self._select(Person, PEOPLE, f"WHERE role <> '{REMOVED}' ORDER BY name")

    def find(self, name: str) -> Person | None:
        """The account with this name, ignoring case."""
        known = f"WHERE name = ? AND role <> '{REMOVED}'"
        return next(iter(self._select(Person, PEOPLE, known, name.strip().lower())), None)

    def get(self, name: str) -> Person:
        """The account with this name; raises `AccountError`."""
        if (found := self.find(name)) is None:
            message = f"There is no account {name[:80]!r}."
            raise AccountError(message, help="See '{citeloom} people list' for the accounts.")
        return found

    def invite(self, name: str, role: Role) -> str:
        """Create an account, or let its person set a new password; returns the invitation.

        Only the newest invitation of an account is valid. An existing account keeps its role. Raises `AccountError` for
        the name of a removed account.
        """
        name = normalize_name(name)
        with self._tables.transaction() as connection:
            connection.execute(PEOPLE.insert("ignore"), (name, role, "", 0, None, time.time()))
            connection.execute("DELETE FROM secrets WHERE person = ? AND kind = 'invitation'", (name,))
        if self.find(name) is None:
            message = f"{name} was removed; what they had is kept under this name."
            raise AccountError(message, help="Choose another name.")
        return self.grant("invitation", name)

    def accept(self, invitation: str, password: str | None, subject: str = "") -> Person:
        """Use up an invitation to set a password or link an identity of the group; ends sessions and passkeys.

        Raises `AccountError` if the invitation was used or has expired, or the identity has an account.
        """
        if subject and (known := self.holder("identity", subject)) is not None:  # else a stranger's link could move it
            raise AccountError(f"You have the account {known[0].name} here.", help="Sign in without the invitation.")
        with self._tables.transaction() as connection:
            if (name := _spend(connection, "invitation", invitation)) is None:
                raise AccountError("This invitation was used or has expired.", help="Ask for another one.")
            joined = "UPDATE people SET joined = 1, password = coalesce(?, password) WHERE name = ?"
            connection.execute(joined, (password, name))
            if subject:
                connection.execute(SECRETS.insert("update"), _identity_row(subject, name, _INVITED))
            connection.execute("DELETE FROM secrets WHERE person = ? AND kind IN ('session', 'passkey')", (name,))
        return self.get(name)

    def enter(self, subject: str, like: str, role: Role | None) -> Person:
        """The account of a person who signs in with the group; the first time, it is created with a name `like` this.

        `role` follows from the current rules; a person who came with an invitation keeps the role of the account.
        Raises `AccountError` for a removed account, or if the rules give no role.
        """
        known = self._select(Secret, SECRETS, "WHERE hash = ? AND kind = 'identity'", hash_name(subject))
        invited = bool(known) and known[0].label == _INVITED
        if role is None and not invited:
            raise AccountError(f"{like} has no access.", help="Ask an owner of this server for an invitation.")
        if not known:
            return self._create(subject, like, role)
        if (person := self.find(known[0].person)) is None:
            raise AccountError(f"{known[0].person} was removed.", help="Ask an owner of this server for an invitation.")
        if role in (None, person.role) or invited:
            return person
        with suppress(AccountError):  # the only owner keeps that role
            self._set_role(person.name, role)
            self.log(person.name, f"was given the role {role} by the group's sign-in")
        return self.get(person.name)

    def _create(self, subject: str, like: str, role: Role | None) -> Person:
        name = normalize_name(like)
        with self._tables.transaction() as connection:
            names = (name, *(f"{name[:36]}-{number}" for number in range(2, 1000)))
            row = (role, "", 1, None, time.time())
            made = next(each for each in names if connection.execute(PEOPLE.insert("ignore"), (each, *row)).rowcount)
            if not connection.execute(SECRETS.insert("ignore"), _identity_row(subject, made)).rowcount:
                raise AccountError(f"{like} signed in twice at the same moment.", help="Sign in again.")
        return self.get(made)

    def change(self, name: str, *, role: Role | None = None, budget: float | None = None) -> Person:
        """Change a role or a budget; a negative budget means none. Raises `AccountError`."""
        person = self.get(name)
        if role is not None:
            self._set_role(person.name, role)
        if budget is not None:
            self._write("UPDATE people SET budget = ? WHERE name = ?", budget if budget >= 0 else None, person.name)
        return self.get(person.name)

    def remove(self, name: str) -> None:
        """Remove an account with its sessions and tokens; its texts are kept but hidden. Raises `AccountError`."""
        person = self.get(name)
        self._set_role(person.name, REMOVED)
        with self._tables.transaction() as connection:
            connection.execute("UPDATE people SET password = '' WHERE name = ?", (person.name,))
            connection.execute("DELETE FROM secrets WHERE person = ? AND kind <> 'identity'", (person.name,))

    def _set_role(self, name: str, role: str) -> None:
        """Change a role; raises `AccountError` for the only owner's."""
        kept = f"(? = 'owner' OR role <> 'owner' OR joined = 0 OR {_OTHER_OWNERS})"
        with self._tables.transaction() as connection:
            # Locks all owners, so that if two leave at the same time, the second sees that the first has left.
            connection.execute("UPDATE people SET role = role WHERE role = 'owner'")
            changed = connection.execute(f"UPDATE people SET role = ? WHERE name = ? AND {kept}", (role, name) * 2)
            if not changed.rowcount:
                raise AccountError(f"{name} is the only owner.", help="Make somebody else an owner first.")

    def grant(
        self,
        kind: SecretKind,
        person: str,
        label: str = "",
        scopes: tuple[str, ...] = (),
        *,
        lasts: int = 0,  # seconds; 0: the lifetime of the kind
        secret: str = "",  # generated if empty
    ) -> str:
        """Create a secret for a person, storing only its hash; also deletes expired secrets."""
        secret, now = secret or f"{'ct_' if kind == 'token' else ''}{secrets.token_urlsafe(32)}", time.time()
        row = (hash_name(secret), kind, person, label[:80], " ".join(scopes), now + (lasts or LIFETIMES[kind]))
        with self._tables.transaction() as connection:
            connection.execute("DELETE FROM secrets WHERE expires_at <= ?", (now,))
            connection.execute(SECRETS.insert(), row)
        return secret

    def holder(self, kind: SecretKind, secret: str) -> tuple[Person, Secret] | None:
        """The person to whom a valid secret belongs, and its record; None if it is invalid."""
        valid = "WHERE hash = ? AND kind = ? AND expires_at > ?"
        found = self._select(Secret, SECRETS, valid, hash_name(secret), kind, time.time())
        person = self.find(found[0].person) if found else None
        return (person, found[0]) if person is not None else None

    def spend(self, kind: SecretKind, secret: str) -> str | None:
        """Use up a secret; returns the name of its person, which may be empty, or None if it is invalid."""
        with self._tables.transaction() as connection:
            return _spend(connection, kind, secret)

    def note_use(self, passkey: str, scopes: str) -> None:
        self._write("UPDATE secrets SET scopes = ? WHERE hash = ?", scopes, hash_name(passkey))

    def is_session(self, session: str, person: str) -> bool:
        """Whether this is a valid session of a person, or of a server's token with the fingerprint `person`."""
        valid = "WHERE hash = ? AND kind = 'session' AND person = ? AND expires_at > ?"
        return bool(self._select(Secret, SECRETS, valid, hash_name(session), person, time.time()))

    def end_other_sessions(self, person: str) -> None:
        if self._tables.exist():
            self._write("DELETE FROM secrets WHERE kind = 'session' AND person <> ?", person)

    def secrets_of(self, person: str, kind: SecretKind = "token") -> list[Secret]:
        condition = "WHERE person = ? AND kind = ? ORDER BY expires_at DESC"
        return self._select(Secret, SECRETS, condition, person, kind)

    def revoke(self, person: str, secret_id: str = "", kind: SecretKind = "token") -> None:
        """End a secret of a person by its id, or all of a kind; raises `AccountError` for an unknown id."""
        condition = "person = ? AND kind = ? AND ? IN ('', substr(hash, 1, 12))"
        ended = self._write(f"DELETE FROM secrets WHERE {condition}", person, kind, secret_id)
        if secret_id and not ended:
            raise AccountError(f"{person} has no {kind} {secret_id[:40]!r}.", help="")

    def end(self, session: str) -> None:
        self._write("DELETE FROM secrets WHERE hash = ? AND kind = 'session'", hash_name(session))

    def note(self, person: str, key: str) -> str | None:
        """A person's own note on a paper; None if there is none."""
        found = self._read(NOTES, "SELECT * FROM own_notes WHERE person = ? AND key = ?", person, key)
        return found[0]["text"] if found else None

    def keep_note(self, person: str, key: str, text: str) -> None:
        self._write(NOTES.insert("update"), person, key, text)

    def log(self, person: str, action: str, outcome: str = "") -> None:
        """Add a line to the audit log, which goes back about 13 months."""
        now = time.time()
        with self._tables.transaction() as connection:
            connection.execute(AUDIT.insert(columns=_DEEDS), (now, person, action[:300], outcome[:200]))
            connection.execute("DELETE FROM audit WHERE at < ?", (now - _AUDIT_AGE,))

    def audit_lines(self, person: str = "", most: int = 200) -> list[dict[str, Any]]:
        """The last lines of the audit log, latest first."""
        query = "SELECT * FROM audit WHERE person = ? OR ? = '' ORDER BY number DESC LIMIT ?"
        return self._read(AUDIT, query, person, person, most)


def _spend(connection: TableConnection, kind: SecretKind, secret: str) -> str | None:
    used = "DELETE FROM secrets WHERE hash = ? AND kind = ? AND expires_at > ? RETURNING person"
    row = connection.execute(used, (hash_name(secret), kind, time.time())).fetchone()
    return None if row is None else str(row[0])


def _identity_row(subject: str, person: str, label: str = "") -> tuple[str | float, ...]:
    return hash_name(subject), "identity", person, label, "", time.time() + LIFETIMES["identity"]


def normalize_name(name: str) -> str:
    """The name of an account in lower case; raises `InputError` for an invalid name."""
    plain = name.strip().lower()
    if _NAME.fullmatch(plain) is None:
        message = f"{name[:80]!r}: a name has up to 40 letters from a to z, digits, hyphens and underscores."
        raise InputError(message, help="Choose a short name, such as ada or ada-l.")
    return plain
