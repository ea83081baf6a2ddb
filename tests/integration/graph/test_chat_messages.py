"""The conversation graph as agents and chat programs call it: with messages, of which the last is the question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from citeloom import CiteloomError
from citeloom.graph.conversation_graph import (
    SOURCES_HEADING,
    answer_with_sources,
    build_conversation_graph,
    chat_question,
)
from citeloom.graph.studio import conversation

QUESTION = "How does temperature scaling change the calibration?"


@pytest.fixture(autouse=True)
def _environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_HOME", str(home))
    monkeypatch.setenv("CITELOOM_MAX_SEARCH_ITERATIONS", "0")


def agent() -> Any:
    """A parent with nothing but messages, as prebuilt agents and chat pages have."""
    parent = StateGraph(MessagesState)
    parent.add_node("library", conversation)
    parent.add_edge(START, "library")
    parent.add_edge("library", END)
    return parent.compile(checkpointer=InMemorySaver())


async def rewritten(graph: Any, given: Any, config: Any = None) -> list[str]:
    """How the graph says that it understands the question."""
    events = graph.astream(given, config, stream_mode="custom", subgraphs=True)
    return [event["text"] async for _, event in events if event.get("stage") == "rewritten"]


async def test_the_answer_comes_back_as_the_last_message_with_its_sources() -> None:
    values: Any = await conversation.ainvoke({"messages": [{"role": "user", "content": QUESTION}]})
    asked, answer = values["messages"]
    assert (asked.type, answer.type, answer.name) == ("human", "ai", "citeloom")
    text, _, sources = answer.content.partition(f"{SOURCES_HEADING}\n\n")
    assert values["result"]["text"].strip() == text.strip()
    assert sources.count("- **[") == len(values["result"]["references"]) > 0
    for reference in values["result"]["references"]:
        assert reference["title"] in sources
        assert all(place["section"] in sources for place in reference["places"])


async def test_a_parent_graph_with_messages_gets_answers_that_know_earlier_questions() -> None:
    graph, config = agent(), {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"messages": [HumanMessage(QUESTION)]}, config)
    (understood,) = await rewritten(graph, {"messages": [HumanMessage("What about its limits?")]}, config)
    assert "temperature scaling" in understood or "calibration" in understood
    messages = (await graph.aget_state(config)).values["messages"]
    assert [message.type for message in messages] == ["human", "ai", "human", "ai"]


async def test_a_thread_remembers_the_messages_that_it_started_with() -> None:
    graph = build_conversation_graph().compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    earlier = [HumanMessage(QUESTION), AIMessage("It is changed by one parameter [1].")]
    await graph.ainvoke({"messages": [*earlier, HumanMessage("What about its limits?")]}, config)
    await graph.ainvoke({"asked": "And for ensembles?"}, config)
    values = (await graph.aget_state(config)).values
    assert [turn["asked"] for turn in values["past"]] == [QUESTION, "What about its limits?", "And for ensembles?"]
    assert values["past"][0]["answer"] == "It is changed by one parameter."
    assert [message.type for message in values["messages"]] == ["human", "ai"] * 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"messages": [{"text": "What?"}]}, "field messages cannot be read"),
        ({"messages": [{"role": "parrot", "content": "What?"}]}, "field messages cannot be read"),
        ({"messages": 7}, "field messages cannot be read"),
        ({"messages": [("assistant", "Hello.")]}, "the last message is not the user's"),
        ({"messages": []}, "field asked is missing; known fields: messages, asked, turn_kind"),
        ({"messages": [("user", "...")]}, "nothing to look for"),
        ({"mesages": [("user", QUESTION)]}, "'mesages' (did you mean 'messages'?)"),
    ],
)
async def test_an_input_without_a_question_is_one_line_that_names_the_field(given: Any, said: str) -> None:
    with pytest.raises(CiteloomError) as raised:
        await conversation.ainvoke(given)
    assert said in str(raised.value) and "\n" not in str(raised.value) and raised.value.exit_code == 2


def test_instructions_tool_messages_and_unanswered_questions_are_left_out_of_a_chat() -> None:
    answer = answer_with_sources({"text": "It falls [1, 2]. It rises [E3].", "references": []})
    chat = chat_question(
        [
            SystemMessage("You are a pirate."),
            HumanMessage("What was never answered?"),
            HumanMessage(QUESTION),
            AIMessage(f"{answer}\n\n{SOURCES_HEADING}\n\n- **[1]** Varga 2021."),
            ToolMessage("7", tool_call_id="t"),
            AIMessage("A second answer."),
            HumanMessage([{"type": "text", "text": "And for ensembles?"}, {"type": "image_url", "image_url": "x"}]),
        ]
    )
    assert chat is not None and chat.asked == "And for ensembles?"
    assert [(turn["asked"], turn["answer"]) for turn in chat.past] == [(QUESTION, "It falls. It rises.")]


def test_earlier_follow_up_questions_are_completed() -> None:
    chat = chat_question(
        [
            HumanMessage(QUESTION),
            AIMessage("So."),
            HumanMessage("And for ensembles?"),
            AIMessage("So."),
            HumanMessage("Why?"),
        ]
    )
    assert chat is not None
    assert "calibration" in chat.past[1]["question"] and "ensembles" in chat.past[1]["question"]


def test_only_the_latest_turns_of_a_long_chat_are_used() -> None:
    turns = [message for number in range(30) for message in (HumanMessage(f"What is term {number}?"), AIMessage("So."))]
    chat = chat_question([*turns, HumanMessage("Why?")])
    assert chat is not None
    assert [turn["asked"] for turn in chat.past] == [f"What is term {number}?" for number in range(10, 30)]
    (long,) = chat_question([HumanMessage("What?"), AIMessage("word " * 500_000), HumanMessage("Why?")]).past  # type: ignore[union-attr]
    assert len(long["answer"]) < 10_000
