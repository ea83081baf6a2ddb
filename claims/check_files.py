"""What a check says to a reader: problems by sentence, the report, JSON, SARIF for CI, and copies with remarks.

A copy adds only the remarks: Word comments, or notes in the margin of LaTeX.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal, get_args
from xml.sax.saxutils import escape

from markupsafe import Markup

from ..citations.export.evidence_report import content_hash, packaged_template, report_template
from ..citations.export.section_files import free_name, write_files
from ..citations.markers import SpanSet, quoted_spans
from ..documents.safe_files import FileRefusedError, open_office, read_part, replace_file
from ..errors import InputError
from ..plurals import counted
from ..program import NAME
from ..text.words import read_rules, shorten
from .claim_records import (
    FAULTS,
    CheckResult,
    ClaimLabel,
    FaultSeverity,
    PlaceRecord,
    RemarkedText,
    SentenceRecord,
)
from .latex_reader import BRACE, NOTE
from .manuscript import Manuscript, bracket_pairs
from .word_reader import WordRun, WordText

CheckFormat = Literal["html", "docx", "tex", "json", "sarif"]
CHECK_FORMATS: Final[tuple[CheckFormat, ...]] = get_args(CheckFormat)
_COPIES: Final = ("docx", "tex")  # only for a text in the same format
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def check_formats(
    formats: Sequence[CheckFormat] | CheckFormat, out: Path | str | None, file: Path
) -> tuple[tuple[CheckFormat, ...], list[str]]:
    """Return the formats to write, and a line for each copy with remarks that needs a text in another format.

    Raises `InputError` for an unknown format, and if no format can be made from this file.
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
            help="Give a folder as `out` (--out FOLDER on the command line).",
        )
    return wanted or (("html",) if out is not None else ()), lacking


def write_check(
    result: CheckResult, manuscript: Manuscript, file: Path, out: Path, formats: Sequence[CheckFormat], force: bool
) -> dict[str, str]:
    """Write the files; returns their paths by format. An earlier copy is replaced only with `force`. Blocks."""
    return {name: _write(name, result, manuscript, file, out, force) for name in formats}


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
    write_files(contents)
    return str(made)


def _free(path: Path, force: bool) -> Path:
    name = free_name(path.parent, path.stem, [path.suffix[1:]], lambda _: False, force=force).stem
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
    r"\\(begin|end)\{(?:figure|table|wrapfigure|sidewaystable|longtable|algorithm|equation|align|abstract)\*?\}"
)


def word_copy(file: Path, result: CheckResult) -> bytes:
    """The document with a comment at each sentence with a problem; blocks. Raises `InputError`."""
    try:
        with open_office(file) as archive:
            changed = _add_comments(archive, result)
            made = BytesIO()
            with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
                for info in archive.infolist():
                    copy.writestr(info, changed.pop(info.filename, b"") or archive.read(info.filename))
                for name, content in changed.items():
                    copy.writestr(name, content)
    except FileRefusedError as error:
        raise InputError(f"{file}: {error}.") from None
    except OSError as error:  # it may be gone after a long check
        raise InputError(f"{file}: cannot be read ({error.strerror or error}).") from None
    return made.getvalue()


def _add_comments(archive: zipfile.ZipFile, result: CheckResult) -> dict[str, bytes]:
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
    """Each file of a LaTeX text with notes in the margin after the sentences with problems, by file name."""
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
    """The spans of braces and floats, which cannot hold a note in the margin."""
    begin = max(0, source.find("\\begin{document}"))
    spans: list[tuple[int, int]] = []
    for first, last in sorted(bracket_pairs(BRACE, source, begin).items()):
        if not spans or first >= spans[-1][1]:  # only the outermost spans
            spans.append((first, last + 1))
    started = -1
    for match in _FLOAT.finditer(source, begin):
        if match[1] == "begin" and started < 0:
            started = match.start()
        elif match[1] == "end" and started >= 0:
            spans.append((started, match.end()))
            started = -1
    return spans


_WORDINGS: Final = read_rules(__file__, "check_wordings")
LABELS: Final[Mapping[ClaimLabel, str]] = _WORDINGS["labels"]
# The labels that need attention: how serious each is, and what it says about a sentence.
WRONG_LABELS: Final[Mapping[ClaimLabel, tuple[FaultSeverity, str]]] = _WORDINGS["wrong_labels"]
_CAREFUL: Final[Mapping[str, str]] = _WORDINGS["careful"]
_STRONG: Final = re.compile(
    rf"(?<![\\\w-])(?:{'|'.join(sorted(_CAREFUL, key=len, reverse=True))})(?![\w-])", re.IGNORECASE
)
_ORDER: Final[tuple[FaultSeverity, ...]] = ("error", "warning", "note")
_QUOTED: Final = 240  # characters


def careful_words(text: str) -> list[tuple[int, int, str]]:
    """Find words outside quotations that claim too much; returns their spans, each with more careful words."""
    quoted = SpanSet(quoted_spans(text))
    found: list[tuple[int, int, str]] = []
    for strong in _STRONG.finditer(text):
        softer = _CAREFUL.get(strong[0].lower())  # none for "w\u0131ll", which the pattern takes for "will"
        if softer and not quoted.holds(strong.start()):
            found.append((*strong.span(), softer.capitalize() if strong[0][0].isupper() else softer))
    return found


def problems(sentence: SentenceRecord) -> list[tuple[str, FaultSeverity, str]]:
    """The problems of a sentence, most serious first: rule, severity, and what is wrong in one line."""
    found = [(fault["rule"], fault["severity"], fault["message"]) for fault in sentence["faults"]]
    label = sentence["label"]
    if sentence["kind"] == "cited" and label in WRONG_LABELS:
        reason = f": {sentence['reason']}" if sentence["reason"] else "."
        found.append((rule_of(label), WRONG_LABELS[label][0], f"{LABELS[label]}{reason}"))
    return sorted(found, key=lambda item: _ORDER.index(item[1]))


def rule_of(label: ClaimLabel) -> str:
    """The name of a label among the rules of faults."""
    return f"claim-{label.replace('_', '-')}"


def severity_of(sentence: SentenceRecord) -> FaultSeverity | None:
    """How serious the worst problem of a sentence is; None if it has none."""
    return next((severity for _, severity, _ in problems(sentence)), None)


def needs_attention(result: CheckResult) -> bool:
    """Whether anything is wrong, or very likely so: the check ends with exit code 4."""
    faults = [fault["severity"] for entry in result["references"] for fault in entry["faults"]]
    found = {*faults, *(severity_of(sentence) for sentence in result["sentences"])}
    return bool(found & {"error", "warning"})


def problem_lines(sentence: SentenceRecord) -> list[str]:
    """A sentence's problems (most serious first), then the deciding words, then library papers that agree with it."""
    shown = [line for _, _, line in problems(sentence)]
    if not shown:
        return []
    for source in sentence["sources"]:
        for passage in source["passages"][:1]:
            if passage["does"] in ("contradicts", "supports"):
                shown.append(f'{passage["key"]}{_page(passage["page"])}: "{shorten(passage["shown"], _QUOTED)}"')
        if source["cites"]:
            shown.append(f"{source['written']} relies on {', '.join(source['cites'])}.")
    for passage in sentence["elsewhere"][:2]:
        does = "says it" if passage["does"] == "supports" else "is near"
        shown.append(f'{passage["key"]}{_page(passage["page"])} {does}: "{shorten(passage["shown"], _QUOTED)}"')
    return shown


def _page(page: int | None) -> str:
    return "" if page is None else f", p. {page}"


def shown_place(place: PlaceRecord) -> str:
    """Where a sentence is, in a few words."""
    if place["line"] is not None:
        return f"{place['file']}, line {place['line']}"
    if place["page"] is not None:
        return f"page {place['page']}"
    return f"paragraph {(place['paragraph'] or 0) + 1}"


def check_report(result: CheckResult) -> str:
    """The one-file report: each sentence beside its passages, with filters and keys."""
    style = packaged_template("evidence.css") + packaged_template("check.css")
    script = packaged_template("check.js")
    sentences = result["sentences"]
    severities = {sentence["position"]: severity_of(sentence) for sentence in sentences}
    groups = [
        {"section": section, "sentences": list(run)}
        for section, run in groupby(sentences, lambda item: item["section"])
    ]
    cited = sum(sentence["kind"] == "cited" for sentence in sentences)
    opened = {position for position, severity in severities.items() if severity is not None}
    wrong = {position for position, severity in severities.items() if severity in ("error", "warning")}
    filters = [
        ("only-wrong", "Wrong or doubtful", len(wrong)),
        ("only-open", "All remarks", len(opened)),
        ("only-all", "All sentences", len(sentences)),
        ("only-cited", "With citations", cited),
        ("only-uncited", "Without citations", len(sentences) - cited),
    ]
    return report_template("check.html").render(
        result=result,
        name=Path(result["file"]).name,
        style=Markup(style),
        script=Markup(script),
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        labels=LABELS,
        kinds=_WORDINGS["kinds"],
        wrong=[label for label, (severity, _) in WRONG_LABELS.items() if severity in ("error", "warning")],
        figures=list(_figures(result)),
        filters=filters,
        chosen=next((name for name, _, number in filters if number), "only-all"),
        groups=groups,
        places={sentence["position"]: shown_place(sentence["place"]) for sentence in sentences},
        open=opened,
        faulty=wrong,
    )


def _figures(result: CheckResult) -> Iterator[tuple[str, int]]:
    yield "sentence" if len(result["sentences"]) == 1 else "sentences", len(result["sentences"])
    for label, name in LABELS.items():
        number = result["counts"]["labels"].get(label, 0)
        if number:
            yield name.lower(), number
    needing = result["counts"]["kinds"].get("needs", 0)
    if needing:
        yield "in need of a citation", needing
    faults = [{found["rule"] for found in sentence["faults"]} for sentence in result["sentences"]]
    for name, rules in _WORDINGS["totals"].items():
        if number := sum(not found.isdisjoint(rules.split()) for found in faults):
            yield name, number


def summary_lines(result: CheckResult) -> Sequence[str]:
    """The figures of a check in words."""
    cited = [f"{number} {name}" for name, number in _figures(result)][1:]
    entries = sum(any(item["severity"] != "note" for item in entry["faults"]) for entry in result["references"])
    lines = [f"{counted(len(result['sentences']), 'sentence')}: {', '.join(cited) or 'none cites anything'}."]
    if not result["words"]:
        lines = [f"{Path(result['file']).name} is empty."]
    if entries:
        lines.append(
            f"{counted(entries, 'entry', 'entries')} of the reference list {'is' if entries == 1 else 'are'} at fault."
        )
    return lines


def remarked_sentences(result: CheckResult) -> list[tuple[SentenceRecord, list[str]]]:
    """The sentences with problems, and the remarks on each."""
    return [(sentence, lines) for sentence in result["sentences"] if (lines := problem_lines(sentence))]


def remarks_of(result: CheckResult) -> RemarkedText:
    """What needs attention in a text, without the rest."""
    return {
        "summary": list(summary_lines(result)),
        "sentences": [
            {"sentence": one["claim"], "line": one["place"]["line"], "label": one["label"], "remarks": lines}
            for one, lines in remarked_sentences(result)
        ],
        "references": [
            f"{entry['key']}: {found['message']}"
            for entry in result["references"]
            for found in entry["faults"]
            if entry["cited"]
        ],
        "warnings": result["warnings"],
        "complete": result["complete"],
        "usage": result["usage"],
    }
