"""One command per section type, `paper` for all six, and `research`, which answers a question from the papers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from .. import api
from ..api import blocking, messages, run_options
from ..errors import InputError
from .options import FILE_FORMATS, JsonOption, home_session, one_value_hint
from .output import notice, one_line, result, result_json
from .run_display import end_incomplete, next_steps, references_markdown, run_steered, show_answer

ExpArgument = Annotated[Path | None, typer.Argument(metavar="EXP", help="The experiment, as JSON.")]
ExpOption = Annotated[Path | None, "The experiment, if it is not named first."]
OutOption = Annotated[Path, "Folder for the files; created if missing."]


FreshOption = Annotated[bool, "Write it again, without reusing cached answers."]


class OverwriteOption(run_options.OptionGroup):
    force: bool = run_options.option("Overwrite files that you edited; by default new files get a number.", value=False)


class RunFiles(run_options.WordOptions, OverwriteOption):
    page_images: bool = run_options.option(
        "Put images of the cited PDF pages into the evidence report, with the cited words marked.", value=False
    )

    def output(self, out: Path, formats: Sequence[str] = ()) -> api.running.Output:
        wanted = api.arguments.parse_formats(formats, out)
        ordered = tuple(known for known in api.running.FORMATS if known in wanted)
        return api.running.Output(out, ordered, self.force, self.page_images, self.document())


class TextFiles(RunFiles):
    """The files of a text to write, and how."""

    formats: Annotated[tuple[str, ...], run_options.Shown("--format", "md", "formats")] = run_options.option(
        "Also write tex (LaTeX, citing from the .bib), docx, odt, html, pdf (where xelatex or tectonic is installed), "
        "or zip (LaTeX, .bib and figures)",
        value=(),
    )


class TableTextFiles(run_options.TableSources, TextFiles):
    """Adds the tables that a text about studies may cite."""


_FIELDS = (
    "All other fields are optional: paper_concept{title, description, open_questions[]}, hypothesis{description, "
    "method_combination}, experimental_plan, experiment_code, execution_result{stdout, stderr, returncode}, metrics{}, "
    "plots[{path, caption}], verdict, reasoning, results, summary."
)
_PAPER_HELP = (
    "Write all six sections as one paper.\n\n"
    "Writes paper.md, paper.bib, paper.evidence.html and paper.json, and prints the text; --format adds others. Run "
    "the same command again to resume a killed or paused run.\n\n"
    "exp.json needs what the sections need: "
    + " ".join(f"{kind}: {spec.needs}." for kind, spec in run_options.SECTIONS.items())
    + f" {_FIELDS}\n\nExample: citeloom paper exp.json --out paper/ --format docx"
)


def section_command(kind: run_options.RunKind) -> Callable[..., None]:
    """Make the command that writes a section, or a whole paper."""

    def write(
        files: TextFiles,
        settings: run_options.PaperSettings,
        file: ExpArgument = None,
        exp: ExpOption = None,
        out: OutOption = Path(),
        fresh: FreshOption = False,
        as_json: JsonOption = False,
    ) -> None:
        given = experiment_file(kind, file, exp)
        output = files.output(out, files.formats)
        tables = files if isinstance(files, run_options.TableSources) else run_options.TableSources()
        request = api.running.load_section_request(kind, given, fresh=fresh)
        with home_session(**settings.changes()) as session:
            if settings.section_words is not None and "writer" in session.extractive:
                notice("--words has no effect without a chat model: your own statements are never shortened.")
            others = ", ".join(name for name in output.formats if name in ("docx", "odt", "html", "pdf"))
            if session.settings.cite_style == "numeric" and others and not session.settings.csl:
                notice(f"--cite-style numeric: {others} cite by author and year; --csl ieee numbers them as well.")
            whole = blocking.run_async(api.running.with_tables(request, session, tables))
            record, _ = run_steered(whole, session, output)
        if as_json:
            result_json(record)
        else:
            title = one_line(record.get("title") or record["section"].capitalize())
            result(f"\n# {title}\n\n{record['text']}\n\n{references_markdown(record)}".rstrip() + "\n")
        end_incomplete(record)

    weighs = kind == "paper" or run_options.SECTIONS[kind].weighs_studies
    write.__annotations__["files"] = TableTextFiles if weighs else TextFiles
    write.__annotations__["settings"] = run_options.PaperSettings if kind == "paper" else run_options.SectionSettings
    write.__doc__ = _PAPER_HELP
    if kind != "paper":
        write.__doc__ = (
            f"Write the {kind}: {run_options.SECTIONS[kind].purpose}.\n\n"
            f"Writes {kind}.md, {kind}.bib (the cited entries), {kind}.evidence.html (opens every citation to its "
            f"passage) and {kind}.json, and prints the text; --format adds others. A killed or paused run "
            "resumes when the same command is run again; a finished one is not paid for twice.\n\n"
            f"exp.json needs: {run_options.SECTIONS[kind].needs}. {_FIELDS}\n\n"
            f"Example: citeloom {kind} exp.json --out paper/ --cite-style pandoc"
        )
    return write


def experiment_file(kind: run_options.RunKind, file: Path | None, exp: Path | None) -> Path:
    """Return the experiment file, given by position or as --exp."""

    if str(file) in FILE_FORMATS:
        message = f"{file} is a value of --format, not a file."
        raise InputError(message, help=one_value_hint("--format").strip())
    if file and exp and file != exp:
        raise InputError(f"Two experiments were given, {file} and {exp}.", help="Give one.")
    if given := file or exp:
        return given
    raise InputError("No experiment was given.", help=f"Give its file: {messages.command(f'{kind} exp.json')}.")


QuestionArgument = Annotated[str, "What to answer."]
AnswerFolder = Annotated[Path | None, "Folder for the answer's files; none are written without it."]


def research(
    question: QuestionArgument,
    files: TextFiles,
    limits: run_options.QuestionOptions,
    settings: run_options.AnswerSettings,
    out: AnswerFolder = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from your papers, with citations.

    Prints the answer with its references; --out writes <question>.md, .bib (the cited entries), .evidence.html (opens
    every citation to its passage) and .json as well, --format adds others. Nothing is answered from a model's own
    knowledge: if no passage bears on the question, the answer says so and lists what was searched. Run the same command
    again to resume a killed or paused run; a finished one is shown again at no cost.

    Example: citeloom research "How are graph genomes used to genotype structural variants?" --from-year 2018
    """
    if out is None and (files.formats or files.page_images):
        flag = "--format" if files.formats else "--page-images"
        raise InputError(f"{flag} needs a folder.", help="Name one with --out.")
    output = None if out is None else files.output(out, files.formats)
    api.early_loading.plain_question(question)  # before a home is created or printed
    with home_session(early="answer", **settings.changes()) as session:
        record, view = run_steered(limits.request(question, session), session, output, draft=not as_json)
    if as_json:
        result_json(record)
    else:
        show_answer(record, view)
        notice(*next_steps(record))
    end_incomplete(record)
