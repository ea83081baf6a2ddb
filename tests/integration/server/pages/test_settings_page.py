"""The owner tests a model in the settings, and saves it with the key that was tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.integration.server.pages.conftest import Complaints
from tests.support.openai_server import FakeOpenAI
from tests.support.served_process import ServedProcess

KEY = "sk-a-secret-of-the-owner"


def test_a_model_is_saved_with_the_tested_key_and_an_empty_name_is_not_tested(
    page: Page, complaints: Complaints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints.expected.append("status of 422")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    served = ServedProcess(tmp_path / "home", {})
    served.start()
    try:
        with FakeOpenAI(api_key=KEY) as model:
            page.goto(f"{served.url}/settings")
            form = page.get_by_role("form", name="Model: chat")
            form.get_by_label("Address").fill("http://127.0.0.1:9/v1")
            form.get_by_label("Key").fill("sk-wrong")
            form.get_by_role("button", name="Test connection").click()
            expect(form.get_by_role("alert")).to_contain_text("Model is empty")
            form.get_by_label("Address").fill(model.base_url)
            form.get_by_role("button", name="Test connection").click()
            expect(form.get_by_role("status")).to_contain_text("Choose one of its models: any.")
            assert model.calls() == 0

            form.get_by_label("Model").fill("fake")
            form.get_by_role("button", name="Save").click()
            expect(form.get_by_role("alert")).to_contain_text("did not answer")
            expect(form.get_by_label("Key")).to_have_value("sk-wrong")  # to be corrected
            form.get_by_label("Key").fill(KEY)
            form.get_by_role("button", name="Test connection").click()
            expect(form.get_by_role("status")).to_have_text("fake answers. It is not saved yet.")
            form.get_by_role("button", name="Save").click()
            expect(form.get_by_role("status")).to_contain_text("fake is set for chat.")
            expect(form.get_by_role("status").get_by_role("link")).to_have_text("add papers")  # what comes next
            expect(form.get_by_label("Key")).to_have_value("")
            assert KEY not in page.content()
            assert KEY in (tmp_path / "config" / "citeloom" / "citeloom.toml").read_text("utf-8")
    finally:
        served.stop()
