"""Exports, verifies and imports finished texts as files, and syncs them with LaTeX projects."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from typing_extensions import TypedDict

from ..citations.checks.findings import shorten_words
from ..citations.export.pandoc_formats import FORMATS, Format
from ..citations.export.section_files import ExportError, free_name, prepare_folder, write_files
from ..citations.verification import is_result, verify as verify_record
from ..documents.edited_documents import EXPORTED_SUFFIXES, EditedDocument, read_exported, read_latex, with_long_keys
from ..documents.pandoc import PandocError
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..experiment import parse_experiment
from ..graph.session import Session
from ..plurals import counted
from ..program import command
from ..runs.edited_text import editable_text, edited_record, section_of_paper
from ..runs.imported_text import import_sections, new_numbers, read_document, remove_entries, replace_by_file
from ..runs.output_files import ResultFiles, stem_of
from ..runs.result_record import stored
from ..runs.sentence_check import load_editable
from ..runs.tex_project import Side, SyncedRegion, TexProject, TexSection, synchronize
from ..stores.home import written_files
from ..stores.run_register import RunRecord, UnknownRunError
from ..text.words import one_line
from .arguments import ArgumentError, one_or_more, parse_formats, require_choice, require_writable, word_options
from .blocking import blocking, threaded
from .results import ExportedFiles, ImportedText
from .run_options import CitationFields, Tracked


class ExportOptions(TypedDict, total=False):
    """How files are written, see `aexport`."""

    csl: str | None
    force: bool
    citations: CitationFields | None
    evidence_comments: bool
    reference_doc: Path | str | None


@threaded
def aexport(
    session: Session,
    source: Path | str,
    formats: Sequence[Format] | Format,
    *,
    out: Path | str | None = None,
    **options: Unpack[ExportOptions],
) -> ExportedFiles:
    """Convert a finished run, or the markdown file of a section or paper, edited or not, to other formats.

    A file needs its run's `.json` beside it; it is copied to `out` for `verify`. No model is called.

    Args:
        session: the open library that the text was written from.
        source: the `.md`, or the id of a run, whose text has the user's edits.
        formats: `tex`, `docx`, `odt`, `html`, `pdf` or `zip`.
        out: folder for the files; beside the `.md`, or the current one, if omitted.
        options: `csl`, a citation style (default: the run's); `force`, replace exported files that were edited since;
            `citations`, `evidence_comments` and `reference_doc` as in `RunOptions`.

    Raises `InputError`, and `ExportError` if a conversion fails and no file is left to write.
    """
    file, csl, force = Path(source), options.get("csl"), options.get("force", False)
    document = word_options(options).document()
    wanted = parse_formats(formats, file.parent)
    ordered = [name for name in FORMATS if name in wanted]
    run, home = _find_run(session, file), session.home
    if not wanted:
        raise ArgumentError("formats: the file is markdown already.", help=f"Give {', '.join(FORMATS)}.")
    if run.result is None:
        raise InputError(f"Run {run.thread_id} is not finished.", help="Resume it first.")
    record, stem, folder, notes = stored(run.result), stem_of(stored(run.result)), Path(), list[str]()
    text = load_editable(home, run.thread_id)
    if file.suffix:
        stem, folder = file.stem, file.parent
        if text.edits:
            notes = [f"{file} is exported as it is; 'export {run.thread_id}' has your edits of the run."]
        text = replace_by_file(editable_text(run, []), file)
    record = edited_record(text, session, csl)
    target = folder if out is None else Path(out)
    prepare_folder(target)
    made = ResultFiles.of(record, home, stem, document=document)
    # In another folder, `verify` needs a copy of the record, and LaTeX needs the bibliography and figures.
    elsewhere = not file.suffix or target.resolve() != folder.resolve()
    needed = ("bib", *made.image_suffixes) if elsewhere and "tex" in wanted else ()
    kept: dict[str, bytes] = {}
    if elsewhere:
        kept["json"] = file.with_suffix(".json").read_bytes() if file.suffix else made.content("json")
    written = written_files(home)
    free = free_name(target, stem, [*ordered, *needed, *kept], written.has, force=force)
    if needed and free.stem != stem:
        made = ResultFiles.of(record, home, free.stem, document=document)
    contents, failed = dict[str, bytes](), list[ExportError]()
    for name in ordered:
        try:
            contents[name] = made.content(name)
        except ExportError as error:
            failed.append(error)
    if failed and not contents:
        raise failed[0]
    contents |= {name: made.content(name) for name in needed} | kept
    paths = {name: target / f"{free.stem}.{name}" for name in contents}
    write_files({path: contents[name] for name, path in paths.items()}, written.note)
    files = {name: str(path) for name, path in paths.items()}
    return {
        "files": files,
        "failed": [one_line(f"{error.message} {error.help}") for error in failed],
        "warnings": [*notes, *free.notices(), *map(str, record["warnings"])],
    }


@threaded
def averify(session: Session, file: Path | str) -> dict[str, Any]:
    """Check every citation, quote and number of a result, both in the readable text and in its record.

    Returns `checked` (how many `quotes`, `keys`, `findings` and `numbers`), `mismatches` (each a `field` and a
    `problem`), and `lacks` (how many items were not checked, by reason).

    Args:
        session: the open library that the file was written from.
        file: a `.json`, or a `.md`, `.tex`, `.docx`, `.odt` or `.html` with its `.json` beside it.

    Raises `InputError` for a file that is not a result.
    """
    file = Path(file)
    if not file.exists():
        raise InputError(
            f"{file}: no such file.", help="Give a file of a section, paper or answer that has its .json beside it."
        )
    place, experiment = _find_record(file), None
    try:
        record: Any = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{place} cannot be read as JSON ({' '.join(str(error).split())[:120]}).") from error
    if not is_result(record):
        raise InputError(
            f"{place} is not a result of Citeloom.", help="Give the .json of a section, paper, answer or conversation."
        )
    exported = read_exported(file) if file.suffix in EXPORTED_SUFFIXES else None
    with suppress(UnknownRunError):  # the library may not have the run any more
        run = session.home.runs().get(str(record.get("thread_id") or ""))
        if isinstance(given := run.request.get("experiment"), dict):
            experiment = parse_experiment(given)
    keys = [str(entry.get("key")) for entry in record.get("references", ())] if exported else []
    text = with_long_keys(exported.text, keys) if exported else None
    labels = [(label, with_long_keys(key, keys)) for label, key in exported.labels] if exported else ()
    found = verify_record(record, session.library, text, labels, experiment)
    return {
        "file": str(file),
        "checked": {name: getattr(found, name) for name in ("quotes", "keys", "findings", "numbers")},
        "mismatches": [{"field": place, "problem": why} for place, why in found.mismatches],
        "lacks": found.lacks,
    }


class TrackedChangesError(InputError):
    """A document has tracked changes, and the user has not chosen whether to accept them."""

    default_help = "Give --tracked accept or --tracked reject (tracked in Python)."


async def aimport_text(
    session: Session,
    file: Path | str,
    *,
    run: str | None = None,
    tracked: Tracked = "ask",
    content: bytes | None = None,
) -> ImportedText:
    """Import a text that was exported and edited, as the user's version of its run.

    Exports, papers and the page use it from now on; the run's own text is kept. No model is called.

    Args:
        session: the open library that the text was written from.
        file: a `.docx`, `.odt`, `.tex` or `.md`.
        run: the id of its run; if omitted, the one that the document names.
        tracked: whether tracked changes are accepted or rejected; `ask` raises `TrackedChangesError` if there are any.
        content: the file's content, if the file is not on this machine.
    Raises `InputError` for a file that cannot be read or belongs to no run.
    """
    require_writable(session)
    require_choice("tracked", tracked, Tracked)
    path = Path(file)
    if content is None and not await in_thread(path.is_file):
        raise InputError(f"{path}: no such file.", help="Give the .docx, .odt, .tex or .md that you edited.")
    with TemporaryDirectory(prefix="citeloom-") as folder:
        read = path if content is None else Path(folder) / f"sent{path.suffix}"
        if content is not None:
            await in_thread(read.write_bytes, content)
        document = await in_thread(read_document, read, path, reject=tracked == "reject")
    if document.changes and tracked == "ask":
        raise TrackedChangesError(f"{path} has {counted(document.changes, 'tracked change')}.")
    return await in_thread(keep_imported, session, path, document, run)


def keep_imported(session: Session, path: Path, document: EditedDocument, run_id: str | None = None) -> ImportedText:
    """Store an edited document as the user's version of its run; blocks."""
    thread_id, _, kind = document.mark.partition(" ")
    if not (run_id or thread_id):
        raise InputError(f"{path} does not name its run.", help="Name it with --run ID (see 'runs list').")
    home = session.home
    text = load_editable(session.home, run_id or thread_id)
    run = text.run
    places = {section.kind: place for place, section in enumerate(text.sections, 1)}
    if kind in places and len(places) > 1:  # a section of a paper
        text = replace(text, sections=tuple(section for section in text.sections if section.kind == kind))
    document.text = with_long_keys(document.text, {one.key for part in text.sections for one in part.evidence})
    sections, before = import_sections(text, document, path)
    for item in sections:
        if item.section.imported is not None:
            edit = replace(item.section.imported, position=-places[item.section.kind])
            home.runs().edit(run.thread_id, edit)
    found = [sentence for item in sections for sentence in item.sentences]
    unknown = list(dict.fromkeys(shown for item in sections for shown in item.unknown))
    reverted = [shorten_words(words) for item in sections for words in item.reverted]
    numbers = new_numbers(found)
    title = run.title.split()
    outside = before if before and before.lstrip("# ").split() != title else ""
    references = {item["key"]: item for section in text.sections for item in section.record["references"]}
    after = "; ".join(remove_entries(document.listed, references.values()))
    warnings = [
        *document.notices,
        *[f"Citations that are not evidence of the run, kept as text: {'; '.join(unknown)}."] * bool(unknown),
        *[f"Your earlier edits are undone in the document: {'; '.join(reverted)}."] * bool(reverted),
        *[f"Numbers that the run does not have there: {'; '.join(numbers)}."] * bool(numbers),
        *[f"Text before the first section was not imported: {outside[:300]}"] * bool(outside),
        *[f"Text after the references was not imported: {after[:300]}"] * bool(after),
    ]
    return {
        "file": str(path),
        "run": run.thread_id,
        "counts": dict(Counter(sentence["state"] for sentence in found)),
        "sentences": found,
        "comments": document.comments,
        "tracked_changes": document.changes,
        "warnings": warnings,
    }


export = blocking(aexport)
import_text = blocking(aimport_text)
verify = blocking(averify)


def _find_run(session: Session, source: Path) -> RunRecord:
    """Find the run with this id, or the run that wrote a markdown file, reduced to the file's section."""
    runs = session.home.runs()
    if source.suffix != ".md" or not source.is_file():
        if source.suffix or len(source.parts) > 1:
            help = "Give the .md of a section or a paper, or the id of a run (runs list)."
            raise InputError(f"{source} is not a markdown file.", help=help)
        return runs.get(str(source))
    record = _find_record(source)
    try:
        origin: Any = json.loads(record.read_text("utf-8"))
        thread_id, section = str(origin["thread_id"]), str(origin["section"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{record} is not the record of {source.name} ({type(error).__name__}).",
            help="Keep the .json that was written with the .md beside it.",
        ) from error
    return section_of_paper(runs.get(thread_id), section)


def _find_record(file: Path) -> Path:
    """Find the `.json` that belongs to a file; for a numbered file (`paper.2.docx`) also without the number."""
    record = file.with_suffix(".json") if file.suffix in EXPORTED_SUFFIXES else file
    if not record.is_file() and Path(file.stem).suffix[1:].isdigit():
        record = file.with_name(f"{Path(file.stem).stem}.json")
    if not record.is_file():
        help = "Give a file of a section, paper or answer, and keep its .json beside it."
        with suppress(InputError):  # it may be a file of a run that a person renamed
            if run := read_document(file, file).mark.partition(" ")[0]:
                taken, written = f"{command('import')} {quote(str(file))}", f"{command('export')} {quote(run)}"
                help = f"It is from run {run}: {taken} imports it, {written} --format docx writes it with its record."
        raise InputError(
            f"{file}: is not a result of Citeloom, since its record, {file.stem}.json, is not in the same folder.",
            help=help,
        )
    return record


class TexSync(TypedDict):
    """What became of each region of a LaTeX project, and lines on what was added or could not be done."""

    folder: str
    regions: list[SyncedRegion]
    notices: list[str]
    problems: list[str]


async def async_tex(
    session: Session, folder: Path | str, *, runs: Sequence[str] | str = (), side: Side = ""
) -> TexSync:
    """Bring the sections of finished runs in a LaTeX project up to date, with the entries that they cite.

    Only marked regions are rewritten, and a `.bib` only grows. No model is called.

    Args:
        session: the open library that the runs were written from.
        folder: the project, such as a git clone from Overleaf.
        runs: ids of sections or papers; if omitted, those already in the project.
        side: what to do with a region that a person edited: `ours` (overwrite it, after copying the file), `theirs`
            (import their text into the run) or "" (leave it, and return the difference).

    Raises `InputError` for marks that do not pair up, and `NotEditableError` for an answer or an unfinished run.
    """
    require_writable(session)
    require_choice("side", side, Side)
    place = await in_thread(Path(folder).resolve)
    lock = f"tex-{hashlib.sha256(str(place).encode()).hexdigest()[:16]}"
    async with session.home.lock_of_run(lock).held():
        project = await in_thread(TexProject.read, place)
        given: tuple[str, ...] = one_or_more(runs)
        named = given or tuple(dict.fromkeys(region.run for _, region in project.regions() if region.run))
        if not named:
            raise ArgumentError(f"{place} has no section of Citeloom yet.", help="Name a run with --run (runs list).")
        sections: list[TexSection] = []
        for name in named:
            try:
                sections += await in_thread(_sections, session, name)
            except UnknownRunError as error:
                if given:
                    raise
                project.problems.append(f"{place}: {error.message} Its regions stay as they are.")

        def take(section: TexSection, theirs: str) -> TexSection:
            try:
                document = replace(read_latex(theirs, project.definitions), mark=f"{section.run} {section.kind}")
            except PandocError as error:
                raise InputError(f"{section.kind}: cannot be read ({' '.join(str(error).split())[:160]}).") from error
            project.notices.extend(keep_imported(session, place, document)["warnings"])
            return next(item for item in _sections(session, section.run) if item.kind == section.kind)

        latest = {section.kind: section for section in sections}
        done = await in_thread(synchronize, project, latest, side, written_files(session.home), take)
    return {"folder": str(place), "regions": done, "notices": project.notices, "problems": project.problems}


def _sections(session: Session, run_id: str) -> list[TexSection]:
    text = load_editable(session.home, run_id)
    return TexSection.all_of(text.run.thread_id, edited_record(text, session), session.home)


sync_tex = blocking(async_tex)
