"""The session that nodes work with: library, roles, journal and settings, opened once and shared.

The command line opens one per command; a graph on the LangGraph server or inside a parent graph uses a session shared
in the process (`shared_sessions.py`). Methods import what only runs need, so that commands start fast.
"""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ..documents import Paper
from ..documents.publication_status import PublicationStatus
from ..errors import InputError
from ..models.journal.journal import Journal
from ..models.journal.records import RunScope, Usage, total_cost
from ..settings.config import EXTRACTIVE, LOCAL_EMBEDDING, CitationStyle, RoleName, Settings
from ..stores.folder_home import discard_copy
from ..stores.home import Home
from ..stores.library import Library
from ..stores.tables import acting

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langgraph.runtime import Runtime

    from ..citations.checks.preferences import Preferences
    from ..models.context_size import Contexts
    from ..models.embeddings.protocol import EmbeddingModel
    from ..models.journal.budget import Budget
    from ..prompts import PromptLibrary
    from ..roles.run_roles import Roles
    from ..stores.author_memory import AuthorMemory
    from ..tools.found_evidence import EvidenceLimits

ROLE_NAMES: tuple[RoleName, ...] = ("agent", "reader", "writer", "judge", "summarizer")
LATEST_RUNS = 16
_READ_TOKENS = 60_000  # of single chunks read for a section without a chat model
# Vectors belong to the library, not to a run: the first run that needs one pays, and later runs reuse it.
_EMBEDDING_SCOPE = RunScope("embedding")


class EmptyLibraryError(InputError):
    """The library has no papers to cite."""

    default_help = "Index your papers first: {citeloom} ingest PAPERS --bib FILE."


@dataclass
class Session(AbstractContextManager["Session"], AbstractAsyncContextManager["Session"]):
    """Resources shared by a process's runs on one home; roles are created per run, since the journal counts by run."""

    settings: Settings
    home: Home
    library: Library
    journal: Journal
    prompts: PromptLibrary
    chat_model: BaseChatModel | None = None
    # By run; an entry lives only while a call or a `run` block uses it, so that a server's memory does not grow.
    _budgets: WeakValueDictionary[str, Budget] = field(default_factory=WeakValueDictionary)
    _scopes: WeakValueDictionary[str, RunScope] = field(default_factory=WeakValueDictionary)
    _roles: dict[str, Roles] = field(default_factory=dict)
    _contexts: list[Contexts] = field(default_factory=list)  # at most one, shared with copies of this session

    @property
    def preferences(self) -> Preferences:
        """The author's preferences for every text, in a form that can be checked."""
        from ..citations.checks.preferences import read_preferences

        return read_preferences(tuple(self.settings.preferences))

    @property
    def limits(self) -> EvidenceLimits:
        """The limits of a search; without a chat model, all found chunks are read at no cost, and the best kept."""
        from ..tools.found_evidence import EvidenceLimits

        names = set(EvidenceLimits.__dataclass_fields__) & set(type(self.settings).model_fields)
        own = {name: getattr(self.settings, name) for name in names}
        limits = EvidenceLimits(**own, banned=self.preferences.banned)
        if "reader" not in self.extractive:
            return replace(limits, top_k_final=None, per_paper=None)
        most = min(24, limits.top_k_initial)
        chunks = replace(limits, top_k_initial=most, read_tokens=_READ_TOKENS, window_tokens=1, waves=1, abstracts=0)
        return replace(chunks, paper_share=1.0, paper_margin=0.0, spread=1)

    @property
    def contexts(self) -> Contexts:
        if not self._contexts:
            from ..models.context_size import Contexts

            names = [name for name in ROLE_NAMES if name not in self.extractive]
            self._contexts.append(Contexts(self.settings, self.journal, names, self.chat_model))
        return self._contexts[0]

    @property
    def answer_style(self) -> CitationStyle:
        """The citation style of an answer: numeric, unless a style was configured."""
        return self.settings.cite_style if "cite_style" in self.settings.model_fields_set else "numeric"

    @property
    def custom_model_id(self) -> str:
        """An identifier of a chat model given as an object; empty if the settings name the model."""
        if self.chat_model is None:
            return ""
        from ..models.chat_caller import identify_model
        from ..models.http.endpoints import hash_key

        identity = identify_model(self.chat_model)
        return hash_key([identity.endpoint, identity.model, identity.parameters])[:16]

    def key_marks(self) -> list[str]:
        """Return the key marks to store with a run; raises `ConfigurationError` like `Settings.key_marks`."""
        return [] if self.chat_model is not None else self.settings.key_marks(ROLE_NAMES)

    @property
    def extractive(self) -> frozenset[RoleName]:
        """The roles that work without a chat model."""
        if self.chat_model is not None:
            return frozenset()
        return frozenset(name for name in ROLE_NAMES if self.settings.address_of(name)[0] == EXTRACTIVE)

    def notice(self, *, answer: bool = False) -> str:
        """Return one line on the limits of the extractive mode; empty when chat models write."""
        if not self.extractive:
            return ""
        stated = "your own statements are kept and passages near them listed; nothing is argued"
        listed = "the nearest passages are listed; nothing is summed up" if answer else stated
        return (
            f"Extractive mode: no chat model is configured, so {listed} or judged. "
            "For written prose connect one: 'citeloom setup', or Settings on the page."
        )

    def with_settings(self, **changes: Any) -> Session:
        """Return a copy of this session with changed settings, and with new roles and budgets."""
        return self.with_all_settings(self.settings.model_copy(update=changes))

    def with_all_settings(self, settings: Settings) -> Session:
        new, old = ((it.context_tokens, *map(it.address_of, ROLE_NAMES)) for it in (settings, self.settings))
        contexts = self._contexts if new == old else []
        return replace(self, settings=settings, _budgets=WeakValueDictionary(), _roles={}, _contexts=contexts)

    async def add_memory(self) -> Session:
        """Return this session with the author's memory added to its preferences."""
        settings = await asyncio.to_thread(add_memory, self.settings, self.home)
        return self if settings is self.settings else self.with_all_settings(settings)

    def adopt(self, settings: Settings) -> None:
        """Use these settings for everything that starts from now on; the copies that running work holds keep theirs."""
        self.settings, self._roles, self._contexts = settings, {}, []
        self._budgets = WeakValueDictionary()

    def retracted_papers(self, papers: Iterable[Paper]) -> dict[str, PublicationStatus]:
        """Return the status of each retracted paper among these, by key; blocks."""
        statuses = self.library.metadata.statuses(papers)
        return {key: status for key, status in sorted(statuses.items()) if status.retracted}

    @property
    def closed(self) -> bool:
        """Whether this session, or another one that shares its library, was closed."""
        return not self.journal.is_open

    def close(self) -> None:
        """Close library and journal; may be called twice."""
        self.library.close()
        self.journal.close()
        discard_copy(self.home)

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    async def require_papers(self) -> None:
        """Raise `EmptyLibraryError` when no paper is ready."""
        if not await asyncio.to_thread(self.library.papers):
            raise EmptyLibraryError(f"{self.home.name}: the library is empty.")

    @contextmanager
    def run(self, run_id: str, *, fresh: bool = False) -> Iterator[None]:
        """Work on a run: calls and embeddings in the block are billed to its budget and its part of the journal.

        A `fresh` run reuses only answers that are newer than its own start.
        """
        from ..models.journal.budget import bill_to

        scope = RunScope(run_id, fresh)
        if self._scopes.get(run_id) != scope:
            self._roles.pop(run_id, None)  # roles of a deleted run with the same id
            self.contexts.forget(run_id)
            self._scopes[run_id] = scope
        held = self.scope(run_id), self.budget(run_id)
        with bill_to(run_id, held[1]):
            yield

    def scope(self, run_id: str) -> RunScope:
        return self._scopes.setdefault(run_id, RunScope(run_id))

    async def usage(self, run_id: str) -> dict[str, Any]:
        """Return the cost of the run so far, including all resumptions."""
        spent = await self.journal.spending([run_id])
        return asdict(Usage.of(spent, total_cost(spent, self.settings.prices)))

    def spent_now(self) -> Usage:
        """Return what was spent and reused since this session was opened."""
        spent = self.journal.since_opened()
        return Usage.of(spent, total_cost(spent, self.settings.prices))

    def budget(self, run_id: str) -> Budget:
        from ..models.journal.budget import Budget, BudgetLimits

        if (known := self._budgets.get(run_id)) is not None:
            return known
        prices, person = self.settings.prices, acting.get()
        budget = Budget(BudgetLimits.of(self.settings), prices, self.journal, run_id)
        if person:
            home = self.home
            home.runs().note_owner(run_id)

            def of_person() -> Budget | None:
                account = home.accounts().find(person)
                limits = BudgetLimits(cost=0.0 if account is None else account.budget)  # none once it is removed
                return Budget(limits, prices, self.journal, *home.runs().owned_ids(person)) if limits else None

            budget.within = of_person
        return self._budgets.setdefault(run_id, budget)

    async def roles(self, runtime: Runtime[Any]) -> Roles:
        return await self.roles_of(self.run_id(runtime))

    @staticmethod
    def run_id(runtime: Runtime[Any]) -> str:
        info = runtime.execution_info
        return (info.thread_id if info else None) or "unthreaded"

    async def roles_of(self, run_id: str) -> Roles:
        """Return the roles of a run; those without a chat model are extractive."""
        if (cached := self._roles.get(run_id)) is not None:
            return cached
        scope = self.scope(run_id)
        self.contexts.retain(self._scopes)
        sizes = await self.contexts.sizes(run_id)
        roles = await asyncio.to_thread(_make_roles, self, scope, sizes)
        self._roles[run_id] = roles
        while len(self._roles) > LATEST_RUNS:
            self._roles.pop(next(iter(self._roles)))
        return roles

    async def learn_sizes(self, run_id: str) -> None:
        """Store the context sizes that a run has learned, and rebuild its roles accordingly."""
        await self.contexts.keep(run_id)
        self._roles.pop(run_id, None)


def add_memory(settings: Settings, home: Home) -> Settings:
    """Add the user's memory in this home to the settings, if it exists and is enabled; blocks."""
    if not settings.use_memory or not home.exists() or not home.has_memory():
        return settings
    lines = [note.text for note in memory_of(settings, home).notes()]
    known = list(dict.fromkeys([*settings.preferences, *lines]))
    return settings if known == settings.preferences else settings.model_copy(update={"preferences": known})


def memory_of(settings: Settings, home: Home) -> AuthorMemory:
    """Open the memory of the current person, else of the user in the settings, else of the machine's account."""
    from ..stores.author_memory import AuthorMemory  # slow import

    return AuthorMemory(home, acting.get() or settings.user or account_name())


def account_name() -> str:
    """Return the name of this machine's user, or "" if the account has none, as in a container."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""


def _make_roles(session: Session, scope: RunScope, sizes: Mapping[RoleName, int | None]) -> Roles:
    """Create the roles of a run: chat models where configured, else extractive; `sizes` are in tokens."""
    from ..roles.run_roles import extractive_roles

    settings, model = session.settings, session.chat_model
    bare = extractive_roles(session.library.embedding, summary_words=settings.summary_words)
    names = [name for name in ROLE_NAMES if name not in session.extractive]
    if not names:
        return bare
    from ..models.chat_caller import ChatCaller
    from ..roles.chat.chat_roles import chat_roles  # half a second, for runs with a chat model only
    from ..tools.tool_schemas import TOOL_SPECS

    budget = session.budget(scope.run_id)

    def caller(role: RoleName) -> ChatCaller:
        context, given = session.contexts.of(scope.run_id, role), role if model is None else model
        return ChatCaller(settings, given, journal=session.journal, scope=scope, budget=budget, context=context)

    return chat_roles(
        bare,
        {name: caller(name) for name in names},
        session.prompts,
        summary_words=settings.summary_words,
        tool_specs=TOOL_SPECS,
        max_output_tokens=settings.max_output_tokens,
        sizes=sizes,
        small_judge=settings.judge_protocol == "minicheck",
    )


def open_session(
    settings: Settings,
    home: Home,
    chat_model: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    *,
    create: bool = True,
    on_notice: Callable[[str], None] | None = None,
) -> Session:
    """Open a session, to be closed by the caller or a `with` block; blocks, but loads models only on first use.

    `on_notice` is called when opening takes long. Raises `InputError` for an unusable home, store or prompts folder,
    and if there is no library and `create` is off.
    """
    from ..prompts import PromptLibrary

    loaded = PromptLibrary(settings.prompts_dir)
    if not create:
        home.require_library()
    home.prepare()
    journal = home.open_journal()
    try:
        model = embedding_model(settings, journal, embeddings)
        library = Library.open(home, model, create=create, on_notice=on_notice)
    except BaseException:
        journal.close()
        raise
    session = Session(settings, home, library, journal, loaded, chat_model)
    if settings.retraction_watch is not None:
        from ..metadata.enriching import import_retraction_watch

        try:
            import_retraction_watch(library.metadata, settings.retraction_watch.expanduser(), on_notice)
        except InputError as error:  # the previous import stays in effect
            if on_notice is not None:
                on_notice(f"Warning: {error}")
    return session


def embedding_model(settings: Settings, journal: Journal, embeddings: Embeddings | None = None) -> EmbeddingModel:
    """Return the embedding model given as an object, else the configured one."""
    if embeddings is None and settings.embedding_model == LOCAL_EMBEDDING:
        from ..models.embeddings.bundled_models import LocalEmbedding

        return LocalEmbedding()
    from ..models.embeddings.remote import embedding_for, endpoint_embedding

    if embeddings is not None:
        return embedding_for(embeddings, settings, journal=journal, scope=_EMBEDDING_SCOPE)
    return endpoint_embedding(settings, journal=journal, scope=_EMBEDDING_SCOPE)
