"""Settings: keys are never shown, and one that cannot be sent is refused before anything is asked."""

from __future__ import annotations

import pytest

from citeloom.errors import ConfigurationError
from citeloom.settings.config import ambient_key, load_settings


@pytest.mark.parametrize("key", ["sk-sécret", "sk-secret two", "sk-secret\ntwo", "sk-secret\x00"])
def test_an_unusable_key_is_refused_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="CITELOOM_READER_API_KEY") as refused:
        load_settings(reader_api_key=key)
    monkeypatch.setenv("OPENAI_API_KEY", key.replace("\x00", "\x7f"))
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY") as ambient:
        ambient_key("https://api.openai.com/v1")
    for error in (refused.value, ambient.value):
        assert "cret" not in str(error) + error.help


def test_characters_copied_around_a_key_are_removed() -> None:
    key = load_settings(chat_api_key="  sk-secret\n").chat_api_key
    assert key is not None
    assert key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in repr(key)


def test_a_key_from_the_environment_goes_only_to_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert ambient_key("https://api.openai.com/v1") is not None
    assert ambient_key("https://api.openai.com.example.org/v1") is None
    assert ambient_key("http://localhost:1234/v1") is None


def test_the_origin_of_each_value_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("citeloom_top_k_final", "3")
    monkeypatch.setenv("CITELOOM_CHAT_MODEL", "")
    monkeypatch.setenv("CITELOOM_METADATA_SERVICES", '["crossref"]')
    settings = load_settings(per_paper=4, brought={"strict": True}, origin="the register of runs")
    assert (settings.top_k_final, settings.per_paper, settings.strict) == (3, 4, True)
    assert settings.metadata_services == ["crossref"]
    assert settings.chat_model == "extractive"
    assert {name: settings.origin(name) for name in ("top_k_final", "per_paper", "strict", "chat_model")} == {
        "top_k_final": "environment",
        "per_paper": "flag",
        "strict": "the register of runs",
        "chat_model": "default",
    }


def test_a_variable_that_is_not_json_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_PRICES", "{'m': 1}")
    with pytest.raises(ConfigurationError, match=r"CITELOOM_PRICES \(environment\)"):
        load_settings()


def test_prices_from_several_sources_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_PRICES", '{"one": {"input": 1}, "two": {"input": 2}}')
    prices = load_settings(prices={"two": {"input": 3}}).prices
    assert {name: price.input for name, price in prices.items()} == {"one": 1, "two": 3}
