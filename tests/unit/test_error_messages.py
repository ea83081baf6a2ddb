"""One table lists all error texts, so that other tests check only the class and the values named."""

from __future__ import annotations

import re

import pytest

from citeloom.settings.config import Settings
from tests.support.error_messages import PAGE, raised_errors, reasons, table


def test_the_table_of_messages_matches_the_code() -> None:
    if PAGE.read_text("utf-8") != table():
        message = "docs/error-messages.md is not that of the code. Renew it: python -m tests.support.error_messages"
        pytest.fail(message, pytrace=False)


def test_every_message_is_one_complete_line_that_names_its_subject() -> None:
    for item in raised_errors():
        for text in filter(None, (item.message, item.remedy)):
            assert "\n" not in text, item
            assert text[-1] in '.?})"', item
        assert len(item.message.replace("{}", "").split()) > 1 or "{}" in item.message, item


def test_every_reason_fits_into_its_line() -> None:
    for item in reasons():
        assert "\n" not in item.message and item.message[-1:] not in {".", " "}, item


def test_every_setting_that_a_message_names_exists() -> None:
    named = {
        name
        for item in raised_errors()
        for name in re.findall(r"CITELOOM_([A-Z_]+)\b", f"{item.message} {item.remedy}")
    }
    known = {name.upper() for name in Settings.model_fields} | {"SERVER_TOKEN", "SERVER_TOKEN_FILE"}
    assert {name for name in named if name not in known and not name.endswith("_")} == set()
