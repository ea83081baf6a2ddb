"""The user's notes beside the papers: found with the summaries, never among the passages that are cited."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from citeloom.ingestion.doctor import examine, rebuild, repair
from citeloom.ingestion.ingest import ingest, remove_all
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.text_analysis import analyze
from citeloom.tools.tool_schemas import SearchSummaries
from tests.integration.ingestion.test_interrupted_ingest import contents, start
from tests.support.nearest import nearest

NOTE = "Reread before the grant proposal: zebrafish arguments, borrowed from Menabrea's lecture."
QUERY = "zebrafish lecture for the grant proposal"


@pytest.fixture
def note(papers: Path) -> Path:
    file = papers / "ada2020.notes.md"
    file.write_text(NOTE, encoding="utf-8")
    return file


async def matches(library: Library, query: str = QUERY) -> list[tuple[str, str]]:
    """Keys of all papers, nearest first, with the passage of a note that each was found by."""
    near = library.nearest_papers(await library.embedding.embed_query(query), 10)
    return [(item.paper.key, item.note) for item in near]


def embedded(library: Library) -> list[str]:
    return library.embedding.embedded  # type: ignore[attr-defined,no-any-return]


def problems(library: Library) -> list[str]:
    return [f"{finding.topic}: {finding.message}" for finding in examine(library) if finding.level == "problem"]


async def test_a_note_finds_its_paper_and_is_never_cited(library: Library, papers: Path, note: Path) -> None:
    report = await ingest(library, [papers])
    assert (report.added, report.warnings, report.refused) == (("ada2020", "grace2021"), (), ())
    assert library.note("ada2020") == NOTE and library.note("grace2021") == ""
    assert (await matches(library))[0] == ("ada2020", NOTE)
    assert (await matches(library, "We study loom"))[0] == ("ada2020", "")
    assert library.matching(analyze("zebrafish"), 10) == []
    near = nearest(library, await library.embedding.embed_query(NOTE), library.chunk_count())
    assert not any("zebrafish" in chunk.text for chunk, _ in near)
    assert problems(library) == []
    told = (await SearchSummaries(query=QUERY).answer(library)).lead
    assert f"The user's own note on it, not the paper's words: {NOTE}" in told


async def test_changing_or_removing_a_note_embeds_no_chunk_again(library: Library, papers: Path, note: Path) -> None:
    await ingest(library, [papers])
    before, version = contents(library), library.version()
    embedded(library).clear()
    assert (await ingest(library, [papers])).unchanged == ("ada2020", "grace2021")
    note.write_text("Now on axolotls.", encoding="utf-8")
    report = await ingest(library, [papers])
    assert (report.updated, report.chunks_embedded, embedded(library)) == (("ada2020",), 0, ["Now on axolotls."])
    assert dict(await matches(library, "axolotls"))["ada2020"] == "Now on axolotls."
    assert library.version() != version
    note.unlink()
    assert (await ingest(library, [papers])).updated == ("ada2020",)
    assert embedded(library) == ["Now on axolotls."]
    assert {found for _, found in await matches(library, "axolotls")} == {""}
    assert contents(library) == before and problems(library) == []


async def test_editing_a_long_note_embeds_only_what_changed(library: Library, papers: Path, note: Path) -> None:
    paragraphs = [" ".join(f"word{number}x{place}" for place in range(250)) for number in range(4)]
    note.write_text("\n\n".join(paragraphs), encoding="utf-8")
    await ingest(library, [papers])
    assert ("ada2020", paragraphs[2]) in await matches(library, paragraphs[2])
    embedded(library).clear()
    note.write_text("\n\n".join(paragraphs[1:3]), encoding="utf-8")
    await ingest(library, [papers])
    assert embedded(library) == []
    assert library.store.stored_ids("notes") == {"ada2020:00000", "ada2020:00001"}
    assert ("ada2020", paragraphs[2]) in await matches(library, paragraphs[2])
    note.write_text(paragraphs[3] + "\n\nmore\n\n" + paragraphs[2], encoding="utf-8")
    await ingest(library, [papers])
    assert embedded(library) == [paragraphs[3] + "\n\nmore"]
    assert problems(library) == []


@pytest.mark.parametrize(
    ("name", "key"),
    [("ada2020.Notes.MD", "ada2020"), ("file-name.notes.md", "grace2021"), ("grace2021.notes.md", "grace2021")],
)
async def test_a_note_belongs_to_a_key_or_file_whatever_the_case_of_its_ending(
    library: Library, papers: Path, name: str, key: str
) -> None:
    bib = papers / "library.bib"
    bib.write_text(
        bib.read_text(encoding="utf-8").replace("year = {2021}", "year = {2021}, file = {file-name.md}"),
        encoding="utf-8",
    )
    (papers / "grace2021.md").rename(papers / "file-name.md")
    (papers / name).write_text(NOTE, encoding="utf-8")
    assert not (await ingest(library, [papers / "ada2020.md", papers / "file-name.md"], bib=bib)).warnings
    assert (await matches(library))[0] == (key, NOTE)


async def test_a_note_without_a_paper_is_reported_and_is_not_a_paper(library: Library, papers: Path) -> None:
    (papers / "nobody1900.notes.md").write_text(NOTE, encoding="utf-8")
    (papers / "elsewhere").mkdir()
    (papers / "elsewhere" / "ada2020.notes.md").write_text(NOTE, encoding="utf-8")
    (papers / "grace2021.notes.md").write_bytes(b"\xff\xfeN\0o\0")
    report = await ingest(library, [papers])
    assert report.added == ("ada2020", "grace2021")
    assert [Path(warning.partition(" is a note")[0]).name for warning in report.warnings] == [
        "nobody1900.notes.md",
        "ada2020.notes.md",
    ]
    assert [(Path(item.path).name, item.reason) for item in report.refused] == [
        ("grace2021.notes.md", "is UTF-16; save it as UTF-8")
    ]
    assert all(passage == "" for _, passage in await matches(library))


async def test_a_blank_note_counts_as_no_note(library: Library, papers: Path, note: Path) -> None:
    note.write_text(" \n", encoding="utf-8")
    report = await ingest(library, [papers])
    assert (report.refused, report.warnings, library.note("ada2020")) == ((), (), "")


async def test_a_note_follows_a_renamed_paper_and_is_deleted_with_a_removed_one(
    library: Library, papers: Path, note: Path
) -> None:
    (papers / "library.bib").unlink()
    await ingest(library, [papers])
    (papers / "ada2020.md").rename(papers / "renamed.md")
    await ingest(library, [papers])
    assert library.paper("ada2020").source.endswith("renamed.md") and library.note("ada2020") == NOTE
    note.rename(papers / "renamed.notes.md")
    assert not (await ingest(library, [papers])).updated
    (papers / "renamed.md").unlink()
    await ingest(library, [papers], prune=True)
    assert library.store.stored_ids("notes") == set() and problems(library) == []
    (papers / "grace2021.notes.md").write_text(NOTE, encoding="utf-8")
    await ingest(library, [papers])
    assert library.store.stored_ids("notes") == {"grace2021:00000"}
    await remove_all(library, ["grace2021"])
    assert library.store.stored_ids("notes") == set() and problems(library) == []


async def test_rebuilding_keeps_notes_and_reads_those_beside_the_papers_now(
    library: Library, papers: Path, note: Path
) -> None:
    await ingest(library, [papers])
    embedded(library).clear()
    version = library.version()
    assert (await rebuild(library)).refused == ()
    assert (library.version(), library.note("ada2020"), embedded(library)) == (version, NOTE, [])
    library.store.delete(["ada2020:00000"], "notes")
    assert problems(library) == ["vectors: chunks, summaries or notes have no vector for: ada2020"]
    assert (await rebuild(library)).refused == ()
    assert problems(library) == [] and embedded(library) == [] and (await matches(library))[0] == ("ada2020", NOTE)


async def test_orphaned_note_passages_are_dropped_and_missing_ones_rebuilt(
    library: Library, papers: Path, note: Path
) -> None:
    await ingest(library, [papers])
    (vector,) = await library.embedding.embed_documents(["a ghost"])
    library.store.put({"ghost1999:00000": vector}, "notes")
    assert problems(library) == ["vectors: 1 record without a paper: note ghost1999:00000"]
    assert all(key != "ghost1999" for key, _ in await matches(library, "a ghost"))
    await repair(library)
    library.store.delete(["ada2020:00000"], "notes")
    await repair(library)
    await ingest(library, [papers])
    assert problems(library) == [] and (await matches(library))[0] == ("ada2020", NOTE)


@pytest.mark.parametrize(
    "event",
    [
        *("Embedded", "Staged", "Stored"),
        *(pytest.param(event, marks=pytest.mark.long) for event in ("Vectors", "FullText", "Words")),
    ],
)
async def test_a_kill_during_a_note_change_leaves_the_old_or_the_new_note(
    home: Home, papers: Path, note: Path, open_library: Callable[..., Library], event: str
) -> None:
    before = open_library()
    note.write_text("\n\n".join(["An old note. " * 60, "Its second passage. " * 60, "Its third. " * 90]))
    await ingest(before, [papers])
    whole = contents(before)
    assert len(before.store.stored_ids("notes")) > 1
    old = before.note("ada2020")
    before.close()
    note.write_text(NOTE, encoding="utf-8")
    with start(home, papers, "kill", event, 1) as process:
        assert process.wait() == -signal.SIGKILL
    library = open_library()
    assert library.note("ada2020") == (old if event == "Embedded" else NOTE)
    assert problems(library) == [] and contents(library) == whole
    await ingest(library, [papers])
    assert library.note("ada2020") == NOTE and library.store.stored_ids("notes") == {"ada2020:00000"}
    assert problems(library) == [] and contents(library) == whole
