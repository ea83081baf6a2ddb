"""Command by state: where each outcome leads, what is refused, and what a failure leaves behind."""

from __future__ import annotations

import pytest

from citeloom.commands.shell.parser import WORDS
from citeloom.commands.shell.repl import ACTIONS
from citeloom.commands.shell.shell_state import (
    INITIAL,
    NotNowError,
    ShellDraft,
    ShellState,
    StateName,
    require,
    resolve_key,
)

PAPERS = {1: "adams2019", 2: "baker2020"}
ANSWER = ShellDraft("research", "An answer.", {"question": "What is it?"})
PASSAGES = ShellDraft("sem-search", "Passages.")
SECTION = ShellDraft("section", "A section.", {"section": "discussion"})

STATES: dict[StateName, ShellState] = {
    "initial": INITIAL,
    "listed": ShellState(PAPERS, original_query="priors"),
    "sem-search": ShellState(PAPERS, draft=PASSAGES, original_query="priors"),
    "research": ShellState(PAPERS, draft=ANSWER, original_query="What is it?"),
    "section": ShellState(PAPERS, draft=SECTION, original_query="discussion"),
}
NEW = {3: "clark2021"}
every_state = pytest.mark.parametrize("state", STATES.values(), ids=list(STATES))


@every_state
def test_each_state_has_the_name_that_follows_from_its_variables(state: ShellState) -> None:
    assert STATES[state.name] is state


@every_state
def test_a_new_list_gets_new_numbers_and_keeps_the_result_to_save(state: ShellState) -> None:
    reached = state.listed(NEW, "words")
    assert reached.last_query_set == NEW and reached.draft is state.draft
    assert reached.original_query == ("words" if state.draft is None else state.original_query)


@every_state
def test_a_question_without_an_answer_keeps_the_last_result_usable(state: ShellState) -> None:
    assert state.without_result() == state


@every_state
def test_a_pause_is_remembered_until_there_is_a_new_result(state: ShellState) -> None:
    paused = state.paused_at("research What is it?")
    assert (paused.name, paused.paused) == (state.name, "research What is it?")
    require(paused, "resume")
    assert paused.listed(NEW).paused
    assert not paused.without_result().paused


@every_state
@pytest.mark.parametrize("command", [word.name for word in WORDS])
def test_a_command_is_refused_only_when_what_it_needs_is_missing(state: ShellState, command: str) -> None:
    missing = {
        "improve": state.name != "research",
        "save": state.draft is None,
        "resume": not state.paused,
    }
    if missing.get(command, False):
        with pytest.raises(NotNowError):
            require(state, command)
    else:
        require(state, command)


def test_numbers_refer_to_the_papers_shown() -> None:
    state = ShellState({2: "baker2020", 7: "clark2021"})
    assert resolve_key(state, "7", ()) == "clark2021"
    assert resolve_key(state, "baker2020", ()) == "baker2020"
    with pytest.raises(NotNowError, match=r"no number 1; it has 2, 7"):
        resolve_key(state, "1", ())


@pytest.mark.parametrize(
    ("state", "number", "said"),
    [
        (STATES["research"], "3", "it goes from 1 to 2"),
        (STATES["research"], "0", "it goes from 1 to 2"),
        (INITIAL, "1", "no list that 1 could refer to"),
    ],
)
def test_an_unknown_number_is_reported_with_the_known_ones(state: ShellState, number: str, said: str) -> None:
    with pytest.raises(NotNowError, match=said):
        resolve_key(state, number, ())


def test_a_numeric_key_is_accepted_if_no_list_uses_the_number() -> None:
    assert resolve_key(INITIAL, "2019", ["2019"]) == "2019"
    assert resolve_key(STATES["listed"], "2", ["2"]) == "baker2020"


def test_every_command_is_explained_once() -> None:
    assert sorted(word.name for word in WORDS) == sorted([*ACTIONS, "resume", "quit"])
