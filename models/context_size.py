"""The context size of a model, and how much of it each part of a prompt may take.

It is configured (`CITELOOM_CONTEXT_TOKENS`), listed by the server, or learned from a refusal or a cut answer, and
stored with the run, so that a resumed run builds the prompts the journal knows. Without it nothing is shortened.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from pydantic import SecretStr

from ..settings.config import RoleName, Settings
from ..settings.key_trust import endpoint_name
from .concurrency import gather_all
from .http.failures import classify_failure
from .journal.journal import Journal
from .journal.journal_database import load_context_sizes, save_context_sizes

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


ItemT = TypeVar("ItemT")
LEAST_SIZE: Final = 2_048  # below this, the instructions leave no room for a source
WHOLE: Final = 10**9  # for parts of a prompt that are shortened only if the context size is known
_MOST_SIZE: Final = 100_000_000
_LIST_TIMEOUT: Final = 3.0  # seconds to wait for a server's list of models
_CHARACTERS: Final = 4  # per token, roughly: hence the margin
_MARGIN: Final = 0.15
_SHORT_TEXT: Final = 400  # characters, covered by the margin
_USUAL_CALL: Final = 4_600  # tokens of a reader call: windows and instructions
# Shares of the context reserved for the answer: a text or list of findings, or a turn of the planner.
OF_A_TEXT: Final = 1 / 4
OF_A_TURN: Final = 1 / 8
# Context sizes are multiples of these, which distinguishes a full context from other limits.
_OLLAMA_BLOCK: Final = 1_024
_LLAMA_BLOCK: Final = 256
_LONG_TOKEN: Final = 5  # characters: hardly any prompt has longer tokens on average
_SMALLER: Final = 0.75  # factor for the next try if a refusal names no size, or the size that the prompt was built for
# Most exact first: the currently loaded size, then the maximum of the model.
_STATED: Final = (
    "loaded_context_length",
    "n_ctx",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx_train",
)
_REFUSED: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"n_ctx\D{0,5}(\d[\d,]*)",
        r"(?:context|model)[ _-]?(?:length|window|size)[^\d.]{0,30}(\d[\d,]*)",
        r"> (\d[\d,]*) (?:tokens )?maximum",
    )
)


@dataclass(frozen=True, slots=True)
class Room:
    """The token budget of a prompt and its answer, in approximate tokens; without a `size` there is no limit."""

    size: int | None = None
    output: int = 0  # the limit of one answer

    @classmethod
    def of(cls, size: int | None, output: int, part: float = OF_A_TEXT) -> Self:
        """The budget for a context of `size` tokens; an answer gets `output`, but at most this `part` of it."""
        return cls(size, output if size is None else min(output, int(size * part)))

    def left(self, usual: int, *beside: str, share: float = 1.0) -> int:
        """Tokens for a part of the prompt: up to `usual`, but at most a `share` of the room that `beside` leaves."""
        if self.size is None:
            return usual
        free = round(self.size * (1 - _MARGIN)) - self.output - sum(map(_tokens, beside))
        return max(0, min(usual, int(free * share)))

    @property
    def is_small(self) -> bool:
        """Whether even a reader call, the smallest call, has less room than usual."""
        return self.left(_USUAL_CALL) < _USUAL_CALL

    def holds(self, *texts: str) -> bool:
        return self.size is None or self.left(WHOLE) >= sum(map(_tokens, texts))

    def shorten(self, text: str) -> str:
        """Truncate a text for which prompts reserve no separate room, such as a complaint."""
        return text if self.size is None else text[:_SHORT_TEXT]

    def words(self, asked: int) -> int:
        """The length in words to request, so that the text with its markers fits into one answer."""
        return asked if self.size is None else min(asked, self.output // 2)


UNLIMITED: Final = Room()


def group_batches(
    items: Iterable[ItemT], parts: Callable[[ItemT], Mapping[Any, int]], tokens: int, most: int
) -> Iterator[list[ItemT]]:
    """Group items, in order, into calls of at least one and at most `most` items, and about `tokens` tokens.

    `parts` gives the parts that an item shows, with their tokens; a part that several items of a call show counts once.
    """
    batch: list[ItemT] = []
    shown: dict[Any, int] = {}
    for item in items:
        own = parts(item)
        if batch and (len(batch) == most or sum({**shown, **own}.values()) > tokens):
            yield batch
            batch, shown = [], {}
        batch.append(item)
        shown.update(own)
    if batch:
        yield batch


class ContextSize:
    """The context size of one model in a run; shared by the roles that call it."""

    def __init__(self, size: int | None = None) -> None:
        self.size = size
        self.lessons = 0

    def learn_refusal(self, message: str, asked: int, made_for: int | None) -> None:
        """Learn the size from the refusal `message` of a call of about `asked` tokens, prompt and answer.

        `made_for` is the context size that the prompt was built for; of several prompts refused at once, only the first
        counts.
        """
        if self.size != made_for:
            return
        stated = find_refused_size(message)
        if stated is None or (self.size is not None and stated >= self.size):
            stated = int(min(self.size or asked, asked) * _SMALLER)
        if stated >= LEAST_SIZE:
            self.size = stated
            self.lessons += 1


def find_stated_size(models: object, model: str) -> int | None:
    """The context size of `model` in a server's list of models, or of the only model in it."""
    entries = models.get("data") if isinstance(models, Mapping) else None
    listed = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    named = [entry for entry in listed if entry.get("id") == model] or (listed if len(listed) == 1 else [])
    for entry in named:
        meta = entry.get("meta")
        known = {**(meta if isinstance(meta, Mapping) else {}), **entry}
        for name in _STATED:
            if (size := _size(known.get(name))) is not None:
                return size
    return None


def find_refused_size(message: str) -> int | None:
    """The context size named in a refusal message."""
    for pattern in _REFUSED:
        for match in pattern.finditer(message):
            if (size := _size(int(match[1].replace(",", "")[:12]))) is not None:
                return size
    return None


def infer_context_size(read: int, written: int, *, sent: int, most: int | None, cut: bool) -> int | None:
    """The context size inferred from a truncated prompt or answer; None if there is no sign of truncation.

    Ollama reads only as much of a prompt as fits; llama.cpp ends an answer at the end of the context. The server counts
    `read` tokens of the prompt of `sent` characters, and `written` of an answer limited to `most`, perhaps `cut` off.
    """
    size = 0
    if read % _OLLAMA_BLOCK == 0 and read * _LONG_TOKEN < sent:
        size = read
    elif cut and most is not None and written < most and (read + written + 1) % _LLAMA_BLOCK in (0, 1):
        size = (read + written + 1) // _LLAMA_BLOCK * _LLAMA_BLOCK
    return size if size >= LEAST_SIZE else None


async def list_models(url: str, key: SecretStr | None) -> object:
    """The list of models that an endpoint gives; None if it does not answer in time."""
    from .http.client import Endpoint

    try:
        async with asyncio.timeout(_LIST_TIMEOUT):
            return await Endpoint(url, key, _LIST_TIMEOUT).ask("/models")
    except Exception as error:
        if classify_failure(error) is None:
            raise
        return None  # the first call will show whether the endpoint is usable at all


def _size(value: object) -> int | None:
    usable = isinstance(value, int) and not isinstance(value, bool) and 256 <= value <= _MOST_SIZE
    return int(str(value)) if usable else None


def _tokens(text: str) -> int:
    return len(text) // _CHARACTERS + 1


_EndpointModel = tuple[str, str]  # endpoint and model


@dataclass(eq=False)
class Contexts:
    """The context sizes of the roles that call a chat model, by run."""

    settings: Settings
    journal: Journal
    roles: Sequence[RoleName]
    given: BaseChatModel | None = None  # serves all of them; its server is not queried
    _runs: dict[str, dict[_EndpointModel, ContextSize]] = field(default_factory=dict, init=False)
    _asked: dict[_EndpointModel, int | None] = field(default_factory=dict, init=False)

    async def sizes(self, run_id: str) -> dict[RoleName, int | None]:
        """The context size of each role, None if unknown; stores the known sizes with the run.

        Raises `JournalPausedError`, and `ConfigurationError` if a key may not be sent to the address of a role.
        """
        if not self.roles:
            return {}

        async def determine(pair: _EndpointModel) -> int | None:
            if self.settings.context_tokens is not None or self.given is not None:
                return self.settings.context_tokens
            if pair not in self._asked:
                model, url, key = self.settings.role_endpoint(pairs[pair])
                self._asked[pair] = find_stated_size(await list_models(url, key), model)
            return self._asked[pair]

        if run_id not in self._runs:
            pairs = {self._endpoint_model(name): name for name in self.roles}
            kept = await self.journal.submit(partial(load_context_sizes, run=run_id))
            missing = [pair for pair in pairs if pair not in kept]
            found = await gather_all(determine(pair) for pair in missing)
            known = {pair: kept.get(pair) for pair in pairs} | dict(zip(missing, found, strict=True))
            if missing:
                await self.journal.submit(partial(save_context_sizes, run=run_id, sizes=known))
            self._runs[run_id] = {pair: ContextSize(size) for pair, size in known.items()}
        return {name: self.of(run_id, name).size for name in self.roles}

    def of(self, run_id: str, role: RoleName) -> ContextSize:
        """The context of a role's model; `sizes` must have been called before."""
        return self._runs[run_id][self._endpoint_model(role)]

    def lessons(self, run_id: str) -> int:
        """The number of refusals in the run that led to a smaller size."""
        return sum(known.lessons for known in self._runs.get(run_id, {}).values())

    async def keep(self, run_id: str) -> None:
        """Store the learned sizes with the run."""
        sizes = {pair: known.size for pair, known in self._runs[run_id].items()}
        await self.journal.submit(partial(save_context_sizes, run=run_id, sizes=sizes))

    def forget(self, run_id: str) -> None:
        """Drop the cached sizes of a run, so that they are read again from the journal."""
        self._runs.pop(run_id, None)

    def retain(self, run_ids: Container[str]) -> None:
        """Drop the cached sizes of all other runs."""
        for run_id in [known for known in self._runs if known not in run_ids]:
            self.forget(run_id)

    def _endpoint_model(self, role: RoleName) -> _EndpointModel:
        if self.given is not None:
            return "", ""
        model, url = self.settings.address_of(role)
        return endpoint_name(url), model
