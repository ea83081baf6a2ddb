"""What was refused, replaced or deleted leaves nothing behind: the home has the same files and rows as before."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from citeloom import aingest, aopen_library
from citeloom.cli import command_line
from citeloom.ingestion.doctor import examine
from citeloom.runs.execution import delete_conversation
from citeloom.settings.addresses import DatabaseUrl
from citeloom.stores.folder_home import find_home
from citeloom.stores.server_jobs import JobOrder
from tests.integration.stores.postgres.conftest import postgres, url
from tests.support.inventory import Inventory, inventory
from tests.support.plain_pdf import Line, write_pdf
from tests.support.run_fixtures import PAPERS, ROOT, experiment
from tests.support.served_app import Served, served_app

pytestmark = pytest.mark.attack

__all__ = ["experiment", "postgres", "url"]
SAMPLES = ROOT / "examples" / "library"
BLANK = b"\n" * 600_000  # which takes room, and no time to index
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
HomeAddress = Path | DatabaseUrl


@pytest.fixture(params=["folder", "postgres"])
def address(request: pytest.FixtureRequest) -> HomeAddress:
    """A home with the sample papers."""
    if request.param == "folder":
        home: Path = request.getfixturevalue("home")
        return home
    database = DatabaseUrl(request.getfixturevalue("url"))

    async def fill() -> None:
        async with aopen_library(database.secret) as opened:
            await aingest(opened, [SAMPLES / f"{key}.md" for key in PAPERS], bib=SAMPLES / "library.bib")

    asyncio.run(fill())
    return database


@pytest.fixture
def served(address: HomeAddress) -> Iterator[Served]:
    with served_app(address) as server:
        yield server


def paper(text: str) -> bytes:
    return f"# Looms\n\n## Introduction\n\nThe shuttle of the loom weaves {text} into cloth.\n".encode()


def upload(served: Served, *files: tuple[str, bytes], key: str = "", **fields: str) -> dict[str, Any]:
    """The report of the ingest of these files."""
    given = [("files", file) for file in files]
    headers = {"Idempotency-Key": key} if key else {}
    sent = served.api.post("/papers", files=given, data=fields, headers=headers)
    assert sent.status_code == 202, sent.text
    last = served.events(f"/ingests/{sent.json()['id']}/events")[-1]
    assert last.name == "done", last
    result: dict[str, Any] = last.data["result"]
    return result


def pdf(tmp_path: Path, text: str) -> bytes:
    file = tmp_path / "made.pdf"
    write_pdf(file, [Line("Looms"), Line("1 Introduction"), Line(f"The shuttle of the loom weaves {text} into cloth.")])
    return file.read_bytes()


def changed(address: HomeAddress, before: Inventory) -> list[tuple[str, str]]:
    """What was added to the home, and what it lost."""
    return sorted((place, content[:200]) for place, content in inventory(address) ^ before)


def uploaded(address: HomeAddress) -> list[str]:
    """The names of the files below `papers`, and of those in the table of uploads."""
    home = find_home(address)
    files = {path.name for path in home.papers.rglob("*") if path.is_file()}
    return sorted(files | {name for names in home.uploads().files().values() for name in names})


def delete(served: Served, *paths: str) -> None:
    for path in paths:
        assert served.api.delete(path).status_code == 204, path


def without_jobs(found: list[tuple[str, str]]) -> list[str]:
    """The places, but for ended jobs that a database shows for minutes and the hashes of what ended seconds ago."""
    brief = ("server_jobs", "server_events", "endings", "server.sqlite:endings")
    return [place for place, _ in found if place not in brief]


def test_refused_files_leave_nothing_behind(served: Served, address: HomeAddress, tmp_path: Path) -> None:
    upload(served, ("looms.md", paper("wool")), ("looms.notes.md", b"My note."), ("wool.pdf", pdf(tmp_path, "wool")))
    mine = ["looms.md", "looms.notes.md", "wool.pdf"]
    assert uploaded(address) == mine
    held = inventory(address)
    report = upload(
        served,
        ("broken.pdf", b"no pdf"),
        ("looms.md", paper("silk")),
        ("looms.notes.md", b"A note on a paper that was refused."),
        ("okafor2022ensembles.notes.md", b"A note on a paper in another folder."),
        ("copy.md", paper("wool")),
        ("copy.pdf", pdf(tmp_path, "wool")),
        ("wool.pdf", pdf(tmp_path, "flax")),
    )
    assert (report["added"], report["updated"]) == ([], []) and len(report["refused"]) == 3
    assert without_jobs(changed(address, held)) == []
    alone = served.api.post("/papers", files=[("files", ("looms.notes.md", b"A note without its paper."))]).json()["id"]
    failed = served.events(f"/ingests/{alone}/events")[-1].data["detail"]
    assert failed.startswith("looms.notes.md: no papers found")
    assert served.api.post("/papers", files=[("files", ("a.exe", b"MZ")), ("files", ("a.md", b""))]).status_code == 422
    assert uploaded(address) == mine


def test_an_upload_to_a_busy_server_leaves_nothing_behind(address: HomeAddress) -> None:
    with served_app(address, max_active=1, max_waiting=-1) as served:
        for _ in range(3):
            answer = served.api.post("/papers", files=[("files", ("looms.md", paper("wool")))])
            assert answer.status_code == 429 and uploaded(address) == []


def test_concurrent_replacements_leave_one_file_and_none_after_the_deletion(
    served: Served, address: HomeAddress
) -> None:
    upload(served, ("looms.md", paper("wool")))
    cloths = ["silk", "flax", "hemp", "jute", "ramie", "nettle"]
    with ThreadPoolExecutor(len(cloths)) as pool:
        list(pool.map(lambda cloth: upload(served, ("looms.md", paper(cloth)), replace="true"), cloths))
    home = find_home(address)
    stored = [name for names in home.uploads().files().values() for name in names]
    assert stored == ["looms.md"] and len(list(home.papers.rglob("*.md"))) == 1
    delete(served, "/papers/looms")
    assert uploaded(address) == [] and list(home.papers.iterdir()) == []


def test_a_stopped_ingest_leaves_nothing_behind(served: Served, address: HomeAddress) -> None:
    before = inventory(address)
    many = [("files", (f"looms{number}.md", paper(f"wool {number}"))) for number in range(40)]
    sent = served.api.post("/papers", files=many).json()["id"]
    served.post(f"/ingests/{sent}/cancel")
    kept = [found["key"] for found in served.api.get("/papers", params={"q": "looms", "limit": 50}).json()["papers"]]
    assert uploaded(address) == sorted(f"{key}.md" for key in kept)
    delete(served, *(f"/papers/{key}" for key in kept))
    assert without_jobs(changed(address, before)) == []


def test_deletions_leave_nothing_behind(
    served: Served, address: HomeAddress, experiment: dict[str, Any], tmp_path: Path
) -> None:
    before = inventory(address)
    plots = served.api.post("/plots", files=[("files", ("roc.png", PNG))]).json()["id"]
    shown = {**experiment, "plots": [{"path": "roc.png", "caption": "The curve"}]}
    upload(served, ("looms.pdf", pdf(tmp_path, "wool")), ("looms.notes.md", b"My note."))
    upload(served, ("looms.pdf", pdf(tmp_path, "silk")), replace="true", key="upload")
    asked = {"experiment": shown, "plot_upload": plots}
    run = served.post("/sections/discussion", asked, Idempotency_Key="section").json()["thread_id"]
    edit = {"position": 0, "text": "In the user's words.", "check": False, "keep": True}
    assert served.post(f"/runs/{run}/sentences", edit).status_code == 200
    question = {"question": "What does the loom weave?"}
    answer = served.post("/research", question, Idempotency_Key="answer").json()["thread_id"]
    thread = served.conversation()
    turns = f"/conversations/{thread}/turns"
    assert served.post(turns, question, Idempotency_Key="turn").status_code == 200
    assert served.post(turns, {"question": "And of what?"}).status_code == 200
    assert served.api.get("/papers/looms/pages/1.png").status_code == 200
    delete(served, f"/runs/{run}", f"/runs/{answer}", f"/conversations/{thread}", "/papers/looms")
    assert without_jobs(changed(address, before)) == []
    assert [found for found in examine(served.state.session.library) if found.level == "problem"] == []


def test_the_command_line_deletes_files_stored_by_a_server(address: HomeAddress, experiment: dict[str, Any]) -> None:
    with served_app(address) as served:
        before = inventory(address)
        plots = served.api.post("/plots", files=[("files", ("roc.png", PNG))]).json()["id"]
        shown = {**experiment, "plots": [{"path": "roc.png", "caption": "The curve"}]}
        upload(served, ("looms.md", paper("wool")), key="upload")
        asked = {"experiment": shown, "plot_upload": plots}
        run = served.post("/sections/discussion", asked, Idempotency_Key="section").json()["thread_id"]
        thread = served.conversation()
        served.post(f"/conversations/{thread}/turns", {"question": "What is woven?"}, Idempotency_Key="turn")
    home = address.secret if isinstance(address, DatabaseUrl) else str(address)
    for words in (("runs", "delete", run), ("conversations", "delete", thread), ("papers", "remove", "looms")):
        done = CliRunner().invoke(command_line([]), ["--home", home, *words])
        assert done.exit_code == 0, done.output
    assert changed(address, before) == []


def test_uploads_beyond_the_limit_are_refused_with_use_limit_and_remedy(address: HomeAddress) -> None:
    with served_app(address, {"max_library_size": "1MB"}) as served:
        upload(served, ("looms.md", paper("wool") + BLANK))
        held = uploaded(address)
        for path, name, content in (
            ("/papers", "more.md", paper("silk") + BLANK),
            ("/plots", "a.png", PNG + bytes(700_000)),
        ):
            refused = served.api.post(path, files=[("files", (name, content))])
            problem = refused.json()
            assert refused.status_code == 507 and "CITELOOM_MAX_LIBRARY_SIZE" in problem["help"]
            assert problem["detail"].startswith("The library's files take 0.6 MB of 1.0 MB; these would add 0.")
        assert uploaded(address) == held
        delete(served, "/papers/looms")
        upload(served, ("more.md", paper("silk") + BLANK))


def store(address: HomeAddress, *, unfinished: bool) -> str:
    """The id of an upload that a server has stored hours ago, before it ended."""
    home, upload_id = find_home(address), f"ingest-{unfinished:012x}"
    member = home.join_servers()
    folder = member.uploads.folder(upload_id)
    folder.mkdir(parents=True)
    (folder / "looms.md").write_bytes(paper("wool"))
    member.uploads.publish(upload_id)
    if unfinished:
        member.jobs.begin(JobOrder(upload_id, "ingest", {"files": ["looms.md"], "refused": [], "replace": False}), "e")
    member.leave()
    os.utime(folder, (1, 1))
    if isinstance(address, DatabaseUrl):
        with home.uploads()._database.connection() as connection:  # type: ignore[attr-defined]
            connection.execute("UPDATE uploads SET stored_at = now() - interval '1 day'")
    return upload_id


def doctor(address: HomeAddress, *options: str) -> list[str]:
    home = address.secret if isinstance(address, DatabaseUrl) else str(address)
    shown = CliRunner().invoke(command_line([]), ["--home", home, "doctor", *options])
    assert shown.exit_code == 0, shown.output
    return [line.strip() for line in shown.stdout.splitlines() if ": files: " in line]


def test_doctor_names_orphans_with_their_size_and_deletes_them(address: HomeAddress) -> None:
    orphan, unfinished = store(address, unfinished=False), store(address, unfinished=True)
    cached = find_home(address).converted / "0123.json"
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(bytes(2_000_000))
    os.utime(cached, (1, 1))
    (named,) = doctor(address)
    assert named == (
        "notice: files: 2 files that belong to no paper or run, 2.0 MB: converted/0123.json, "
        f"{orphan}/looms.md. 'doctor --repair' deletes them."
    )
    assert doctor(address, "--repair") == ["fine: files: deleted 2 files that belong to no paper or run, 2.0 MB."]
    assert doctor(address) == [] and not cached.exists()
    assert list(find_home(address).uploads().files()) == [unfinished]


def test_a_full_server_keeps_the_files_that_a_later_one_needs_to_resume(address: HomeAddress) -> None:
    upload_id = store(address, unfinished=True)
    with served_app(address, max_active=1, max_waiting=-1):
        assert uploaded(address) == ["looms.md"]
    with served_app(address) as served:
        done = served.events(f"/ingests/{upload_id}/events")[-1]
        assert done.data["result"]["added"] == ["looms"] and uploaded(address) == ["looms.md"]


def test_a_conversation_deleted_while_no_server_runs_is_not_resumed(address: HomeAddress) -> None:
    home, thread = find_home(address), "chat-0123456789ab"
    home.conversations().begin(thread)
    member = home.join_servers()
    asked = {"asked": "What is woven?", "kind": "question", "limits": {}, "number": 1}
    member.jobs.begin(JobOrder(thread, "turn", asked), "e")
    member.leave()
    asyncio.run(delete_conversation(home, thread))
    with served_app(address) as served:
        assert served.api.get(f"/conversations/{thread}").status_code == 404
        assert served.api.get("/conversations").json()["total"] == 0
