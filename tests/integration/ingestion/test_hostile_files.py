"""Files that attack an ingest, one row each: refused by name with the reason, or taken in; the paper beside stays.

A row makes files in a folder that also holds one good paper; outside of the folder lies a secret. All is read within a
bounded time and memory, and a second ingest ends as the first did.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from langchain_core.documents import Document

from citeloom.documents import pandoc
from citeloom.errors import InputError
from citeloom.ingestion.doctor import examine, rebuild
from citeloom.ingestion.ingest import ingest
from citeloom.stores.library import Library

pytestmark = pytest.mark.attack

GOOD = "# A good paper\n\n## Introduction\n\nLooms are machines that weave cloth from threads.\n"
SECRET = "# Keys\n\nThe secret word is sesame, which nobody may hear.\n"
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)
)
MERGES = "a: &a {k: v}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{', '.join([f'*{chr(97 + n)}'] * 9)}]}}\n" for n in range(9)
)
WORDS = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>'


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
    return lambda folder: (folder / name).write_bytes(data)


def headed(yaml: str) -> Callable[[Path], object]:
    return put("x.md", f"---\n{yaml}\n---\n\n{GOOD}")


def sparse(name: str, size: int = 6_000_000_000) -> Callable[[Path], object]:
    """A file that claims to be large and takes no space."""

    def make(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(size)

    return make


def linked(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(target)


def several(*makers: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [make(folder) for make in makers]


def archive(name: str, part: str, head: str, megabytes: int) -> Callable[[Path], object]:
    """A Word file or an EPUB with one part that unfolds to so many megabytes."""

    def make(folder: Path) -> None:
        import pypandoc

        plain = folder.parent / f"plain{Path(name).suffix}"
        pypandoc.convert_text(GOOD, plain.suffix[1:], format="markdown", outputfile=str(plain))
        with zipfile.ZipFile(plain) as old, zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                if info.filename != part:
                    new.writestr(info, old.read(info))
            with new.open(part, "w") as file:
                file.write(head.encode())
                for _ in range(megabytes):
                    file.write(b"looms and " * 100_000)
        plain.unlink()

    return make


def entry(title: str, more: str = "") -> Callable[[Path], object]:
    return several(
        put("x.md", GOOD), put("library.bib", f"{more}@misc{{x, title = {title}}}\n\n@misc{{y, title={{Y}}}}\n")
    )


UNFOLDING = r"\def\a{xx xx}" + "".join(
    rf"\def\{name}" + "{" + rf"\{called}" * 10 + "}" for called, name in pairwise("abcdefghijklm")
)
PICTURE = f'<p>Looms.</p><img src="data:image/png;base64,{"A" * 21_000_000}">'


def tex(body: str) -> str:
    return f"\\documentclass{{article}}\\begin{{document}}\n{body}\n\\end{{document}}\n"


OUT = "is a link out of the folder"
LIMIT = "convert"  # takes more memory "to convert", or "was not converted within" its time
LONG = ("macros that unfold to 10^12", "a picture of 21 MB in the text")
ROWS = [
    # The head of a markdown file
    Row("a year counted in sixties", headed("year: 1" + ":59" * 50_000), ("x",)),
    Row("a year that says it is a number in sixties", headed("year: !!int 1" + ":59" * 50_000), ("x",)),
    Row("a year of 50,000 digits", headed("year: " + "9" * 50_000), ("x",)),
    Row("a year of 50,000 digits in base 16", headed("year: 0x" + "f" * 50_000), ("x",)),
    Row("aliases that unfold to three thousand million", headed(f"{ALIASES}author: *j\ntitle: *j"), ("x",)),
    Row("merges that unfold as far", headed(f"{MERGES}title: T"), ("x",)),
    Row("an author who holds himself", headed("author: &a [*a, {name: *a}]"), ("x",)),
    Row("brackets 50,000 deep", headed("author: " + "[" * 50_000), ("x",), warned="x.md: front matter is not YAML"),
    Row("an object of Python", headed('title: !!python/object/apply:os.system ["false"]'), ("x",)),  # a mere list
    Row("a head of a megabyte", headed("title: " + "x" * 1_000_000), ("x",), warned="200,000 characters"),
    # Sizes and kinds
    Row("6 GB of HTML", sparse("x.html"), refused={"x.html": "is 6000 MB, more than the limit of 50 MB"}),
    Row("6 GB of markdown", sparse("x.md"), refused={"x.md": "is 6000 MB"}),
    Row("6 GB of PDF", sparse("x.pdf"), refused={"x.pdf": "is 6000 MB"}),
    Row("6 GB of Word", sparse("x.docx"), refused={"x.docx": "is 6000 MB"}),
    Row("a note of 6 GB", several(put("x.md", GOOD), sparse("x.notes.md")), ("x",), {"x.notes.md": "is 6000 MB"}),
    Row("a pipe of HTML", lambda folder: os.mkfifo(folder / "x.html"), refused={"x.html": "not a regular file"}),
    Row("a pipe of PDF", lambda folder: os.mkfifo(folder / "x.pdf"), refused={"x.pdf": "not a regular file"}),
    Row("a pipe for a note", several(put("x.md", GOOD), lambda folder: os.mkfifo(folder / "x.notes.md")), ("x",)),
    Row("a device", linked("x.html", "/dev/zero"), refused={"x.html": OUT}),
    # Links
    Row("a link out of the folder", linked("x.md", "../secret.md"), refused={"x.md": OUT}),
    Row("a link to a file of the system", linked("x.html", "/etc/passwd"), refused={"x.html": OUT}),
    Row("a link by a link", several(linked("y", "../secret.md"), linked("x.md", "y")), refused={"x.md": OUT}),
    Row("a link to a folder outside", linked("sub", "../outside")),
    Row(
        "a link to a note",
        several(put("x.md", GOOD), linked("x.notes.md", "../secret.md")),
        ("x",),
        {"x.notes.md": OUT},
    ),
    Row("a link to a .bib", several(put("x.md", GOOD), linked("x.bib", "../secret.bib")), ("x",), {"x.bib": OUT}),
    Row("a link within the folder", several(put("y.md", GOOD), linked("x.md", "y.md")), ("x",)),
    # Entries
    Row(
        "2,000 nested commands",
        entry("{" + r"\textbf{" * 2_000 + "T" + "}" * 2_001),
        ("x",),
        {"library.bib": "nested too"},
    ),
    Row(
        "3,000 environments",
        entry("{" + r"\begin{a}" * 3_000 + "}"),
        ("x",),
        {"library.bib": "line 1: entry x is nested"},
    ),
    Row(
        "150,000 braces", entry("{" * 150_000 + "T" + "}" * 150_000), ("x",), {"library.bib": "more than 200,000 char"}
    ),
    Row(
        "a macro named 100,000 times",
        entry("b # " * 100_000 + "b", f'@string{{b = "{"y" * 100_000}"}}\n'),
        ("x",),
        {"library.bib": "entry x has more than 200,000 characters"},
    ),
    # What pandoc reads
    Row("a Word file of 400 MB", archive("x.docx", "word/document.xml", WORDS, 400), refused={"x.docx": LIMIT}),
    Row("an EPUB of 400 MB", archive("x.epub", "EPUB/text/ch001.xhtml", "<html><p>", 400), refused={"x.epub": LIMIT}),
    Row("a picture of 60 MB", archive("x.docx", "word/media/image1.png", "\x89PNG", 60), ("x",)),
    Row(
        "macros that unfold to 10^12",
        put("x.tex", tex(rf"{UNFOLDING}\m")),
        refused={"x.tex": LIMIT},
    ),
    Row(
        "a macro that calls itself", put("x.tex", tex(r"\def\a{\a x}\a")), refused={"x.tex": "cannot be read as latex"}
    ),
    Row(
        "another file in an entity",
        put("x.xml", '<!DOCTYPE x [<!ENTITY a SYSTEM "../secret.md">]><article><body><p>&a;</p></body></article>'),
        refused={"x.xml": "cannot be read as jats"},
    ),
    Row(
        "20,000 sections in sections",
        put("x.xml", "<article><body>" + "<sec>" * 20_000 + "<p>A loom.</p>"),
        refused={"x.xml": "jats"},
    ),
    Row("5,000 quotations in quotations", put("x.html", "<blockquote>" * 5_000 + "<p>A loom weaves.</p>"), ("x",)),
    Row(
        "a table of 10^15 cells",
        put("x.html", "<table><tr><td colspan=1000000000 rowspan=1000000>x</td></tr></table>"),
        refused={"x.html": LIMIT},
    ),
    Row("a picture of 21 MB in the text", put("x.html", PICTURE), refused={"x.html": LIMIT}),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # The limits are those of the product but in size.
    monkeypatch.setattr(pandoc, "_SECONDS", 10.0)
    monkeypatch.setattr(pandoc, "_MEGABYTES", 400)
    inside, outside = tmp_path / "folder", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "good.md").write_text(f"{GOOD}Good ones last.\n", encoding="utf-8")
    (outside / "hidden.md").write_text(f"{SECRET}\nIt is hidden.\n", encoding="utf-8")
    (tmp_path / "secret.md").write_text(SECRET, encoding="utf-8")
    (tmp_path / "secret.bib").write_text("@misc{x, title={sesame}}", encoding="utf-8")
    return inside


def texts(library: Library) -> str:
    """All that the library would show to a model."""
    papers = library.papers()
    chunks = (chunk.text for paper in papers for chunk in library.paper_chunks(paper.key))
    return "\n".join(
        [*chunks, *(f"{paper} {library.summary(paper.key)} {library.note(paper.key)}" for paper in library.papers())]
    )


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=[pytest.mark.long] if row.name in LONG else []) for row in ROWS]
)
async def test_a_hostile_file_is_refused_by_name_and_the_rest_is_ingested(
    row: Row, folder: Path, library: Library
) -> None:
    row.make(folder)
    report = (await ingest(library, [folder])).as_dict()
    refused = {Path(item["path"]).name: item["reason"] for item in report["refused"]}
    assert refused.keys() == row.refused.keys(), report
    assert all(words in refused[name] for name, words in row.refused.items()), refused
    assert all(reason and "\n" not in reason and len(reason) < 400 for reason in refused.values())
    assert [paper.key for paper in library.papers()] == sorted({"good", *row.papers})
    assert row.warned in "\n".join(report["warnings"])
    assert "sesame" not in texts(library)
    assert [finding for finding in examine(library) if finding.level == "problem"] == []


async def test_targets_of_links_are_ingested_on_request(folder: Path, library: Library) -> None:
    (folder / "x.md").symlink_to("../secret.md")
    (folder / "good.notes.md").symlink_to("../secret.md")
    (folder / "sub").symlink_to("../outside")
    (folder / "sub2").mkdir()
    (folder / "sub2" / "round").symlink_to("..")
    report = await ingest(library, [folder], follow_links=True)
    assert report.refused == () and sorted(report.added) == ["good", "hidden", "x"]
    assert library.note("good")


async def test_a_link_given_directly_is_ingested(folder: Path, library: Library) -> None:
    (folder / "x.md").symlink_to("../secret.md")
    assert (await ingest(library, [folder / "x.md"])).added == ("x",)
    other = folder.parent / "papers"
    other.symlink_to(folder)
    assert (await ingest(library, [other])).added == ("good",)


async def test_rebuilding_does_not_read_a_file_that_became_a_link(folder: Path, library: Library) -> None:
    (folder / "x.md").write_text(GOOD, encoding="utf-8")
    await ingest(library, [folder])
    (folder / "x.md").unlink()
    (folder / "x.md").symlink_to("../secret.md")
    report = await rebuild(library)
    assert "x: its file has become a link" in "\n".join(report.warnings)
    assert "sesame" not in texts(library)


async def test_rebuilding_keeps_the_paper_of_a_file_that_became_too_large(folder: Path, library: Library) -> None:
    (folder / "x.md").write_text(GOOD, encoding="utf-8")
    await ingest(library, [folder])
    sparse("x.md")(folder)
    report = await rebuild(library)
    assert "x: its file is 6000 MB" in "\n".join(report.warnings)
    assert [paper.key for paper in library.papers()] == ["good", "x"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: os.mkfifo(folder / "library.bib"), "is not a regular file"),
        (sparse("library.bib"), "is 6000 MB, more than the limit"),
        (put("library.bib", b"@misc{x,\0}"), "is not a text file"),
    ],
    ids=["a pipe", "6 GB", "no text"],
)
async def test_a_hostile_bib_is_reported_and_stops_before_anything_is_done(
    make: Callable[[Path], object], said: str, folder: Path, library: Library
) -> None:
    make(folder)
    with pytest.raises(InputError, match=rf"library\.bib:? {said}"):
        await ingest(library, [folder])
    assert library.papers() == []


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (Document(page_content=GOOD, metadata={"key": 10**5000}), "neither 'key' nor 'source'"),
        (Document(page_content=GOOD, metadata={"key": "x" * 100_000}), "a 'key' or 'source' of 100000 characters"),
        (Document(page_content="Looms. " * 4_000_000, metadata={"key": "x"}), "28 MB"),
        (Document(page_content=f"---\nauthor: {'[' * 50_000}\n---\n", metadata={"key": "x"}), "no prose"),
        (Document(page_content=GOOD, metadata={"key": "x", "title": 10**5000}), ""),
    ],
    ids=["a number of 5,000 digits", "a key of 100,000 characters", "28 MB", "a head alone", "a title of 5,000 digits"],
)
async def test_a_hostile_document_is_refused_and_the_others_are_ingested(
    document: Document, said: str, library: Library
) -> None:
    good = Document(page_content=GOOD, metadata={"key": "../good"})
    report = await ingest(library, [], documents=[document, good])
    assert [said in refusal.reason for refusal in report.refused] == [True], report.refused
    assert len(report.refused[0].path) < 300
    assert report.added == ("good",)


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), ValueError("4300 digits")], ids=repr)
async def test_an_unexpected_parser_error_does_not_end_the_ingest(
    error: Exception, folder: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "x.md").write_text(GOOD + "odd", encoding="utf-8")
    from citeloom.ingestion import reading

    parse = reading.parse_markdown

    def odd(text: str) -> object:
        if text.endswith("odd"):
            raise error
        return parse(text)

    monkeypatch.setattr(reading, "parse_markdown", odd)
    report = await ingest(library, [folder])
    assert [Path(refusal.path).name for refusal in report.refused] == ["x.md"] and report.added == ("good",)
    assert type(error).__name__ in report.refused[0].reason
