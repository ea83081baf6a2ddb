"""Bad and odd inputs, one row each: taken in whole or refused with the true reason; the good paper beside them stays.

A row makes files in a folder that also holds one good paper; it says which papers come of it, and which files or
entries are refused with which words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from citeloom.errors import InputError
from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.sources import read_sources
from citeloom.stores.library import Library

GOOD = "# A good paper\n\n## Introduction\n\nLooms are machines that weave cloth from threads.\n"


@dataclass(frozen=True)
class Row:
    """What a folder holds beside the good paper, and what comes of it."""

    name: str
    make: Callable[[Path], object]
    papers: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    warned: str = ""


def put(name: str, content: str | bytes) -> Callable[[Path], object]:
    data = content.encode() if isinstance(content, str) else content

    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    return make


def several(*makers: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [make(folder) for make in makers]


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(target)


def locked(folder: Path) -> None:
    put("locked.md", GOOD)(folder)
    (folder / "locked.md").chmod(0)


def bib(content: str, *keys: str) -> Callable[[Path], object]:
    """A `.bib`, and a paper for each of the keys."""
    return several(put("library.bib", content), *(put(f"{key}.md", GOOD) for key in keys))


WORDS = "Looms weave cloth. "
LONG = ("10,000 headings",)
ROWS = [
    # Files that are no text
    Row("empty file", put("x.md", b""), refused={"x.md": "is empty"}),
    Row("blanks only", put("x.md", " \n\t\r\n"), refused={"x.md": "is empty"}),
    Row("byte order mark only", put("x.md", b"\xef\xbb\xbf"), refused={"x.md": "is empty"}),
    Row("byte order mark and text", put("x.md", b"\xef\xbb\xbf" + GOOD.encode()), ("x",)),
    Row("NUL bytes", put("x.md", b"# T\n\nA \0 word.\n"), refused={"x.md": "is binary"}),
    Row("UTF-16", put("x.md", GOOD.encode("utf-16")), refused={"x.md": "UTF-16"}),
    Row("UTF-16 without mark", put("x.md", GOOD.encode("utf-16-le")), refused={"x.md": "is binary"}),
    Row("Latin-1", put("x.md", "# Caf\xe9\n\nWords.\n".encode("latin-1")), refused={"x.md": "not UTF-8 (byte 5)"}),
    Row("lone surrogates as bytes", put("x.md", b"# T\n\nA \xed\xa0\x80 word.\n"), refused={"x.md": "not UTF-8"}),
    Row("a PDF by its name only", put("x.md", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), refused={"x.md": "not UTF-8"}),
    Row("characters that a terminal obeys", put("x.md", "# T \x1b[2J\n\nA \x07 word of it.\n"), ("x",)),
    Row("noncharacters", put("x.md", "# T\n\nA \ufffe\uffff word of it.\n"), ("x",)),
    Row("50 MB on one line", put("x.md", b"x" * 50_000_000), refused={"x.md": "50 MB"}),
    Row("a megabyte in one word", put("x.md", b"# T\n\n" + b"x" * 1_000_000), ("x",)),
    Row("a megabyte in one line", put("x.md", "# T\n\n" + WORDS * 50_000), ("x",)),
    # Files that are no files, and names
    Row("a folder named x.md", put("x.md/inside.md", GOOD), ("inside",)),
    Row("an empty folder named x.md", lambda folder: (folder / "x.md").mkdir()),
    Row("a pipe named x.md", lambda folder: os.mkfifo(folder / "x.md"), refused={"x.md": "not a regular file"}),
    Row("a link to itself", link("x.md", "x.md"), refused={"x.md": "cannot be read"}),
    Row("a link to nothing", link("x.md", "gone.md"), refused={"x.md": "cannot be read"}),
    Row("links in a circle", several(put("sub/y.md", GOOD), link("sub/up", "..")), ("y",)),
    Row(
        "a link to a paper",
        several(put("y.md", GOOD), link("x.md", "y.md")),
        ("x",),
        warned="y.md is the same paper as x",
    ),
    Row("no permission", locked, refused={"locked.md": "Permission denied"}),
    Row("hidden files", several(put(".x.md", GOOD), put(".git/y.md", GOOD))),
    Row("a name of another script", put("Ткань.md", GOOD), ("paper-6dde9fd1",)),
    Row("a name with blanks and brackets", put("a (b) [c].md", GOOD), ("a-b-c",)),
    Row("a name with a line break", put("a\nb.md", GOOD), ("a-b",)),
    Row(
        "a name that is no text",
        lambda folder: Path(os.fsdecode(bytes(folder) + b"/x\xff.md")).write_text(GOOD),
        refused={"x\\udcff.md": "not valid text"},
    ),
    Row("an ending in capitals", put("x.MARKDOWN", GOOD), ("x",)),
    Row("two files of one key", several(put("a/x.md", GOOD), put("b/x.md", GOOD)), ("x",), {"x.md": "same key, x, as"}),
    # Texts
    Row("pictures only", put("x.md", "![](a.png)\n\n![](b.png)\n"), refused={"x.md": "no prose"}),
    Row("headings only", put("x.md", "# T\n\n## Methods\n\n## Results\n"), refused={"x.md": "no prose"}),
    Row("references only", put("x.md", "# T\n\n## References\n\n1. Ada. Looms.\n"), refused={"x.md": "no prose"}),
    Row("no headings", put("x.md", WORDS * 40), ("x",)),
    Row(
        "10,000 headings",
        put("x.md", "# T\n\n" + "".join(f"## Part {n}\n\nIt is {n}.\n\n" for n in range(10_000))),
        ("x",),
    ),
    Row("headings without text between", put("x.md", "# T\n\n" + "## Part\n\n" * 500 + "Words."), ("x",)),
    Row("seven levels", put("x.md", "".join(f"{'#' * n} L{n}\n\nWords {n}.\n\n" for n in range(1, 8))), ("x",)),
    Row(
        "a table of 5,000 rows",
        put("x.md", "# T\n\n## Results\n\n| a | b |\n|---|---|\n" + "".join(f"| r{n} | {n} |\n" for n in range(5_000))),
        ("x",),
    ),
    Row(
        "a code block of 100,000 tokens",
        put("x.md", "# T\n\n## Methods\n\nWe ran this.\n\n```\n" + "a = f(b, c)\n" * 13_000 + "```\n\n" + WORDS * 40),
        ("x",),
    ),
    Row("a code block that is not closed", put("x.md", "# T\n\n" + WORDS * 30 + "\n\n```python\nx = 1\n"), ("x",)),
    Row("20,000 brackets", put("x.md", "# T\n\nWords of it.\n\n" + "[" * 20_000), ("x",)),
    Row("20,000 dollar signs", put("x.md", "# T\n\nWords of it.\n\n" + "$$\n" * 20_000), ("x",)),
    Row("quotes in quotes", put("x.md", "# T\n\n" + ">" * 3_000 + " Words of it.\n"), ("x",)),
    Row("carriage returns only", put("x.md", GOOD.replace("\n", "\r")), ("x",)),
    # Front matter
    Row("front matter that is no YAML", put("x.md", "---\ntitle: [x\n---\n\n" + GOOD), ("x",), warned="not YAML"),
    Row("front matter that is a list", put("x.md", "---\n- x\n---\n\n" + GOOD), ("x",)),
    Row(
        "front matter of odd types",
        put("x.md", "---\ntitle: 7\nauthor: {name: {a: 1}}\nyear: []\ndoi: 3\n---\n\n" + GOOD),
        ("x",),
    ),
    Row("lone surrogates in YAML", put("x.md", '---\ntitle: "A \\ud800 b"\n---\n\n' + GOOD), ("x",)),
    Row("lone surrogates in an author", put("x.md", '---\nauthor: "A \\ud800 and B"\n---\n\n' + GOOD), ("x",)),
    Row("NUL in YAML", put("x.md", '---\ntitle: "A \\0 b"\n---\n\n' + GOOD), ("x",)),
    Row(
        "an object of Python in YAML",
        put("x.md", "---\ntitle: !!python/object/apply:os.getcwd []\n---\n\n" + GOOD),
        ("x",),
    ),
    Row(
        "YAML that grows without end",
        put(
            "x.md",
            "---\na: &a [x, x]\n"
            + "".join(
                f"k{n}: &k{n} [*{'a' if n == 0 else f'k{n - 1}'}, *{'a' if n == 0 else f'k{n - 1}'}]\n"
                for n in range(40)
            )
            + "author: *k39\n---\n\n"
            + GOOD,
        ),
        ("x",),
    ),
    # BibTeX
    Row("an empty .bib", put("library.bib", "")),
    Row("a .bib of prose", put("library.bib", "This is no BibTeX at all.\n")),
    Row("keys with slashes", bib("@misc{DBLP:conf/x/1, title = {A paper of no file}}\n")),
    Row(
        "a key that climbs",
        bib("@misc{../../evil, title = {Evil of the paper}, file = {x.md}}\n", "x"),
        ("../../evil",),
    ),
    Row("a key with a colon and digits", bib("@misc{x:00001, title = {Odd}, file = {x.md}}\n", "x"), ("x:00001",)),
    Row("an entry without title", bib("@misc{x, year = 2020}\n", "x"), ("x",)),
    Row(
        "an entry never closed",
        bib("@article{x, title = {Open\n", "x"),
        ("x",),
        {"library.bib": "line 1: entry x lacks its closing brace }"},
    ),
    Row(
        "two entries of one key",
        bib("@misc{x, title={A}}\n@misc{x, title={B}}\n", "x"),
        ("x",),
        {"library.bib": "duplicate key x"},
    ),
    Row("an entry whose author is half a character", bib("@misc{x, title={A}, author={A \\ud800}}\n", "x"), ("x",)),
    Row("several .bib files", several(put("a.bib", ""), put("b.bib", "")), warned="several .bib files (a.bib, b.bib)"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "folder"
    inside.mkdir()
    (inside / "good.md").write_text(f"{GOOD}Good ones last.\n", encoding="utf-8")
    return inside


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=[pytest.mark.long] if row.name in LONG else []) for row in ROWS]
)
async def test_odd_files_are_ingested_or_refused(row: Row, folder: Path, library: Library) -> None:
    if row.name == "no permission" and os.geteuid() == 0:
        pytest.skip("root may read everything")
    row.make(folder)
    report = (await ingest(library, [folder])).as_dict()
    refused = {Path(item["path"]).name: item["reason"] for item in report["refused"]}
    assert refused.keys() == row.refused.keys()
    assert all(words in refused[name] for name, words in row.refused.items()), refused
    assert [paper.key for paper in library.papers()] == sorted({"good", *row.papers})
    assert row.warned in "\n".join(report["warnings"])
    json.dumps(report, ensure_ascii=False).encode()
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
    for paper in library.papers():
        chunks = library.paper_chunks(paper.key)
        assert [chunk.index for chunk in chunks] == list(range(len(chunks))) and chunks
        f"{paper}".encode()
    again = (await ingest(library, [folder])).as_dict()
    assert (again["papers_unchanged"], again["chunks_embedded"]) == (len(library.papers()), 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"@misc{x,\0}", "is not a text file"), ("@misc{x, title={A}}".encode("utf-16"), "is not a text file")],
    ids=["NUL bytes", "UTF-16"],
)
async def test_a_bib_that_is_not_text_stops_before_anything_is_done(
    content: bytes, words: str, folder: Path, library: Library
) -> None:
    (folder / "library.bib").write_bytes(content)
    with pytest.raises(InputError, match=words):
        await ingest(library, [folder])
    assert library.papers() == []


def test_skipped_files_are_counted_but_images_of_figures_are_not(tmp_path: Path) -> None:
    tmp_path.joinpath("loom2020.md").write_text("# Looms\n\nA loom weaves.\n\n![Figure 1: A loom.](loom.png)\n")
    tmp_path.joinpath("loom.png").write_bytes(b"\x89PNG")
    tmp_path.joinpath("looms.xlsx").write_bytes(b"PK")
    (warning,) = [line for line in read_sources([tmp_path], None).warnings if "Skipped" in line]
    assert warning == "Skipped 1 file of other types (1 .xlsx)."
