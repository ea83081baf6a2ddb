"""Files that a person edited, or that Citeloom did not write, are never replaced without being asked to."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from citeloom import Conversation, export, open_library, research, verify, write_section
from citeloom.citations.export import section_files as files
from tests.integration.commands.conftest import Citeloom

MINE = "My own words.\n"
ALL = ("md", "bib", "evidence.html", "json")


@pytest.fixture
def write(citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path) -> Any:
    """A command that writes files; how it ended."""

    def give(kind: str, *options: str | Path, out: Path = tmp_path / "out", at: Path = home) -> Any:
        done = citeloom(kind, "--exp", exp, "--home", at, "--out", out, "--json", *options)
        assert done.code == 0, done.err
        return done

    return give


def notes(done: Any) -> list[str]:
    return [line for line in done.err.splitlines() if line.startswith("Note: ") and "kept" in line]


def names(done: Any) -> set[str]:
    return {Path(path).name for path in done.json["files"].values()}


def test_an_unedited_result_is_replaced_in_place(write: Any, tmp_path: Path) -> None:
    write("discussion")
    done = write("discussion", "--cite-style", "pandoc")
    assert names(done) == {f"discussion.{kind}" for kind in ALL}
    assert not notes(done)
    assert "[@" in (tmp_path / "out" / "discussion.md").read_text("utf-8")


@pytest.mark.parametrize(
    "kind",
    [
        "docx",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("md", "bib", "evidence.html", "json", "tex", "html")),
    ],
)
def test_an_edited_file_of_any_format_is_kept_and_new_files_get_a_number(write: Any, tmp_path: Path, kind: str) -> None:
    formats = ("--format", "tex", "--format", "docx", "--format", "html")
    write("discussion", *formats)
    edited = tmp_path / "out" / f"discussion.{kind}"
    edited.write_text(MINE, "utf-8")
    before = {path.name: path.read_bytes() for path in edited.parent.iterdir()}
    done = write("discussion", *formats, "--cite-style", "pandoc")
    assert names(done) == {f"discussion.2.{each}" for each in (*ALL, "tex", "docx", "html")}
    assert {name: (edited.parent / name).read_bytes() for name in before} == before, "the old set stays whole"
    (line,) = notes(done)
    assert f"discussion.{kind} is kept" in line and "discussion.2.*" in line and "--force" in line
    assert any("discussion.2.*" in warning for warning in done.json["warnings"])
    assert "discussion.2" in (edited.parent / "discussion.2.tex").read_text("utf-8"), "cites from its own .bib"
    # The numbered files are Citeloom's own, and need no third set.
    assert names(write("discussion", *formats)) == names(done)


def test_force_replaces_edited_files(write: Any, tmp_path: Path) -> None:
    write("discussion")
    edited = tmp_path / "out" / "discussion.md"
    edited.write_text(MINE, "utf-8")
    done = write("discussion", "--force")
    assert names(done) == {f"discussion.{kind}" for kind in ALL}
    assert edited.read_text("utf-8") != MINE and not notes(done)


def test_the_users_own_bibliography_is_not_mistaken_for_the_papers(write: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "paper.bib").write_text(MINE, "utf-8")
    (out / "results.json").mkdir()
    done = write("paper")
    assert (out / "paper.bib").read_text("utf-8") == MINE
    assert names(done) == {f"paper.2.{kind}" for kind in ALL}
    sections = {Path(section["files"]["md"]).name for section in done.json["sections"]}
    assert "results.2.md" in sections and "discussion.md" in sections
    assert len(notes(done)) == 2, "of the paper and of its section"


def test_formats_from_an_earlier_run_are_rendered_again_with_the_text(write: Any, tmp_path: Path) -> None:
    write("discussion", "--format", "docx")
    word = tmp_path / "out" / "discussion.docx"

    def words() -> str:
        return re.sub(r"<[^>]+>", "", zipfile.ZipFile(word).read("word/document.xml").decode())

    old = words()
    (tmp_path / "exp.json").write_text(
        (tmp_path / "exp.json").read_text("utf-8").replace("ensemble", "committee"), "utf-8"
    )
    done = write("paper")
    assert "committee" in words() and words() != old
    (section,) = (item for item in done.json["sections"] if item["section"] == "discussion")
    assert Path(section["files"]["docx"]) == word and not notes(done)


def test_a_format_that_does_not_belong_to_the_run_is_reported(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("discussion", "--format", "docx", "--format", "html")
    out = tmp_path / "out"
    (out / "discussion.docx").write_text(MINE, "utf-8")
    from citeloom.citations.export import pandoc_formats as formats

    monkeypatch.setitem(formats._WRITERS, "html", "no-such-writer")  # type: ignore[index]
    done = write("discussion", "--cite-style", "pandoc")
    assert names(done) == {f"discussion.{kind}" for kind in ALL}
    assert (out / "discussion.docx").read_text("utf-8") == MINE
    (line,) = notes(done)
    assert "discussion.docx, discussion.html: kept from an earlier run" in line


@pytest.mark.parametrize("stop_before", [*(pytest.param(place, marks=pytest.mark.long) for place in (1, 2, 3)), 4])
def test_a_half_written_set_of_files_is_not_mistaken_for_an_edit(
    write: Any, citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    stop_before: int,
) -> None:  # fmt: skip
    write("discussion")
    calls = 0
    real = files.replace_file

    def dying(path: Path, content: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_before:
            raise KeyboardInterrupt  # like a kill: nothing is cleaned up
        real(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace_file", dying)
        given = ("--exp", exp, "--home", home, "--out", tmp_path / "out")
        citeloom("discussion", *given, "--cite-style", "pandoc")
    done = write("discussion", "--cite-style", "numeric")
    assert names(done) == {f"discussion.{kind}" for kind in ALL} and not notes(done)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names(done))


def test_files_in_a_moved_folder_are_recognised_and_another_home_overwrites_nothing(
    write: Any, home: Path, tmp_path: Path
) -> None:
    write("discussion")
    moved = tmp_path / "elsewhere"
    shutil.move(tmp_path / "out", moved)
    assert names(write("discussion", "--cite-style", "pandoc", out=moved)) == {f"discussion.{kind}" for kind in ALL}
    other = tmp_path / "other home"
    shutil.copytree(home, other)
    (other / "runs.sqlite").unlink()  # as in a fresh clone, or before hashes were kept
    done = write("discussion", "--cite-style", "numeric", out=moved, at=other)
    assert names(done) == {f"discussion.2.{kind}" for kind in ALL}
    assert names(write("discussion", out=moved)) == {f"discussion.{kind}" for kind in ALL}, (
        "the first home knows its own"
    )


def test_a_users_link_is_not_replaced(write: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write("discussion")
    (out / "discussion.md").rename(out / "chapter.md")
    (out / "discussion.md").symlink_to(out / "chapter.md")
    done = write("discussion", "--cite-style", "pandoc")
    assert (out / "discussion.md").is_symlink()
    assert "discussion.2.md" in names(done)


def test_edited_answers_and_conversations_are_kept_too(citeloom: Citeloom, home: Path, tmp_path: Path) -> None:
    with open_library(home) as library:
        first = research(library, "How well are scores calibrated?", out=tmp_path)
        text = Path(first["files"]["md"])
        text.write_text(MINE, "utf-8")
        again = research(library, "How well are scores calibrated?", out=tmp_path)
        assert text.read_text("utf-8") == MINE
        assert Path(again["files"]["md"]).name == f"{text.stem}.2.md"
        talk = Conversation(library)
        talk.ask("How well are scores calibrated?")
        kept = tmp_path / "talk.md"
        assert talk.export(kept) == kept and talk.export(kept) == kept
        kept.write_text(MINE, "utf-8")
        assert talk.export(kept).name == "talk.2.md"
    done = citeloom("conversations", "export", talk.thread_id, kept, "--home", home)
    assert done.code == 0 and "talk.md is kept" in done.err and "talk.2.md" in done.err
    assert kept.read_text("utf-8") == MINE
    citeloom("conversations", "export", talk.thread_id, kept, "--home", home, "--force")
    assert kept.read_text("utf-8") != MINE


def test_python_keeps_edited_files_and_replaces_them_on_request(home: Path, exp: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with open_library(home) as library:
        write_section(library, "discussion", exp, out=out)
        (out / "discussion.md").write_text(MINE, "utf-8")
        again = write_section(library, "discussion", exp, out=out)
        assert (out / "discussion.md").read_text("utf-8") == MINE
        assert Path(again["files"]["md"]).name == "discussion.2.md"
        write_section(library, "discussion", exp, out=out, force=True)
        assert (out / "discussion.md").read_text("utf-8") != MINE


def test_an_export_is_named_after_its_file_and_replaces_no_other(home: Path, exp: Path, tmp_path: Path) -> None:
    out, named = tmp_path / "out", "What: a discussion"
    other = out / "What- a discussion.html"
    with open_library(home) as library:
        write_section(library, "discussion", exp, out=out)
        for suffix in ("md", "json"):
            (out / f"discussion.{suffix}").rename(out / f"{named}.{suffix}")
        other.write_text(MINE, "utf-8")
        done = export(library, out / f"{named}.md", "html")
        assert [Path(path).name for path in done["files"].values()] == [f"{named}.html"]
        assert other.read_text("utf-8") == MINE
        assert not verify(library, done["files"]["html"])["mismatches"]


def test_preparing_the_output_folder_deletes_no_file_whatever_its_name(write: Any, tmp_path: Path) -> None:
    mine = tmp_path / "out" / ".citeloom-write-test"
    mine.parent.mkdir()
    mine.write_text(MINE, "utf-8")
    write("discussion")
    assert mine.read_text("utf-8") == MINE
