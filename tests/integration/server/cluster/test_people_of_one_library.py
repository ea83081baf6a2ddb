"""The people of a library in PostgreSQL are kept apart as those of a folder: the same tests, at two servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from citeloom.ingestion.ingest import ingest
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from tests.integration.server.test_people_access import (
    Group,
    group_at,
    test_a_token_grants_only_its_scopes_and_nothing_after_it_ends,
    test_another_person_sees_and_changes_nothing_on_any_route_or_stream,
    test_another_persons_identical_question_is_a_run_of_their_own,
    test_the_log_says_who_changed_what,
    test_tools_keep_people_apart_and_readers_away_from_costs,
)
from tests.support.people import signed_in
from tests.support.postgres_server import new_schema
from tests.support.run_fixtures import PAPERS
from tests.support.sample_library import SAMPLES
from tests.support.served_app import served_app

__all__ = [
    "test_a_token_grants_only_its_scopes_and_nothing_after_it_ends",
    "test_another_person_sees_and_changes_nothing_on_any_route_or_stream",
    "test_another_persons_identical_question_is_a_run_of_their_own",
    "test_the_log_says_who_changed_what",
    "test_tools_keep_people_apart_and_readers_away_from_costs",
]
pytestmark = [pytest.mark.long, pytest.mark.attack]


@pytest.fixture(scope="module")
def group(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    with pytest.MonkeyPatch.context() as patch, new_schema(postgres) as url:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("caches")))
        address = parse_home(url)
        opened = Library.open(find_home(address), LocalEmbedding())
        try:
            asyncio.run(ingest(opened, [SAMPLES / f"{key}.md" for key in PAPERS], bib=SAMPLES / "library.bib"))
        finally:
            opened.close()
        with group_at(address) as made:
            yield made


def test_a_sign_in_is_valid_on_every_server_and_ends_on_all(group: Group, tmp_path: Path) -> None:
    run = f"/api/v1/runs/{group.ids['run_id']}"
    with served_app(group.home) as other, group.browser("ada") as ada, signed_in(other.url, "bo") as bo:
        assert ada.get(f"{other.url}{run}").status_code == 200, "cookies know no ports"
        assert bo.get(run).status_code == bo.get(f"{run}/events").status_code == 404
        assert ada.post(f"{other.url}/sign-out-everywhere", headers={"Origin": other.url}).status_code == 303
        assert ada.get(run).status_code == 401
