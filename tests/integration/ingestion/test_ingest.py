"""What an ingest adds, leaves alone, embeds again and refuses."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from citeloom.documents import Category, text_hash
from citeloom.errors import InputError
from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest, remove_all
from citeloom.ingestion.ingest_events import Embedded, Planned, Stored
from citeloom.stores.library import Library
from tests.support.library_fixtures import BIB, paper_text
from tests.support.nearest import nearest
from tests.support.word_embedding import WordEmbedding


def embedded(library: Library) -> list[str]:
    embedding = library.embedding
    assert isinstance(embedding, WordEmbedding)
    return embedding.embedded


def assert_sound(library: Library) -> None:
    """Catalog and vectors agree, chunk indices have no holes, and every chunk is a slice of its file."""
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
    for paper in library.papers():
        text = Path(paper.source).read_bytes().decode("utf-8-sig")
        assert text_hash(text) == paper.content_hash
        chunks = library.paper_chunks(paper.key)
        assert [chunk.index for chunk in chunks] == list(range(library.chunk_count(paper.key)))
        assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
        sections = {section.title: section for section in library.sections(paper.key)}
        assert all(
            sections[chunk.section].start <= chunk.start and chunk.end <= sections[chunk.section].end
            for chunk in chunks
        )


async def test_papers_are_ingested_with_their_entries(library: Library, papers: Path) -> None:
    report = (await ingest(library, [papers])).as_dict()
    assert (report["papers_added"], report["refused"], report["warnings"]) == (2, [], [])
    assert report["chunks_embedded"] == library.chunk_count() > 8
    ada = library.paper("ada2020")
    assert (ada.title, ada.authors, ada.year) == (
        "Looms and engines",
        ("Ada Lovelace", "Charles Babbage"),
        2020,
    )
    assert ada.bibtex.startswith("@article{ada2020,")
    assert library.summary("ada2020").startswith("We study loom.")
    assert_sound(library)


async def test_reference_lists_are_not_searched(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    assert [s.title for s in library.sections("ada2020") if not s.searchable] == ["References"]
    assert not any("reference number" in chunk.text for chunk in library.paper_chunks("ada2020"))


async def test_a_second_ingest_embeds_nothing_and_keeps_the_version(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    before, version = len(embedded(library)), library.version()
    report = (await ingest(library, [papers])).as_dict()
    assert (report["papers_unchanged"], report["chunks_embedded"]) == (2, 0)
    assert (len(embedded(library)), library.version()) == (before, version)


async def test_an_edit_embeds_only_the_changed_chunks(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    before, version = len(embedded(library)), library.version()
    file = papers / "ada2020.md"
    file.write_text(
        file.read_text(encoding="utf-8").replace("## Methods\n\n", "## Methods\n\nOne sentence is new here. "),
        encoding="utf-8",
    )
    report = await ingest(library, [papers])
    new = embedded(library)[before:]
    assert report.updated == ("ada2020",)
    assert 0 < len(new) == report.chunks_embedded < library.chunk_count("ada2020") / 2
    assert "One sentence is new here." in new[0]
    assert not any("history" in text or "compiler" in text for text in new)
    assert library.version() != version
    assert_sound(library)


async def test_shortening_a_text_leaves_no_old_chunk(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    count = library.chunk_count("ada2020")
    file = papers / "ada2020.md"
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index("## Methods")], encoding="utf-8")
    await ingest(library, [papers])
    assert library.chunk_count("ada2020") < count
    assert len(library.store.stored_ids()) == library.chunk_count()
    assert_sound(library)


async def test_changed_metadata_embeds_nothing(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    before, version = len(embedded(library)), library.version()
    bib = papers / "library.bib"
    bib.write_text(bib.read_text(encoding="utf-8").replace("year = {2020}", "year = {1843}"), encoding="utf-8")
    report = await ingest(library, [papers])
    assert (report.updated, report.chunks_embedded, len(embedded(library))) == (("ada2020",), 0, before)
    assert library.paper("ada2020").year == 1843
    assert library.version() != version
    near = nearest(library, library.store.get_vectors(["ada2020:00000"])["ada2020:00000"], 3, years=(1840, 1850))
    assert {chunk.key for chunk, _ in near} == {"ada2020"}


@pytest.mark.parametrize("prune", [False, True])
async def test_a_renamed_file_keeps_its_paper(library: Library, papers: Path, prune: bool) -> None:
    await ingest(library, [papers])
    before, paper = len(embedded(library)), library.paper("ada2020")
    (papers / "ada2020.md").rename(papers / "lovelace.md")
    (papers / "library.bib").unlink()
    report = await ingest(library, [papers], prune=prune)
    assert (report.added, report.removed) == ((), ())
    assert any("lovelace.md is ada2020 under a new name" in warning for warning in report.warnings)
    moved = library.paper("ada2020")
    assert Path(moved.source).name == "lovelace.md" and replace(moved, source=paper.source) == paper
    assert len(embedded(library)) == before
    again = await ingest(library, [papers], prune=prune)
    assert (again.added, again.removed, len(library.papers())) == ((), (), 2)
    assert_sound(library)


async def test_an_entry_added_later_provides_the_key(library: Library, papers: Path) -> None:
    """The file is then another paper's, and the made-up key goes when asked."""
    text = BIB.replace("ada2020", "lovelace1843")
    (papers / "library.bib").unlink()
    await ingest(library, [papers])
    (papers / "library.bib").write_text(text, encoding="utf-8")
    report = await ingest(library, [papers])
    assert report.added == ("lovelace1843",)
    assert any("ada2020: its file now belongs to lovelace1843" in warning for warning in report.warnings)
    assert (await ingest(library, [papers], prune=True)).removed == ("ada2020",)
    assert_sound(library)


async def test_a_renamed_file_that_is_edited_keeps_its_paper(library: Library, papers: Path) -> None:
    (papers / "library.bib").unlink()
    await ingest(library, [papers])
    file = (papers / "ada2020.md").rename(papers / "lovelace.md")
    await ingest(library, [papers])
    file.write_text(file.read_text(encoding="utf-8") + "\n## Conclusion\n\nLooms compute.\n", encoding="utf-8")
    report = await ingest(library, [papers])
    assert (report.updated, report.added) == (("ada2020",), ())
    assert library.paper_chunks("ada2020")[-1].text == "Looms compute."
    assert_sound(library)


async def test_pruning_removes_only_papers_that_were_in_the_folder(
    library: Library, papers: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "hoare1969.md").write_text(paper_text("Axioms", "axiom"), encoding="utf-8")
    await ingest(library, [papers, other])
    (other / "hoare1969.md").unlink()
    (papers / "ada2020.md").write_bytes(b"\xff\xfe no text")
    report = await ingest(library, [papers], prune=True)
    assert (report.removed, len(report.refused)) == ((), 1)
    assert len(library.papers()) == 3
    assert (await ingest(library, [papers, other], prune=True)).removed == ("hoare1969",)


async def test_a_file_renamed_with_its_entry_gets_the_new_key(library: Library, papers: Path) -> None:
    """The key that the user gives takes precedence over the text."""
    await ingest(library, [papers])
    before = len(embedded(library))
    (papers / "ada2020.md").rename(papers / "lovelace1843.md")
    (papers / "library.bib").write_text(BIB.replace("ada2020", "lovelace1843"), encoding="utf-8")
    report = await ingest(library, [papers], prune=True)
    assert (report.added, report.removed) == (("lovelace1843",), ("ada2020",))
    assert len(embedded(library)) == before
    assert_sound(library)


async def test_moving_a_folder_changes_only_the_paths(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    version = library.version()
    moved = papers.rename(papers.parent / "elsewhere")
    report = await ingest(library, [moved])
    assert (report.unchanged, library.version()) == (("ada2020", "grace2021"), version)
    assert Path(library.paper("ada2020").source).parent == moved.resolve()


async def test_a_paper_with_a_deleted_file_stays_until_pruned(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    (papers / "ada2020.md").unlink()
    report = await ingest(library, [papers])
    assert any("ada2020" in warning and "--prune" in warning for warning in report.warnings)
    assert len(library.papers()) == 2
    assert (await ingest(library, [papers], prune=True)).removed == ("ada2020",)
    assert [paper.key for paper in library.papers()] == ["grace2021"]
    assert (len(library.store.stored_ids("summaries")), len(library.store.stored_ids())) == (1, library.chunk_count())


async def test_a_removed_paper_leaves_every_store(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    await remove_all(library, ["ada2020"])
    assert len(library.store.stored_ids()) == library.chunk_count("grace2021")
    assert library.store.stored_ids("summaries") == {"grace2021"}
    with pytest.raises(InputError, match="no paper 'ada2020'"):
        library.paper("ada2020")
    assert (await ingest(library, [papers])).added == ("ada2020",)


async def test_the_plan_is_reported_before_any_work(library: Library, papers: Path) -> None:
    events: list[object] = []
    await ingest(library, [papers], on_event=events.append)
    plan = events[0]
    assert isinstance(plan, Planned)
    assert (plan.files, plan.papers, plan.chunks) == (2, 2, library.chunk_count())
    assert sum(event.count for event in events if isinstance(event, Embedded)) == plan.texts
    assert {event.key for event in events if isinstance(event, Stored)} == {"ada2020", "grace2021"}


async def test_a_summary_is_requested_once(library: Library, papers: Path) -> None:
    asked: list[str] = []

    async def summarize(paper: object, text: str) -> str:
        asked.append(text[:12])
        return f"A summary of {len(text)} characters."

    await ingest(library, [papers], summarize=summarize)
    await ingest(library, [papers], summarize=summarize)
    await ingest(library, [papers])
    assert len(asked) == 2
    assert library.summary("ada2020").startswith("A summary of")


async def test_bad_files_are_refused_and_the_others_kept(library: Library, papers: Path) -> None:
    (papers / "empty.md").write_bytes(b"  \n")
    (papers / "latin.md").write_bytes("# Caf\xe9\n".encode("latin-1"))
    (papers / "binary.MD").write_bytes(b"# x\0\1\2")
    (papers / "picture.markdown").write_text("![](a.png)", encoding="utf-8")
    (papers / "notes.txt").write_text("not a paper", encoding="utf-8")
    (papers / "deeper").mkdir()
    (papers / "deeper" / "ada2020.md").write_text("# Other\n\nAnother text with the same name.", encoding="utf-8")
    report = (await ingest(library, [papers])).as_dict()
    reasons = {Path(item["path"]).name: item["reason"] for item in report["refused"]}
    assert reasons.keys() == {"empty.md", "latin.md", "binary.MD", "picture.markdown", "ada2020.md"}
    assert "empty" in reasons["empty.md"]
    assert "UTF-8" in reasons["latin.md"]
    assert "binary" in reasons["binary.MD"]
    assert "same key" in reasons["ada2020.md"]
    assert report["papers_added"] == 2
    assert any(".txt" in warning for warning in report["warnings"])
    assert library.paper("ada2020").title == "Looms and engines"
    assert_sound(library)


async def test_a_broken_bib_keeps_its_good_entries(library: Library, papers: Path) -> None:
    bib = papers / "library.bib"
    bib.write_text(
        bib.read_text(encoding="utf-8") + "@book{ada2020, title={Twice}}\n@article{broken, title={x\n",
        "utf-8",
    )
    report = (await ingest(library, [papers])).as_dict()
    assert [("ada2020" in item["reason"], "broken" in item["reason"]) for item in report["refused"]] == [
        (True, False),
        (False, True),
    ]
    assert report["papers_added"] == 2
    assert library.paper("ada2020").title == "Looms and engines"


async def test_a_paper_without_an_entry_says_so(library: Library, papers: Path) -> None:
    (papers / "My notes (final).md").write_text(
        "# Knitting by machine\n\nWool is spun and knitted.\n", encoding="utf-8"
    )
    report = await ingest(library, [papers])
    assert any("My notes (final).md" in warning and "no .bib entry" in warning for warning in report.warnings)
    paper = library.paper("My-notes-final")
    assert paper.title == "Knitting by machine"
    assert paper.bibtex.startswith("@misc{My-notes-final,")


@pytest.mark.parametrize("case", ["missing path", "missing bib", "no papers", "bib is a folder"])
async def test_wrong_input_changes_nothing(library: Library, papers: Path, tmp_path: Path, case: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    paths, bib, named = {
        "missing path": ([papers, tmp_path / "nowhere"], None, "nowhere"),
        "missing bib": ([papers], tmp_path / "gone.bib", "gone.bib"),
        "no papers": ([empty], None, "empty"),
        "bib is a folder": ([papers], empty, "empty"),
    }[case]
    with pytest.raises(InputError, match=named) as raised:
        await ingest(library, paths, bib=bib)
    assert raised.value.help
    assert library.papers() == []


async def test_another_embedding_model_is_refused(
    library: Library, papers: Path, open_library: Callable[..., Library]
) -> None:
    await ingest(library, [papers])
    with pytest.raises(InputError, match=r"test:words.*test:other"):
        open_library(WordEmbedding("test:other"))
    assert len(library.papers()) == 2


async def test_a_failing_embedding_keeps_finished_papers(library: Library, papers: Path) -> None:
    class Failing(WordEmbedding):
        async def embed_documents(self, texts, on_done=None):  # type: ignore[no-untyped-def]
            if any("compiler" in text for text in texts):
                raise InputError("The embedding endpoint refused the key.")
            return await super().embed_documents(texts, on_done)

    library.embedding = Failing()
    with pytest.raises(InputError, match="refused the key"):
        await ingest(library, [papers])
    assert [paper.key for paper in library.papers()] == ["ada2020"]
    library.embedding = WordEmbedding()
    report = await ingest(library, [papers])
    assert (report.added, report.unchanged) == (("grace2021",), ("ada2020",))
    assert_sound(library)


@pytest.mark.parametrize(("at_once", "calls"), [(1, 4), (20, 2), (10_000, 1)])
async def test_papers_are_embedded_in_the_largest_batches_that_the_endpoint_accepts(
    library: Library, papers: Path, at_once: int, calls: int
) -> None:
    class Counting(WordEmbedding):
        calls = 0

        async def embed_documents(self, texts, on_done=None):  # type: ignore[no-untyped-def]
            Counting.calls += 1
            return await super().embed_documents(texts, on_done)

    for name in ("mill", "press"):
        (papers / f"{name}.md").write_text(paper_text(f"On {name}", name), encoding="utf-8")
    library.embedding = Counting()
    library.embedding.at_once = at_once
    events: list[object] = []
    report = await ingest(library, [papers], on_event=events.append)
    assert (len(report.added), Counting.calls) == (4, calls)
    planned = next(event for event in events if isinstance(event, Planned))
    assert sum(event.count for event in events if isinstance(event, Embedded)) == planned.texts
    assert_sound(library)
    before = len(embedded(library))
    (papers / "mill.md").write_text(paper_text("On mill", "mill") + "\n## Outlook\n\nMills will turn.\n", "utf-8")
    await ingest(library, [papers])
    assert embedded(library)[before:] == ["Mills will turn."]
    assert_sound(library)


async def test_each_scope_returns_only_its_own_passages(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    query = await library.embedding.embed_query("compiler procedure trials")
    near = nearest(library, query, 4)
    assert near[0][0].key == "grace2021"
    assert [score for _, score in near] == sorted((score for _, score in near), reverse=True)
    exact = {chunk.id: score for chunk, score in nearest(library, query, 4, keys=["ada2020", "grace2021"])}
    assert exact == pytest.approx({chunk.id: score for chunk, score in near}, abs=1e-4)
    assert {c.key for c, _ in nearest(library, query, 50, keys=["ada2020"])} == {"ada2020"}
    methods = nearest(library, query, 50, categories=[Category.METHOD])
    assert methods and all(chunk.category is Category.METHOD for chunk, _ in methods)
    assert {c.key for c, _ in nearest(library, query, 50, years=(2021, 2030))} == {"grace2021"}
    assert nearest(library, query, 5, keys=["nobody"]) == []
    assert len(nearest(library, query, 10_000)) == library.chunk_count()
    assert [near.paper.key for near in library.nearest_papers(query, 5)] == ["grace2021", "ada2020"]


async def test_large_scopes_are_searched_through_the_index(
    library: Library, papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ingest(library, [papers])
    query = await library.embedding.embed_query("loom outcome")
    exact = nearest(library, query, 3, categories=[Category.METHOD], years=(2021, 2021))
    monkeypatch.setattr("citeloom.stores.local.vector_search._EXACT_LIMIT", 0)
    indexed = nearest(library, query, 3, categories=[Category.METHOD], years=(2021, 2021))
    assert [chunk for chunk, _ in indexed] == [chunk for chunk, _ in exact]
    assert [score for _, score in indexed] == pytest.approx([score for _, score in exact], abs=1e-6)
    monkeypatch.setattr("citeloom.stores.local.vector_search.WHOLE_LIMIT", 0)
    library.catalog.set_meta("seen", "anew")
    widened = nearest(library, query, 3, categories=[Category.METHOD], years=(2021, 2021))
    assert [chunk.id for chunk, _ in widened] == [chunk.id for chunk, _ in exact]


async def test_a_paper_gives_windows_around_chunks_and_its_introduction(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    last = library.chunk_count("ada2020") - 1
    assert [chunk.index for chunk in library.window("ada2020:00000")] == [0, 1]
    assert [chunk.index for chunk in library.window(f"ada2020:{last:05d}", 2)] == [last - 2, last - 1, last]
    assert library.window("ada2020:09999") == []
    introduction = library.introduction("ada2020")
    assert {chunk.section for chunk in introduction} == {"Introduction"}
    assert [chunk.id for chunk in library.chunks(["ada2020:00002", "nobody:00000", "ada2020:00001"])] == [
        "ada2020:00002",
        "ada2020:00001",
    ]
    with pytest.raises(InputError, match="Did you mean ada2020"):
        library.paper("ada2002")


async def test_a_copy_of_a_paper_is_reported_and_not_added(library: Library, papers: Path) -> None:
    (papers / "library.bib").unlink()
    shutil.copy(papers / "ada2020.md", papers / "copy.md")
    report = await ingest(library, [papers])
    held = [paper.key for paper in library.papers()]
    assert "copy" not in held and "ada2020" in held
    assert [line for line in report.warnings if "copy.md" in line] == [
        f"{papers / 'copy.md'} is the same paper as ada2020, and was not added again."
    ]
    other = papers.parent / "other.md"
    shutil.copy(papers / "ada2020.md", other)
    assert "the same paper as ada2020" in (await ingest(library, [other])).warnings[-1]
    for name in ("ada2020", "copy"):
        (papers / f"{name}.md").unlink()
    await ingest(library, [other])  # now it is that paper under a new name
    assert [paper.key for paper in library.papers()] == held and library.paper("ada2020").source == str(other)
