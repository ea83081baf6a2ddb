"""Chunks: exact slices, in order, nothing left out, of the right size."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from hypothesis import example, given, settings, strategies as st

from citeloom.documents.chunking import Window, chunk_paper, cuts_sentence
from citeloom.documents.markdown import parse_markdown
from citeloom.documents.types import Chunk, Paper


def count_words(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def count_each(texts: Sequence[str]) -> list[int]:
    return [count_words(text) for text in texts]


def chunks_of(text: str, target: int = 40, overlap: int = 10) -> list[Chunk]:
    return chunk_paper("key", parse_markdown(text), count_each, target=target, overlap=overlap)


def prose(count: int, words: int = 6) -> str:
    return " ".join(f"Sentence {number} says {'very ' * (words - 4)}much." for number in range(count))


def test_long_sections_give_even_chunks_that_overlap_by_sentences() -> None:
    chunks = chunks_of(f"# T\n\n## Methods\n\n{prose(60)}\n")
    assert [chunk.id for chunk in chunks] == [f"key:{index:05d}" for index in range(len(chunks))]
    assert all(28 <= chunk.tokens <= 50 for chunk in chunks)
    for left, right in itertools.pairwise(chunks):
        assert 0 < count_words(left.text[right.start - left.start :]) <= 15
        assert right.text.startswith("Sentence")


def test_no_chunk_crosses_a_heading_and_small_sections_stay_small() -> None:
    chunks = chunks_of("# T\n\n## Methods\n\nShort one.\n\n## Results\n\nShort two.\n\n## References\n\nNone.\n")
    assert [(chunk.section, chunk.text, chunk.index) for chunk in chunks] == [
        ("Methods", "Short one.", 0),
        ("Results", "Short two.", 1),
    ]


def test_formulas_code_and_tables_stay_whole() -> None:
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 8
    formula = "$$\n" + "x + y = z\n" * 6 + "$$"
    chunks = chunks_of(f"# T\n\n## Methods\n\n{prose(8)}\n\n{table}\n{prose(8)}\n\n{formula}\n\n{prose(8)}\n")
    assert sum(table.strip() in chunk.text for chunk in chunks) == 1
    assert sum(formula in chunk.text for chunk in chunks) == 1


def test_a_giant_table_is_cut_at_line_ends() -> None:
    rows = [f"| row {number} | {number} |" for number in range(60)]
    chunks = chunks_of("# T\n\n## Results\n\n| a | b |\n|---|---|\n" + "\n".join(rows) + "\n")
    assert len(chunks) > 3
    assert all(chunk.text.startswith("| ") and chunk.text.endswith(" |") for chunk in chunks)
    assert [row for row in rows if not any(row in chunk.text for chunk in chunks)] == []


def test_hidden_text_is_in_no_chunk() -> None:
    text = "# T\n\n## Methods\n\nSeen.\n\n<!-- unseen -->\n\nAlso seen.\n\n[unseen]: http://a.org\n\nAnd this.\n"
    assert [chunk.text for chunk in chunks_of(text)] == ["Seen.", "Also seen.", "And this."]


def test_an_endless_sentence_is_cut_between_words() -> None:
    chunks = chunks_of("# T\n\n## Methods\n\n" + "word " * 500 + "\n\n" + "x" * 3000)
    assert all(chunk.tokens <= 50 for chunk in chunks)
    assert sum(chunk.text.count("word") for chunk in chunks) >= 500


PARTS = st.one_of(
    st.integers(1, 30).map(lambda count: prose(count) + "\n\n"),
    st.integers(1, 40).map(lambda count: "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * count + "\n"),
    st.integers(1, 30).map(lambda count: "```\n" + "code line\n" * count + "```\n\n"),
    st.integers(1, 12).map(lambda count: "$$\n" + "x = y\n" * count + "$$\n\n"),
    st.integers(1, 12).map(lambda count: "- An item of it. With two.\n" * count + "\n"),
    st.sampled_from(["## Methods\n\n", "## Results\n\n", "### A part\n\n", "## References\n\n", "<!-- no -->\n\n"]),
    st.integers(10, 300).map(lambda count: "endless " * count + "\n\n"),
)


@settings(max_examples=150, deadline=None)
@example("- An item. With two.\n\n" + "endless " * 10 + "\n\n" + "Sentence 0 says very very much.\n\n" * 3, 20, 12)
@given(st.lists(PARTS, max_size=14).map("".join), st.integers(20, 80), st.integers(0, 15))
def test_chunks_are_slices_in_order_that_cover_all_searchable_prose(text: str, target: int, overlap: int) -> None:
    paper = parse_markdown(f"# Title\n\n{text}")
    chunks = chunk_paper("key", paper, count_each, target=target, overlap=overlap)
    assert chunks == chunk_paper("key", paper, count_each, target=target, overlap=overlap)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.text == paper.text[chunk.start : chunk.end] == chunk.text.strip() for chunk in chunks)
    assert all(a.start < b.start and a.end < b.end for a, b in itertools.pairwise(chunks))
    assert all(chunk.tokens == count_words(chunk.text) for chunk in chunks)
    covered = bytearray(len(paper.text))
    for chunk in chunks:
        covered[chunk.start : chunk.end] = b"\1" * (chunk.end - chunk.start)
        assert chunk.tokens <= 2.0 * target
    for section in paper.sections:
        bounds = [chunk for chunk in chunks if section.start <= chunk.start < section.end]
        assert all(chunk.end <= section.end for chunk in bounds)
        assert section.searchable or not bounds
        for block in paper.section_blocks(section):
            if section.searchable and block.kind != "hidden":
                left_out = [
                    paper.text[i] for i in range(block.start, block.end) if not covered[i] and paper.text[i].isalnum()
                ]
                assert left_out == []


WORDS = st.text(alphabet="ab1é漢 .,;:!?()[]{}$%&*_#`|<>\\\"'-\n", min_size=1, max_size=60)
FITTING = st.one_of(
    st.integers(1, 12).map(lambda count: "```\n" + "code line\n" * count + "```"),
    st.integers(1, 8).map(lambda count: "$$\n" + "x = y\n" * count + "$$"),
    st.integers(1, 8).map(lambda count: "\\begin{align}\n" + "x &= y \\\\\n" * count + "\\end{align}"),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(FITTING | st.integers(1, 20).map(prose), max_size=10), st.integers(30, 80), st.integers(0, 20))
def test_a_formula_or_piece_of_code_that_fits_is_never_split(parts: list[str], target: int, overlap: int) -> None:
    paper = parse_markdown("# Title\n\n## Results\n\n" + "\n\n".join([prose(3), *parts, prose(3)]) + "\n")
    chunks = chunk_paper("key", paper, count_each, target=target, overlap=overlap)
    for section in paper.sections:
        for block in paper.section_blocks(section):
            size = count_words(paper.text[block.start : block.end])
            if section.searchable and block.kind in {"math", "code"} and size <= 2 * target:
                assert any(chunk.start <= block.start and block.end <= chunk.end for chunk in chunks)
                assert not any(block.start < edge < block.end for chunk in chunks for edge in (chunk.start, chunk.end))


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=12).map("\n\n".join), st.integers(5, 40), st.integers(0, 10))
def test_no_character_of_prose_is_lost(text: str, target: int, overlap: int) -> None:
    """Of blocks with a word in them; white space between chunks, and chunks of signs alone, are no text."""
    paper = parse_markdown(f"# Title\n\n## Results\n\nA word. {text}")
    chunks = chunk_paper("key", paper, count_each, target=target, overlap=min(overlap, target // 2))
    covered = bytearray(len(paper.text))
    for chunk in chunks:
        assert chunk.text == paper.text[chunk.start : chunk.end]
        covered[chunk.start : chunk.end] = b"\1" * (chunk.end - chunk.start)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for section in paper.sections:
        for block in paper.section_blocks(section):
            whole = paper.text[block.start : block.end]
            if section.searchable and block.kind in {"prose", "list"} and any(map(str.isalnum, whole)):
                seen = "".join(c if covered[i] else "\0" for i, c in enumerate(whole, block.start))
                for lost in re.finditer(r"\0+", seen):
                    left_out = whole[lost.start() : lost.end()]
                    assert not any(map(str.isalnum, left_out)), left_out


def test_a_sentence_longer_than_a_chunk_is_read_completely() -> None:
    groups = "; ".join(
        f"group {number} with {number}.5% sensitivity and {number}.2% specificity" for number in range(12)
    )
    text = f"# Results\n\nAll were tested. They told apart {groups}. Values were high."
    chunks = chunks_of(text, target=40, overlap=10)
    assert len(chunks) > 2 and all(itertools.starmap(cuts_sentence, itertools.pairwise(chunks[:-1])))
    read = " ".join(sentence.text for sentence in Window(Paper("p", "P"), tuple(chunks), (), ()).sentences())
    assert read == text.removeprefix("# Results").strip()
    for sentence in Window(Paper("p", "P"), tuple(chunks), (), ()).sentences():
        assert sentence.chunk.text[sentence.start : sentence.end] == sentence.text


def test_chunks_made_of_whole_sentences_cut_no_sentence() -> None:
    chunks = chunks_of(f"# Results\n\n{prose(60)}", target=40, overlap=10)
    assert len(chunks) > 2 and not any(itertools.starmap(cuts_sentence, itertools.pairwise(chunks)))
