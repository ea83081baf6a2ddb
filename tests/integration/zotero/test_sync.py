"""Items, files and notes come into the library, follow what changes in Zotero, and leave with their items."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from citeloom.documents import entry_labels
from citeloom.documents.paper_names import zotero_links
from citeloom.ingestion.doctor import rebuild
from citeloom.ingestion.ingest import ingest, remove_all
from citeloom.stores.library import Library
from citeloom.tools.scope import Scope
from citeloom.zotero import syncing as sync_module
from tests.integration.zotero.conftest import Sync
from tests.support.made_zotero import GROUP, GROUP_ID, MadeZotero, page_of
from tests.support.plain_pdf import Line, write_pdf
from tests.support.word_embedding import WordEmbedding
from tests.support.zotero_server import ZoteroServer

LOOMS = "AAAA1111"


@pytest.fixture(autouse=True)
def looms(zotero: MadeZotero) -> None:
    """One item with a file, a note and a marked passage."""
    zotero.collection("COLLMAIN", "Thesis")
    zotero.item(
        LOOMS,
        title="Looms and <i>engines</i>: 50% of {all}",
        date="2020-05-01 May 2020",
        DOI="10.5555/Looms",
        publicationTitle="Notes & Engines",
        volume="7",
        pages="1–9",
        url="https://example.org/a_b?c=1",
        authors=[("Ada", "Lovelace"), ("", "The Loom Consortium")],
        collections=["COLLMAIN"],
    )
    zotero.file("FILE1111", LOOMS, "Lovelace – 2020.md", page_of("jacquard"))
    zotero.note("NOTE1111", LOOMS, "<p>My <b>own</b> idea<script>steal()</script></p><ul><li>one</li></ul>")
    zotero.annotation("MARK1111", "FILE1111", "forty looms", "not enough", "3")


async def test_an_item_becomes_a_paper(sync: Sync, library: Library, zotero: MadeZotero) -> None:
    before = _files(zotero.folder)
    report = await sync()
    assert (report["added"], report["refused"], report["warnings"]) == (["lovelace2020looms"], [], [])
    paper = library.paper("lovelace2020looms")
    assert (paper.title, paper.year, paper.venue) == ("Looms and engines: 50% of all", 2020, "Notes & Engines")
    assert (paper.authors, paper.doi) == (("Ada Lovelace", "The Loom Consortium"), "10.5555/looms")
    assert "pages = {1--9}" in paper.bibtex and paper.url == "https://example.org/a_b?c=1"
    assert paper.source == str((zotero.folder / "storage" / "FILE1111" / "Lovelace – 2020.md").resolve())
    assert library.note(paper.key) == "My own idea\n\n- one\n\np. 3: “forty looms” – not enough"
    assert "forty looms over three summers" in library.paper_chunks(paper.key)[0].text
    assert _files(zotero.folder) == before  # nothing is written to Zotero


async def test_tags_and_collections_are_taken_and_follow_zotero(
    sync: Sync, library: Library, zotero: MadeZotero, embedding: WordEmbedding
) -> None:
    zotero.collection("COLLPART", "Looms", "COLLMAIN")
    zotero.item("AAAA2222", title="Dye", abstractNote="Red.", tags=["colour", "to read"], collections=["COLLPART"])
    (dye,) = set((await sync())["added"]) - {"lovelace2020looms"}
    assert entry_labels(library.paper(dye).bibtex)[1:] == (["colour", "to read"], ["Thesis/Looms"])
    within = [Scope.within(library, collection="thesis").papers, Scope.within(library, tag="To Read").papers]
    assert within == [(dye, "lovelace2020looms"), (dye,)]
    embedded = len(embedding.embedded)
    zotero.put("AAAA2222", "COLLMAIN")
    assert (await sync())["updated"] == [dye]
    assert entry_labels(library.paper(dye).bibtex)[2] == ["Thesis", "Thesis/Looms"]
    assert len(embedding.embedded) == embedded


async def test_a_note_is_searchable_but_is_not_a_passage_of_the_paper(sync: Sync, library: Library) -> None:
    await sync()
    texts = " ".join(chunk.text for chunk in library.paper_chunks("lovelace2020looms"))
    assert "own idea" not in texts and "not enough" not in texts


async def test_a_second_sync_reads_and_embeds_nothing(
    sync: Sync, embedding: WordEmbedding, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync()
    embedded, version = list(embedding.embedded), library.version()
    monkeypatch.setattr(sync_module, "read_as", pytest.fail)
    report = await sync()
    assert (report["added"], report["updated"], report["unchanged"]) == ([], [], 1)
    assert embedding.embedded == embedded and library.version() == version


async def test_changed_metadata_is_updated_without_embedding(
    sync: Sync, zotero: MadeZotero, embedding: WordEmbedding, library: Library
) -> None:
    await sync()
    embedded = len(embedding.embedded)
    zotero.change(LOOMS, title="Looms and steam engines", volume="8")
    report = await sync()
    assert report["updated"] == ["lovelace2020looms"] and len(embedding.embedded) == embedded
    assert library.paper("lovelace2020looms").title == "Looms and steam engines"
    assert "volume = {8}" in library.paper("lovelace2020looms").bibtex


async def test_a_changed_file_is_read_again(sync: Sync, zotero: MadeZotero, library: Library) -> None:
    await sync()
    file = zotero.folder / "storage" / "FILE1111" / "Lovelace – 2020.md"
    file.write_text(page_of("dobby"), encoding="utf-8")
    assert (await sync())["updated"] == ["lovelace2020looms"]
    assert "The dobby was measured" in library.paper_chunks("lovelace2020looms")[0].text


async def test_changed_and_deleted_notes_change_the_papers_note(
    sync: Sync, zotero: MadeZotero, library: Library
) -> None:
    await sync()
    zotero.trash("NOTE1111")
    await sync()
    assert library.note("lovelace2020looms") == "p. 3: “forty looms” – not enough"
    zotero.erase("MARK1111")
    assert (await sync())["updated"] == ["lovelace2020looms"] and library.note("lovelace2020looms") == ""


@pytest.mark.parametrize("how", ["trash", "erase"])
async def test_deleting_an_item_removes_its_paper(sync: Sync, zotero: MadeZotero, library: Library, how: str) -> None:
    await sync()
    getattr(zotero, how)(LOOMS)
    assert (await sync(dry_run=True))["removed"] == [
        {"key": "lovelace2020looms", "why": "its item was deleted in Zotero"}
    ]
    assert [paper.key for paper in library.papers()] == ["lovelace2020looms"]  # it was only planned
    assert len((await sync())["removed"]) == 1 and library.papers() == []
    assert (await sync())["removed"] == []
    assert how == "erase" or (zotero.folder / "storage" / "FILE1111" / "Lovelace – 2020.md").is_file()


async def test_papers_of_the_user_are_never_removed_or_replaced(
    sync: Sync, zotero: MadeZotero, library: Library, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "lovelace2020looms.md").write_text(page_of("mine"), encoding="utf-8")
    (mine / "other.md").write_text(page_of("other"), encoding="utf-8")
    (mine / "mine.bib").write_text("@article{other, title={Weaving by steam}, doi={10.5555/steam}}", encoding="utf-8")
    await ingest(library, [mine])
    zotero.item("BBBB1111", title="Weaving by steam", DOI="10.5555/STEAM", abstractNote="Steam weaves.")
    report = await sync()
    assert report["added"] == ["lovelace2020loomsa"]  # the next free key
    warning = report["warnings"][0]
    assert "already has other, but not from a sync" in warning and "papers remove other" in warning
    zotero.erase(LOOMS)
    zotero.erase("BBBB1111")
    await sync()
    assert sorted(paper.key for paper in library.papers()) == ["lovelace2020looms", "other"]


async def test_a_synced_paper_that_the_user_ingested_again_belongs_to_the_user(
    sync: Sync, zotero: MadeZotero, library: Library, tmp_path: Path
) -> None:
    await sync()
    (tmp_path / "lovelace2020looms.md").write_text(page_of("mine"), encoding="utf-8")
    await ingest(library, [tmp_path / "lovelace2020looms.md"])
    zotero.erase(LOOMS)
    assert (await sync())["removed"] == []
    assert "The mine was measured" in library.paper_chunks("lovelace2020looms")[0].text


async def test_better_bibtex_provides_the_keys(
    sync: Sync, zotero: MadeZotero, library: Library, request: pytest.FixtureRequest
) -> None:
    zotero.item("BBBB1111", title="B", extra="tex.note: x\nCitation Key: pinned:inExtra\nmore", abstractNote="Of B.")
    zotero.item("CCCC1111", title="C", citationKey="asField", abstractNote="Of C, a longer abstract.")
    keys = {LOOMS: "lovelaceFromItsDatabase"}
    zotero.better_bibtex(keys)
    if "api" in request.fixturenames:
        request.getfixturevalue("api").better_bibtex = keys
    assert sorted((await sync())["added"]) == ["asField", "lovelaceFromItsDatabase", "pinned:inExtra"]


async def test_a_renamed_key_renames_the_paper_without_embedding(
    sync: Sync, zotero: MadeZotero, library: Library, embedding: WordEmbedding
) -> None:
    await sync()
    embedded = len(embedding.embedded)
    zotero.change(LOOMS, extra="Citation Key: newKey")
    report = await sync()
    assert report["renamed"] == [{"from": "lovelace2020looms", "to": "newKey"}]
    assert (report["added"], report["removed"]) == ([], []) and len(embedding.embedded) == embedded
    assert [paper.key for paper in library.papers()] == ["newKey"] and "own idea" in library.note("newKey")
    zotero.change(LOOMS, extra="")  # Better BibTeX is gone: the key stays
    assert (await sync())["renamed"] == []


async def test_two_items_may_swap_their_keys(sync: Sync, zotero: MadeZotero, library: Library) -> None:
    zotero.change(LOOMS, extra="Citation Key: one")
    zotero.item("BBBB1111", title="The other", extra="Citation Key: two")
    zotero.file("FILE2222", "BBBB1111", "b.md", page_of("other"))
    await sync()
    zotero.change(LOOMS, extra="Citation Key: two")
    zotero.change("BBBB1111", extra="Citation Key: one")
    await sync()
    assert library.paper("one").title == "The other" and "jacquard" in library.paper_chunks("two")[0].text
    assert len(library.papers()) == 2 and (await sync())["unchanged"] == 2


async def test_a_new_title_keeps_the_key(sync: Sync, zotero: MadeZotero, library: Library) -> None:
    await sync()
    zotero.change(LOOMS, title="Engines", date="1999")
    await sync()
    assert library.paper("lovelace2020looms").year == 1999


async def test_two_items_with_one_key_are_reported(sync: Sync, zotero: MadeZotero, library: Library) -> None:
    zotero.change(LOOMS, extra="Citation Key: same")
    zotero.item("BBBB1111", title="The other", extra="Citation Key: same", abstractNote="Another.")
    report = await sync()
    assert report["added"] == ["same"] and "Looms" in library.paper("same").title
    (refused,) = report["refused"]
    assert (
        "BBBB1111 (The other)" in refused["path"]
        and f"the same citation key, same, as Zotero item {LOOMS}" in refused["reason"]
    )


async def test_an_item_without_a_file_is_indexed_by_its_abstract(
    sync: Sync, zotero: MadeZotero, library: Library
) -> None:
    zotero.item("BBBB1111", title="Cards", abstractNote="# We punch\ncards, at night.", authors=[("Al", "Bell")])
    zotero.item("CCCC1111", title="Nothing at all")
    report = await sync()
    assert report["abstract_only"] == ["bellcards"]
    assert report["without_file"] == [{"item": "CCCC1111", "title": "Nothing at all"}]
    assert "punch cards, at night" in " ".join(library.paper("bellcards").abstract.split())
    page = Path(library.paper("bellcards").source)
    assert page.parent == library.home.root.resolve() / "zotero"
    zotero.file("FILE2222", "BBBB1111", "cards.md", page_of("cards"))
    assert (await sync())["updated"] == ["bellcards"]
    assert "The cards was measured" in library.paper_chunks("bellcards")[0].text
    assert not page.exists()


async def test_an_item_whose_file_is_refused_is_indexed_by_its_abstract(
    sync: Sync, zotero: MadeZotero, library: Library
) -> None:
    zotero.item("BBBB1111", title="Cards", abstractNote="We punch cards, at night.", authors=[("Al", "Bell")])
    zotero.file("FILE2222", "BBBB1111", "cards.pdf", b"%PDF-1.5 cut off")
    for _ in range(2):  # a second sync reads nothing, and says the same
        report = await sync()
        assert report["abstract_only"] == ["bellcards"] and report["warnings"] == []
        (refused,) = report["refused"]
        assert refused["path"].endswith("cards.pdf") and "only the abstract is indexed" in refused["reason"]
        assert "punch cards, at night" in library.paper_chunks("bellcards")[0].text
    assert (report["unchanged"], report["added"]) == (2, [])

    zotero.change("BBBB1111", abstractNote="We punch cards, by day.")
    assert (await sync())["updated"] == ["bellcards"]
    assert "by day" in library.paper_chunks("bellcards")[0].text

    zotero.erase("FILE2222")
    zotero.file("FILE4444", "BBBB1111", "cards.md", page_of("cards"))
    report = await sync()
    assert (report["updated"], report["abstract_only"], report["refused"]) == (["bellcards"], [], [])
    assert "The cards was measured" in library.paper_chunks("bellcards")[0].text


async def test_a_paper_stays_unchanged_when_its_file_becomes_unreadable(
    sync: Sync, zotero: MadeZotero, library: Library
) -> None:
    zotero.change(LOOMS, abstractNote="Of looms.")
    await sync()
    (zotero.folder / "storage" / "FILE1111" / "Lovelace – 2020.md").write_bytes(b"\0")
    (refused,) = (await sync())["refused"]
    assert "binary" in refused["reason"] and "abstract" not in refused["reason"]
    assert "forty looms over three summers" in library.paper_chunks("lovelace2020looms")[0].text


async def test_the_best_attached_file_is_used(sync: Sync, zotero: MadeZotero, library: Library, tmp_path: Path) -> None:
    write_pdf(
        tmp_path / "a.pdf", [Line("Looms of the night", 18), *(Line(f"Loom {n} wove until late.") for n in range(20))]
    )
    zotero.item("BBBB1111", title="Looms of the night")
    zotero.file("SNAP1111", "BBBB1111", "page.html", "<h1>Looms</h1><p>Buy this article.</p>", mode="imported_url")
    zotero.file("SUPP1111", "BBBB1111", "supplement.pdf", (tmp_path / "a.pdf").read_bytes(), title="Supplementary data")
    zotero.file("FULL1111", "BBBB1111", "full.pdf", (tmp_path / "a.pdf").read_bytes(), title="Full Text PDF")
    zotero.file("LINK1111", "BBBB1111", "https://example.org", mode="linked_url")
    await sync()
    paper = next(paper for paper in library.papers() if paper.title == "Looms of the night")
    assert Path(paper.source).name == "full.pdf"
    link = zotero_links(paper.bibtex)
    assert link["zotero_pdf"] == "zotero://open-pdf/library/items/FULL1111"


async def test_a_synced_collection_includes_its_subcollections(
    sync: Sync, zotero: MadeZotero, library: Library
) -> None:
    zotero.collection("COLLPART", "Methods", "COLLMAIN")
    zotero.collection("COLLELSE", "Teaching")
    for key, collection in (("BBBB1111", "COLLPART"), ("CCCC1111", "COLLELSE")):
        zotero.item(key, title=collection, abstractNote=f"An abstract of {key}.", collections=[collection])
    assert len((await sync("thesis"))["added"]) == 2
    assert (await sync("Thesis/Methods"))["items"] == 1
    assert len((await sync("COLLELSE"))["added"]) == 1 and len(library.papers()) == 3  # others stay
    zotero.take_out("BBBB1111", "COLLPART")
    (removed,) = (await sync("Thesis"))["removed"]
    assert removed["why"] == "its item is no longer in any of the collections"
    report = await sync("Teaching", prune=True)
    assert len(report["removed"]) == 1 and [paper.title for paper in library.papers()] == ["COLLELSE"]


async def test_an_item_in_two_synced_collections_stays_until_it_has_left_both(
    sync: Sync, zotero: MadeZotero, library: Library
) -> None:
    zotero.collection("COLLELSE", "Teaching")
    zotero.put(LOOMS, "COLLELSE")
    await sync("Thesis")
    await sync("Teaching")
    zotero.take_out(LOOMS, "COLLMAIN")
    assert (await sync("Thesis"))["removed"] == [] and len(library.papers()) == 1
    zotero.take_out(LOOMS, "COLLELSE")
    assert len((await sync("Teaching"))["removed"]) == 1 and library.papers() == []


async def test_the_library_of_a_group_can_be_synced(sync: Sync, zotero: MadeZotero, library: Library) -> None:
    zotero.item("GGGG1111", title="Shared looms", library=GROUP)
    zotero.file("GFIL1111", "GGGG1111", "shared.md", page_of("shared"), library=GROUP)
    zotero.file("GLIN1111", "GGGG1111", "/etc/hostname.md", mode="linked_file", library=GROUP)
    assert (await sync(group="weavers"))["library"] == "Weavers"
    (paper,) = library.papers()
    link = zotero_links(paper.bibtex)
    assert link["zotero"] == f"zotero://select/groups/{GROUP_ID}/items/GGGG1111"
    assert len((await sync())["added"]) == 1  # the user's own library beside it
    zotero.erase("GGGG1111")
    assert (await sync())["removed"] == [] and len((await sync(group=str(GROUP_ID)))["removed"]) == 1


async def test_linked_files_are_read_only_inside_the_folder_named_by_the_user(
    sync: Sync, zotero: MadeZotero, library: Library, tmp_path: Path
) -> None:
    (tmp_path / "linked" / "sub").mkdir(parents=True)
    (tmp_path / "linked" / "sub" / "b.md").write_text(page_of("linked"), encoding="utf-8")
    (tmp_path / "secret.md").write_text(page_of("secret"), encoding="utf-8")
    for number, path in enumerate(
        [f"{tmp_path}/linked/sub/b.md", "attachments:sub/b.md", f"{tmp_path}/secret.md", "attachments:../secret.md"]
    ):
        zotero.item(f"LLLL000{number}", title=f"Linked {number}")
        zotero.file(f"LINK000{number}", f"LLLL000{number}", path, mode="linked_file")
    without = await sync()
    assert len(without["refused"]) == 4 and "CITELOOM_ZOTERO_LINKED" in without["refused"][0]["reason"]
    report = await sync(zotero_linked=tmp_path / "linked")
    assert report["added"] == ["linked", "linkeda"] and len(report["refused"]) == 2
    assert all("outside of" in item["reason"] for item in report["refused"])
    assert not any("secret" in chunk.text for key in ("linked", "linkeda") for chunk in library.paper_chunks(key))


async def test_a_rebuild_keeps_notes_links_and_the_state_of_the_sync(sync: Sync, library: Library) -> None:
    await sync()
    note = library.note("lovelace2020looms")
    report = await rebuild(library)
    assert not report.refused and library.note("lovelace2020looms") == note
    assert zotero_links(library.paper("lovelace2020looms").bibtex)["zotero"]
    assert (await sync())["unchanged"] == 1


async def test_both_ways_into_zotero_give_the_same_papers(
    zotero: MadeZotero, api: ZoteroServer, sync: Sync, open_library: Callable[..., Library], library: Library
) -> None:
    zotero.item("BBBB1111", "bookSection", title="B", bookTitle="Book", editors=[("Ed", "Itor")], abstractNote="Of B.")
    await sync(zotero=str(zotero.folder))
    entries = [paper.bibtex for paper in library.papers()]
    report = await sync(zotero=api.url)
    assert (report["unchanged"], report["updated"]) == (2, [])
    assert [paper.bibtex for paper in library.papers()] == entries


async def test_a_damaged_sync_state_is_an_error_with_its_remedy(
    sync: Sync, library: Library, zotero: MadeZotero
) -> None:
    await sync()
    file = library.home.root / "zotero" / "sync.json"
    for broken in ("{", "[]", '{"version": 2, "papers": {}}', '{"version": 1, "papers": {"a": {"item": 3}}}'):
        file.write_text(broken, encoding="utf-8")
        with pytest.raises(Exception, match=r"sync\.json"):
            await sync()
    file.unlink()
    zotero.item("BBBB1111", title="Another", abstractNote="Of another.")
    report = await sync()
    assert (report["unchanged"], report["added"], report["warnings"]) == (1, ["another"], [])
    file.unlink()
    zotero.erase("BBBB1111")
    assert (await sync())["removed"] == []  # without a state, only items that are there prove what is theirs
    zotero.erase(LOOMS)
    assert [one["key"] for one in (await sync())["removed"]] == ["lovelace2020looms"]


async def test_an_exported_entry_does_not_hand_a_paper_to_zotero(
    sync: Sync, library: Library, zotero: MadeZotero, tmp_path: Path
) -> None:
    await sync()
    entry = library.paper("lovelace2020looms").bibtex
    await remove_all(library, ["lovelace2020looms"])
    (library.home.zotero / "sync.json").unlink()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "lovelace2020looms.md").write_text(page_of("mine"), encoding="utf-8")
    (tmp_path / "mine" / "mine.bib").write_text(entry, encoding="utf-8")
    await ingest(library, [tmp_path / "mine"])
    report = await sync()
    assert len(report["warnings"]) == 1 and "was left unchanged" in report["warnings"][0]
    zotero.erase(LOOMS)
    assert (await sync())["removed"] == [] and len(library.papers()) == 1


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    """Every file and folder with its size and time."""
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}
