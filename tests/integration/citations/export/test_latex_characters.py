"""No character of a section is lost in the PDF that its LaTeX makes."""

from __future__ import annotations

import re
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pypdfium2
import pytest

from citeloom.citations.export.pandoc_formats import convert

GREEK = "αβγδεζηθικλμνξοπρςστυφχψωϑϕϖϱϵΓΔΘΛΞΠΣΦΨΩΑΒ"
SIGNS = (
    "≤≥≠≈≡±×÷∓·∙√∛∑∏∫∂∇∞∝∈∉∋∅∩∪⊂⊆⊃⊇∀∃¬∧∨⊕⊗⊥∥∠≪≫≲≳≃≅∼∘⋅⋯…′″‴°ℓℝℂℕℤℚℏ℃Å←→↑↓↔⇒⇐⇔↦⟨⟩⌈⌉⌊⌋−∗"
    "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ₀₁₂₃₄₅₆₇₈₉₊₋ₓ½⅓¼¾⅔‰µ№™©®§¶†‡•–—‘’“”„«»‹›€£¥¢"
)
LATIN = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿŁłŚśŠšŽžČčĆćĐđĞğİıŐőŰűŒœŵễ"
PICTURES = "✓★■□▲△▼●○♀♂☆♠ﬁﬂ"
BIB = "@article{b2019, title = {On {α} ≤ β}, author = {Bea Brown}, year = {2019}, journal = {Networks}}\n"


@pytest.mark.long
def test_xelatex_prints_every_character(tmp_path: Path) -> None:
    engine = shutil.which("xelatex") or shutil.which("tectonic")
    if engine is None:
        pytest.skip("no xelatex or tectonic here (apt-get install texlive-xetex texlive-fonts-recommended)")
    fonts = subprocess.run(["fc-list"], capture_output=True, text=True, check=False).stdout
    without = "" if "DejaVu" in fonts or "FreeSerif" in fonts else f"{PICTURES}οΑΒ∙∛"
    signs = [sign for sign in dict.fromkeys(GREEK + SIGNS + LATIN + PICTURES) if sign not in without]
    assert len(signs) >= 200
    lines = [f"Q{number:03d} x{sign}x end." for number, sign in enumerate(signs)]
    source = "# Results\n\n" + "\n\n".join([*lines, "It is so [@b2019]."]) + "\n"
    (tmp_path / "t.tex").write_bytes(convert(source, BIB, "tex", bibliography_name="t"))
    (tmp_path / "t.bib").write_text(BIB, encoding="utf-8")
    _compile(tmp_path, Path(engine).name)
    document = pypdfium2.PdfDocument(tmp_path / "t.pdf")
    text = "\n".join(page.get_textpage().get_text_bounded() for page in document)
    shown = {int(found[1]): found[2] for found in re.finditer(r"Q(\d{3}) x(.*?)x end", text, re.DOTALL)}
    lost = [sign for number, sign in enumerate(signs) if _plain(shown.get(number, "")) != _plain(sign)]
    assert lost == []
    assert "On𝛼≤𝛽" in re.sub(r"\s", "", text) or "Onα≤β" in _plain(text)


@pytest.mark.long
def test_pdflatex_prints_the_names_of_symbols_missing_from_its_fonts(tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex here (apt-get install texlive-latex-recommended)")
    bib = BIB.replace("On {α}", "On ♂ and {α}")
    source = "# Results\n\nDone ✓ in ♀ with α ≤ β [@b2019].\n"
    (tmp_path / "t.tex").write_bytes(convert(source, bib, "tex", bibliography_name="t"))
    (tmp_path / "t.bib").write_text(bib, encoding="utf-8")
    once = ("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex")
    for command in (once, ("bibtex", "t"), once, once):
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    document = pypdfium2.PdfDocument(tmp_path / "t.pdf")
    text = " ".join(page.get_textpage().get_text_bounded() for page in document)
    assert "Done [check mark] in [female sign] with α ≤ β" in text and "[male sign]" in text


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", re.sub(r"\s", "", text))


def _compile(folder: Path, engine: str) -> None:
    once = ("xelatex", "-interaction=nonstopmode", "t.tex")
    for command in [("tectonic", "t.tex")] if engine == "tectonic" else [once, ("bibtex", "t"), once, once]:
        subprocess.run(command, cwd=folder, capture_output=True, check=False)


def test_symbols_become_latex_commands_and_addresses_stay_unchanged() -> None:
    tex = convert("# Results\n\nα ≤ 5 in $β_1$, x⁻¹, `γ`, Nguyễn and ♀.\n", "", "tex").decode()
    body = tex.partition("\\begin{document}")[2]
    for command in (r"\ensuremath{\alpha}", r"\ensuremath{\leq}", r"\ensuremath{\beta}", r"{\symbolfont ♀}", "Nguyễn"):
        assert command in body
    assert not set("α≤β⁻¹γ") - {"¹"} & set(body)
    assert "symbolfont" not in convert("# Results\n\nPlain words – “quoted”.\n", "", "tex").decode()
