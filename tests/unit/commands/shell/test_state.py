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
def test_a_state_is_called_what_its_variables_make_it(state: ShellState) -> None:
    assert STATES[state.name] is state


@every_state
def test_a_list_gives_new_numbers_and_keeps_what_can_be_saved(state: ShellState) -> None:
    reached = state.listed(NEW, "words")
    assert reached.last_query_set == NEW and reached.draft is state.draft
    assert reached.original_query == ("words" if state.draft is None else state.original_query)


@every_state
def test_a_question_without_an_answer_leaves_the_last_result_usable(state: ShellState) -> None:
    assert state.without_result() == state


@every_state
def test_a_pause_is_kept_beside_the_state_until_there_is_a_new_result(state: ShellState) -> None:
    paused = state.paused_at("research What is it?")
    assert (paused.name, paused.paused) == (state.name, "research What is it?")
    require(paused, "resume")
    assert paused.listed(NEW).paused
    assert not paused.without_result().paused


@every_state
@pytest.mark.parametrize("command", [word.name for word in WORDS])
def test_only_what_needs_something_is_refused_without_it(state: ShellState, command: str) -> None:
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


def test_numbers_are_those_that_were_shown() -> None:
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


def test_a_key_that_is_a_number_is_taken_where_no_list_has_it() -> None:
    assert resolve_key(INITIAL, "2019", ["2019"]) == "2019"
    assert resolve_key(STATES["listed"], "2", ["2"]) == "baker2020"


def test_every_command_is_explained_once() -> None:
    assert sorted(word.name for word in WORDS) == sorted([*ACTIONS, "resume", "quit"])
