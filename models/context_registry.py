"""What a run knows of how much the servers of its roles hold: set, asked for once, or learned from a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..config import RoleName, Settings
from .concurrency import gather_all
from .context_size import ContextSize, asked_size
from .journal.journal import Journal
from .journal.spending_table import keep_sizes, kept_sizes

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_Place = tuple[str, str]  # endpoint and model


class Contexts:
    """The context sizes of the roles that ask a chat model, by run.

    Args:
        roles: those that do.
        given: the model of all of them, where one was handed in: its server is not asked.
    """

    def __init__(
        self, settings: Settings, journal: Journal, roles: Sequence[RoleName], given: BaseChatModel | None = None
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._roles = tuple(roles)
        self._given = given
        self._runs: dict[str, dict[_Place, ContextSize]] = {}
        self._asked: dict[_Place, int | None] = {}

    async def sizes(self, run_id: str) -> dict[RoleName, int | None]:
        """The size for each role, None where it is not known; what is known is kept with the run from here on.

        Raises `JournalPausedError`, and `ConfigurationError` where a key may not go to the address of a role.
        """
        if not self._roles:
            return {}
        if run_id not in self._runs:
            places = {self._place(name): name for name in self._roles}
            kept = await self._journal.submit(partial(kept_sizes, run=run_id))
            missing = [place for place in places if place not in kept]
            found = await gather_all(self._found(place, places[place]) for place in missing)
            known = {place: kept.get(place) for place in places} | dict(zip(missing, found, strict=True))
            if missing:
                await self._journal.submit(partial(keep_sizes, run=run_id, sizes=known))
            self._runs[run_id] = {place: ContextSize(size) for place, size in known.items()}
        return {name: self.of(run_id, name).size for name in self._roles}

    def of(self, run_id: str, role: RoleName) -> ContextSize:
        """What is known of the context of a role; `sizes` was asked for before."""
        return self._runs[run_id][self._place(role)]

    def lessons(self, run_id: str) -> int:
        """How often a refusal in the run has taught a smaller size."""
        return sum(known.lessons for known in self._runs.get(run_id, {}).values())

    async def keep(self, run_id: str) -> None:
        """Keep with the run what it has learned."""
        sizes = {place: known.size for place, known in self._runs[run_id].items()}
        await self._journal.submit(partial(keep_sizes, run=run_id, sizes=sizes))

    def forget(self, run_id: str) -> None:
        """Read anew what is kept with a run."""
        self._runs.pop(run_id, None)

    async def _found(self, place: _Place, role: RoleName) -> int | None:
        if self._settings.context_tokens is not None or self._given is not None:
            return self._settings.context_tokens
        if place not in self._asked:
            model, url, key = self._settings.role_endpoint(role)
            self._asked[place] = await asked_size(url, key, model)
        return self._asked[place]

    def _place(self, role: RoleName) -> _Place:
        if self._given is not None:
            return "", ""
        from .http.model_identity import endpoint_name

        model, url = self._settings.address_of(role)
        return endpoint_name(url), model
