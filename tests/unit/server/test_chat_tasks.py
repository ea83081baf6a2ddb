"""Requests of chat programs about the chat itself cost nothing; questions to the library are never taken for them."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from citeloom.server.routes.chat_completions import task_answer

TRANSCRIPT = "USER: How is node degree bias corrected?\nASSISTANT: By permutation [1]."
TALK: list[AnyMessage] = [HumanMessage("How is node degree bias corrected?"), AIMessage("By permutation [1].")]
TITLE = "Node degree bias"


@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage(f"Please write a title of at most five words for the chat below.\n\n{TRANSCRIPT}")],
        [HumanMessage(f"Provide a brief title for the conversation, nothing else.\n\nConversation:\n{TRANSCRIPT}")],
        [HumanMessage(f"Analyze this and return a title.\n<conversation>\n{TRANSCRIPT}\n</conversation>")],
        [*TALK, HumanMessage("Generate a title for this conversation.")],
        [*TALK, HumanMessage("Based on the chat history, give this conversation a name.")],
        [SystemMessage("You will write a short title for this chat."), HumanMessage(TALK[0].text)],
        [SystemMessage("You are an assistant tasked with creating a title based on the user's query."), TALK[0]],
    ],
)
def test_a_title_is_made_from_the_users_question(messages: list[AnyMessage]) -> None:
    assert task_answer(messages) == TITLE


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ('{ "title": "the title" }', {"title": TITLE}),
        ('{ "tags": ["one", "two"] }', {"tags": []}),
        ('{ "follow_ups": ["Why?"] }', {"follow_ups": []}),
        ('{ "text": "the rest of the line" }', {"text": ""}),
    ],
)
def test_the_answer_has_the_form_that_the_task_asks_for(form: str, answer: object) -> None:
    task = f"### Task:\nSomething on the talk.\n### Output:\n{form}\n<chat_history>\n{TRANSCRIPT}\n</chat_history>"
    assert json.loads(task_answer([HumanMessage(task)]) or "") == answer


@pytest.mark.parametrize(
    "question",
    [
        "What is node degree bias?",
        "How do authors generate titles from conversation data?",
        "Give the title of the paper on conversation analysis.",
        "Give the title of the message passing paper.",
        "Summarize what is known on chat models.",
        "Which title do the authors give the first dataset?",
        "Write about user: item graphs.",
    ],
)
@pytest.mark.parametrize(
    "before",
    [[], TALK, [SystemMessage("You are a helpful assistant in a chat. Write short answers. The user's name is Ada.")]],
)
def test_a_question_to_the_library_is_not_a_chat_task(question: str, before: list[AnyMessage]) -> None:
    assert task_answer([*before, HumanMessage(question)]) is None


def test_a_generated_title_is_valid_text() -> None:
    title = task_answer([HumanMessage("Write a title for this chat.\n\nUser: What is \ud800 bias?")])
    assert title and title.encode()
