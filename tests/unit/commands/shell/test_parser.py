"""Which lines are commands, which are questions, and how other lines are answered."""

from __future__ import annotations

import pytest

from citeloom.commands.shell.parser import NotUnderstood, ShellRequest, parse, suggestions


@pytest.mark.parametrize(
    ("line", "command", "argument"),
    [
        ("list", "list", ""),
        ("  LIST  ", "list", ""),
        ("find edge  prior", "find", "edge prior"),
        ("sem-search what is a prior?", "sem-search", "what is a prior?"),
        ("research What is a prior?", "research", "What is a prior?"),
        ("improve shorter, please", "improve", "shorter, please"),
        ("summary 2", "summary", "2"),
        ("open smith2024quantum", "open", "smith2024quantum"),
        ("save", "save", ""),
        ("save my answer.md", "save", "my answer.md"),
        ("section discussion exp.json", "section", "discussion exp.json"),
        ("rebuild-index", "rebuild-index", ""),
        ("/help", "help", ""),
        ("?", "help", ""),
        ("exit", "quit", ""),
        ("ask list", "ask", "list"),
    ],
)
def test_a_line_is_parsed_as_a_command_with_its_argument(line: str, command: str, argument: str) -> None:
    assert parse(line) == ShellRequest(command, argument)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "question",
    [
        "What about its limitations?",
        "and in 2020?",
        "limitations?",
        "list the assumptions of LASSO",
        "open questions in drug repurposing?",
        "open problems in edge prediction",
        "summary statistics: which are reported?",
        "section headings in papers?",
        "help me understand degree bias",
        "researchers in edge prediction use which baselines",
        "finding drugs for rare diseases",
        "Lists of priors: who has them?",
        "knowledge graphs",
        "什么是知识图谱",
        "which papers use XSwap",
    ],
)
def test_plain_text_is_a_question(question: str) -> None:
    assert parse(question) == ShellRequest("ask", question)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lst", "Unknown command 'lst'. Did you mean 'list'?"),
        ("reserch what is a prior", "Did you mean 'research what is a prior'?"),
        ("sumary 2", "Did you mean 'summary 2'?"),
        ("imporve shorter", "Did you mean 'improve shorter'?"),
        ("semsearch priors", "Did you mean 'sem-search priors'?"),
        ("rebuild", "Did you mean 'rebuild-index'?"),
        ("quit!", "Did you mean 'quit'?"),
        ("xyzzy", "Unknown command 'xyzzy'. 'help' lists the commands."),
        ("/delete all", "Unknown command 'delete'. 'help' lists the commands."),
        ("summary", "'summary' needs an argument: summary N|KEY."),
        ("research", "'research' needs an argument: research QUESTION."),
        ("list papers", "'list' takes no argument."),
    ],
)
def test_a_line_that_cannot_be_understood_gets_the_nearest_suggestion(line: str, said: str) -> None:
    understood = parse(line)
    assert isinstance(understood, NotUnderstood)
    assert said in understood.message


@pytest.mark.parametrize("line", ["", "   ", "\t"])
def test_an_empty_line_does_nothing(line: str) -> None:
    assert parse(line) is None


def test_completion_offers_commands_then_the_papers_of_the_list_before_all_others() -> None:
    assert [text for text, _ in suggestions("su", {}, ())] == ["summary "]
    assert [text for text, _ in suggestions("li", {}, ())] == ["list"]
    offered = suggestions("open ba", {4: "baker2020"}, ["adams2019", "bach1721", "baker2020"])
    assert offered == [("baker2020", "number 4"), ("bach1721", "")]
    assert [text for text, _ in suggestions("section dis", {}, ())] == ["discussion"]
    assert suggestions("research ba", {4: "baker2020"}, ["bach1721"]) == []
