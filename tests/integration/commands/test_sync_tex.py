"""sync-tex: sections in a LaTeX project, where only Citeloom's regions are ever changed."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from citeloom import aopen_library, async_tex, open_library
from citeloom.api.remembering import propose_from_edits
from citeloom.api.run_texts import keep_edit, load_editable
from tests.integration.commands.conftest import Citeloom
from tests.support.folder_state import contents

MAIN = r"""\documentclass{article}
\usepackage[round]{natbib}
\begin{document}
Ours is 5\% better than \citep{mine2020}. % a remark
% citeloom:here discussion
\section{Thanks}
\bibliography{refs}
\end{document}
"""
BIB = "@misc{mine2020,\n  title = {A Work of Mine},\n  year = 2020\n}\n"


@pytest.fixture
def run(citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path) -> str:
    written = citeloom("discussion", exp, "--home", home, "--out", tmp_path / "out", "--json")
    return str(written.json["thread_id"])


def _project(folder: Path, main: bytes = MAIN.encode(), bib: str = BIB) -> Path:
    folder.mkdir()
    (folder / "main.tex").write_bytes(main)
    (folder / "refs.bib").write_text(bib, "utf-8")
    return folder


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_clone_gets_the_section_and_nothing_else_changes(
    citeloom: Citeloom, home: Path, run: str, tmp_path: Path, newline: str, encoding: str
) -> None:
    main = MAIN.replace("Thanks", "Übersicht").replace("\n", newline).encode(encoding)
    folder = _project(tmp_path / "clone", main)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    done = citeloom("sync-tex", folder, "--run", run, "--home", home)
    assert done.code == 0 and "main.tex:6: discussion new" in done.out and "added" in done.err, done.err
    text = (folder / "main.tex").read_bytes()
    begin, end = (
        text.index(b"% citeloom:begin"),
        text.index(b"% citeloom:end") + len(b"% citeloom:end" + newline.encode()),
    )
    assert text[:begin] + text[end:] == main
    region = text[begin:end].decode(encoding)
    assert region.count("\n") == region.count(newline) and f"begin {run} discussion " in region
    bib = (folder / "refs.bib").read_text("utf-8")
    cited = {key for keys in re.findall(r"\\citep(?:\[[^\]]*\])?\{([^}]+)\}", region) for key in keys.split(",")}
    assert bib.startswith(BIB) and cited and all(f"{{{key}," in bib for key in cited)
    before = contents(folder)
    again = citeloom("sync-tex", folder, "--home", home)
    assert again.code == 0 and "unchanged" in again.out and contents(folder) == before


def test_an_edited_region_is_shown_and_accepted_or_overwritten_on_request(
    citeloom: Citeloom, home: Path, run: str, tmp_path: Path
) -> None:
    folder = _project(tmp_path / "clone")
    citeloom("sync-tex", folder, "--run", run, "--home", home)
    file = folder / "main.tex"
    written = file.read_text("utf-8")
    first = next(line for line in written.splitlines() if line.startswith(r"\textbf{Hypothesis.}"))
    key = re.findall(r"\\citep\{(\w+)\}", written)[-1]
    mine = written.replace(first, rf"\textbf{{Hypothesis.}} Mine, \emph{{really}}. As in \citep{{{key}}} too.")
    file.write_text(mine, "utf-8")
    shown = citeloom("sync-tex", folder, "--home", home)
    assert shown.code == 4 and "conflict" in shown.out and rf"+As in \citep{{{key}}} too." in shown.out
    assert file.read_text("utf-8") == mine
    shutil.copytree(folder, tmp_path / "other")
    taken = citeloom("sync-tex", folder, "--home", home, "--theirs")
    assert taken.code == 0 and "taken" in taken.out, taken.err
    unmarked = [line for line in file.read_text("utf-8").splitlines() if "citeloom:begin" not in line]
    assert unmarked == [line for line in mine.splitlines() if "citeloom:begin" not in line]
    assert "unchanged" in citeloom("sync-tex", folder, "--home", home).out
    again = citeloom("discussion", tmp_path / "exp.json", "--home", home, "--out", tmp_path / "out", "--json")
    assert again.json["thread_id"] == run, "the run itself stays"
    # A second project gets what was taken; of one that was edited otherwise, the file is copied first.
    fresh = _project(tmp_path / "fresh")
    assert citeloom("sync-tex", fresh, "--run", run, "--home", home).code == 0
    assert rf"Mine, \emph{{really}}. As in \citep{{{key}}} too." in (fresh / "main.tex").read_text("utf-8")
    other = tmp_path / "other"
    (other / "main.tex").write_text(mine.replace("Mine,", "Otherwise,"), "utf-8")
    done = citeloom("sync-tex", other, "--home", home, "--ours")
    assert done.code == 0 and "main.tex.original" in done.out
    assert "Otherwise," in (other / "main.tex.original").read_text("utf-8")
    assert "Mine, \\emph{really}." in (other / "main.tex").read_text("utf-8")


def test_the_projects_own_entries_never_change_and_a_key_in_use_is_renamed(
    citeloom: Citeloom, home: Path, run: str, tmp_path: Path
) -> None:
    sample = _project(tmp_path / "sample")
    citeloom("sync-tex", sample, "--run", run, "--home", home)
    ours = (sample / "refs.bib").read_text("utf-8")
    first, second = re.findall(r"(?m)^@\w+\{(\w+),", ours)[1:3]
    title = re.search(rf"{second},\s*title\s*=\s*\{{(.*)\}},", ours)
    assert title is not None
    bib = (
        f"@article{{{first.upper()}, title={{Quite another}}}}\n@book{{{second}, title={{{title[1]}}}, note={{read}}}}"
    )
    folder = _project(tmp_path / "clone", MAIN.replace(r"\usepackage[round]{natbib}", "").encode(), bib)
    done = citeloom("sync-tex", folder, "--run", run, "--home", home)
    grown, text = (folder / "refs.bib").read_text("utf-8"), (folder / "main.tex").read_text("utf-8")
    assert grown.startswith(bib) and f"{{{first}-2," in grown and grown.count(f"{{{second},") == 1
    assert f"\\cite{{{first}-2}}" in text and f"{{{first}}}" not in text and f"\\cite{{{second}}}" in text
    assert f"{first} is another work" in done.err and f"{second} differs from the entry in the library" in done.err


def test_a_new_section_gets_its_own_file(citeloom: Citeloom, home: Path, run: str, tmp_path: Path) -> None:
    plain = r"\documentclass{article}\begin{document}\input{parts/discussion}\end{document}"
    folder = _project(tmp_path / "awaited", plain.encode())
    assert citeloom("sync-tex", folder, "--run", run, "--home", home).code == 0
    assert (folder / "parts" / "discussion.tex").read_text("utf-8").startswith("% citeloom:begin")
    other = _project(tmp_path / "unnamed", b"\\documentclass{article}\n")
    (other / "sections").mkdir()
    (other / "sections" / "discussion.tex").write_text("Mine.", "utf-8")
    done = citeloom("sync-tex", other, "--run", run, "--home", home)
    assert "put \\input{sections/citeloom-discussion}" in done.err
    assert (other / "sections" / "discussion.tex").read_text("utf-8") == "Mine."


def test_a_region_that_cannot_be_written_is_reported_in_one_line_and_changes_nothing(
    citeloom: Citeloom, home: Path, run: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.tex"
    outside.write_text("% citeloom:here discussion\n", "utf-8")
    folder = _project(tmp_path / "linked")
    (folder / "a.tex").symlink_to(outside)
    done = citeloom("sync-tex", folder, "--run", run, "--home", home)
    assert done.code == 4 and "Problem: a.tex: is a link out of the folder" in done.err
    assert outside.read_text("utf-8") == "% citeloom:here discussion\n"
    locked = _project(tmp_path / "locked")
    (locked / "main.tex").chmod(0o444)
    done = citeloom("sync-tex", locked, "--run", run, "--home", home)
    assert done.code == 4 and "main.tex: is read-only; not written." in done.err and "discussion refused" in done.out
    assert (locked / "main.tex").read_text("utf-8") == MAIN
    for name, marks in (("open", "% citeloom:begin a discussion\n"), ("closed", "% citeloom:end\n")):
        broken = _project(tmp_path / name, (MAIN + marks).encode())
        before = contents(broken)
        done = citeloom("sync-tex", broken, "--run", run, "--home", home)
        assert done.code == 2 and "main.tex" in done.err and contents(broken) == before
    assert citeloom("sync-tex", tmp_path / "none", "--home", home).code == 2
    assert citeloom("sync-tex", _project(tmp_path / "empty"), "--home", home).code == 2
    foreign = _project(tmp_path / "foreign", b"% citeloom:begin discussion-none discussion\n% citeloom:end\n")
    done = citeloom("sync-tex", foreign, "--home", home)
    assert done.code == 4 and "There is no run 'discussion-none'" in done.err


def test_two_concurrent_syncs_write_one_region(home: Path, run: str, tmp_path: Path) -> None:
    folder = _project(tmp_path / "clone")

    async def both() -> None:
        async with aopen_library(home) as library:
            first, second = await asyncio.gather(*(async_tex(library, folder, runs=run) for _ in range(2)))
            assert {first["regions"][0]["state"], second["regions"][0]["state"]} == {"new", "unchanged"}

    asyncio.run(both())
    assert (folder / "main.tex").read_text("utf-8").count("citeloom:begin") == 1
    assert not [path for path in folder.iterdir() if path.suffix == ".tmp"]


def test_edits_made_after_a_sync_are_in_the_next_text(citeloom: Citeloom, home: Path, run: str, tmp_path: Path) -> None:
    folder = _project(tmp_path / "clone")
    citeloom("sync-tex", folder, "--run", run, "--home", home)
    file = folder / "main.tex"
    with open_library(home) as library:
        (before,) = load_editable(library.home, run).sections
    begin, _, last = file.read_text("utf-8").rpartition(". ")
    term = next(word for word in re.findall(r"(?<= )[a-z]{7,}(?= )", last) if word not in begin)
    written = f"{begin}. {last.replace(term, 'zebras', 1)}"
    figure = "\\begin{figure}\\includegraphics{plot.png}\\caption{Figure 1. A plot.}\\label{fig:1}\\end{figure}\n"
    file.write_text(
        written.replace("% citeloom:end", f"\nAn addition of mine alone.\n\n{figure}% citeloom:end"), "utf-8"
    )
    assert citeloom("sync-tex", folder, "--home", home, "--theirs").code == 0
    with open_library(home) as library:
        (taken,) = load_editable(library.home, run).sections
        text = taken.apply(taken.edits).text
        assert text.endswith("\n\nAn addition of mine alone.") and "A plot" not in text
        assert taken.current(1) == before.sentences[1].text
        assert [item["text"] for item in propose_from_edits(library.home)] == [f"zebras, not {term}"]
        keep_edit(library.home, run, 1, "Said otherwise since.")
        (since,) = load_editable(library.home, run).sections
        edited = since.apply(since.edits)
        assert "An addition of mine alone." in edited.text and before.sentences[1].text not in edited.text
        assert edited.text[slice(*edited.spans[1])] == since.current(1)
        assert since.current(1).startswith("Said otherwise since") and len(edited.spans) == 3


def test_macros_of_the_project_are_read_and_an_unfinished_merge_is_refused(
    citeloom: Citeloom, home: Path, run: str, tmp_path: Path
) -> None:
    main = MAIN.replace(r"\begin{document}", "\\input{macros}\n\\begin{document}")
    folder = _project(tmp_path / "clone", main.encode())
    (folder / "macros.tex").write_text("\\newcommand{\\ours}{Loomnet}\n", "utf-8")
    citeloom("sync-tex", folder, "--run", run, "--home", home)
    file = folder / "main.tex"
    said = r"Here \ours{} was \added{clearly better} \todo{Ask Ann!}, as \citet[p.~3]{KEY} say \citep{mine2020}."
    said += r"\begin{figure}\includegraphics{a.png}\caption{Ours.}\end{figure}"
    said = said.replace("KEY", re.findall(r"\\citep\{(\w+)\}", file.read_text("utf-8"))[-1])
    edited = file.read_text("utf-8").replace("% citeloom:end", f"\n{said}\n% citeloom:end")
    unmerged = edited.replace(said, f"<<<<<<< HEAD\n{said}\n=======\nTheirs.\n>>>>>>> branch")
    for options in ((), ("--theirs",), ("--ours",)):
        file.write_text(unmerged, "utf-8")
        before = contents(folder)
        done = citeloom("sync-tex", folder, "--home", home, *options)
        assert done.code == 2 and "git could not merge" in done.err and contents(folder) == before
    file.write_text(edited, "utf-8")
    done = citeloom("sync-tex", folder, "--home", home, "--theirs")
    assert done.code == 0 and "A remark, not taken over: Ask Ann!" in done.err, done.err
    assert "not defined" not in done.err and "A figure, not taken over: " in done.err
    assert "not evidence of the run, kept as text: @mine2020." in done.err
    with open_library(home) as library:
        (taken,) = load_editable(library.home, run).sections
        text = taken.apply(taken.edits).text
    assert re.search(r"Here Loomnet was clearly better, as [^\[]+ (?:\[E\d+\])+ say \[@mine2020\]\.", text)
