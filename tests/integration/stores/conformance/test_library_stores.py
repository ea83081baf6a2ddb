"""What a library stores and finds is the same on every backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from citeloom.documents import Category, Chunk, Paper, Section, chunk_id
from citeloom.documents.types import Note
from citeloom.ingestion.doctor import examine
from citeloom.stores.library import Library, UnknownPaperError
from citeloom.stores.paper_catalog import Change, PaperRecord, removal
from citeloom.stores.store_protocols import TextScope
from citeloom.stores.text_analysis import analyze
from tests.support.word_embedding import WordEmbedding

WORDS = WordEmbedding()
LOOM = ["Looms weave threads into cloth.", "Threads break when looms run fast.", "Cloth is sold by the yard."]
SEED = ["Seeds vary between runs.", "Runs with many seeds cost more."]


def paper(key: str, texts: Sequence[str], year: int = 2020, note: str = "") -> Change:
    """A paper of one chunk per text, the first in its abstract and the others in its methods."""
    chunks = tuple(
        Chunk(
            id=chunk_id(key, index),
            key=key,
            index=index,
            text=text,
            section="Abstract" if index == 0 else "Weaving methods",
            parent="" if index == 0 else "Methods",
            category=Category.ABSTRACT if index == 0 else Category.METHOD,
            level=1,
            page=None if index == 0 else index,
            start=10 * index,
            end=10 * index + 9,
            tokens=WORDS.count_tokens(text),
            page_breaks=() if index == 0 else (4, 8),
        )
        for index, text in enumerate(texts)
    )
    record = PaperRecord(
        Paper(key, f"On {key}", year=year, content_hash=f"hash of {key}"),
        metadata_hash="m1",
        chunking="400/100",
        summary=texts[0],
        summary_kind="abstract",
        chunk_count=len(chunks),
        note=Note(note, ((0, len(note)),)) if note else None,
    )
    sections = (
        Section(0, "Abstract", "", 1, Category.ABSTRACT, 0, 9, True),
        Section(1, "Weaving methods", "Methods", 2, Category.METHOD, 10, 99, True),
    )
    vectors = np.stack([WORDS.vector(text) for text in texts])
    notes = np.stack([WORDS.vector(note)]) if note else np.zeros((0, 0), np.float32)
    return Change(key, record, sections, chunks, vectors, WORDS.vector(texts[0]), notes)


def put(library: Library, *changes: Change) -> None:
    library.finish_staged()
    library.catalog.stage(changes)
    library.carry_out(changes)


def test_a_paper_is_read_back_as_it_was_written(library: Library) -> None:
    change = paper("loom2020", LOOM, note="Weigh this against slow looms.")
    put(library, change)
    assert library.records() == {"loom2020": change.record}
    assert library.sections("loom2020") == list(change.sections)
    assert library.paper_chunks("loom2020") == list(change.chunks)
    assert [row.id for row in library.catalog.chunk_rows(categories=[Category.METHOD])] == [
        "loom2020:00001",
        "loom2020:00002",
    ]
    found = library.store.get_vectors(["loom2020:00001", "loom2020:00009", "nonsense"])
    assert found.keys() == {"loom2020:00001"}
    np.testing.assert_allclose(found["loom2020:00001"], change.vectors[1], atol=1e-6)
    np.testing.assert_allclose(
        library.store.get_vectors(["loom2020"], "summaries")["loom2020"], change.summary_vector, atol=1e-6
    )
    assert library.store.get_vectors(["loom2020:00000"], "notes").keys() == {"loom2020:00000"}


def test_a_text_keeps_every_displayable_character(library: Library) -> None:
    odd = 'Ω ≤ 3 µm; "quoted" — naïve 𝛼-helix\n\ttab \\ back%slash ﬁ 日本語 \u202e'
    put(library, paper("odd2020", [odd]))
    assert library.paper_chunks("odd2020")[0].text == odd


def test_nearest_chunks_are_returned_with_their_cosines(library: Library) -> None:
    changes = [paper("loom2020", LOOM), paper("seed2021", SEED, year=2021)]
    put(library, *changes)
    query = WORDS.vector("threads of looms")
    expected = sorted(
        (
            (float(np.dot(row, query)), chunk.id)
            for change in changes
            for chunk, row in zip(change.chunks, change.vectors, strict=True)
        ),
        key=lambda item: (-item[0], item[1]),
    )
    found = library.nearest_ids(query, 10)
    assert [name for name, _ in found] == [name for _, name in expected]
    np.testing.assert_allclose([score for _, score in found], [score for score, _ in expected], atol=1e-5)
    cosines = library.cosines(query, [*(name for _, name in expected), "nobody:00000"])
    assert cosines == pytest.approx({name: score for score, name in expected}, abs=1e-5)
    assert [name for name, _ in library.nearest_ids(query, 2)] == [name for _, name in expected[:2]]
    assert {name for name, _ in library.nearest_ids(query, 9, TextScope(years=(2021, 2021)))} == {
        "seed2021:00000",
        "seed2021:00001",
    }
    abstracts = library.nearest_ids(query, 9, TextScope(["loom2020"], [Category.ABSTRACT]))
    assert [name for name, _ in abstracts] == ["loom2020:00000"]
    assert library.nearest_ids(query, 0) == library.nearest_ids(query, 3, TextScope([])) == []


def test_equal_texts_of_several_papers_are_ordered_by_id(library: Library) -> None:
    keys = ["b", "a-b", "a", "B"]
    put(library, *(paper(key, LOOM) for key in keys))
    by_id = sorted(chunk_id(key, 0) for key in keys)
    assert [name for name, _ in library.nearest_ids(WORDS.vector(LOOM[0]), 4)] == by_id
    assert [name for name, _ in library.matching(analyze("weave"), 4)] == by_id


def test_words_match_texts_and_section_titles(library: Library) -> None:
    put(library, paper("loom2020", LOOM), paper("seed2021", SEED, year=2021))
    analyzed = analyze("The threads of the looms")
    assert analyzed == ["thread", "loom"]
    assert {name for name, _ in library.matching(analyzed, 9)} == {"loom2020:00000", "loom2020:00001"}
    titles = library.matching(analyze("weaving"), 9)
    assert titles[0][0] == "loom2020:00000", "a word of the text counts more than one of a title"
    assert {name for name, _ in titles} == {"loom2020:00000", "loom2020:00001", "loom2020:00002", "seed2021:00001"}
    assert library.matching(analyzed, 9, TextScope(["seed2021"])) == []
    assert library.matching(analyzed, 9, TextScope(ids=["loom2020:00001"]))[0][0] == "loom2020:00001"
    assert [name for name, _ in library.matching(analyzed, 9, TextScope(categories=[Category.ABSTRACT]))] == [
        "loom2020:00000"
    ]
    assert library.matching([], 9) == library.matching(["nowhere"], 9) == []


def test_rare_words_count_more_and_long_texts_less(library: Library) -> None:
    put(library, paper("a", ["red red red", "red blue", "red green green green green", "red yellow"]))
    scores = dict(library.matching(["red", "blue"], 9))
    assert max(scores, key=lambda name: scores[name]) == "a:00001"
    assert scores["a:00003"] > scores["a:00002"]
    rarity = library.fulltext.rarity(["red", "blue", "nowhere"])
    assert rarity["nowhere"] == 1.0 > rarity["blue"] > rarity["red"]


def test_a_changed_paper_replaces_the_earlier_one(library: Library) -> None:
    put(library, paper("loom2020", LOOM, note="An old note."))
    put(library, paper("loom2020", ["Engines replace looms."]))
    assert [chunk.text for chunk in library.paper_chunks("loom2020")] == ["Engines replace looms."]
    assert library.chunks(["loom2020:00001"]) == []
    assert library.matching(analyze("threads"), 9) == []
    assert library.store.stored_ids("notes") == set()
    assert [finding.topic for finding in examine(library) if finding.level == "problem"] == []


def test_a_removed_paper_leaves_nothing(library: Library) -> None:
    put(library, paper("loom2020", LOOM), paper("seed2021", SEED))
    put(library, removal("loom2020"))
    assert [each.key for each in library.papers()] == ["seed2021"]
    assert library.store.stored_ids() == set(library.fulltext.entries()) == {"seed2021:00000", "seed2021:00001"}
    assert library.store.stored_ids("summaries") == {"seed2021"}
    with pytest.raises(UnknownPaperError, match="loom2020"):
        library.sections("loom2020")


def test_papers_are_found_by_summary_and_note(library: Library) -> None:
    put(library, paper("loom2020", LOOM), paper("seed2021", SEED, note="Compare with weaving of baskets."))
    by_note = library.nearest_papers(WORDS.vector("weaving of baskets"), 2)
    assert [near.paper.key for near in by_note] == ["seed2021", "loom2020"]
    assert by_note[0].note == "Compare with weaving of baskets."
    assert library.nearest_papers(WORDS.vector(LOOM[0]), 1)[0].paper.key == "loom2020"


def test_a_library_opened_twice_sees_each_change(library: Library, open_library: Callable[[], Library]) -> None:
    other = open_library()
    assert not other.papers()
    put(library, paper("loom2020", LOOM))
    assert [each.key for each in other.papers()] == ["loom2020"]
    before = other.version()
    assert other.nearest_ids(WORDS.vector(LOOM[0]), 1)[0][0] == "loom2020:00000"
    put(library, paper("loom2020", SEED))
    assert other.chunks(["loom2020:00000"])[0].text == SEED[0]
    assert [name for name, _ in other.matching(analyze("seeds"), 9)] == [
        "loom2020:00000",
        "loom2020:00001",
    ]
    assert other.version() == before, "the version depends on the file's hash, which is the same here"


def test_metadata_changes_without_the_text(library: Library) -> None:
    change = paper("loom2020", LOOM)
    put(library, change)
    assert change.record is not None
    renamed = PaperRecord(Paper("loom2020", "Another title", year=1999), "m2", *_rest(change.record))
    library.catalog.update_metadata([renamed])
    assert library.paper("loom2020").title == "Another title"
    assert library.records()["loom2020"].metadata_hash == "m2"
    library.catalog.mark_stale(["loom2020"])
    assert library.records()["loom2020"].chunking == "stale"


def _rest(record: PaperRecord) -> tuple[str, str, str, int]:
    return record.chunking, record.summary, record.summary_kind, record.chunk_count


def test_texts_are_found_by_their_hash(library: Library) -> None:
    put(library, paper("loom2020", LOOM))
    hashes = {row.text_hash: row.id for row in library.catalog.chunk_rows()}
    assert library.catalog.ids_by_text([*hashes, "unknown"]) == hashes


def test_a_lost_full_text_index_is_rebuilt(library: Library, open_library: Callable[[], Library]) -> None:
    put(library, paper("loom2020", LOOM), paper("seed2021", SEED))
    before = library.matching(["loom", "seed"], 9), library.fulltext.entries()
    library.catalog.set_meta("fulltext", "an earlier version")
    again = open_library()
    assert (again.matching(["loom", "seed"], 9), again.fulltext.entries()) == before
