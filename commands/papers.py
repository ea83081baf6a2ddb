"""search, find and papers: find passages and papers; list, show, enrich, describe and remove papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from .. import api
from ..api import run_options
from ..api.blocking import run_async
from ..api.messages import command, counted, shorten
from ..errors import DONE, DONE_WITH_REFUSALS
from .adding_papers import OfflineOption
from .options import JsonOption, command_group, complete_keys, home_session
from .output import Columns, Printed, ingest_progress, name_refused_figures, notice, one_line, result, table

papers_app = command_group("Papers, their figures and metadata.")

KeyArgument = Annotated[str, "Citation key.", run_options.Shown(completes="papers")]
KeysArgument = Annotated[
    list[str] | None, typer.Argument(help="Citation keys; all papers if none is given.", autocompletion=complete_keys)
]
_MAX_CAPTION: Final = 240  # characters
_OUTCOMES: Final = (
    ("known", "looked up by DOI"),
    ("found", "found by title and authors"),
    ("unsure", "unsure"),
    ("not-found", "not found"),
    ("failed", "not looked up"),
)


@papers_app.command("list")
def list_papers() -> Printed:
    """List the papers with their keys."""
    with home_session(reading=True) as session:
        return Printed(run_async(api.library_papers.alist_papers(session)), show_papers)


def show_papers(records: Sequence[api.results.PaperSummary], *, numbered: bool = False) -> None:
    def first_author(record: api.results.PaperSummary) -> str:
        first, *more = record["authors"] or [""]
        return one_line(f"{first} and {len(more)} more" if more else first)

    columns: Columns = {
        **({"": ""} if numbered else {}),
        "key": "key",
        "authors": first_author,
        "year": "year",
        "title": lambda record: one_line(f"{record['status'].upper()}: {record['title']}".removeprefix(": ")),
        "chunks": "chunks",
    }
    table(counted(len(records), "paper"), records, columns, prose=("authors", "title"))


@papers_app.command("show")
def show_paper(
    key: KeyArgument,
    text: Annotated[bool, "Print the text that is searched, by section."] = False,
) -> Printed:
    """Show one paper: metadata, summary, your note, and the tree of its sections with their chunks and pages.

    The results of 'papers enrich' are shown with their sources: retractions and corrections, and fields that your .bib
    lacks or that differ.

    Example: citeloom papers show smith2024quantum --text
    """
    with home_session(reading=True) as session:
        record = run_async(api.library_papers.apaper_details(session, key, text=text))
    return Printed(record, text_lines if text else paper_lines)


@papers_app.command("remove")
def remove_papers(
    keys: Annotated[list[str], "Citation keys.", run_options.Shown(completes="papers")],
) -> None:
    """Remove papers from the library; your files stay, but Citeloom's copies are deleted."""
    with home_session() as session:
        run_async(api.library_papers.aremove_papers(session, keys))
    result(*(one_line(f"Removed {key}.") for key in dict.fromkeys(keys)))


@papers_app.command("figures")
def paper_figures(
    key: KeyArgument,
    out: Annotated[Path | None, "Also write the images into this folder."] = None,
) -> Printed:
    """List the figures and tables of a paper with label, page and caption.

    If a figure has no image, the reason is shown. Descriptions are a vision model's, not the paper's words.

    Example: citeloom papers figures smith2024quantum --out figures/
    """
    with home_session(reading=True) as session:
        records = run_async(api.library_papers.afigures(session, key))
        written = run_async(api.library_papers.asave_figures(session, key, out)) if out is not None else {}
        were_read = bool(session.library.records()[key].figures_version)
    files = {number: str(path) for number, path in written.items()}

    def caption(record: api.results.FigureRecord) -> str:
        """The caption without label, the reason for a missing image, and the model's description, marked as such."""
        own = record["caption"].removeprefix(record["label"]).lstrip(" .:|")
        parts = [shorten(own, _MAX_CAPTION)]
        parts += [f"(No image: it {record['no_image']}.)"] if record["no_image"] else []
        parts += [f"(Described by {record['described_by']}: {record['description']})"] if record["description"] else []
        return one_line(" ".join(part for part in parts if part))

    columns: Columns = {
        "name": "name",
        "kind": "kind",
        "page": "page",
        "image": lambda record: f"{record['width']}x{record['height']}" if record["image_hash"] else "none",
        "caption": caption,
    }

    def show(_: object) -> None:
        if not records:
            unread = f"The figures of {key} were never read: ingest it again."
            notice(f"{key} has no figures or tables." if were_read else unread)
            return
        kinds = api.library_papers.count_kinds([record["kind"] for record in records])
        table(kinds, records, columns, prose=("caption",))
        if out is not None:
            result(f"{counted(len(written), 'image')} written to {out}.")

    return Printed([{**item, "file": files.get(item["number"])} for item in records] if out else records, show)


@papers_app.command("enrich")
def enrich_papers(
    keys: KeysArgument = None,
    offline: OfflineOption = False,
    refresh: Annotated[
        bool, "Ask the services again instead of using cached answers (CITELOOM_METADATA_DAYS)."
    ] = False,
    as_json: JsonOption = False,
) -> Printed:
    """Look papers up at Crossref, DataCite, OpenAlex and Semantic Scholar.

    Finds missing DOIs by title, authors and year; when it is unsure, it says so and changes nothing. Shows what your
    .bib lacks (volume, abstract, citations, a free PDF), what differs, and retractions, corrections and other versions.
    Your .bib and the library are not changed; each service's answer is stored beside them with its date. Titles,
    authors, years and DOIs of the papers are sent to the services, and your address if CITELOOM_METADATA_MAILTO is set.
    Exit code 4 means that some services or papers failed, each named.

    Example: citeloom papers enrich smith2024quantum
    """
    named: set[str] = set()

    def show(found: dict[str, Any]) -> None:
        for line in () if as_json else enrichment_lines(found):
            result(line)
        for failure in found["failures"]:
            if failure not in named:
                named.add(failure)
                notice(f"Failed: {failure}")

    with home_session() as session:
        record = api.paper_lookup.enrich(
            session,
            keys or (),
            offline=offline,
            refresh=refresh,
            on_open=lambda hosts, count: notice(f"Asking {hosts} about {counted(count, 'paper')}."),
            on_paper=show,
        )
    counts = Counter(item["outcome"] for item in record["papers"])
    outcomes = ", ".join(f"{counts[name]} {label}" for name, label in _OUTCOMES if counts[name])
    answers = f"{counted(record['requests'], 'answer')} from the services, {record['cached']} from the cache"
    line = f"{counted(len(record['papers']), 'paper')}: {outcomes or 'none'}; {answers}."
    failed = any(item["failures"] for item in record["papers"])
    return Printed(record, lambda _: [line], DONE_WITH_REFUSALS if failed else DONE)


@papers_app.command("describe")
def describe_papers(
    limits: run_options.BudgetOptions,
    keys: KeysArgument = None,
    refresh: Annotated[bool, "Also redo descriptions by another model or prompt."] = False,
) -> Printed:
    """Have the vision model (CITELOOM_VISION_MODEL) describe figures that have no description yet.

    The image, its label and its caption are sent, one call per image. A description helps to find a figure; it is
    marked as the model's wherever it is shown, and is never quoted or cited. Descriptions are stored one by one: after
    a limit or a kill, the same command resumes. Exit code 4 means that some figures could not be described, each named
    with its reason.

    Example: citeloom papers describe smith2024quantum --max-calls 50
    """
    with home_session(**limits.changes()) as session, ingest_progress() as show:
        record = api.ingesting.describe_figures(session, keys or (), refresh=refresh, on_event=show)
    name_refused_figures(record)
    counts = f"{len(record['refused'])} not described, {record['already_described']} described before"
    line = f"{counted(record['described'], 'figure')} described, {counts}."
    return Printed(record, lambda _: [line], DONE_WITH_REFUSALS if record["refused"] else DONE)


_MAX_VALUE: Final = 160  # characters
_FIELD_LABELS: Final = {"open_access": "open access", "type": "kind"}


def paper_lines(record: api.results.PaperDetails) -> Iterator[str]:
    """Format metadata, findings of services, figure count, summary, the user's note, and the section tree."""
    known = record["metadata"]
    if known["status"]:
        yield f"{known['status'].upper()}\n"
    yield one_line(f"{record['key']}: {record['title']}")
    authors = ", ".join(record["authors"]) or "no authors"
    yield one_line(f"{authors} ({record['year'] or 'no year'}). {record['venue']} {record['doi']}".rstrip())
    yield f"File: {one_line(record['source'])}"
    if record["zotero"]:
        yield f"Zotero: {record['zotero']}"
    if record["ocr_pages"]:
        pages = record["ocr_pages"]
        starts = [page for page in pages if page - 1 not in pages]
        ends = [page for page in pages if page + 1 not in pages]
        runs = (f"{first}" if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True))
        yield f"Read by OCR: {'p.' if len(pages) == 1 else 'pp.'} {', '.join(runs)}"
    if record["figures"]:
        kinds = api.library_papers.count_kinds([figure["kind"] for figure in record["figures"]])
        yield one_line(f"It has {kinds}: {command('papers figures')} {record['key']}")
    if known["doi"] and not record["doi"]:
        yield f"doi: {known['doi']} (found by title)"
    yield from known_lines(known)
    yield f"\n{' '.join(record['summary'].split())}\n"
    if record["note"]:
        yield f"Your note:\n{record['note'].strip()}\n"
    yield from section_lines(record["sections"])


def section_lines(sections: Sequence[api.results.SectionRecord]) -> Iterator[str]:
    for section in sections:
        held = "no chunks" if section["searchable"] else "not searched"
        facts = [
            section["category"],
            _range("chunk", "chunks", section["chunk_range"]) if section["chunk_range"] else held,
        ]
        if section["page_range"]:
            facts.append(_range("p.", "pp.", section["page_range"]))
        indent = "  " * max(0, section["level"] - 1)
        yield f"{indent}{one_line(section['title']) or '(untitled)'} [{', '.join(facts)}]"


def _range(one: str, several: str, ends: Sequence[int]) -> str:
    return f"{one} {ends[0]}" if ends[0] == ends[1] else f"{several} {ends[0]}-{ends[1]}"


def text_lines(record: api.results.PaperDetails) -> Iterator[str]:
    """Format the searchable text, under its section titles."""
    yield f"# {one_line(record['title'])}"
    title = record["title"]
    for passage in record["text"]:
        if passage["section"] != title:
            title = passage["section"]
            page = f" (p. {passage['page']})" if passage["page"] is not None else ""
            yield f"\n## {one_line(title) or '(untitled)'}{page}"
        yield f"\n{passage['text']}"


def enrichment_lines(record: dict[str, Any]) -> Iterator[str]:
    """Format a lookup: the DOI and how it was found, or why it was not, then all findings."""
    key, doi, outcome = record["key"], record["doi"], record["outcome"]
    if outcome == "known":
        yield one_line(f"{key}: {doi}")
    elif outcome == "found":
        yield one_line(f"{key}: {doi} (found by title and authors, similarity {record['similarity']:.2f})")
    elif outcome == "unsure":
        yield one_line(f"{key}: unsure, so nothing was changed: {record['why']}.")
        yield "  If one of these is the paper, put its DOI into your .bib and ingest it again:"
        for work in record["candidates"]:
            place = f"({work['year'] or 'no year'}, {work['venue'] or 'no venue'}), similarity {work['similarity']:.2f}"
            yield one_line(f"  {work['doi']}: {shorten(work['title'], _MAX_VALUE)} {place}")
    elif outcome == "not-found":
        reason = f"no service knows {doi}" if doi else "no service has a paper with this title"
        yield one_line(f"{key}: {reason}.")
    else:
        yield one_line(f"{key}: not looked up, since no service answered.")
    yield from (f"  {line}" for line in known_lines(record))


def known_lines(known: dict[str, Any]) -> Iterator[str]:
    """Format notices, then missing and differing fields, each with its source."""
    yield from (one_line(line) for line in known["notices"])
    for field, item in known["filled"].items():
        yield one_line(f"{_FIELD_LABELS.get(field, field)}: {_show_value(item['value'])} ({item['service']})")
    for item in known["differences"]:
        own, said = _show_value(item["own"]), _show_value(item["said"])
        yield one_line(f"{item['field']} differs: {own} in your .bib, {said} at {item['service']}")


def _show_value(value: Any) -> str:
    if isinstance(value, list):
        names = [str(item) for item in value]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"{', '.join(names[:3])}{more}"
    return f"{value:,}" if isinstance(value, int) and value > 9999 else shorten(str(value), _MAX_VALUE)


_RERANK = 0.5  # weight of the cross-encoder if requested without a setting

NOTHING_NEAR = "No passage matches the words or the meaning of the query; these are the nearest ones."
NO_SUMMARY_NEAR = (
    "No summary or note matches the words or the meaning of the query; --fulltext searches the whole texts."
)

QueryArgument = Annotated[str, "What to look for."]


def search(query: QueryArgument, options: run_options.SearchOptions) -> Printed:
    """Find passages: by meaning, by words, or both.

    Example: citeloom search "prior probability of an edge" --category method --from-year 2015
    """
    api.early_loading.require_words(query)
    with home_session(reading=True, early="search", retrieval_mode=options.mode) as session:
        years = api.library_search.year_range(options.from_year, options.to_year)
        mode, rerank = session.settings.retrieval_mode, session.settings.rerank or _RERANK * options.rerank
        within = options.papers, options.categories, years, options.venue
        find = partial(api.library_search.search, session, query, options.limit, mode, *within)
        records = find(**options.labels(), rerank=rerank)
    return Printed(records, show_passages)


def show_passages(records: Sequence[api.results.FoundPassage]) -> None:
    if not records:
        notice("Nothing in the library matches.")
        return
    columns: Columns = {
        "": "",
        "key": "key",
        "page": lambda record: f"{record['page'] or ''}{' (OCR)' if record['ocr'] else ''}",
        "section": lambda record: one_line(record["section"]),
        "score": lambda record: f"{record['score']:.2f}",
        "sentence": _matching_cell,
    }
    table(counted(len(records), "passage"), records, columns, prose=("section", "sentence"))
    show_notices(records)
    if not any(record["near"] for record in records):
        notice(NOTHING_NEAR)


def find(
    query: QueryArgument,
    years: run_options.YearLimits,
    fulltext: Annotated[bool, "Search the full text instead of summaries and notes."] = False,
    page: Annotated[int, typer.Option(help="Page of results, ten papers each.", min=1)] = 1,
) -> Printed:
    """Find papers by summary and note, or by full text.

    Example: citeloom find "random permutation of networks" --fulltext --from-year 2015
    """
    api.early_loading.require_words(query)
    with home_session(reading=True) as session:
        by: Literal["text", "summary"] = "text" if fulltext else "summary"
        record = run_async(api.library_search.afind_papers(session, query, by, years.from_year, years.to_year, page))

    def show(record: api.results.FoundPapers) -> None:
        show_found(record, page, fulltext=fulltext)
        if record["next_page"]:
            notice(f"More: --page {record['next_page']}")

    return Printed(record, show)


def show_found(record: api.results.FoundPapers, page: int = 1, *, fulltext: bool, numbered: bool = False) -> None:
    """Print a table of found papers, or a notice if there are none."""
    papers = record["papers"]
    if not papers:
        nothing = "No paper matches." if fulltext else NO_SUMMARY_NEAR
        beyond = f"There is no page {page}: {counted(record['total'], 'paper')} in total, ten per page."
        notice(beyond if record["total"] else nothing)
        return
    columns: Columns = {
        **({"": ""} if numbered else {}),
        "key": "key",
        "year": "year",
        "title": lambda paper: one_line(paper["title"]),
        "score": lambda paper: f"{paper['score']:.2f}",
        "sentence": matching_line,
    }
    title = f"{len(papers)} of {counted(record['total'], 'paper')}, page {page}"
    table(title, papers, columns, prose=("title", "sentence"))
    show_notices(papers)


_LONGEST_SENTENCE = 240  # characters shown
_READ = 4_000  # characters whose markup is removed to show them


def _matching_cell(record: api.results.FoundPassage) -> str:
    """Format the matching sentence with its figure, and descriptions of figures that may have matched."""
    name = record["figure"]["name"] if record["figure"] else ""
    label = f"[{one_line(name)}] " if name and not record["sentence"].startswith(name) else ""
    described = [
        one_line(f"({item['figure']}, as {item['described_by']} describes it: {plain_sentence(item['description'])})")
        for item in record["described_figures"]
    ]
    return " ".join([with_status(record, f"{label}{plain_sentence(record['sentence'])}"), *described])


def show_notices(records: Sequence[Mapping[str, Any]]) -> None:
    notice(*dict.fromkeys(f"{record['key']}: {line}" for record in records for line in record.get("notices", ())))


def with_status(record: Mapping[str, Any], text: str) -> str:
    """Prefix the text with its paper's status, such as RETRACTED, if there is one."""
    return f"{record['status'].upper()}. {text}" if record.get("status") else text


def place_of(record: Mapping[str, Any]) -> str:
    page = f"p. {record['page']}" if record.get("page") else ""
    return ", ".join(part for part in (page, record.get("section", "")) if part)


def matching_line(record: Mapping[str, Any]) -> str:
    """Format the matching sentence of a paper or passage after its place or "your note", with the paper's status."""
    place = "your note" if record.get("matched") == "note" else place_of(record)
    sentence = plain_sentence(record["sentence"])
    return with_status(record, f"{place}: {sentence}" if place else sentence)


def plain_sentence(sentence: str) -> str:
    """Return a sentence of a paper without markup, truncated if long."""
    from ..documents.plain_text import plain_text  # slow import

    return shorten(plain_text(sentence[:_READ]), _LONGEST_SENTENCE)
