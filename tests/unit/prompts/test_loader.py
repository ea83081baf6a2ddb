"""What the prompt loader refuses, and that values are inserted once and never read as a template."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.prompts import PROMPT_NAMES, PromptError, PromptLibrary, PromptOverrideError, load_prompt, loader

HEAD = "---\nvariables: [query]\n---\n"


def written(folder: Path, text: str, name: str = "reader_task") -> Path:
    path = folder / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + "{{query}} {{Query}}", "double braces"),
        (HEAD + "{{query}} {{ query", "double braces"),
        (HEAD + "  \n", "there is no text"),
    ],
)
def test_a_malformed_file_is_refused_by_name(tmp_path: Path, text: str, expected: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PromptError) as caught:
        load_prompt("reader_task", tmp_path)
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)


def test_windows_line_endings_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    (tmp_path / "reader_task.md").write_bytes(b"\xef\xbb\xbf---\r\nvariables: [query]\r\n---\r\nAsk {{ query }}.\r\n")
    assert load_prompt("reader_task", tmp_path).render(query="x") == "Ask x."


def test_all_wrong_variables_are_in_one_error(tmp_path: Path) -> None:
    written(tmp_path, "---\nvariables: [query, passage]\n---\n{{query}} {{passage}}")
    with pytest.raises(PromptError, match="missing passage, query; unknown key, words"):
        load_prompt("reader_task", tmp_path).render(words=3, key="x")


def test_a_value_is_never_read_as_a_template(tmp_path: Path) -> None:
    written(tmp_path, "---\nvariables: [query, passage]\n---\n{{query}}|{{passage}}|{{query}}")
    prompt = load_prompt("reader_task", tmp_path)
    text = prompt.render(query="{{passage}} {{kind}} {0} \\1 \\g<0>", passage="{{query}}")
    once = "{{passage}} {{kind}} {0} \\1 \\g<0>"
    assert text == f"{once}|{{{{query}}}}|{once}"


def test_a_value_of_several_lines_gets_its_own_lines(tmp_path: Path) -> None:
    written(tmp_path, "---\nvariables: [query, passage]\n---\nSee {{passage}} for\n{{query}}\n\n{{passage}}")
    prompt = load_prompt("reader_task", tmp_path)
    assert prompt.render(passage="a\nb", query="c") == "See \na\nb\n for\nc\n\na\nb"


def test_a_users_file_replaces_the_shipped_file_with_its_name(tmp_path: Path) -> None:
    written(tmp_path, HEAD.replace("query", "words") + "In {{words}} words.", "summarizer_system")
    own, shipped = PromptLibrary(tmp_path), PromptLibrary()
    assert own["summarizer_system"].render(words=5) == "In 5 words."
    assert own["reader_task"] == shipped["reader_task"]
    assert own.fingerprint() != shipped.fingerprint() == PromptLibrary().fingerprint()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("reader_taks", HEAD + "{{query}}", "no prompt has that name"),
        ("reader_task", HEAD + "{{query}}", "has query, expected most, needs, passages, purpose"),
        ("writer_again", HEAD + "{{query}}", "has query, expected no variables"),
        ("reader_task", "nothing", "has no variables, expected most"),
    ],
)
def test_an_unusable_user_file_is_wrong_input(tmp_path: Path, name: str, text: str, expected: str) -> None:
    path = written(tmp_path, text, name)
    with pytest.raises(PromptOverrideError) as caught:
        PromptLibrary(tmp_path)
    assert caught.value.exit_code == 2
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_user_folder_is_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(PromptOverrideError, match="no such folder"):
        PromptLibrary(tmp_path / "nowhere")


def test_a_missing_shipped_file_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "PROMPT_NAMES", (*PROMPT_NAMES, "translator"))
    with pytest.raises(PromptError, match=r"translator\.md: no such file") as caught:
        PromptLibrary()["translator"]
    assert caught.value.exit_code == 1
