"""Papers of several formats with generated text, the last of which cannot be read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from tests.support.plain_pdf import Line, write_pdf

_NOUNS = "graph genome sensor compiler loom protein soil archive network market river crystal".split()
_VERBS = "predicts limits follows delays explains shapes".split()


def write_papers(folder: Path, count: int, *, seed: int = 15) -> Path:
    """Write papers in markdown, HTML, LaTeX and PDF, a `.bib` for every third, a note, and three unreadable files."""
    folder.mkdir()
    chance = random.Random(seed)
    entries: list[str] = []
    for number in range(count):
        name = f"paper{number:03d}"
        title = f"How the {chance.choice(_NOUNS)} {chance.choice(_VERBS)} the {chance.choice(_NOUNS)} in case {number}"
        _write(folder / name, title, [_prose(chance, 60) for _ in range(3)], number)
        if number % 3 == 0:
            entries.append(
                f"@article{{{name}, title = {{{title}}}, author = {{Ada Lovelace}}, year = {2000 + number % 20}}}"
            )
    (folder / "library.bib").write_text("\n".join(entries), encoding="utf-8")
    (folder / "paper000.notes.md").write_text("Compare with the loom of case 1.", encoding="utf-8")
    (folder / "empty.md").write_text("", encoding="utf-8")
    (folder / "latin.md").write_bytes("# Ein müder Webstuhl".encode("latin-1"))
    (folder / "damaged.pdf").write_bytes(b"%PDF-1.4\n")
    return folder


def _prose(chance: random.Random, words: int) -> str:
    text = ""
    while len(text.split()) < words:
        text += (
            f"In series {chance.randrange(999)} the {chance.choice(_NOUNS)} {chance.choice(_VERBS)} every "
            f"{chance.choice(_NOUNS)} that a {chance.choice(_NOUNS)} of size {chance.randrange(99)} had measured. "
        )
    return text.strip()


def _write(path: Path, title: str, parts: Sequence[str], number: int) -> None:
    sections = list(zip(("Introduction", "Methods", "Results"), parts, strict=True))
    if number % 10 == 7:
        body = "".join(f"<h2>{name}</h2><p>{text}</p>" for name, text in sections)
        path.with_suffix(".html").write_text(f"<html><body><h1>{title}</h1>{body}</body></html>", encoding="utf-8")
    elif number % 10 == 8:
        body = "".join(f"\\section{{{name}}}\n{text}\n" for name, text in sections)
        latex = f"\\documentclass{{article}}\\title{{{title}}}\\begin{{document}}\\maketitle\n{body}\\end{{document}}"
        path.with_suffix(".tex").write_text(latex, encoding="utf-8")
    elif number % 10 == 9:
        lines = [Line(title, 18)]
        for name, text in sections:
            words = text.split()[:90]
            lines += [Line(name, 14), *(Line(" ".join(words[at : at + 12])) for at in range(0, len(words), 12))]
        write_pdf(path.with_suffix(".pdf"), lines)
    else:
        body = "".join(f"## {name}\n\n{text}\n\n" for name, text in sections)
        path.with_suffix(".md").write_text(f"# {title}\n\n{body}", encoding="utf-8")
