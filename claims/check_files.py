"""Writes the files of a check: the report, JSON, SARIF for CI, and copies of the text with remarks.

A copy adds only the remarks: Word comments, or notes in the margin of LaTeX.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal, get_args
from xml.sax.saxutils import escape

from ..citations.export.section_files import free_name
from ..documents.safe_files import FileRefusedError, open_office, read_part, replace_file
from ..errors import InputError
from ..program import NAME
from .check_report import WRONG_LABELS, check_report, problems, remarked_sentences, rule_of
from .claim_records import FAULTS, CheckResult, FaultSeverity, PlaceRecord
from .latex_reader import BRACE, NOTE
from .manuscript import Manuscript, bracket_pairs
from .word_reader import WordRun, WordText

CheckFormat = Literal["html", "docx", "tex", "json", "sarif"]
CHECK_FORMATS: Final[tuple[CheckFormat, ...]] = get_args(CheckFormat)
_COPIES: Final = ("docx", "tex")  # of a text in the same format
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def check_formats(
    formats: Sequence[CheckFormat] | CheckFormat, out: Path | str | None, file: Path
) -> tuple[tuple[CheckFormat, ...], list[str]]:
    """The formats to write, and a line for each that is a copy with remarks of a text in another format.

    Raises `InputError` for an unknown one, and if none of them can be made of this file.
    """
    names = tuple(dict.fromkeys((formats,) if isinstance(formats, str) else formats))
    for name in names:
        if name not in CHECK_FORMATS:
            raise InputError(f"formats: unknown format {name!r}.", help=f"Choose from {', '.join(CHECK_FORMATS)}.")
    wanted = tuple(name for name in names if name not in _COPIES or file.suffix.lower() == f".{name}")
    lacking = [
        f"{file.name} is not a .{name} file, so it cannot be copied with remarks as {name}."
        for name in names
        if name not in wanted
    ]
    if lacking and not wanted:
        raise InputError(f"formats: {' '.join(lacking)}", help="Choose html, json or sarif.")
    if names and out is None:
        raise InputError(
            "formats: files are written only if out is given.",
            help="Give it as out (--out FOLDER on the command line).",
        )
    return wanted or (("html",) if out is not None else ()), lacking


def write_check(
    result: CheckResult, manuscript: Manuscript, file: Path, out: Path, formats: Sequence[CheckFormat], force: bool
) -> dict[str, str]:
    """Write the files; returns their paths by format. An earlier copy is replaced only with `force`. Blocks."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        return {name: _write(name, result, manuscript, file, out, force) for name in formats}
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written ({error.strerror}).", help="Choose another folder with --out."
        ) from error


def comment_in_place(result: CheckResult, manuscript: Manuscript, file: Path) -> list[str]:
    """Put the remarks into the text; returns the originals' paths. Blocks; raises `InputError` unless Word or LaTeX."""
    if manuscript.format == "docx":
        changed = {file: word_copy(file, result)}
    elif manuscript.format == "tex":
        sources = dict(zip(manuscript.files, manuscript.sources, strict=True))
        copies = latex_copies(sources, result)
        changed = {file.parent / name: text.encode() for name, text in copies.items() if text != sources[name]}
    else:
        raise InputError(f"{file}: only .docx and .tex take comments.", help="Leave out --in-place-comments.")
    kept: list[str] = []
    for path, content in changed.items():
        original = _free(path.with_name(f"{path.stem}.original{path.suffix}"), force=False)
        replace_file(original, path.read_bytes())
        replace_file(path, content)
        kept.append(str(original))
    return kept


def _write(name: CheckFormat, result: CheckResult, manuscript: Manuscript, file: Path, out: Path, force: bool) -> str:
    if name == "docx":
        made = path = _free(out / f"{file.stem}.checked.docx", force)
        contents = {path: word_copy(file, result)}
    elif name == "tex":
        copies = latex_copies(dict(zip(manuscript.files, manuscript.sources, strict=True)), result)
        made = _free(out / (f"{file.stem}-checked" if len(copies) > 1 else f"{file.stem}.checked.tex"), force)
        contents = {made / other if len(copies) > 1 else made: text.encode() for other, text in copies.items()}
        made = made / file.name if len(copies) > 1 else made
    else:
        made = out / f"{file.stem}.check.{name}"
        plain = sarif(result) if name == "sarif" else result
        content = check_report(result) if name == "html" else json.dumps(plain, indent=1, ensure_ascii=False)
        contents = {made: f"{content}\n".encode("utf-8", "replace")}
    for path, data in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    return str(made)


def _free(path: Path, force: bool) -> Path:
    name = free_name(path.parent, path.stem, [path.suffix[1:]], lambda _: force).stem
    return path.with_name(f"{name}{path.suffix}")


def sarif(result: CheckResult) -> dict[str, Any]:
    """The problems in the format that CI systems show beside the lines of a file."""
    rules = {**FAULTS, **{rule_of(label): described for label, described in WRONG_LABELS.items()}}
    try:
        number = version(NAME)
    except PackageNotFoundError:
        number = "0"
    described = [
        {
            "id": rule,
            "name": rule.title().replace("-", ""),
            "shortDescription": {"text": meaning},
            "defaultConfiguration": {"level": level},
        }
        for rule, (level, meaning) in rules.items()
    ]
    found: list[tuple[str, FaultSeverity, str, PlaceRecord | None]] = [
        (*problem, sentence["place"]) for sentence in result["sentences"] for problem in problems(sentence)
    ]
    for entry in result["references"]:
        found += [(one["rule"], one["severity"], f"{entry['key']}: {one['message']}", None) for one in entry["faults"]]
    results = []
    names = {"startLine": "line", "startColumn": "column", "endLine": "end_line", "endColumn": "end_column"}
    for rule, level, text, at in found:
        location: dict[str, Any] = {"artifactLocation": {"uri": at["file"] if at else Path(result["file"]).name}}
        if at is not None and at["line"] is not None:
            location["region"] = {name: at[field] for name, field in names.items()}  # type: ignore[literal-required]
        locations = [{"physicalLocation": location}]
        results.append({"ruleId": rule, "level": level, "message": {"text": text}, "locations": locations})
    driver = {"name": NAME, "version": number, "rules": described}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


_AUTHOR: Final = "Citeloom"
_NAMESPACE: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_COMMENTS: Final = "word/comments.xml"
_RELATION: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments"
_CONTENT: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.comments+xml"
_ID: Final = re.compile(rb'<w:comment\b[^<>]{0,400}?w:id="(\d{1,9})"')
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_DEFINITION: Final = f"\\providecommand{{\\{NOTE}}}[1]{{\\marginpar{{\\raggedright\\tiny\\textbf{{Citeloom:}} #1}}}}\n"
_LATEX: Final = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "\n": " "},
}
_FLOAT: Final = re.compile(
    r"\\begin\{(figure|table|wrapfigure|sidewaystable|longtable|algorithm|equation|align|abstract)\*?\}"
    r"|\\end\{(figure|table|wrapfigure|sidewaystable|longtable|algorithm|equation|align|abstract)\*?\}"
)


def word_copy(file: Path, result: CheckResult) -> bytes:
    """The document with a comment at each sentence with a problem; blocks. Raises `InputError`."""
    try:
        with open_office(file) as archive:
            changed = _commented(archive, result)
            made = BytesIO()
            with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
                for info in archive.infolist():
                    copy.writestr(info, changed.pop(info.filename, b"") or archive.read(info.filename))
                for name, content in changed.items():
                    copy.writestr(name, content)
    except FileRefusedError as error:
        raise InputError(f"{file}: {error}.") from None
    return made.getvalue()


def _commented(archive: zipfile.ZipFile, result: CheckResult) -> dict[str, bytes]:
    document = read_part(archive, "word/document.xml")
    runs: dict[int, list[WordRun]] = {}
    for run in WordText(document).runs:
        runs.setdefault(run.paragraph, []).append(run)
    comments = read_part(archive, _COMMENTS)
    number = max((int(found) for found in _ID.findall(comments)), default=-1) + 1
    inserted: list[tuple[int, bytes]] = []
    made: list[str] = []
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for sentence, lines in remarked_sentences(result):
        place = sentence["place"]
        start, end = place["start"] or 0, place["end"] or 0
        touched = [run for run in runs.get(place["paragraph"] or 0, ()) if run.start < end and start < run.end]
        if not touched:
            continue
        mark = f'w:id="{number}"'
        inserted.append((touched[0].first, f"<w:commentRangeStart {mark}/>".encode()))
        reference = f"<w:commentRangeEnd {mark}/><w:r><w:commentReference {mark}/></w:r>"
        inserted.append((touched[-1].last, reference.encode()))
        body = "".join(
            f'<w:p><w:r><w:t xml:space="preserve">{escape(_CONTROL.sub(" ", line))}</w:t></w:r></w:p>'
            for line in (f"\u201c{sentence['claim']}\u201d", *lines)
        )
        head = f'<w:comment w:id="{number}" w:author="{_AUTHOR}" w:initials="CL" w:date="{now}">'
        made.append(f"{head}{body}</w:comment>")
        number += 1
    pieces: list[bytes] = []
    done = 0
    for at, added in sorted(inserted, key=lambda item: item[0]):
        pieces += [document[done:at], added]
        done = at
    changed = {"word/document.xml": b"".join([*pieces, document[done:]])}
    if not made:
        return changed
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    whole = comments or f'{head}<w:comments xmlns:w="{_NAMESPACE}"></w:comments>'.encode()
    changed[_COMMENTS] = _before(whole, b"</w:comments>", "".join(made).encode())
    if not comments:
        relations, types = "word/_rels/document.xml.rels", "[Content_Types].xml"
        link = f'<Relationship Id="rIdCiteloom" Type="{_RELATION}" Target="comments.xml"/>'
        changed[relations] = _before(read_part(archive, relations), b"</Relationships>", link.encode())
        kind = f'<Override PartName="/{_COMMENTS}" ContentType="{_CONTENT}"/>'
        changed[types] = _before(read_part(archive, types), b"</Types>", kind.encode())
    return changed


def _before(content: bytes, closing: bytes, added: bytes) -> bytes:
    place = content.rfind(closing)
    bare = content.rstrip()
    if place < 0 and bare.endswith(b"/>"):
        return bare[:-2] + b">" + added + closing
    if place < 0:
        raise FileRefusedError("is not a whole .docx (a part of it is broken)")
    return content[:place] + added + content[place:]


def latex_copies(sources: Mapping[str, str], result: CheckResult) -> dict[str, str]:
    """Each file of a LaTeX text with notes in the margin after the sentences with problems, by its name."""
    notes: dict[str, list[tuple[int, str]]] = {}
    for sentence, lines in remarked_sentences(result):
        place = sentence["place"]
        notes.setdefault(place["file"], []).append((place["end"] or 0, "; ".join(lines)))
    return {
        name: _with_notes(source, notes.get(name, ()), number == 0)
        for number, (name, source) in enumerate(sources.items())
    }


def _with_notes(source: str, notes: Sequence[tuple[int, str]], is_main: bool) -> str:
    spans = _closed_spans(source)
    pieces: list[str] = []
    done = 0
    for end, words in sorted(notes, key=lambda item: item[0]):
        place = end
        for _ in range(2):  # after the braces, then after the float around them
            place = next((last for first, last in spans if first < place < last), place)
        place = max(done, place)
        shown = "".join(_LATEX.get(sign, sign) for sign in _CONTROL.sub(" ", words))
        pieces += [source[done:place], f"\\{NOTE}{{{shown}}}"]
        done = place
    text = "".join([*pieces, source[done:]])
    head = text.find("\\begin{document}")
    return f"{text[:head]}{_DEFINITION}{text[head:]}" if is_main and head >= 0 else text


def _closed_spans(source: str) -> list[tuple[int, int]]:
    """The spans in braces and in floats, where no note in the margin may stand."""
    begin = max(0, source.find("\\begin{document}"))
    spans: list[tuple[int, int]] = []
    for first, last in sorted(bracket_pairs(BRACE, source, begin).items()):
        if not spans or first >= spans[-1][1]:  # the outermost ones
            spans.append((first, last + 1))
    started = -1
    for match in _FLOAT.finditer(source, begin):
        if match[1] and started < 0:
            started = match.start()
        elif match[2] and started >= 0:
            spans.append((started, match.end()))
            started = -1
    return spans
