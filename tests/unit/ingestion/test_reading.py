"""Texts of files, and the cache of what was read from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.documents.bibliography import Refusal
from citeloom.documents.markdown import ParsedPaper
from citeloom.documents.safe_files import FileRefusedError
from citeloom.ingestion.reading import ConvertedFiles, parse_file, printable, read_text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("words".encode("utf-16"), "is UTF-16"),
        (b"a\0b", "is binary"),
        (b"caf\xe9", "is not UTF-8 (byte 3)"),
        (b" \n", "is empty"),
    ],
)
def test_a_file_that_is_not_text_is_refused(data: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "paper.md"
    file.write_bytes(data)
    with pytest.raises(FileRefusedError) as refused:
        read_text(file)
    assert reason in str(refused.value)
    parsed = parse_file(file, None, None)
    assert isinstance(parsed, Refusal) and parsed.path == str(file) and reason in parsed.reason


def test_a_note_may_be_blank_and_a_byte_order_mark_is_not_text(tmp_path: Path) -> None:
    file = tmp_path / "paper.md"
    file.write_bytes(b"\xef\xbb\xbf \n")
    assert read_text(file, blank=True) == ""
    file.write_bytes(b"\xef\xbb\xbf# Looms")
    parsed = parse_file(file, None, None)
    assert isinstance(parsed, ParsedPaper) and parsed.title == "Looms"


@pytest.mark.parametrize("name", ["paper.xyz", "library.bib"])
def test_a_file_of_another_kind_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("words", encoding="utf-8")
    parsed = parse_file(tmp_path / name, None, None)
    assert isinstance(parsed, Refusal) and "is not a file type" in parsed.reason
    assert ("--bib" in parsed.reason) == name.endswith(".bib")


def test_a_cache_entry_is_valid_only_for_the_same_bytes(tmp_path: Path) -> None:
    file, cache = tmp_path / "paper.docx", ConvertedFiles(tmp_path / "cache")
    file.write_bytes(b"one")
    assert cache.get(file) is None
    cache.put(file, {"markdown": "# One"})
    assert cache.get(file) == {"markdown": "# One"}
    file.write_bytes(b"two")
    assert cache.get(file) is None
    cache.put(file, {"markdown": "# Two"})
    cache.forget(file)
    assert cache.get(file) is None and list((tmp_path / "cache").iterdir()) == []


def test_undecodable_bytes_in_a_name_are_shown_escaped() -> None:
    assert printable("caf\udce9.md") == "caf\\udce9.md"
