"""`papers show`: the tree with chunks and pages, and the text."""

from __future__ import annotations

import json
import re
from pathlib import Path

from citeloom.commands.paper_view import paper_lines
from citeloom.documents import Category, Paper, Section
from citeloom.tools.outline import OutlinedSection
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


def test_the_text_is_the_papers_own_without_repeats(citeloom: Citeloom, home: Path) -> None:
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
    def section(title: str, level: int) -> Section:
        return Section(0, title, "", level, Category.METHOD, 0, 1)

    sections = [
        OutlinedSection(section("Methods", 1), (0, 3), (2, 3)),
        OutlinedSection(section("Setup", 2), (4, 4), (3, 3)),
        OutlinedSection(section("", 2), None, None),
        OutlinedSection(Section(3, "References", "", 1, Category.OTHER, 1, 2, searchable=False), None, None),
    ]
    lines = list(paper_lines(Paper("key", "Title"), "Summary.", sections))
    assert lines[-4:] == [
        "Methods [method, chunks 0-3, pp. 2-3]",
        "  Setup [method, chunk 4, p. 3]",
        "  (untitled) [method, no chunks]",
        "References [other, not searched]",
    ]


def test_an_unknown_key_is_named(citeloom: Citeloom, home: Path) -> None:
    ended = citeloom("papers", "show", "nobody2000", "--text", "--home", home)
    assert (ended.code, ended.out) == (2, "") and "nobody2000" in ended.err
