"""The address of Milvus is understood, and never shown with its token."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.errors import ConfigurationError, InputError
from citeloom.settings.addresses import VectorsUrl, parse_vectors, vectors_url
from citeloom.settings.config import load_settings


def test_a_server_address_is_parsed_into_user_password_and_database() -> None:
    url = vectors_url("https://ada:s3cr%2Ft@db.example.org:19530/papers")
    assert (url.server, url.token, url.database) == ("https://db.example.org:19530", "ada:s3cr/t", "papers")
    assert url.file is None
    assert "s3cr" not in f"{url} {url!r}" and "ada" not in f"{url} {url!r}"
    assert vectors_url("http://t0ken@localhost:19530").token == "t0ken"
    assert vectors_url("http://localhost:19530").token == ""


def test_a_file_of_milvus_lite_ends_in_db(tmp_path: Path) -> None:
    assert vectors_url(str(tmp_path / "v.db")).file == tmp_path / "v.db"
    assert str(VectorsUrl("v.db")) == "v.db"


@pytest.mark.parametrize(
    "text", ["", "milvus", "ftp://ada:s3cr3t@host", "https://", "http://host:port", "tcp://ada:s3cr3t@host/x.db"]
)
def test_another_value_is_refused_without_being_shown(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"vectors: expected an address") as refused:
        parse_vectors(text)
    assert "s3cr3t" not in str(refused.value)
    if text:
        monkeypatch.setenv("CITELOOM_VECTORS", text)
        with pytest.raises(ConfigurationError, match="CITELOOM_VECTORS") as unset:
            load_settings()
        assert "s3cr3t" not in str(unset.value)


def test_settings_show_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_VECTORS", "https://ada:s3cr3t@host:19530")
    settings = load_settings()
    assert settings.vectors is not None and settings.vectors.token == "ada:s3cr3t"
    shown = f"{settings!r} {settings.model_dump_json()} {settings.model_dump()}"
    assert "s3cr3t" not in shown and "ada:" not in shown
