"""One command for each section type, and `paper` for all six."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DONE_WITH_REFUSALS, InputError
from ..models.concurrency import run_async
from ..plurals import counted
from .escaping import one_line
from .options import (
    HomeOption,
    JsonOption,
    MaxCallsOption,
    MaxCostOption,
    MaxTokensOption,
    StrictOption,
    command_session,
    resolve,
)
from .output import notice, result, result_json, section_progress

if TYPE_CHECKING:
    from ..experiment import SectionKind
    from ..graph.session import Session
    from ..runs.fingerprint import RunKind
    from ..runs.section_request import SectionRequest

# The kinds are spelled out here, so that `--help` needs no model of an experiment.
PURPOSES: dict[str, str] = {
    "introduction": "the problem, what is open, and the hypothesis, beside earlier work",
    "methods": "what was done and how, beside comparable methods",
    "results": "what came out, with the experiment's numbers",
    "discussion": "what the results mean, beside earlier findings",
    "conclusion": "the verdict and what follows from it",
    "abstract": "the whole paper in one paragraph",
}
NEEDS: dict[str, str] = {
    "introduction": "paper_concept.description; hypothesis.description or paper_concept.open_questions",
    "methods": "experimental_plan or hypothesis.method_combination",
    "results": "results, execution_result.stdout or metrics",
    "discussion": "reasoning, results or summary",
    "conclusion": "paper_concept.description; reasoning, summary or results",
    "abstract": "paper_concept.description; summary, results or reasoning",
}

ExpOption = Annotated[Path, typer.Option("--exp", help="The experiment, as JSON.", show_default=False)]
OutOption = Annotated[Path, typer.Option("--out", help="Folder for the files; created if missing.")]
StyleOption = Annotated[
    str | None,
    typer.Option(
        "--cite-style",
        help="key (smith2024), pandoc [@smith2024, p. 4], latex \\cite[p.~4]{smith2024}, numeric [3], "
        "or key-page [smith2024, page 4].",
        show_default="key",
    ),
]


class FileFormat(StrEnum):
    """What a section can be written as, as the command line takes it."""

    MD = "md"
    TEX = "tex"
    DOCX = "docx"
    HTML = "html"


FormatOption = Annotated[
    list[FileFormat] | None,
    typer.Option(
        "--format",
        help="Also write LaTeX (citing from the .bib), Word or HTML; can be repeated.",
        show_default="md",
    ),
]
CslOption = Annotated[
    str | None,
    typer.Option(
        "--csl",
        help="Style of the references, and of citations in tex, docx and html: a .csl file or, with the extra "
        "'styles', a name such as apa, ieee or nature.",
        show_default="Chicago author-date, and plainnat in tex",
    ),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Write it again, without reusing cached answers.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Overwrite files that you edited; by default new files get a number.")
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="Chat model, or 'extractive'. Default: CITELOOM_CHAT_MODEL.", show_default=False),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--base-url", help="OpenAI-compatible endpoint. Default: CITELOOM_CHAT_BASE_URL.", show_default=False),
]
WordsOption = Annotated[int | None, typer.Option("--words", help="Target length of the section.", show_default=False)]
SearchesOption = Annotated[
    int | None, typer.Option("--max-searches", help="Searches that the agent may add.", show_default="5")
]


def register(app: typer.Typer) -> None:
    """Add the section commands to the command line."""
    for kind in PURPOSES:
        app.command(kind, help=_help(kind), rich_help_panel="Write")(_command(kind))
    app.command("paper", help=_PAPER_HELP, rich_help_panel="Write")(paper)


def _help(kind: str) -> str:
    return (
        f"Write the {kind}: {PURPOSES[kind]}.\n\n"
        f"Writes {kind}.md, {kind}.bib (the cited entries), {kind}.evidence.html (opens every citation to its passage) "
        f"and {kind}.json, and prints the text; --format adds others. Run the same "
        "command again to resume a killed or paused run; a finished one costs nothing again.\n\n"
        f"exp.json needs: {NEEDS[kind]}. {_FIELDS}\n\n"
        f"Example: citeloom {kind} --exp exp.json --out paper/ --cite-style pandoc"
    )


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
    + " ".join(f"{kind}: {needed}." for kind, needed in NEEDS.items())
    + f" {_FIELDS}\n\nExample: citeloom paper --exp exp.json --out paper/ --format docx"
)


def _command(kind: str) -> Any:
    def section(
        exp: ExpOption,
        out: OutOption = Path(),
        formats: FormatOption = None,
        cite_style: StyleOption = None,
        csl: CslOption = None,
        strict: StrictOption = None,
        fresh: FreshOption = False,
        force: ForceOption = False,
        model: ModelOption = None,
        base_url: UrlOption = None,
        words: WordsOption = None,
        max_searches: SearchesOption = None,
        max_calls: MaxCallsOption = None,
        max_tokens: MaxTokensOption = None,
        max_cost: MaxCostOption = None,
        as_json: JsonOption = False,
        home: HomeOption = None,
    ) -> None:
        settings = {
            "cite_style": cite_style,
            "csl": csl,
            "strict": strict,
            "chat_model": model,
            "chat_base_url": base_url,
            "section_words": words,
            "max_search_iterations": max_searches,
            "max_calls": max_calls,
            "max_tokens": max_tokens,
            "max_cost": max_cost,
        }
        record = run_async(_write(kind, exp, out, formats, fresh, home, settings, force=force))
        result_json(record) if as_json else _show(record)
        end_unread(record)

    section.__name__ = kind
    return section


def paper(
    exp: ExpOption,
    out: OutOption = Path(),
    formats: FormatOption = None,
    cite_style: StyleOption = None,
    csl: CslOption = None,
    strict: StrictOption = None,
    fresh: FreshOption = False,
    force: ForceOption = False,
    model: ModelOption = None,
    base_url: UrlOption = None,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Write all six sections as one durable, resumable run."""
    settings: dict[str, Any] = {"cite_style": cite_style, "csl": csl, "strict": strict, "chat_model": model}
    settings |= {"chat_base_url": base_url, "max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    record = run_async(_write("paper", exp, out, formats, fresh, home, settings, force=force))
    result_json(record) if as_json else _show(record)
    end_unread(record)


async def _write(
    kind: str,
    exp: Path,
    out: Path,
    formats: Sequence[str] | None,
    fresh: bool,
    home: Path | None,
    overrides: dict[str, Any],
    *,
    force: bool,
) -> dict[str, Any]:
    from ..citations.export.figures import with_plot_files
    from ..experiment import SECTION_KINDS, load_experiment, require_fields
    from ..runs.section_request import SectionRequest

    settings, found = resolve(home, **overrides)
    experiment = with_plot_files(load_experiment(exp), exp.parent)
    for needed in SECTION_KINDS if kind == "paper" else (_kind(kind),):
        require_fields(experiment, needed, source=str(exp))
    with command_session(settings, found, create=False) as session:
        asked: RunKind = "paper" if kind == "paper" else _kind(kind)
        request = SectionRequest(asked, experiment, str(exp), fresh)
        return await write_one(request, out, session, formats or (), force=force)


async def write_one(
    request: SectionRequest, out: Path, session: Session, formats: Sequence[str] = (), *, force: bool = False
) -> dict[str, Any]:
    """A section or a paper with its files; says what happened on stderr."""
    from ..citations.export.pandoc_formats import FORMATS
    from ..graph.completeness import coverage_line
    from ..runs.execution import run_section
    from ..runs.output_files import save

    if session.notice:
        notice(session.notice)
    with prepared_folder(out), section_progress(session.spent_now) as show:
        finished = await run_section(request, session, on_event=show, on_notice=notice)
    wanted = [known for known in FORMATS if known in formats]
    record = await save(finished.record, out, wanted, home=session.home, force=force)
    for warning in record["warnings"]:
        notice(f"Note: {warning}")
    usage = record["usage"]
    papers = len({citation["key"] for citation in record["citations"]})
    cost = (
        f"{counted(usage['llm_calls'], 'model call')}, {counted(usage['journal_hits'], 'cached answer')}, "
        f"{counted(usage['input_tokens'] + usage['output_tokens'], 'token')}{priced(usage)}"
    )
    notice(f"{request.kind}: {counted(len(record['citations']), 'citation')} of {counted(papers, 'paper')}; {cost}.")
    if finished.finished_earlier:
        notice(f"Run {record['thread_id']} was finished earlier; no model was called. Use --fresh to write it again.")
    if coverage := coverage_line(record.get("coverage", {})):
        notice(coverage)
    if record["numbers"]:
        found = sum(number["found"] is not None for number in record["numbers"])
        notice(f"Numbers: {found} of {len(record['numbers'])} found in the experiment or in a cited passage.")
    if record["left_out"]:
        count = len(record["left_out"])
        notice(
            f"Left out (--strict): {count} sentence{'s' if count > 1 else ''} that failed a check, listed in the JSON."
        )
    notice("Files: " + ", ".join(record["files"].values()))
    return record


def end_unread(record: dict[str, Any]) -> None:
    """End with exit code 4 where the model could read none of the passages that it was shown."""
    from ..graph.completeness import all_unreadable

    if all_unreadable(record.get("coverage", {})):
        notice("Warning: the model could read none of the passages; the result rests on none of them.")
        raise typer.Exit(DONE_WITH_REFUSALS)


def priced(usage: dict[str, Any]) -> str:
    """The cost, to be put behind tokens; nothing where no prices are known."""
    return f", cost {usage['cost']:.4f}" if usage["cost"] else ""


@contextmanager
def prepared_folder(out: Path) -> Iterator[None]:
    """Check that the folder is writable before anything is paid for; raises `InputError`.

    Removes the folder again if it was created here and the input turns out to be wrong.
    """
    from ..runs.output_files import prepare_folder

    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    prepare_folder(out)
    try:
        yield
    except InputError:
        for folder in made:
            with suppress(OSError):  # somebody else has put something there
                folder.rmdir()
        raise


def _kind(kind: str) -> SectionKind:
    return kind  # type: ignore[return-value]  # the keys of PURPOSES are the kinds; a test holds them together


def _show(record: dict[str, Any]) -> None:
    title = one_line(record.get("title") or record["section"].capitalize())
    result(f"\n# {title}\n\n{record['text']}\n")
    if record["references"]:
        result("## References\n")
        result("\n".join(f"- **{reference['label']}**: {reference['text']}" for reference in record["references"]))
