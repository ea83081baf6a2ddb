"""The context sizes of the models in a run: configured, queried once, or learned from a refusal."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..settings.config import RoleName, Settings
from .concurrency import gather_all
from .context_size import ContextSize, asked_size
from .journal.journal import Journal
from .journal.spending_table import keep_sizes, kept_sizes

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_EndpointModel = tuple[str, str]  # endpoint and model


class Contexts:
    """The context sizes of the roles that call a chat model, by run.

    Args:
        roles: the roles that call one.
        given: the custom model that serves all of them, if any; its server is not queried.
    """

    def __init__(
        self, settings: Settings, journal: Journal, roles: Sequence[RoleName], given: BaseChatModel | None = None
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._roles = tuple(roles)
        self._given = given
        self._runs: dict[str, dict[_EndpointModel, ContextSize]] = {}
        self._asked: dict[_EndpointModel, int | None] = {}

    async def sizes(self, run_id: str) -> dict[RoleName, int | None]:
        """The context size of each role, None if unknown; stores the known sizes with the run.

        Raises `JournalPausedError`, and `ConfigurationError` if a key may not be sent to the address of a role.
        """
        if not self._roles:
            return {}
        if run_id not in self._runs:
            pairs = {self._endpoint_model(name): name for name in self._roles}
            kept = await self._journal.submit(partial(kept_sizes, run=run_id))
            missing = [pair for pair in pairs if pair not in kept]
            found = await gather_all(self._determine(pair, pairs[pair]) for pair in missing)
            known = {pair: kept.get(pair) for pair in pairs} | dict(zip(missing, found, strict=True))
            if missing:
                await self._journal.submit(partial(keep_sizes, run=run_id, sizes=known))
            self._runs[run_id] = {pair: ContextSize(size) for pair, size in known.items()}
        return {name: self.of(run_id, name).size for name in self._roles}

    def of(self, run_id: str, role: RoleName) -> ContextSize:
        """The context of a role's model; `sizes` must have been called before."""
        return self._runs[run_id][self._endpoint_model(role)]

    def lessons(self, run_id: str) -> int:
        """How often a refusal in the run has led to a smaller size."""
        return sum(known.lessons for known in self._runs.get(run_id, {}).values())

    async def keep(self, run_id: str) -> None:
        """Store the learned sizes with the run."""
        sizes = {pair: known.size for pair, known in self._runs[run_id].items()}
        await self._journal.submit(partial(keep_sizes, run=run_id, sizes=sizes))

    def forget(self, run_id: str) -> None:
        """Drop the cached sizes of a run, so that they are read again from the journal."""
        self._runs.pop(run_id, None)

    def retain(self, run_ids: Container[str]) -> None:
        """Drop the cached sizes of all other runs."""
        for run_id in [known for known in self._runs if known not in run_ids]:
            self.forget(run_id)

    async def _determine(self, pair: _EndpointModel, role: RoleName) -> int | None:
        if self._settings.context_tokens is not None or self._given is not None:
            return self._settings.context_tokens
        if pair not in self._asked:
            model, url, key = self._settings.role_endpoint(role)
            self._asked[pair] = await asked_size(url, key, model)
        return self._asked[pair]

    def _endpoint_model(self, role: RoleName) -> _EndpointModel:
        if self._given is not None:
            return "", ""
        from .http.model_identity import endpoint_name

        model, url = self._settings.address_of(role)
        return endpoint_name(url), model
