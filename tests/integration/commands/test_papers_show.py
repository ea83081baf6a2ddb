"""`papers show`: the tree with chunks and pages, and the text."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from citeloom.commands.papers import section_lines
from tests.integration.commands.conftest import Citeloom
from tests.support.sample_library import SAMPLES, THREE


def test_the_tree_accounts_for_every_chunk(citeloom: Citeloom, home: Path) -> None:
    record = json.loads(citeloom("papers", "show", THREE[0], "--json", "--home", home).out)
    assert "text" not in record
    ranges = [section["chunk_range"] for section in record["sections"] if section["chunk_range"]]
    assert [index for first, last in ranges for index in range(first, last + 1)] == list(range(record["chunks"]))
    assert all(section["chunks"] == 0 for section in record["sections"] if not section["searchable"])
    shown = citeloom("papers", "show", THREE[0], "--home", home).out
    assert re.search(r"^  \S.* \[method, chunks? \d+(-\d+)?\]$", shown, re.M)


def test_the_text_is_that_of_the_paper_without_repeats(citeloom: Citeloom, home: Path) -> None:
    shown = citeloom("papers", "show", THREE[0], "--text", "--home", home).out
    written = (SAMPLES / f"{THREE[0]}.md").read_text(encoding="utf-8")
    paragraphs = [part.strip() for part in shown.split("\n\n") if len(part.split()) > 8]
    assert len(paragraphs) > 10
    assert all(part in written for part in paragraphs)
    assert len(paragraphs) == len(set(paragraphs))
    record = json.loads(citeloom("papers", "show", THREE[0], "--text", "--json", "--home", home).out)
    ids = [identifier for passage in record["text"] for identifier in passage["chunk_ids"]]
    assert ids == [f"{THREE[0]}:{index:05d}" for index in range(record["chunks"])]


def test_pages_are_shown_where_they_are_known() -> None:
    def section(title: str, level: int, chunks: list[int] | None, pages: list[int] | None) -> dict[str, Any]:
        ranges = {"chunk_range": chunks, "page_range": pages}
        return {"title": title, "level": level, "category": "method", "searchable": True, **ranges}

    sections = [
        section("Methods", 1, [0, 3], [2, 3]),
        section("Setup", 2, [4, 4], [3, 3]),
        section("", 2, None, None),
        {**section("References", 1, None, None), "category": "other", "searchable": False},
    ]
    assert list(section_lines(sections)) == [
        "Methods [method, chunks 0-3, pp. 2-3]",
        "  Setup [method, chunk 4, p. 3]",
        "  (untitled) [method, no chunks]",
        "References [other, not searched]",
    ]


def test_the_users_note_is_shown_and_found(citeloom: Citeloom, tmp_path: Path) -> None:
    papers = shutil.copytree(
        SAMPLES, tmp_path / "papers", ignore=lambda _, names: {n for n in names if THREE[0] not in n}
    )
    (papers / f"{THREE[0]}.notes.md").write_text("Ask Imre about the walrus figure.\n", encoding="utf-8")
    (papers / "nobody1900.notes.md").write_text("On nothing.", encoding="utf-8")
    home = tmp_path / "home"
    taken_in = citeloom("ingest", papers, "--home", home, "--json")
    assert (taken_in.code, taken_in.json["papers_added"]) == (0, 1)
    assert "nobody1900.notes.md is a note, but matches no paper in its folder" in taken_in.err
    shown = citeloom("papers", "show", THREE[0], "--home", home).out
    assert "Your note:\nAsk Imre about the walrus figure.\n" in shown
    assert "walrus" in citeloom("papers", "show", THREE[0], "--home", home, "--json").json["note"]
    found = citeloom("find", "the walrus figure of Imre", "--home", home, "--json").json["papers"]
    assert [(paper["key"], paper["matched"]) for paper in found] == [(THREE[0], "note")]
    assert found[0]["sentence"] == "Ask Imre about the walrus figure."
    assert "your note: Ask Imre" in citeloom("find", "the walrus figure of Imre", "--home", home).out
    assert "walrus" not in citeloom("search", "the walrus figure of Imre", "--home", home, "--json").out
    assert "walrus" not in citeloom("papers", "show", THREE[0], "--text", "--home", home).out


def test_an_unknown_key_is_reported(citeloom: Citeloom, home: Path) -> None:
    ended = citeloom("papers", "show", "nobody2000", "--text", "--home", home)
    assert (ended.code, ended.out) == (2, "") and "nobody2000" in ended.err
