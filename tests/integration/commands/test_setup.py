"""setup finds a model, tries it, and writes the user's own settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.config import load_settings
from citeloom.models.http.local_servers import find_servers
from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config" / "citeloom" / "citeloom.toml"


def test_a_model_that_answers_is_written_beside_what_is_there(citeloom: Citeloom, settings_file: Path) -> None:
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
def test_a_model_that_does_not_answer_is_not_written(citeloom: Citeloom, settings_file: Path, url: str) -> None:
    done = citeloom("setup", "--yes", "--base-url", url, "--model", "any")
    assert done.code == 2 and "did not answer" in done.errors[0] and not settings_file.exists()


def test_without_a_terminal_it_asks_for_yes(citeloom: Citeloom, settings_file: Path) -> None:
    done = citeloom("setup")
    assert done.code == 2 and "--yes" in done.errors[0] and not settings_file.exists()


def test_servers_are_found_where_they_usually_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with FakeOpenAI() as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        found = find_servers({"Ollama": port, "vLLM": 9})
    assert [each.name for each in found] == ["Ollama"] and found[0].models
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert [each.name for each in find_servers({})] == ["OpenAI"]
