"""setup finds a model, tries it, and writes the user's own settings file."""

from __future__ import annotations

import stat
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from citeloom.models.http.endpoints import find_servers
from citeloom.settings.config import load_settings
from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config" / "citeloom" / "citeloom.toml"


def test_a_model_that_answers_is_added_to_the_existing_settings(citeloom: Citeloom, settings_file: Path) -> None:
    settings_file.parent.mkdir(parents=True)
    settings_file.write_text('# mine\nchat_model = "old"\nmax_calls = 7\n\n[prices."x"]\ninput = 1\noutput = 2\n')
    with FakeOpenAI() as server:
        done = citeloom("setup", "--yes", "--base-url", server.base_url, "--model", "any")
        assert done.code == 0, done.err
        assert server.calls() == 1
    settings = load_settings()
    assert (settings.chat_model, settings.chat_base_url) == ("any", server.base_url)
    assert settings.max_calls == 7 and "x" in settings.prices and "# mine" in settings_file.read_text()


@pytest.mark.parametrize("url", ["http://localhost:9/v1"])
def test_a_model_that_does_not_answer_is_not_saved(citeloom: Citeloom, settings_file: Path, url: str) -> None:
    done = citeloom("setup", "--yes", "--base-url", url, "--model", "any")
    assert done.code == 2 and "did not answer" in done.errors[0] and not settings_file.exists()


def test_without_a_terminal_setup_requires_yes(citeloom: Citeloom, settings_file: Path) -> None:
    done = citeloom("setup")
    assert done.code == 2 and "--yes" in done.errors[0] and not settings_file.exists()


def test_servers_are_found_at_their_usual_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with FakeOpenAI() as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        found = find_servers({"Ollama": port, "vLLM": 9})
    assert [each.name for each in found] == ["Ollama"] and found[0].models
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert [each.name for each in find_servers({})] == ["OpenAI"]


class Lying(BaseHTTPRequestHandler):
    """Sends its server's bytes to every request, without valid HTTP."""

    def handle(self) -> None:
        self.request.recv(65536)
        self.request.sendall(self.server.said)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b'HTTP/1.1 200 OK\r\n\r\n{"data": [{"id": 7}, "x"]}',
    ],
    ids=["no HTTP", "cut short", "nested", "no names"],
)
def test_a_server_that_lies_is_reported_in_one_line(citeloom: Citeloom, settings_file: Path, said: bytes) -> None:
    with HTTPServer(("127.0.0.1", 0), Lying) as server:
        server.said = said  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        done = citeloom("setup", "--yes", "--base-url", url)
        server.shutdown()
    assert done.code == 2 and url in done.errors[0] and "Traceback" not in done.err and not settings_file.exists()


def test_no_key_is_printed_or_written(
    citeloom: Citeloom, settings_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server refuses with the key that it was sent."""
    with HTTPServer(("127.0.0.1", 0), Lying) as server:
        body = b'{"error": {"message": "no such key: sk-very-secret-0123456789"}}'
        head = b"HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        server.said = head + body  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        done = citeloom("setup", "--yes", "--base-url", url, "--model", "any", CHAT_API_KEY="sk-very-secret-0123456789")
        server.shutdown()
    assert done.code == 2 and "did not answer" in done.errors[0], done.err
    assert "sk-very-secret" not in done.out + done.err and not settings_file.exists()


def test_only_the_owner_can_read_the_settings_file(citeloom: Citeloom, settings_file: Path) -> None:
    with FakeOpenAI() as server:
        assert citeloom("setup", "--yes", "--base-url", server.base_url, "--model", "any").code == 0
        settings_file.chmod(0o640)
        assert citeloom("setup", "--yes", "--base-url", server.base_url, "--model", "other").code == 0
    assert stat.S_IMODE(settings_file.stat().st_mode) == 0o600
