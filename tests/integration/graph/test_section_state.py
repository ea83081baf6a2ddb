"""What a thread of the section graph remembers, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from citeloom import build_section_graph
from citeloom.errors import InputError
from citeloom.graph.graphs import Graph
from tests.support.openai_server import FakeOpenAI

CONFIG: Any = {"configurable": {"thread_id": "one"}}
ADDED_UP = ("messages", "queries", "evidence", "searches_used", "agent_turns", "warnings")


@pytest.fixture
def endpoint(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    """A chat model, the sample home, and small searches."""
    with FakeOpenAI(tool_turns=1) as server:
        for name, value in {
            "HOME": str(home),
            "CHAT_MODEL": "any",
            "CHAT_BASE_URL": server.base_url,
            "TOP_K_INITIAL": "5",
        }.items():
            monkeypatch.setenv(f"CITELOOM_{name}", value)
        yield server


@pytest.fixture
def graph(endpoint: FakeOpenAI) -> Graph:
    return build_section_graph().compile(checkpointer=InMemorySaver(), name="section")


async def test_the_output_contains_only_the_section(graph: Graph, experiment: dict[str, Any]) -> None:
    answer = await graph.ainvoke({"section": "discussion", "experiment": experiment}, CONFIG)
    assert set(answer) == {"section", "text", "result"}
    assert answer["result"]["text"] == answer["text"]
    assert answer["result"]["citations"]


async def test_a_thread_given_another_section_starts_from_the_beginning(
    graph: Graph, experiment: dict[str, Any]
) -> None:
    await graph.ainvoke({"section": "discussion", "experiment": experiment}, CONFIG)
    alone: Any = {"configurable": {"thread_id": "alone"}}
    await graph.ainvoke({"section": "introduction", "experiment": experiment}, alone)

    await graph.ainvoke({"section": "introduction", "experiment": experiment}, CONFIG)

    second, fresh = (await graph.aget_state(CONFIG)).values, (await graph.aget_state(alone)).values
    assert second["text"] == fresh["text"]
    for name in ADDED_UP:
        if name == "messages":  # which get new ids
            assert [message.content for message in second[name]] == [message.content for message in fresh[name]]
        else:
            assert second[name] == fresh[name], name


async def test_an_earlier_section_is_not_mistaken_for_the_current_one(graph: Graph, experiment: dict[str, Any]) -> None:
    await graph.ainvoke({"section": "discussion", "experiment": experiment}, CONFIG)
    await graph.ainvoke({"section": "introduction", "experiment": experiment}, CONFIG, interrupt_before=["generate"])
    values = (await graph.aget_state(CONFIG)).values
    assert (values["section"], values["text"], values["result"]) == ("introduction", "", {})


async def test_runs_with_other_settings_share_the_open_library(
    graph: Graph, experiment: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from citeloom.stores.library import Library

    opened: list[Any] = []
    really_open = Library.open
    monkeypatch.setattr(Library, "open", lambda *args, **options: opened.append(args) or really_open(*args, **options))
    given: Any = {"section": "discussion", "experiment": experiment}
    texts = [
        (await graph.ainvoke(given, CONFIG, context={"cite_style": style}))["text"] for style in ("pandoc", "latex")
    ]
    assert "[@" in texts[0] and "\\cite" in texts[1]
    assert len(opened) == 1
    # One whose settings are out of bounds is refused, and leaves the others alone.
    with pytest.raises(InputError, match="section_words"):
        await graph.ainvoke(given, CONFIG, context={"section_words": 2})
    await graph.ainvoke(given, CONFIG, context={"section_words": 200})
    assert len(opened) == 1
