"""Invariants of every finished section, whoever wrote it: checked against the library, not with our own checks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import bibtexparser

from citeloom.stores.library import Library

FIELDS = {
    "thread_id",
    "section",
    "text",
    "citations",
    "evidence",
    "references",
    "findings",
    "numbers",
    "left_out",
    "usage",
    "warnings",
    "files",
}
CITATION_FIELDS = {
    "key",
    "page",
    "evidence_id",
    "chunk_id",
    "quote",
    "start",
    "end",
    "sentence",
    "verdict",
}
USAGE_FIELDS = {"llm_calls", "journal_hits", "input_tokens", "output_tokens", "cost"}
PAPER = ("abstract", "introduction", "methods", "results", "discussion", "conclusion")

# The mark that a text must show, by the rule of a finding or the verdict on a citation.
MARKS = {
    "unsupported": "[not supported]",
    "contradicted": "[contradicted by its source]",
    "number-not-found": "[number not found]",
    "copied-run": "[copied words]",
    "citation-missing": "[citation needed]",
}
OF_SENTENCES = ("unsupported", "contradicted", "citation-missing")

_MARKER = re.compile(r"\[\s*E\s?\d+", re.IGNORECASE)
_FOREIGN = re.compile(
    r"\[@|(?<![\w.])@[a-z]\w+\d|\\[a-z]*cite|\[\d+(?:,\s*\d+)*\]|\b[A-Z][a-z]+ et al\.,? \(?(?:19|20)\d\d|\(made",
    re.UNICODE,
)
# A listed passage: its words, and its key with a page in parentheses.
_LISTED = re.compile(r"^- \u201c(.+)\u201d \(([^()]+)\)", re.MULTILINE)
# Keys as the default style shows them: `(smith2024quantum; jones2020)`.
_KEYS = re.compile(r"\(([^\s();]+(?:; [^\s();]+)*)\)")


def check_section(
    record: dict[str, Any], library: Library, *, written_by_models: bool = False, of_paper: bool = False
) -> None:
    """Assert everything a reader relies on: no foreign source, exact quotes, consistent files."""
    name = f"{record['thread_id']} ({record['section']})"
    assert record.keys() >= FIELDS, name
    assert record["usage"].keys() >= USAGE_FIELDS, name
    assert record["thread_id"].startswith("paper" if of_paper else record["section"]), name
    numbers = [int(item["id"].removeprefix("E")) for item in record["evidence"]]
    assert numbers == (sorted(set(numbers)) if of_paper else list(range(1, len(numbers) + 1))), name
    text = record["text"]
    assert not _MARKER.search(text), f"{name}: a marker is left in: {text}"
    assert "\x00" not in text and "\x1b" not in text, name
    _check_citations(record, library, name)
    _check_findings(record, library, name)
    cited = {citation["key"] for citation in record["citations"]}
    known = {paper.key for paper in library.papers()}
    for group in _KEYS.findall(text):
        for key in group.split("; "):
            looks_like_key = re.fullmatch(r"\w+(?:19|20)\d\d\w*", key) or key in known
            assert not looks_like_key or key in cited, f"{name}: {key} is in the text, but cites nothing"
    for key in cited:
        assert key in text, f"{name}: {key} is cited, but not in the text"
    referenced = [reference["key"] for reference in record["references"]]
    assert sorted(referenced) == sorted(cited), name
    if written_by_models:
        found = _FOREIGN.search(text)
        assert found is None, f"{name}: foreign citation {found and found[0]!r} in: {text}"


def _check_citations(record: dict[str, Any], library: Library, name: str) -> None:
    evidence = {item["id"]: item for item in record["evidence"]}
    for citation in record["citations"]:
        assert citation.keys() >= CITATION_FIELDS, name
        assert citation["evidence_id"] in evidence, name
        (chunk,) = library.chunks([citation["chunk_id"]])
        assert chunk.key == citation["key"], name
        assert chunk.text[citation["start"] : citation["end"]] == citation["quote"] != "", name
        if citation["decided_by"]:
            assert re.search(r"\w", chunk.text[slice(*citation["decided_by"])]), name
        for span in citation["decided_by_spans"]:
            (holder,) = library.chunks([span["chunk_id"]])
            assert re.search(r"\w", holder.text[span["start"] : span["end"]]), name
        assert citation["sentence"] in record["text"], name
        # Sentences in a row that rest on the same papers are cited once, after the last.
        rest_of_line = record["text"][record["text"].index(citation["sentence"]) :].split("\n")[0]
        assert citation["key"] in rest_of_line, name
    for item in evidence.values():
        (chunk,) = library.chunks([item["chunk_id"]])
        assert chunk.text[item["start"] : item["end"]] == item["quote"] != "", name


def _check_findings(record: dict[str, Any], library: Library, name: str) -> None:
    """Findings point into the text and are reported; a number that was found is where the record says."""
    text = record["text"]
    for finding in record["findings"]:
        start, end = finding["start"], finding["end"]
        assert start is None or 0 <= start < end <= len(text), name
        assert any(finding["message"] in warning for warning in record["warnings"]), name
        mark = MARKS.get(finding["rule"])
        if start is not None and mark and finding["rule"] in OF_SENTENCES:
            # A sentence with two invented citations has two marks.
            times = text[start:end].count(mark)
            assert times == 1 or (times and mark == MARKS["citation-missing"]), (
                f"{name}: {mark} {times} times in {text[start:end]!r}"
            )
        elif start is not None and mark:
            assert mark in text[end:], f"{name}: {mark} does not follow {text[start:end]!r}"
    for citation in record["citations"]:
        mark = MARKS.get(citation["verdict"])
        assert mark is None or mark in citation["sentence"], f"{name}: {citation['verdict']} is not marked"
    unfound = [number["start"] for number in record["numbers"] if number["found"] is None]
    told = [finding["start"] for finding in record["findings"] if finding["rule"] == "number-not-found"]
    assert sorted(unfound) == sorted(told), name
    for number in record["numbers"]:
        assert text[number["start"] : number["end"]] == number["text"], name
        found = number["found"]
        if found and "evidence_id" in found:
            (chunk,) = library.chunks([found["chunk_id"]])
            assert re.search(r"\w", chunk.text[found["start"] : found["end"]]), name


def check_paper(record: dict[str, Any], library: Library, *, written_by_models: bool = False) -> None:
    """Assert the invariants of a whole paper in addition to those of its sections: nothing is repeated."""
    for section in record["sections"]:
        check_section(section, library, written_by_models=written_by_models, of_paper=True)
        assert section["thread_id"] == record["thread_id"]
        assert section["text"] in record["text"]
    assert [section["section"] for section in record["sections"]] == list(PAPER)
    check_section(record, library, written_by_models=written_by_models)
    table = {item["id"]: item for item in record["evidence"]}
    words = {
        tuple((span["chunk_id"], span["start"], span["end"]) for span in (item, *item["more"]))
        for item in table.values()
    }
    assert len(words) == len(table), "the same words have two ids"
    for section in record["sections"]:
        assert all(table[item["id"]] == item for item in section["evidence"]), "one id, two passages"
    assert record["citations"] == [item for section in record["sections"] for item in section["citations"]]
    assert said_twice(record) == [], said_twice(record)


def said_twice(record: dict[str, Any]) -> list[str]:
    """The sentences of at least six words that a section says again without a finding, whatever their citations.

    The abstract sums up the others and may say what they say.
    """
    said: set[str] = set()
    again: list[str] = []
    for section in record["sections"]:
        if section["section"] == "abstract":
            continue
        told = [item for item in section["findings"] if item["rule"] == "repeated-sentence"]
        known = " ".join(_worded(section["text"][item["start"] : item["end"]]) for item in told)
        for paragraph in section["text"].split("\n\n"):
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z“\"])", paragraph):
                words = _worded(sentence)
                if words.count(" ") < 5 or words in known:
                    continue
                again += [words] if words in said else []
                said.add(words)
    return again


def _worded(sentence: str) -> str:
    return " ".join(re.findall(r"\w+", _KEYS.sub(" ", re.sub(r"\[[^\]]*\]", " ", sentence)).casefold()))


def check_listed_passages(record: dict[str, Any]) -> set[str]:
    """Assert that the sentences listed beneath the author's own are those that the record cites; returns their papers.

    What a paper cites may be left out of them, and so may its markup.
    """
    of_key: dict[str, list[list[str]]] = {}
    for citation in record["citations"]:
        of_key.setdefault(citation["key"], []).append(re.findall(r"\w+", citation["quote"].casefold()))
    listed = [(words, place.split(",")[0]) for words, place in _LISTED.findall(record["text"])]
    for words, key in listed:
        shown = re.findall(r"\w+", words.casefold())
        assert any(_in_order(shown, quote) for quote in of_key[key]), f"{record['thread_id']}: {words!r} is altered"
    return {key for _, key in listed}


def _in_order(words: list[str], among: list[str]) -> bool:
    rest = iter(among)
    return all(word in rest for word in words)


def check_files(record: dict[str, Any], folder: Path) -> None:
    """Assert that the four files exist, parse, and contain exactly the cited entries."""
    name = f"{record['thread_id']} ({record['section']})"
    assert record["files"].keys() == {"md", "bib", "evidence.html", "json"}, name
    cited = {citation["key"] for citation in record["citations"]}
    library = bibtexparser.parse_file(str(folder / record["files"]["bib"]), parse_stack=[])
    assert not library.failed_blocks, name
    assert {entry.key for entry in library.entries} == cited, name
    assert len(library.entries) == len(cited), name
    document = (folder / record["files"]["md"]).read_text(encoding="utf-8")
    # A strict run may leave out every sentence, and a model may write none; both are said.
    empty = any(finding["rule"] == "empty" for finding in record["findings"])
    assert record["text"].strip() or record["left_out"] or empty, name
    assert all(line in document for line in record["text"].strip().splitlines()[-1:]), name
