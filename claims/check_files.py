"""Writes the files of a check: the report, JSON, SARIF for CI, and copies of the text with remarks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ..citations.export.section_files import free_name
from ..documents.safe_files import replace_file
from ..errors import InputError
from ..program import NAME
from .annotated_copies import latex_copies, word_copy
from .check_report import WRONG_LABELS, check_report, problems, rule_of
from .claim_records import FAULTS, CheckResult, FaultSeverity, PlaceRecord
from .manuscript import Manuscript

CheckFormat = Literal["html", "docx", "tex", "json", "sarif"]
CHECK_FORMATS: Final[tuple[CheckFormat, ...]] = get_args(CheckFormat)
_COPIES: Final = ("docx", "tex")  # of a text in the same format
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def check_formats(
    formats: Sequence[CheckFormat] | CheckFormat, out: Path | str | None, file: Path
) -> tuple[CheckFormat, ...]:
    """The formats to write; raises `InputError` for an unknown one, and if none of them can be made of this file."""
    names = (formats,) if isinstance(formats, str) else tuple(formats)
    for name in names:
        if name not in CHECK_FORMATS:
            raise InputError(f"formats: unknown format {name!r}.", help=f"Choose from {', '.join(CHECK_FORMATS)}.")
    lacking = without_copy(names, file)
    if lacking and len(lacking) == len(names):
        raise InputError(f"formats: {' '.join(lacking)}", help="Choose html, json or sarif.")
    if names and out is None:
        raise InputError(
            "formats: files are written only if out is given.",
            help="Give it as out (--out FOLDER on the command line).",
        )
    wanted = tuple(name for name in dict.fromkeys(names) if name not in _COPIES or _is_copied(name, file))
    return wanted or (("html",) if out is not None else ())


def without_copy(formats: Sequence[CheckFormat] | CheckFormat, file: Path) -> list[str]:
    """A line for each format requested as a copy with remarks that is not the format of the text."""
    names = (formats,) if isinstance(formats, str) else formats
    return [
        f"{file.name} is not a .{name} file, so it cannot be copied with remarks as {name}."
        for name in dict.fromkeys(names)
        if name in _COPIES and not _is_copied(name, file)
    ]


def _is_copied(name: CheckFormat, file: Path) -> bool:
    return file.suffix.lower() == f".{name}"


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
