"""Functions that are called in a separate process, within limits."""

from __future__ import annotations

import operator
import os
import time
from pathlib import Path

import pytest

from citeloom.documents.bibliography import parse_bibliography, read_bibliography
from citeloom.documents.sandbox import CallLimits, SandboxError, run_sandboxed
from citeloom.errors import InputError

MANY = CallLimits(seconds=30.0, memory=1 << 30)


def test_arguments_and_result_are_plain_data() -> None:
    assert run_sandboxed(operator.add, MANY, ["a\ud800", {"n": 1.5}], [None, "ü"]) == ["a\ud800", {"n": 1.5}, None, "ü"]


def test_printed_output_does_not_mix_with_the_result() -> None:
    assert run_sandboxed(print, MANY, "printed") is None


def test_a_call_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(SandboxError, match=r"\b1 s"):
        run_sandboxed(time.sleep, CallLimits(seconds=1.0, memory=1 << 30), 600)


def test_a_call_that_takes_too_much_memory_is_stopped() -> None:
    with pytest.raises(SandboxError, match=r"\b1$"):
        run_sandboxed(operator.mul, MANY, "x", 1 << 34)


def test_a_call_that_crashes_is_reported() -> None:
    with pytest.raises(SandboxError, match=r"\b7$"):
        run_sandboxed(os._exit, MANY, 7)


def test_a_large_bibliography_reads_like_a_small_one(tmp_path: Path) -> None:
    entry = "@article{{made{n}, title = {{On {n}}}, author = {{Doe, Jane and Roe, R.}}, year = 2020, x = {{{x}}}}}\n"
    text = "".join(entry.format(n=n % 1_000, x="y" * 100) for n in range(1_001))
    (tmp_path / "all.bib").write_text(text, encoding="utf-8")

    read = read_bibliography(tmp_path / "all.bib")
    assert len(text) > 150_000 and len(read.papers) == 1_000 and len(read.refused) == 1
    assert read == parse_bibliography(text, source=str(tmp_path / "all.bib"))


def test_a_large_bibliography_that_expands_without_end_is_reported(tmp_path: Path) -> None:
    macros = (
        '@string{m0 = "'
        + "x" * 150_000
        + '"}\n'
        + "".join(f"@article{{k{n}, title = {{{n}}}, x = m0}}\n" for n in range(5_000))
    )
    (tmp_path / "all.bib").write_text(macros, encoding="utf-8")

    with pytest.raises(InputError, match=r"all\.bib: line \d+"):
        read_bibliography(tmp_path / "all.bib")
