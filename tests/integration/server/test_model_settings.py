"""The owner of a server sets it up in the browser: tries a model, keeps it with its key, takes the sample papers."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import httpx
import keyring
import pytest
from keyring.backend import KeyringBackend

from citeloom import open_library
from citeloom.api.model_setup import ModelChoice, achoose_model
from citeloom.errors import InputError
from citeloom.settings.config import load_settings
from tests.support.openai_server import FakeOpenAI
from tests.support.served_process import ServedProcess

KEY = "sk-a-secret-of-the-owner"


class MemoryKeyring(KeyringBackend):
    """A keyring that works, as that of a desktop."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


def test_an_empty_server_can_be_set_up_without_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    served = ServedProcess(tmp_path / "home", {})
    served.start()
    try:
        with FakeOpenAI(api_key=KEY) as model, httpx.Client(base_url=served.url, timeout=300) as browser:
            asked = {"role": "chat", "model": "fake", "base_url": model.base_url, "key": "sk-wrong", "act": "save"}
            refused = browser.post("/settings/models", data=asked)
            assert refused.status_code == 422
            assert "did not answer" in refused.text
            assert "sk-wrong" not in refused.text and "Error" not in refused.text
            elsewhere = browser.post("/settings/models", data={**asked, "base_url": model.base_url.removesuffix("/v1")})
            assert elsewhere.status_code == 422 and "it usually ends in /v1" in elsewhere.text
            foreign = browser.post("/settings/models", data=asked, headers={"Origin": "http://evil.example"})
            assert foreign.status_code == 403
            saved = browser.post("/settings/models", data={**asked, "key": KEY})
            assert "fake is set for chat." in saved.text
            shown = [browser.get("/settings").text, browser.get("/api/v1/settings").text, saved.text]
            assert not any(KEY in text for text in shown)
            file = tmp_path / "config" / "citeloom" / "citeloom.toml"
            assert KEY in file.read_text("utf-8") and f"Saved in {file}" in saved.text
            assert stat.S_IMODE(file.stat().st_mode) == 0o600

            # The key that is kept goes to its own address only.
            assert "fake answers." in browser.post("/settings/models", data={**asked, "key": "", "act": "test"}).text
            with FakeOpenAI() as other:
                browser.post("/settings/models", data={**asked, "base_url": other.base_url, "key": "", "act": "test"})
                assert other.headers
                assert not any(KEY in str(headers) for headers in other.headers)

            assert browser.post("/library/sample").status_code == 303
            browser.post("/library/sample")
            while not browser.get("/api/v1/papers").json()["total"]:
                pass
            thread = browser.post("/api/v1/conversations", json={}).json()["thread_id"]
            answer = browser.post(f"/api/v1/conversations/{thread}/turns", json={"question": "What do seeds change?"})
            assert answer.json()["usage"]["llm_calls"]
    finally:
        served.stop()


def test_a_key_is_stored_in_and_read_from_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    before, memory = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(memory)
    try:
        with open_library(tmp_path / "home") as session:
            choice = ModelChoice("judge", "fake", "http://127.0.0.1:9/v1", KEY)
            assert asyncio.run(achoose_model(session, choice)) == "your keyring"
            assert KEY not in (tmp_path / "config" / "citeloom" / "citeloom.toml").read_text("utf-8")
            read = load_settings()
            assert read.judge_api_key is not None
            assert read.judge_api_key.get_secret_value() == KEY
            asyncio.run(achoose_model(session, ModelChoice("judge")))
            assert not memory.kept
            assert load_settings().judge_model is None
            monkeypatch.setenv("CITELOOM_READER_MODEL", "another")
            with open_library(tmp_path / "home2") as other, pytest.raises(InputError, match="is set by environment"):
                asyncio.run(achoose_model(other, ModelChoice("reader", "fake", "http://127.0.0.1:9/v1")))
    finally:
        keyring.set_keyring(before)


def test_only_the_owner_changes_a_server_that_others_reach_by_name(tmp_path: Path) -> None:
    served = ServedProcess(tmp_path / "home", {})
    served.start("--name", "papers.example.org")
    try:
        answer = httpx.post(f"{served.url}/settings/models", data={"role": "chat", "model": "", "act": "save"})
        assert answer.status_code == 403
        assert "Only the owner" in answer.text
    finally:
        served.stop()
