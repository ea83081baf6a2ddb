"""A session that serves many runs, as a server's does, keeps nothing of finished runs."""

from __future__ import annotations

import gc
from pathlib import Path

from citeloom.graph.session import LATEST_RUNS, open_session
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome

SETTINGS = Settings(chat_model="fake", chat_base_url="http://127.0.0.1:1/v1", max_calls=5, context_tokens=8_000)
MANY = 3 * LATEST_RUNS


async def test_a_sessions_memory_does_not_grow_with_the_number_of_runs(home: Path) -> None:
    with open_session(SETTINGS, FolderHome(home)) as session:
        for number in range(MANY):
            with session.run(f"run {number}", fresh=True):
                await session.roles_of(f"run {number}")
        gc.collect()
        assert len(session._scopes) <= LATEST_RUNS
        assert len(session._budgets) <= LATEST_RUNS
        assert len(session.contexts._runs) <= LATEST_RUNS + 1


def test_copies_share_learned_context_sizes_unless_models_or_contexts_differ(home: Path) -> None:
    with open_session(SETTINGS, FolderHome(home)) as session:
        assert session.with_settings(context_tokens=4_096).contexts.settings.context_tokens == 4_096
        assert session.contexts.settings.context_tokens == 8_000
        assert session.with_settings(max_calls=1).contexts is session.contexts
        assert session.with_settings(chat_model="other").contexts is not session.contexts


async def test_a_fresh_run_in_progress_keeps_its_budget_and_stays_fresh(home: Path) -> None:
    with open_session(SETTINGS, FolderHome(home)) as session, session.run("slow", fresh=True):
        roles, budget = await session.roles_of("slow"), id(session.budget("slow"))
        for number in range(MANY):
            with session.run(f"run {number}"):
                await session.roles_of(f"run {number}")
        gc.collect()
        assert id(session.budget("slow")) == budget
        assert session.scope("slow").fresh
        assert await session.roles_of("slow") is not roles, "only the roles of the latest runs are cached"
