"""Jobs, idempotency keys and uploads of servers, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from citeloom.stores.database_home import DatabaseHome
from citeloom.stores.home import Home, ServerRegistry
from citeloom.stores.server_jobs import EventBatch, JobOrder, KeyUse

ORDER = JobOrder("run-1", "run", {"limits": {"max_calls": 3}})
LAST = EventBatch("run-1", "e", 0, [("done", "{}")])


@pytest.fixture
def server(backend: Home) -> Iterator[ServerRegistry]:
    joined = backend.join_servers()
    yield joined
    joined.leave()


def test_an_unfinished_job_goes_to_the_next_server_and_a_finished_one_does_not(backend: Home) -> None:
    first = backend.join_servers()
    assert first.jobs.begin(ORDER, "e") is None
    assert first.jobs.begin(JobOrder("run-2", "run", {}), "f") is None
    first.jobs.end("run-2", "finished", EventBatch("run-2", "f", 0, [("done", "{}")]))
    assert first.jobs.claim_orphaned(9, ["run-1"]) == []
    first.leave()
    second = backend.join_servers()
    assert second.jobs.claim_orphaned(9, ()) == [ORDER]
    second.jobs.end("run-1", "failed", LAST)
    assert second.jobs.claim_orphaned(9, ()) == []
    second.leave()


def test_a_key_is_claimed_once_and_then_refers_to_its_job(server: ServerRegistry) -> None:
    assert server.keys.claim("key", "request") is None
    assert server.keys.claim("key", "request") == KeyUse("request", None)
    server.keys.commit("key", ORDER)
    assert server.keys.claim("key", "other") == KeyUse("request", ORDER)
    assert server.keys.claim("second", "request") is None
    server.keys.release("second")
    assert server.keys.claim("second", "another") is None


def test_a_key_refers_to_its_job_as_soon_as_the_job_has_started(backend: Home) -> None:
    first = backend.join_servers()
    assert first.keys.claim("key", "request") is None
    first.jobs.begin(ORDER, "e", "key")
    first.leave()  # killed before it could settle the key
    second = backend.join_servers()
    use = second.keys.claim("key", "request")
    assert use is not None and use.order == ORDER
    second.leave()


def test_an_open_claim_of_a_dead_server_is_void(backend: Home) -> None:
    first = backend.join_servers()
    assert first.keys.claim("open", "request") is None and first.keys.claim("settled", "request") is None
    first.keys.commit("settled", ORDER)
    first.leave()
    second = backend.join_servers()
    assert second.keys.claim("open", "request") is None
    assert second.keys.claim("settled", "request") == KeyUse("request", ORDER)
    second.leave()


def test_a_session_is_valid_only_with_its_token_and_ends_everywhere_at_once(backend: Home) -> None:
    first, second = backend.accounts(), backend.accounts()
    one, two = (first.grant("session", "fingerprint") for _ in range(2))
    other = first.grant("session", "another")
    assert second.is_session(one, "fingerprint") and not second.is_session(one, "another")
    assert not second.is_session("", "fingerprint")
    second.end(one)
    assert not first.is_session(one, "fingerprint") and first.is_session(two, "fingerprint")
    first.end_other_sessions("another")
    assert not second.is_session(two, "fingerprint") and second.is_session(other, "another")
    second.revoke("another", kind="session")
    assert not first.is_session(other, "another") and second.people() == []


def test_uploaded_files_are_read_and_removed(server: ServerRegistry, tmp_path: Path) -> None:
    upload = "ingest-0123456789ab"
    folder = server.uploads.folder(upload)
    folder.mkdir(parents=True)
    content = bytes(range(256)) * 10_000  # more than one part
    (folder / "a.pdf").write_bytes(content)
    (folder / "b.md").write_bytes(b"# B")
    server.uploads.publish(upload)
    assert server.uploads.names(upload) == ["a.pdf", "b.md"]
    source = str((folder / "a.pdf").resolve())
    assert server.uploads.place_of(source) == (upload, "a.pdf")
    assert server.uploads.file(source).read_bytes() == content
    assert server.uploads.place_of(str(tmp_path / "a.pdf")) is None
    server.uploads.remove(upload, ["a.pdf", "b.md"])
    assert server.uploads.names(upload) == [] and not folder.exists()


def test_a_file_received_by_another_computer_is_fetched(backend: Home, home: Home) -> None:
    server = backend.join_servers()
    if not server.jobs.shared:
        server.leave()
        pytest.skip("a folder is on one computer")
    upload = "ingest-0123456789ab"
    folder = server.uploads.folder(upload)
    folder.mkdir(parents=True)
    (folder / "a.pdf").write_bytes(b"%PDF-")
    server.uploads.publish(upload)
    (folder / "a.pdf").unlink()
    assert server.uploads.file(f"/home/other/.cache/citeloom/x/papers/{upload}/a.pdf").read_bytes() == b"%PDF-"
    (folder / "a.pdf").unlink()
    server.uploads.fetch(upload)
    assert (folder / "a.pdf").is_file()
    assert not server.uploads.file(f"/elsewhere/papers/{upload}/none.pdf").exists()
    server.leave()


def plot_set(backend: Home, folder: Path, upload: str, name: str = "roc kurve ü.png") -> str:
    """Store a set of plots as a server does, and return how a run names its image."""
    (folder / upload).mkdir(parents=True)
    (folder / upload / name).write_bytes(b"\x89PNG")
    backend.plots().publish(upload)
    return backend.plots().reference(folder / upload / name)


def test_plots_are_read_by_their_stored_name_until_removed(backend: Home, home: Home) -> None:
    upload = f"plots-{'0' * 24}"
    kept = plot_set(backend, home.plots_folder, upload)
    plots = backend.plots()
    assert plots.names(upload) == ["roc kurve ü.png"] and plots.file(kept).read_bytes() == b"\x89PNG"
    backend.plots().publish(upload)
    assert plots.place_of(kept) == (upload, "roc kurve ü.png") and plots.idle() == []
    plots.remove(upload, plots.names(upload))
    assert plots.names(upload) == [] and not plots.file(kept).exists()


def test_a_plot_received_by_another_computer_is_fetched(
    backend: Home, home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = plot_set(backend, home.plots_folder, f"plots-{'0' * 24}")
    if Path(kept).is_absolute():
        pytest.skip("a folder is on one computer")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert isinstance(home, DatabaseHome)
    other = DatabaseHome.at(home.url, home.vectors).prepare()
    assert other.plots != home.plots_folder
    assert other.plots().file(kept).read_bytes() == b"\x89PNG"


def test_papers_and_plots_are_listed_separately(server: ServerRegistry, backend: Home, home: Home) -> None:
    """What tidies one kind must not see the other."""
    folder = server.uploads.folder("ingest-0123456789ab")
    folder.mkdir(parents=True)
    (folder / "a.md").write_bytes(b"# A")
    server.uploads.publish(folder.name)
    kept = plot_set(backend, home.plots_folder, f"plots-{'0' * 24}")
    assert server.uploads.place_of(kept) is None
    assert backend.plots().place_of(str((folder / "a.md").resolve())) is None
    assert not [name for name in server.uploads.idle() if name.startswith("plots-")]
