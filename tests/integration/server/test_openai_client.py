"""OpenAI's own client against a served library, whose model is fake."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from citeloom.graph.conversation_graph import SOURCES_HEADING
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.served_home import served

TOKEN = "a-token-of-more-than-16-characters"


@dataclass(frozen=True)
class Served:
    """A running server, its client, and the model behind it."""

    url: str
    client: openai.OpenAI
    model: FakeOpenAI
    writer: Librarian

    def ask(self, *texts: str, **options: Any) -> Any:
        """The answer to the last of these messages, which take turns."""
        roles = ("user", "assistant")
        messages: Any = [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
        return self.client.chat.completions.create(model="citeloom", messages=messages, **options)


@pytest.fixture(scope="module")
def library(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("served") / "home")
    with FakeOpenAI() as model:
        model.behaviour = writer = Librarian()
        settings = {"CHAT_MODEL": "fake", "CHAT_BASE_URL": model.base_url, "CHAT_API_KEY": "k", "SERVER_TOKEN": TOKEN}
        with served(home, settings=settings) as url:
            yield Served(url, openai.OpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0), model, writer)


def test_the_library_is_the_only_model(library: Served) -> None:
    (listed,) = library.client.models.list().data
    assert (listed.id, listed.object) == ("citeloom", "model")
    assert library.client.models.retrieve("citeloom").id == "citeloom"


def test_an_answer_ends_with_its_sources_and_is_paid_for_once(library: Served) -> None:
    answer = library.ask("How are scores calibrated?", temperature=0.2, seed=7, user="ada", tools=[])
    message, made = answer.choices[0].message, library.model.calls()
    text, _, sources = message.content.partition(SOURCES_HEADING)
    assert "[1]" in text and "[1]" in sources and answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    for source in message.citeloom["sources"]:
        assert f"[{source['label']}]" in sources and source["title"] in sources and source["places"]
    cited = message.citeloom["citations"]
    assert cited and all(item["quote"] and item["section"] and item["number"] for item in cited)
    again = library.ask("How are scores calibrated?")
    assert again.choices[0].message.content == message.content
    assert library.model.calls() == made and again.usage.total_tokens == 0


def test_a_stream_shows_the_steps_and_then_the_checked_text(library: Served) -> None:
    chunks = list(library.ask("How do seeds matter?", stream=True, stream_options={"include_usage": True}))
    *rest, usage = chunks
    deltas = [chunk.choices[0].delta for chunk in rest]
    steps = [place for place, delta in enumerate(deltas) if getattr(delta, "reasoning_content", None)]
    texts = [place for place, delta in enumerate(deltas) if delta.content]
    assert deltas[0].role == "assistant" and steps and max(steps) < min(texts)
    assert {chunk.id for chunk in chunks} == {usage.id} and rest[-1].choices[0].finish_reason == "stop"
    assert not usage.choices and usage.usage.total_tokens > 0
    whole = library.ask("How do seeds matter?").choices[0].message
    assert "".join(delta.content or "" for delta in deltas) == whole.content
    assert deltas[-1].citeloom == whole.citeloom


def test_a_stream_ends_with_done(library: Served) -> None:
    body = {
        "model": "citeloom",
        "stream": True,
        "messages": [{"role": "user", "content": "How are scores calibrated?"}],
    }
    answer = httpx.post(f"{library.url}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.splitlines() if line]
    assert lines[-1] == "data: [DONE]" and all(line.startswith("data: ") for line in lines)


def test_a_follow_up_is_understood_from_the_earlier_messages(library: Served) -> None:
    first = library.ask("How are scores calibrated?").choices[0].message.content
    answer = library.ask("How are scores calibrated?", first, "And for ensembles?").choices[0].message
    assert "calibration" in answer.citeloom["question"]
    shown = library.writer.rewriting[-1]
    assert "How are scores calibrated?" in shown and SOURCES_HEADING not in shown and "[1]" not in shown


def test_a_client_that_disconnects_does_not_end_the_run(library: Served) -> None:
    written = len(library.writer.writing)
    with library.ask("Where is the band worn?", stream=True) as stream:
        next(iter(stream))
    assert "[1]" in library.ask("Where is the band worn?").choices[0].message.content
    assert len(library.writer.writing) == written + 1


def test_a_title_costs_nothing(library: Served) -> None:
    before = library.model.calls()
    answer = library.ask("How are scores calibrated?", "By one parameter.", "Write a title for this conversation.")
    assert answer.choices[0].message.content == "Scores"
    chunks = library.ask("Generate a title for the chat.\n\nUser: How do seeds matter?", stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Seeds"
    assert library.model.calls() == before and answer.usage.total_tokens == 0


@pytest.mark.parametrize(
    ("given", "status", "param", "said"),
    [
        ({"model": "gpt-5"}, 404, "model", "answers as 'citeloom'"),
        ({"messages": []}, 400, "messages", "at least 1 item"),
        ({"messages": [{"role": "user", "content": "?!"}]}, 400, None, "nothing to look for"),
        ({"messages": [{"role": "assistant", "content": "Hi."}]}, 400, "messages", "must be the user's"),
        ({"messages": [{"role": "parrot", "content": "Hi."}]}, 400, "messages.0.role", "'user'"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages", "send text"),
        ({"temperature": "hot"}, 400, "temperature", "must be a number"),
        ({"n": 2}, 400, "n", "1"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format.type", "'text'"),
    ],
)
def test_a_bad_request_is_refused_in_openais_error_format(
    library: Served, given: dict[str, Any], status: int, param: str | None, said: str
) -> None:
    usual: dict[str, Any] = {"model": "citeloom", "messages": [{"role": "user", "content": "What is calibration?"}]}
    with pytest.raises(openai.APIStatusError) as raised:
        library.client.chat.completions.create(**usual | given)
    error: Any = raised.value.body
    assert (raised.value.status_code, error["type"], error["param"]) == (status, "invalid_request_error", param)
    assert said in error["message"] and "body." not in error["message"]


def test_unsupported_parts_of_the_interface_are_missing(library: Served) -> None:
    with pytest.raises(openai.NotFoundError, match="Not Found"):
        library.client.embeddings.create(model="citeloom", input="text")


def test_a_wrong_key_or_a_foreign_page_is_refused(library: Served) -> None:
    stranger = openai.OpenAI(base_url=f"{library.url}/v1", api_key="sk-guess", max_retries=0)
    with pytest.raises(openai.AuthenticationError) as raised:
        stranger.models.list()
    assert raised.value.code == "invalid_api_key" and "sk-guess" not in str(raised.value)
    page = {"Origin": "https://evil.example", "Authorization": f"Bearer {TOKEN}"}
    asked = httpx.options(f"{library.url}/v1/models", headers={**page, "Access-Control-Request-Method": "POST"})
    posted = httpx.post(f"{library.url}/v1/chat/completions", json={}, headers=page)
    assert posted.status_code == 403 and posted.json()["error"]["type"] == "permission_error"
    for answer in (asked, posted):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_paused_run_is_an_error_that_clients_do_not_retry(library: Served, home: Path) -> None:
    settings = {"CHAT_MODEL": "fake", "CHAT_BASE_URL": library.model.base_url, "CHAT_API_KEY": "k", "MAX_CALLS": "1"}
    with served(home, settings=settings) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="any") as client:
        asked: Any = {"model": "citeloom", "messages": [{"role": "user", "content": "What is calibration?"}]}
        with pytest.raises(openai.APIStatusError) as raised:
            client.chat.completions.create(**asked)
        assert raised.value.status_code == 503 and raised.value.response.headers["x-should-retry"] == "false"
        with pytest.raises(openai.APIError, match="Completed calls are saved"):
            list(client.chat.completions.create(stream=True, **asked))
