"""import: edits made in Word, LibreOffice, LaTeX or Markdown become the user's text without any loss."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from citeloom import export, import_text, open_library
from citeloom.api.run_texts import keep_edit, load_editable
from citeloom.citations.markers import marker_ids
from citeloom.documents.edited_documents import read_edited, read_latex
from citeloom.errors import InputError
from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import ROOT, Finished, run as run_alone
from tests.support.document_edits import EditedFile
from tests.support.sample_library import EXPERIMENT
from tests.support.word_files import paragraph, run as _run, write_word

_LONG = int(os.environ.get("CITELOOM_RANDOM_EDITS", "0"))  # 200 in the long test


def _write_paper(give: Callable[..., Finished], home: Path, exp: Path, out: Path) -> str:
    """Write a paper with figures, as files for Zotero; returns the id of its run."""
    for image in (ROOT / "examples").glob("*.png"):
        shutil.copy(image, exp.parent)
    run = str(give("paper", exp, "--home", home, "--out", out, "--json").json["thread_id"])
    live = ("--citations", "zotero", "--evidence-comments", "--out", out)
    assert give("export", run, "--format", "docx,odt,tex", "--home", home, *live).code == 0
    return run


@pytest.fixture
def paper(citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path) -> tuple[Path, str]:
    """A home with a paper, its files in `out`; and the id of its run."""
    return home, _write_paper(citeloom, home, exp, tmp_path / "out")


@pytest.fixture(scope="module")
def unedited(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The same, shared by all tests that edit nothing."""
    folder = tmp_path_factory.mktemp("unedited")
    home = Path(shutil.copytree(sample_home, folder / "home"))
    exp = Path(shutil.copy(EXPERIMENT, folder / "exp.json"))
    return home, _write_paper(partial(run_alone, cwd=folder), home, exp, folder / "out")


def _texts(home: Path, run: str) -> tuple[str, set[str]]:
    """The user's version of all sections with markers, and the evidence that it cites."""
    with open_library(home) as library:
        sections = load_editable(library.home, run).sections
        text = "\n\n".join(section.apply(section.edits).text for section in sections)
    return text, set(marker_ids(text))


_NOTES = "chicago-notes-bibliography"


@pytest.mark.parametrize(
    "kind", ["docx", "odt", "md", "tex", "docx as text", "odt in ieee", f"docx in {_NOTES}", f"tex in apa {_NOTES}"]
)
def test_an_unchanged_file_is_recognised_sentence_by_sentence(
    unedited: tuple[Path, str], citeloom: Citeloom, tmp_path: Path, kind: str
) -> None:
    home, run = unedited
    out = home.parent / "out"
    before = _texts(home, run)[1]
    kind, how, *styles = kind.split() if " " in kind else (kind, "", "")
    for style in styles:
        if how:  # citations are written out, with links to the list of references
            out = tmp_path / "out"
            chosen = ("--csl", style) if how == "in" else ()
            written = ("--format", kind, "--citations", "text", *chosen, "--force", "--out", out)
            assert citeloom("export", run, "--home", home, *written).code == 0
        done = citeloom("import", out / f"paper.{kind}", "--home", home, "--json")
        assert done.code == 0, done.err
        counts, total = done.json["counts"], len(done.json["sentences"])
        assert done.json["run"] == run and counts["kept"] >= (0.95 if kind in ("md", "tex") else 0.99) * total, counts
        assert _texts(home, run)[1] == before
        assert "after the references" not in done.err
        new = [item["text"] for item in done.json["sentences"] if item["state"] == "new"]
        assert not new, "figures and captions come from the run, and would stand twice"


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_every_word_and_citation_of_an_edited_document_comes_back(
    paper: tuple[Path, str], tmp_path: Path, kind: str
) -> None:
    home, run = paper
    edits = Counter[str]()
    with open_library(home) as library:
        for seed in range(_LONG // 10 or 4):
            if seed == (_LONG // 20 or 2):  # the other half has its citations in footnotes
                export(library, run, kind, out=tmp_path / "out", csl=_NOTES, citations="zotero", force=True)
            file = EditedFile(tmp_path / "out" / f"paper.{kind}", seed)
            file.edit(10)
            edits += file.done
            changed = tmp_path / f"changed{seed}.{kind}"
            file.save(changed)
            imported = import_text(library, changed, tracked="accept")
            evidence, words = file.evidence(), file.words()
            text, cited = _texts_of(library, run)
            lost = words - Counter(re.findall(r"[^\W_]+", text.casefold()))
            assert not {word: n for word, n in lost.items() if word not in _FRAME}, (seed, lost, file.done)
            assert evidence <= cited, (seed, evidence - cited)
            assert sum(imported["counts"].values()) == len(imported["sentences"])
    assert sum(edits.values()) >= (_LONG or 20) * 0.6 and len(edits) >= 5, edits


# Titles of sections are the run's own.
_FRAME = {"abstract", "introduction", "methods", "results", "discussion", "conclusion", "references"}


def _texts_of(library: Any, run: str) -> tuple[str, set[str]]:
    sections = load_editable(library.home, run).sections
    text = "\n\n".join(section.apply(section.edits).text for section in sections)
    captions = " ".join(f"Figure 1 {figure['caption']}" for one in sections for figure in one.record["figures"])
    return f"{text} {captions}", set(marker_ids(text))


def test_edits_are_reported_and_used_by_the_next_export_and_paper(
    paper: tuple[Path, str], citeloom: Citeloom, exp: Path, tmp_path: Path
) -> None:
    home, run = paper
    source = (tmp_path / "out" / "paper.docx").read_bytes()
    file = tmp_path / "mine.docx"
    file.write_bytes(source)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    old = "Five pooled seeds with one temperature more than halved the calibration error of small activity classifiers"
    document = parts["word/document.xml"].decode()
    assert old in document
    added = '<w:r><w:t xml:space="preserve"> Tracked words.</w:t></w:r>'
    tracked = f'</w:t></w:r><w:ins w:id="1" w:author="Ann">{added}</w:ins><w:r><w:t>'
    document = document.replace(old, f"My wholly new opening words. Five pooled seeds did it{tracked}")
    parts["word/document.xml"] = document.encode()
    comment = '<w:comment w:id="900" w:author="Ann"><w:p><w:r><w:t>Really?</w:t></w:r></w:p></w:comment></w:comments>'
    parts["word/comments.xml"] = parts["word/comments.xml"].replace(b"</w:comments>", comment.encode())
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    asked = citeloom("import", file, "--home", home)
    assert asked.code == 2 and "--tracked accept" in asked.err and "2 tracked changes" in asked.err
    done = citeloom("import", file, "--home", home, "--tracked", "accept", "--json")
    states = {item["text"]: item["state"] for item in done.json["sentences"]}
    assert states["My wholly new opening words."] == "new"
    assert {"author": "Ann", "text": "Really?"} in done.json["comments"] and len(done.json["comments"]) == 1
    assert citeloom("export", run, "--format", "html", "--home", home, "--out", tmp_path / "next").code == 0
    said = (tmp_path / "next" / "paper.html").read_text("utf-8")
    assert "My wholly new opening words" in said and "Tracked words" in said and old not in said
    older = citeloom("export", tmp_path / "out" / "paper.md", "--format", "html", "--home", home)
    assert older.code == 0 and f"'export {run}' has your edits" in older.err
    with open_library(home) as library:
        keep_edit(library.home, run, 1, "Said otherwise on the page.")
    again = citeloom("paper", exp, "--home", home, "--out", tmp_path / "again")
    said = (tmp_path / "again" / "paper.md").read_text("utf-8")
    assert again.code == 0 and "My wholly new opening words" in said and "Said otherwise on the page" in said
    new = tmp_path / "new.md"
    new.write_text("# Looms and weavers\n\n## Abstract\n\nWeavers prefer wooden looms to looms of iron.\n", "utf-8")
    assert citeloom("ingest", new, "--home", home).code == 0
    kept = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    for options in ((), ("--fresh",)):
        later = citeloom("paper", exp, "--home", home, "--out", tmp_path / "again", "--json", *options)
        lacking = [line for line in later.json["warnings"] if f"'export {run}'" in line]
        assert later.json["thread_id"] != run and len(lacking) == 1 and later.err.count(lacking[0]) == 1
        assert Path(later.json["files"]["md"]).name == "paper.2.md", "another text never replaces the user's"
        assert {name: (tmp_path / "again" / name).read_bytes() for name in kept} == kept
    with open_library(home) as library:
        keep_edit(library.home, later.json["thread_id"], 1, "Said again.")
    later = citeloom("paper", exp, "--home", home, "--out", tmp_path / "elsewhere", "--json")
    assert not any(f"'export {run}'" in line for line in later.json["warnings"]), "the user went on with this text"
    rejected = citeloom("import", file, "--home", home, "--tracked", "reject", "--json")
    assert not any("Tracked words" in item["text"] for item in rejected.json["sentences"])


def test_a_suggested_command_can_be_typed_whatever_the_files_name(
    paper: tuple[Path, str], citeloom: Citeloom, tmp_path: Path
) -> None:
    file = Path(shutil.copy(tmp_path / "out" / "paper.md", tmp_path / "paper edited.md"))
    assert f" '{file}'" in citeloom("import", file, "--home", paper[0]).err
    done = citeloom("verify", file, "--home", paper[0])
    assert done.code == 2 and paper[1] in done.err and f"import '{file}'" in done.err


def test_a_file_that_cannot_be_imported_is_refused_in_one_line(unedited: tuple[Path, str], tmp_path: Path) -> None:
    home, run = unedited
    good = home.parent / "out" / "paper.docx"
    bad = {
        name: tmp_path / name
        for name in ("broken.docx", "locked.docx", "macro.docx", "none.docx", "x.pdf", "strange.md")
    }
    bad["broken.docx"].write_bytes(good.read_bytes()[:2000])
    bad["locked.docx"].write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 600)
    shutil.copy(good, bad["macro.docx"])
    with zipfile.ZipFile(bad["macro.docx"], "a") as archive:
        archive.writestr("word/vbaProject.bin", b"x")
    bad["x.pdf"].write_bytes(b"%PDF-1.4")
    bad["strange.md"].write_text("# Mine\n\nA text of a stranger.\n")
    bomb = tmp_path / "bomb.docx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * 61_000_000)
    with open_library(home) as library:
        before = load_editable(library.home, run).edits
        for path in (*bad.values(), bomb):
            with pytest.raises(InputError) as refused:
                import_text(library, path)
            assert path.name in refused.value.message and "\n" not in refused.value.message and refused.value.help
        assert load_editable(library.home, run).edits == before


@pytest.mark.skipif(shutil.which("soffice") is None, reason="needs LibreOffice")
@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_fields_survive_opening_and_saving_in_libreoffice(paper: tuple[Path, str], tmp_path: Path, kind: str) -> None:
    home, run = paper
    profile = f"-env:UserInstallation=file://{tmp_path}/office"
    command = ["soffice", profile, "--headless", "--convert-to", kind, "--outdir", tmp_path / "saved"]
    subprocess.run([*command, tmp_path / "out" / f"paper.{kind}"], check=True, capture_output=True, timeout=300)
    with open_library(home) as library:
        before = _texts_of(library, run)[1]
        imported = import_text(library, tmp_path / "saved" / f"paper.{kind}")
        assert _texts_of(library, run)[1] == before
        assert imported["counts"]["kept"] >= 0.95 * len(imported["sentences"]), imported["counts"]
        assert export(library, run, "docx", out=tmp_path / "back")["files"]


def test_new_numbers_are_reported_and_so_are_edits_that_an_older_copy_would_undo(
    paper: tuple[Path, str], citeloom: Citeloom, tmp_path: Path
) -> None:
    home, _run = paper
    file = tmp_path / "out" / "paper.md"
    original = file.read_text("utf-8")
    assert "from 0.118 to 0.052" in original and "eight test wearers" in original
    edited = original.replace("from 0.118 to 0.052", "from 0.118 to 0.025").replace("eight test wearers", "six wearers")
    file.write_text(edited, "utf-8")
    done = citeloom("import", file, "--home", home)
    assert done.code == 0 and "Numbers that the run does not have there: 0.025 (" in done.err and "six (" in done.err
    file.write_text(original, "utf-8")
    done = citeloom("import", file, "--home", home)
    assert done.code == 0 and "Your earlier edits are undone in the document: " in done.err
    assert "Warning" not in citeloom("import", file, "--home", home).err


@pytest.mark.parametrize("said", ["but see Okafor et al. 2022", "cf. Okafor et al., 2022", "Okafor et al. 2022"])
def test_an_untouched_bracket_written_by_the_user_stays_as_it_was(
    home: Path, citeloom: Citeloom, tmp_path: Path, said: str
) -> None:
    own = f"GPT-4 is better than symbolic reasoners ({said})."
    (tmp_path / "own.json").write_text(json.dumps({"reasoning": f"{own} Trees did worse."}))
    out = tmp_path / "own"
    run = citeloom("discussion", tmp_path / "own.json", "--home", home, "--out", out, "--json").json["thread_id"]
    file = out / "discussion.md"
    again = "Rivers lie elsewhere (see Okafor et al. 2022)."
    file.write_text(file.read_text("utf-8").replace("Trees did worse.", f"Trees did far worse. {again}"), "utf-8")
    done = citeloom("import", file, "--home", home, "--json")
    states = {item["text"]: item["state"] for item in done.json["sentences"]}
    assert states[own] == "kept" and states["Trees did far worse."] == "edited" and states[again] == "new"
    assert citeloom("export", run, "--format", "tex", "--home", home, "--out", tmp_path / "next").code == 0
    tex = (tmp_path / "next" / "discussion.tex").read_text("utf-8")
    assert f"({said})" in tex.replace("\\ ", " ") and "(see Okafor et al. 2022)" in tex.replace("\\ ", " ")
    assert citeloom("export", file, "--format", "tex", "--home", home, "--out", tmp_path / "other").code == 0
    assert f"({said})" in (tmp_path / "other" / "discussion.tex").read_text("utf-8").replace("\\ ", " ")


def test_possible_formats_are_written_and_the_impossible_one_is_reported(
    unedited: tuple[Path, str], citeloom: Citeloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _run = unedited
    monkeypatch.setattr("citeloom.citations.export.latex_output.find_engine", lambda: "")
    file = home.parent / "out" / "discussion.md"
    done = citeloom("export", file, "--format", "docx,tex,pdf", "--home", home, "--out", tmp_path / "next")
    assert done.code == 4 and done.errors and "pdf" in done.errors[0] and "--format tex or zip" in done.errors[0]
    written = {path.suffix for path in (tmp_path / "next").iterdir()}
    assert {".docx", ".tex", ".bib", ".json"} <= written and ".pdf" not in written
    none = citeloom("export", file, "--format", "pdf", "--home", home, "--out", tmp_path / "none")
    assert none.code == 1 and not list((tmp_path / "none").iterdir())


def test_a_name_that_is_neither_a_file_nor_a_run_is_refused(unedited: tuple[Path, str], citeloom: Citeloom) -> None:
    done = citeloom("export", "nope", "--home", unedited[0])
    assert done.code == 2 and "There is no run 'nope'" in done.err


@pytest.mark.parametrize(("kind", "before"), [("docx", "<w:sectPr"), ("tex", "\\end{document}"), ("md", "<!--")])
def test_text_after_the_references_is_reported(
    unedited: tuple[Path, str], citeloom: Citeloom, tmp_path: Path, kind: str, before: str
) -> None:
    home, run = unedited
    file, thanks = tmp_path / f"paper.{kind}", "We thank Ann for her help with the sensors."
    if kind == "md":
        file.write_bytes((home.parent / "out" / "paper.md").read_bytes())
    else:
        written = ("--format", kind, "--citations", "text", "--csl", "apa", "--out", tmp_path)
        assert citeloom("export", run, "--home", home, *written).code == 0
    if kind == "docx":
        with zipfile.ZipFile(file) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        start, sign, end = parts["word/document.xml"].decode().rpartition(before)
        parts["word/document.xml"] = f"{start}<w:p><w:r><w:t>{thanks}</w:t></w:r></w:p>{sign}{end}".encode()
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
    else:
        start, sign, end = file.read_text("utf-8").rpartition(before)
        file.write_text(f"{start}\n\n{thanks}\n\n{sign}{end}", "utf-8")
    done = citeloom("import", file, "--home", home)
    assert done.code == 0 and f"Text after the references was not imported: {thanks}\n" in done.err


def _tracked(kind: str, *runs: str) -> str:
    return f'<w:{kind} w:id="1" w:author="Ann">{"".join(runs)}</w:{kind}>'


def test_a_deletion_inside_a_rejected_change_is_restored_from_word(tmp_path: Path) -> None:
    gone = _run("Seeds matter. ").replace("w:t", "w:delText")
    moved = paragraph(_tracked("moveFrom", _tracked("del", gone), _run("They differ.")))
    added = paragraph(_tracked("ins", _run("Ann says so."), _tracked("del", gone), _run(" Really.")))
    mark = "<w:pPr><w:rPr>{}</w:rPr></w:pPr>"
    ended = paragraph(mark.format(_tracked("del")), _run("First."))
    row = "<w:tr>{}<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc></w:tr>"
    rows = row.format("", "Kept") + row.format(f"<w:trPr>{_tracked('ins')}</w:trPr>", "New")
    comment = f'<w:comment w:id="1" w:author="Ann">{paragraph(_run("Really?"))}{paragraph(_run("Ask!"))}</w:comment>'
    last = paragraph(_run("Second."))
    file = write_word(tmp_path / "a.docx", moved, added, ended, last, f"<w:tbl>{rows}</w:tbl>", comments=comment)
    accepted, rejected = read_edited(file), read_edited(file, reject=True)
    assert accepted.changes == rejected.changes == 6
    assert accepted.comments == [{"author": "Ann", "text": "Really? Ask!"}]
    assert accepted.text.startswith("Ann says so. Really.\n\nFirst.Second.\n\n") and "New" in accepted.text
    assert rejected.text.startswith("Seeds matter. They differ.\n\nFirst.\n\nSecond.\n\n")
    assert "Kept" in rejected.text and "New" not in rejected.text


def test_a_deleted_citation_is_restored_from_writer_and_an_inserted_one_dropped(
    unedited: tuple[Path, str], tmp_path: Path
) -> None:
    file = EditedFile(unedited[0].parent / "out" / "paper.odt", 0)
    source = file.parts["content.xml"].decode()
    found = re.search(r"<text:reference-mark-start [^>]*/>[^<]*<text:reference-mark-end [^>]*/>", source)
    assert found is not None
    item = "<text:list><text:list-item><text:p>In a list.</text:p></text:list-item></text:list>"
    regions = "".join(
        f'<text:changed-region text:id="{name}"><text:{kind}>{words}</text:{kind}></text:changed-region>'
        for name, kind, words in (("d", "deletion", f"<text:p>{found[0]}</text:p>{item}"), ("i", "insertion", ""))
    )
    start, end = (f'<text:change-{name} text:change-id="i"/>' for name in ("start", "end"))
    new = f"{start}Mine {found[0]} too.{end}"
    source = source.replace(found[0], f'<text:change text:change-id="d"/>{new}', 1)
    file.parts["content.xml"] = source.replace(
        "<office:text>", f"<office:text><text:tracked-changes>{regions}</text:tracked-changes>", 1
    ).encode()
    changed = tmp_path / "changed.odt"
    with zipfile.ZipFile(changed, "w") as archive:
        for name, data in file.parts.items():
            archive.writestr(name, data)
    whole = read_edited(unedited[0].parent / "out" / "paper.odt")
    accepted, rejected = read_edited(changed), read_edited(changed, reject=True)
    assert len(accepted.fields) == len(rejected.fields) == len(whole.fields)
    assert "Mine" in accepted.text and "In a list." not in accepted.text
    assert "Mine" not in rejected.text and "\ue301 In a list." in rejected.text


def test_text_around_citations_and_references_to_labels_are_read_from_latex() -> None:
    read = read_latex(r"It rose \citep[see][p.~3]{lee}, by Eq.~\ref{eq:1} \citep[p.~4]{roy}.").text
    assert read.replace("\u00a0", " ") == r"It rose [see @lee, p. 3], by Eq. $\ref{eq:1}$ [@roy, p. 4]."


def test_text_inside_undefined_commands_is_kept_or_named() -> None:
    read = read_latex(
        r"\newcommand{\ours}{Loom\xspace}\begin{document}\ours{} is \added{new \fbox{here}} in \ce{H2O}, \eg by"
        r" \replaced{now}{before}\deleted{gone}. \todo[inline]{Ask Ann!} "
        r"\vspace{1em}\noindent {\small But} \mark{it \cite{lee} rose}."
        r"\end{document}"
    )
    assert read.text == "Loom is new here in H2O, by now. But it [@lee] rose."
    assert read.notices == [
        r"A command that is not defined, not taken over: \eg",
        "A remark, not taken over: Ask Ann!",
    ]
