"""The address of a database is never shown with its secrets, and its tables are brought up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from citeloom.errors import CiteloomError, ConfigurationError, InputError, OtherFormatError
from citeloom.settings.addresses import DatabaseUrl, parse_home
from citeloom.settings.config import load_settings
from citeloom.stores.accounts import ACCOUNT_TABLES
from citeloom.stores.folder_home import find_home
from citeloom.stores.home import GRID_TABLES, UnsafeHomeError
from citeloom.stores.postgres import migrations
from citeloom.stores.postgres.database import Database, require_extra
from citeloom.stores.run_register import OWNED, UPDATES
from tests.support.cli_process import ROOT, run

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")
SECRET = "s3cr3t/pässword"
ESCAPED = "s3cr3t%2Fp%C3%A4ssword"
UNREACHABLE = f"postgresql://ada:{ESCAPED}@127.0.0.1:9/library?connect_timeout=2"


def leaks(text: str) -> bool:
    return any(secret in text for secret in (SECRET, ESCAPED, "s3cr3t"))


@pytest.mark.parametrize("command", [["papers", "list"], ["doctor"], ["doctor", "--json"], ["runs", "list"], ["usage"]])
def test_an_unreachable_server_gets_one_line_without_the_password(tmp_path: Path, command: list[str]) -> None:
    done = run(*command, cwd=tmp_path, settings={"HOME": UNREACHABLE})
    assert done.code == 2
    assert len(done.errors) == 1 and "127.0.0.1" in done.errors[0]
    assert not leaks(done.out + done.err)
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "address",
    [
        f"postgres:/ada:{ESCAPED}@host/library",
        f"postgresql+psycopg://ada:{ESCAPED}@host/library",
        f"Postgresql://ada:{ESCAPED}@host/library",
        f"postgressql://ada:{ESCAPED}@host/library",
        f"mysql://ada:{ESCAPED}@host/library",
        f"postgresql://ada:{ESCAPED}@host:port/library",
        f"postgresql://ada:{ESCAPED}@host/library?nonsense=1",
    ],
)
def test_a_mistyped_address_is_refused_without_being_shown(tmp_path: Path, address: str) -> None:
    done = run("papers", "list", cwd=tmp_path, settings={"HOME": address})
    assert done.code == 2
    assert len(done.errors) == 1
    assert not leaks(done.out + done.err)
    assert list(tmp_path.iterdir()) == [], "nor is a folder of this name created"


def test_an_address_is_shown_without_user_and_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_HOME", UNREACHABLE)
    settings = load_settings()
    assert isinstance(settings.home, DatabaseUrl)
    assert settings.home.secret == UNREACHABLE
    shown = [str(settings), repr(settings), settings.model_dump_json(), repr(settings.home), settings.home.mark]
    assert not any(leaks(text) or re.search(r"\bada\b", text) for text in shown)
    other = DatabaseUrl(UNREACHABLE.replace(ESCAPED, "another"))
    assert other.mark == settings.home.mark, "caches stay when the password changes"


def test_a_settings_file_in_a_folder_cannot_set_a_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"CITELOOM_HOME={UNREACHABLE}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = run("papers", "list", cwd=tmp_path)
    assert done.code == 2 and "names this database as the home" in done.errors[0]
    assert not leaks(done.out + done.err)
    with pytest.raises(UnsafeHomeError):
        find_home(parse_home(UNREACHABLE), by_user=False)


def test_a_database_without_a_library_says_so(url: str) -> None:
    home = find_home(parse_home(url))
    assert not home.exists()
    with pytest.raises(InputError, match="holds no library"):
        home.require_library()
    home.prepare()
    assert home.exists()


def test_a_library_in_another_schema_of_the_search_path_is_separate(url: str) -> None:
    find_home(parse_home(url)).prepare()
    with psycopg.connect(url, autocommit=True) as connection:
        (outer,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
        inner = f"{outer}_Inner"
        connection.execute(f'CREATE SCHEMA "{inner}"')
        try:
            own = f'{url.partition("options=")[0]}options={quote(f"""-csearch_path="{inner}",{outer},public""")}'
            home = find_home(parse_home(own))
            assert not home.exists()
            home.prepare()
            query = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"
            counts = [connection.execute(query, (name,)).fetchone() for name in (inner, outer)]
            assert counts[0] == counts[1]
        finally:
            connection.execute(f'DROP SCHEMA "{inner}" CASCADE')


def test_tables_of_a_newer_version_are_not_touched(url: str) -> None:
    home = find_home(parse_home(url)).prepare()
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO schema_versions VALUES (9999)")
    migrations._prepared.clear()
    with pytest.raises(OtherFormatError):
        home.prepare()


def test_older_tables_get_missing_columns_and_keep_their_rows(url: str) -> None:
    home = find_home(parse_home(url)).prepare()
    home.conversations().begin("chat-1")
    with psycopg.connect(url) as connection:
        for table in (*GRID_TABLES, UPDATES, OWNED, *ACCOUNT_TABLES):
            connection.execute(f"DROP TABLE {table.name}")
        connection.execute("UPDATE schema_versions SET number = 1")
    migrations._prepared.clear()
    backend = home.prepare()
    backend.evidence_tables().save("table-1", "Which looms?", {"columns": [], "papers": []})
    assert [table.question for table in backend.evidence_tables().all()] == ["Which looms?"]
    assert [entry.thread_id for entry in backend.conversations().all()] == ["chat-1"]
    backend.accounts().invite("ada", "owner")
    assert backend.runs().comparisons() == {} and backend.runs().owned_ids("ada") == []


def test_processes_that_start_at_once_create_the_tables_once(url: str) -> None:
    script = (
        "import sys\nfrom citeloom.settings.addresses import parse_home\n"
        "from citeloom.stores.folder_home import find_home\n"
        "sys.stdin.readline()\nfind_home(parse_home(sys.argv[1])).prepare()\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, url], stdin=subprocess.PIPE, text=True, cwd=ROOT)
        for _ in range(3)
    ]
    for process in started:
        process.communicate("go\n")
    assert [process.returncode for process in started] == [0, 0, 0]


def test_a_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    require_extra.cache_clear()
    with pytest.raises(ConfigurationError, match="psycopg_pool") as missing:
        find_home(parse_home(UNREACHABLE)).prepare()
    assert "-e '.[postgres]'" in missing.value.help


def test_the_missing_extra_is_reported_when_the_database_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    require_extra.cache_clear()
    database = Database(DatabaseUrl("postgresql://weaver@127.0.0.1:9/library"))
    with pytest.raises(CiteloomError) as failed, database.transaction():
        pass
    assert "-e '.[postgres]'" in f"{failed.value.message} {failed.value.help}"
