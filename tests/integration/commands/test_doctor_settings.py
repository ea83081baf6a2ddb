"""`doctor` shows every setting with a value and its origin."""

from __future__ import annotations

import re
from pathlib import Path

from tests.integration.commands.conftest import Citeloom


def test_unset_settings_are_shown_as_not_set(citeloom: Citeloom, tmp_path: Path) -> None:
    done = citeloom("doctor", "--settings", "--home", tmp_path / "new", CSL="", MAX_CALLS="7")
    assert done.code == 0
    settings = dict(re.findall(r"^  (\w+) = (.*)  \(.+\)$", done.out, re.MULTILINE))
    assert {settings[name] for name in ("zotero", "csl", "vectors", "prices", "metadata_mailto")} == {"not set"}
    assert settings["max_calls"] == "7" and settings["strict"] == "False" and settings["max_repairs"] == "2"
    assert [name for name, value in settings.items() if value.strip() in ("", "None", "{}")] == []


def test_doctor_shows_changed_settings_and_the_rest_on_request(citeloom: Citeloom, home: Path) -> None:
    done = citeloom("doctor", "--home", home, MAX_CALLS="7")
    settings = dict(re.findall(r"^  (\w+) = (.*)  \(.+\)$", done.out, re.MULTILINE))
    assert settings["max_calls"] == "7" and "chat_model" in settings and "read_tokens" not in settings
    assert done.out.splitlines()[-1].endswith("doctor --settings")
    assert len(done.out.splitlines()) < 25
