"""Where a key may be sent: never to an address that a foreign folder, home or request names."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from citeloom.errors import ConfigurationError
from citeloom.graph.shared_sessions import SectionContext, settings_of
from citeloom.models.chat_caller import chat_endpoint
from citeloom.runs.run_requests import settings_record
from citeloom.settings.config import OPENAI_BASE_URL, load_settings
from citeloom.settings.key_trust import is_loopback, shown_address, user_configuration
from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI

KEY = "sk-of-the-user-4711"
THEIRS = "https://models.evil.example/v1"
OURS = "https://models.mine.example/v1"
LAN = "http://10.1.2.3:8000/v1"
LOCAL = "http://127.0.0.1:1234/v1"


@dataclass(frozen=True)
class Case:
    """Files of the folder, the environment, the user's own configuration, flags; `role` uses the key."""

    name: str
    toml: str = ""
    dotenv: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    own: str = ""
    flags: dict[str, str] = field(default_factory=dict)
    role: str = "writer"
    says: tuple[str, ...] = ()  # of the error; empty where a key, or none, is sent
    key: str | None = None

    def lay_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        written = {Path("citeloom.toml"): self.toml, Path(".env"): self.dotenv, user_configuration(): self.own}
        for path, text in written.items():
            if text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)


ENV_KEY = {"CITELOOM_CHAT_API_KEY": KEY}
NAMES_HOST_AND_REMEDY = ("models.evil.example", "CITELOOM_CHAT_BASE_URL", "environment")

STOPPED = [
    Case(
        "toml", toml=f'chat_base_url = "{THEIRS}"', environment=ENV_KEY, says=("citeloom.toml", *NAMES_HOST_AND_REMEDY)
    ),
    Case(
        "dotenv", dotenv=f"CITELOOM_CHAT_BASE_URL={THEIRS}", environment=ENV_KEY, says=(".env", *NAMES_HOST_AND_REMEDY)
    ),
    Case(
        "toml-on-loopback",
        toml=f'chat_base_url = "{LOCAL}"',
        environment=ENV_KEY,
        says=("citeloom.toml", "127.0.0.1:1234"),
    ),
    Case(
        "role",
        toml=f'writer_base_url = "{THEIRS}"',
        environment={"CITELOOM_WRITER_API_KEY": KEY},
        says=("CITELOOM_WRITER_BASE_URL", "models.evil.example"),
    ),
    Case(
        "role-named-like-the-folder's-chat",
        toml=f'chat_base_url = "{THEIRS}"\nwriter_base_url = "{THEIRS}"',
        environment=ENV_KEY,
        says=NAMES_HOST_AND_REMEDY,
    ),
    Case(
        "embedding",
        toml=f'embedding_base_url = "{THEIRS}"\nembedding_model = "e"',
        environment={"CITELOOM_EMBEDDING_API_KEY": KEY},
        role="embedding",
        says=("CITELOOM_EMBEDDING_BASE_URL", "models.evil.example"),
    ),
    Case(
        "user's-own-key", toml=f'chat_base_url = "{THEIRS}"', own=f'chat_api_key = "{KEY}"', says=NAMES_HOST_AND_REMEDY
    ),
    Case("key-by-flag", toml=f'chat_base_url = "{THEIRS}"', flags={"chat_api_key": KEY}, says=NAMES_HOST_AND_REMEDY),
    Case(
        "port-of-the-default",
        toml='chat_base_url = "https://api.openai.com:444/v1"',
        environment=ENV_KEY,
        says=(":444",),
    ),
    Case(
        "expanded-key",
        dotenv=f"CITELOOM_CHAT_BASE_URL={THEIRS}\nCITELOOM_CHAT_API_KEY=${{MY_SECRET}}",
        environment={"MY_SECRET": KEY},
        says=(".env", "CITELOOM_CHAT_API_KEY"),
    ),
    Case(
        "expanded-model",
        dotenv=f"CITELOOM_CHAT_BASE_URL={THEIRS}\nCITELOOM_CHAT_MODEL=x${{MY_SECRET}}",
        environment={"MY_SECRET": KEY},
        says=(".env", "CITELOOM_CHAT_MODEL"),
    ),
    Case(
        "expanded-address",
        dotenv=f"CITELOOM_CHAT_BASE_URL={THEIRS}/${{MY_SECRET:-x}}",
        environment={"MY_SECRET": KEY},
        says=(".env", "CITELOOM_CHAT_BASE_URL"),
    ),
    Case("clear-text", environment={**ENV_KEY, "CITELOOM_CHAT_BASE_URL": LAN}, says=("10.1.2.3:8000", "https")),
    Case("clear-text-by-flag", environment=ENV_KEY, flags={"chat_base_url": LAN}, says=("10.1.2.3:8000", "https")),
    Case(
        "clear-text-to-openai",
        environment={"OPENAI_API_KEY": KEY, "CITELOOM_CHAT_BASE_URL": "http://api.openai.com/v1"},
        says=("OPENAI_API_KEY", "api.openai.com", "https"),
    ),
    Case(
        "clear-text-to-openai-by-toml",
        toml='chat_base_url = "http://api.openai.com/v1"',
        environment={"OPENAI_API_KEY": KEY},
        says=("OPENAI_API_KEY", "https"),
    ),
    *(
        Case(
            f"no-loopback-{host}",
            environment={**ENV_KEY, "CITELOOM_CHAT_BASE_URL": f"http://{host}/v1"},
            says=("https",),
        )
        for host in ("127.0.0.1.evil.example", "localhost.evil.example", "notlocalhost", "0.0.0.0", "[::ffff:10.0.0.1]")
    ),
]

SENT = [
    Case("dotenv-alone", dotenv=f"CITELOOM_CHAT_BASE_URL={THEIRS}\nCITELOOM_CHAT_API_KEY={KEY}", key=KEY),
    Case("dotenv-in-a-lan", dotenv=f"CITELOOM_CHAT_BASE_URL={LAN}\nCITELOOM_CHAT_API_KEY={KEY}", key=KEY),
    Case("toml-alone", toml=f'chat_base_url = "{OURS}"\nchat_api_key = "{KEY}"', key=KEY),
    Case(
        "key-in-dotenv-address-in-toml",
        toml=f'chat_base_url = "{OURS}"',
        dotenv=f"CITELOOM_CHAT_API_KEY={KEY}",
        key=KEY,
    ),
    Case("environment-alone", environment={**ENV_KEY, "CITELOOM_CHAT_BASE_URL": OURS}, key=KEY),
    Case("environment-on-loopback", environment={**ENV_KEY, "CITELOOM_CHAT_BASE_URL": LOCAL}, key=KEY),
    Case(
        "environment-on-ipv6-loopback", environment={**ENV_KEY, "CITELOOM_CHAT_BASE_URL": "http://[::1]:9/v1"}, key=KEY
    ),
    Case(
        "environment-wins",
        toml=f'chat_base_url = "{THEIRS}"',
        environment={**ENV_KEY, "CITELOOM_CHAT_BASE_URL": OURS},
        key=KEY,
    ),
    Case("flag", environment=ENV_KEY, flags={"chat_base_url": OURS}, key=KEY),
    Case("own-configuration", own=f'chat_base_url = "{OURS}"\nchat_api_key = "{KEY}"', key=KEY),
    Case("own-configuration-in-a-lan", own=f'chat_base_url = "{LAN}"\nchat_api_key = "{KEY}"', key=KEY),
    Case("own-address", own=f'chat_base_url = "{OURS}"', environment=ENV_KEY, key=KEY),
    Case(
        "toml-names-the-user's-own",
        own=f'chat_base_url = "{OURS}"',
        toml=f'chat_base_url = "{OURS}/"',
        environment=ENV_KEY,
        key=KEY,
    ),
    Case("toml-names-the-default", toml=f'chat_base_url = "{OPENAI_BASE_URL}"', environment=ENV_KEY, key=KEY),
    Case("openai", toml='chat_model = "m"', environment={"OPENAI_API_KEY": KEY}, key=KEY),
    Case(
        "openai-named-by-toml",
        toml=f'chat_base_url = "{OPENAI_BASE_URL}"',
        environment={"OPENAI_API_KEY": KEY},
        key=KEY,
    ),
    Case("local-server-without-a-key", toml=f'chat_model = "m"\nchat_base_url = "{LOCAL}"', key=None),
    Case("openai's-key-elsewhere", toml=f'chat_base_url = "{THEIRS}"', environment={"OPENAI_API_KEY": KEY}, key=None),
    Case("chat-key-at-another-role's-server", toml=f'writer_base_url = "{THEIRS}"', environment=ENV_KEY, key=None),
    Case(
        "own-key-of-the-folder",
        own=f'chat_api_key = "{KEY}"',
        toml=f'chat_base_url = "{OURS}"\nchat_api_key = "k"',
        key="k",
    ),
]


def key_sent(case: Case) -> str | None:
    settings = load_settings(**{"chat_model": "m", **case.flags})
    endpoint = settings.embedding_endpoint() if case.role == "embedding" else settings.role_endpoint("writer")
    return endpoint[2].get_secret_value() if endpoint[2] is not None else None


@pytest.mark.parametrize("case", STOPPED, ids=lambda case: case.name)
def test_a_key_is_not_sent_to_an_address_set_by_a_folder(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.lay_out(monkeypatch)
    with pytest.raises(ConfigurationError) as stopped:
        key_sent(case)
    said = f"{stopped.value}"
    assert all(word in said for word in case.says), said
    assert KEY not in said and "\n" not in said
    assert stopped.value.exit_code == 2


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.name)
def test_a_key_set_beside_its_address_needs_no_other_setting(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.lay_out(monkeypatch)
    assert key_sent(case) == case.key


def test_a_model_that_is_not_used_gets_no_key_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Case("", toml=f'chat_base_url = "{THEIRS}"', environment=ENV_KEY).lay_out(monkeypatch)
    assert load_settings().role_endpoint("writer") == ("extractive", THEIRS, None)


@pytest.mark.parametrize(("url", "sent"), [(LOCAL, True), (THEIRS, False), (LAN, False)])
def test_a_request_to_the_local_server_cannot_send_the_key_elsewhere(
    url: str, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Case("", environment=ENV_KEY).lay_out(monkeypatch)
    settings = settings_of(SectionContext(chat_model="m", chat_base_url=url))  # type: ignore[call-arg]
    if sent:
        assert settings.role_endpoint("writer")[2] is not None
    else:
        with pytest.raises(ConfigurationError, match="context of the run"):
            settings.role_endpoint("writer")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/v1", "https://host/v1"),
        ("https://host/v1?key=SECRET", "https://host/v1?***"),
        ("https://host/v1#SECRET", "https://host/v1#***"),
        ("https://me:SECRET@host/v1", "https://***@host/v1"),
        ("https://me:SE/CRET@host/v1", "https://***@host/v1"),
        ("https://me:SE?CRET@host/v1", "https://***@host/v1"),
        ("https://me:SE@CRET@host/v1?x=SECRET", "https://***@host/v1?***"),
        ("me:SECRET@host/v1", "***@host/v1"),
        ("//me:SECRET@host\n/v1?SECRET", "//***@host\n/v1?***"),
    ],
)
def test_parts_of_an_address_that_may_be_secret_are_not_shown(url: str, shown: str, citeloom: Citeloom) -> None:
    assert shown_address(url) == shown
    kept = settings_record(load_settings(chat_base_url=url, judge_base_url=url))
    assert kept["chat_base_url"] == kept["judge_base_url"] == shown
    done = citeloom("doctor", CHAT_BASE_URL=url.replace("\n", ""), WRITER_BASE_URL=url.replace("\n", ""))
    assert "SECRET" not in done.out + done.err and "SE" not in done.out.replace("***", "").partition("chat_base_url")[2]


@pytest.mark.parametrize("part", ["?key=SECRET", "#SECRET", "?SECRET"])
def test_an_address_that_contains_a_key_is_refused_without_showing_it(part: str) -> None:
    with pytest.raises(ConfigurationError, match="CITELOOM_CHAT_API_KEY") as refused:
        chat_endpoint(load_settings(chat_model="m", chat_base_url=f"https://host/v1{part}"), "reader")
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1/", True),
        ("http://x.localhost/", False),
        ("http://127.9.9.9/", True),
        ("http://[::1]/", True),
        ("http://127.1/", False),
        ("http://0/", False),
        ("http://localhost@evil/", False),
        ("http://evil/localhost", False),
    ],
)
def test_loopback_addresses_are_recognised(url: str, local: bool) -> None:
    assert is_loopback(url) is local


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "\udcff", "x = " + "9" * 5000], ids=["deep", "bytes", "long"])
def test_a_hostile_toml_is_reported_in_one_line(text: str) -> None:
    Path("citeloom.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError, match=r"citeloom\.toml: ") as refused:
        load_settings()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("home", ["", ".", "relative"])
def test_the_users_configuration_is_never_read_from_the_folder(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("XDG_CONFIG_HOME", home)
    assert user_configuration().is_absolute() and Path.cwd() not in user_configuration().parents
    load_settings()


def test_a_chat_server_named_in_a_cloned_folders_settings_gets_no_request(
    citeloom: Citeloom,
    tmp_path: Path,
    home: Path,
) -> None:
    with FakeOpenAI() as theirs:
        Path("citeloom.toml").write_text(f'chat_model = "m"\nchat_base_url = "{theirs.base_url}"\n', encoding="utf-8")
        done = citeloom("research", "How do seeds matter?", "--home", home, CHAT_API_KEY=KEY)
        assert (done.code, theirs.calls()) == (2, 0), done.err
    (error,) = done.errors
    assert str(tmp_path / "citeloom.toml") in error and "127.0.0.1" in error and "CITELOOM_CHAT_BASE_URL" in error
    assert KEY not in done.out + done.err
