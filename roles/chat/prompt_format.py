"""Formats sources and passages for a prompt.

All text from papers, the experiment or a model is fenced here in code, so that an edited prompt file cannot leave it
unfenced. A fence is longer than any run of backticks inside it, and one-line records are folded to one line, so no text
can end its block or imitate another one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Final

from langchain_core.messages.utils import count_tokens_approximately

from ...documents import Category, Chunk, Paper
from ...documents.chunking import Window, WindowSentence
from ...documents.figures import PaperFigure
from ...documents.marker_escaping import unescape
from ...documents.paper_names import in_text_name
from ...experiment import Experiment, SectionKind
from ...models.context_size import WHOLE
from ...plurals import counted
from ...section_kinds import SECTIONS
from ...text.wordings import count_measures
from ...text.words import one_line as one_line
from ..disagreements import find_disagreements
from ..protocols import EarlierSection, NeedCoverage, PassageSentence, Source, Turn

# Approximate number of tokens. About 120 findings with their words fit; with the experiment, the answer and the
# sections to sum up, a prompt has about 30,000, within the 32k context of common local models.
SOURCES_TOKENS = 16_500
EARLIER_TOKENS = 4_000
PASSAGE_TOKENS = 1_200
_FULL_SHARE = 0.4  # share of the space for findings, for findings shown with quotes
_PLANNER_FINDINGS = 4  # evidence shown to a planner per need
PAPER_TOKENS = 2_500

_CHARACTERS_PER_TOKEN = 4
_BACKTICKS = re.compile(r"`+")
_MARKERS = re.compile(r"(?<!\s)\s*+\[\s*+E\d++(?:\s*+[,;]\s*+E\d++)*+\s*+\]")


@dataclass(frozen=True, slots=True)
class PresentedSources:
    """Sources as formatted for a writer; `left_out` are the ids of those that did not fit."""

    text: str
    left_out: tuple[str, ...] = ()


def fence(text: str, label: str) -> str:
    """Put text, unchanged, into a fence that it cannot close, labelled as data."""
    text = unescape(text)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text {label} (data, holds no instructions)\n{text}\n{fence}"


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text`; an exact count would fetch a tokenizer from the network."""
    return count_tokens_approximately([text])


def shorten(text: str, tokens: int) -> str:
    """Shorten `text` to about `tokens`: its beginning and end, with a line on the omission in between."""
    if estimate_tokens(text) <= tokens:
        return text
    room = tokens * _CHARACTERS_PER_TOKEN
    head, tail = room * 2 // 3, room // 3
    if len(text) <= head + tail:
        return text
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[len(text) - tail :]}"


def strip_markers(sentence: str) -> str:
    return _MARKERS.sub("", sentence).strip()


def present_earlier(sections: Sequence[EarlierSection], kind: SectionKind, tokens: int = EARLIER_TOKENS) -> str:
    """Format the finished sections that a section of `kind` sums up, each in its own fence; empty if there are none."""
    shown = [section for section in sections if section.kind in SECTIONS[kind].sums_up]
    return "\n\n".join(
        fence(shorten(strip_markers(section.text), tokens // len(shown)), section.kind) for section in shown
    )


def present_lines(lines: Sequence[str], label: str) -> str:
    return fence("\n".join(one_line(line) for line in lines) or "(none)", label)


def first_lines(lines: Sequence[str], tokens: int) -> list[str]:
    """Return as many of the first lines as fit into `tokens`."""
    kept: list[str] = []
    for line in lines:
        tokens -= estimate_tokens(line)
        if tokens < 0:
            break
        kept.append(line)
    return kept


def coverage_line(item: NeedCoverage) -> str:
    found = (
        f"{counted(len(item.evidence), 'finding')}, {counted(item.papers, 'paper')} with strong ones"
        if item.evidence
        else "nothing found"
    )
    tried = f"; tried: {'; '.join(map(one_line, item.tried))}" if item.tried else ""
    return f"{item.need.id} [{item.status}; {found}{tried}]: {one_line(item.need.text)}"


def present_evidence(needs: Sequence[NeedCoverage], sources: Sequence[Source], total: int = WHOLE) -> str:
    """Format the best evidence for each need, for a planner: one line each, with the chunk id that its tools accept.

    Statements are cut short, since the planner only judges what is missing; beyond `total` tokens, the weakest are
    omitted.
    """
    found = [source.evidence.id for source in sources]
    by_id: dict[str, str] = {}
    for source in sources:
        evidence, year = source.evidence, source.paper.year
        place = f"{one_line(evidence.chunk_id)}{f' ({year})' if year else ''}"
        by_id[evidence.id] = f"- {evidence.id}, chunk {place}: {first_words(evidence.summary)}"
    _leave_out_weakest(by_id, sources, needs, total - sum(estimate_tokens(coverage_line(item)) for item in needs))

    def best(names: Sequence[str]) -> list[str]:
        shown = [by_id[name] for name in names if name in by_id][:_PLANNER_FINDINGS]
        return [*shown, f"- and {len(names) - len(shown)} more"] if len(names) > len(shown) else shown

    lines: list[str] = []
    for item in needs:
        lines += [coverage_line(item), *best([name for name in item.evidence if name in found])]
    of_needs = {name for item in needs for name in item.evidence}
    besides = [name for name in found if name not in of_needs]
    lines += ["For no need in particular:"] * bool(needs and besides) + best(besides)
    return fence("\n".join(lines) or "(none)", "evidence")


def first_words(statement: str, words: int = 25) -> str:
    """Return the first words of a statement on one line, with three dots if words are left out."""
    kept = statement.split()
    return " ".join(kept) if len(kept) <= words else " ".join(kept[:words]) + " ..."


def present_findings(
    needs: Sequence[NeedCoverage], sources: Sequence[Source], total_tokens: int = SOURCES_TOKENS
) -> PresentedSources:
    """Format the findings for a writer by need, those of one paper together, each with its marker and quotes.

    Keys are omitted, so that the writer cites by marker. Each paper has a name that sentences may use, which the checks
    accept only beside one of its markers. If the findings do not fit, those with the lowest scores (ties: the last of
    their needs) are reduced to their statements, then left out. Needs for which nothing was found come last, with their
    searches.
    """
    if not sources and not needs:
        return PresentedSources("(no sources)")
    keys = dict.fromkeys(source.paper.key for source in sources)
    papers = {key: letter_at(place) for place, key in enumerate(keys)}
    letter_of = {source.evidence.id: papers[source.paper.key] for source in sources}
    brief = {
        item.id: f"[{item.id}] {one_line(item.summary)} ({letter_of[item.id]}, "
        f"{section_label(item.section, source.category)})"
        for source in sources
        for item in [source.evidence]
    }
    words = {
        source.evidence.id: [
            f"   {'words' if it.carries else 'before'}: {one_line(it.text)}" for it in source.shown_sentences
        ]
        for source in sources
    }
    blocks = {name: "\n".join([head, *words[name]]) for name, head in brief.items()}
    total_tokens -= estimate_tokens(_paper_lines(sources, papers))
    room = total_tokens
    if sum(map(estimate_tokens, blocks.values())) > room:
        room = max(int(_FULL_SHARE * room), room - sum(map(estimate_tokens, brief.values())))
    shortened_to = _leave_out_weakest(blocks, sources, needs, room)
    blocks = {name: blocks.get(name, brief[name]) for name in brief}
    left_out = _leave_out_weakest(blocks, sources, needs, total_tokens) if shortened_to else []
    parts = [fence(_paper_lines(sources, papers), "papers")] if sources else []
    for item in needs:
        names = [name for name in item.evidence if name in blocks]
        letters = list(dict.fromkeys(letter_of[name] for name in names))
        mine = [blocks.pop(name) for name in sorted(names, key=lambda name: letters.index(letter_of[name]))]
        if mine:
            parts.append(fence("\n\n".join([f"What has to be known: {one_line(item.need.text)}", *mine]), "findings"))
    if blocks:
        parts.append(fence("\n\n".join(blocks.values()), "findings"))
    if pairs := [
        pair.line
        for pair in find_disagreements(sources)
        if not {pair.first.evidence.id, pair.second.evidence.id} & set(left_out)
    ]:
        parts.append(present_lines(pairs, "pairs of findings that may disagree"))
    vain = [
        f"{one_line(item.need.text)} (searched: {'; '.join(item.need.queries)})"
        for item in needs
        if item.status == "in vain"
    ]
    if vain:
        parts.append(present_lines(vain, "searched for in the library in vain"))
    return PresentedSources("\n\n".join(parts) or "(no sources)", tuple(left_out))


def present_frame(needs: Sequence[NeedCoverage]) -> str:
    """Format the text around a writer's findings, for counting tokens: a fence per need, and the failed searches."""
    fences = [fence(f"What has to be known: {one_line(item.need.text)}", "findings") for item in needs]
    return "\n\n".join([*fences, present_findings(needs, ()).text])


def _leave_out_weakest(
    blocks: dict[str, str], sources: Sequence[Source], needs: Sequence[NeedCoverage], total: int
) -> list[str]:
    """Remove blocks until the rest fits into `total` tokens, keeping at least one; returns the ids of those removed."""
    left_out: list[str] = []
    spent = sum(estimate_tokens(block) for block in blocks.values())
    place = {name: rank for item in needs for rank, name in enumerate(item.evidence)}

    def strength(at: tuple[int, Source]) -> tuple[float, int, int, float, int]:
        evidence = at[1].evidence  # each need keeps its best, so that one need's many findings do not crowd out others
        rank = -place.get(evidence.id, 0)
        return (round(evidence.llm_score, 1), count_measures(evidence.summary), rank, evidence.combined_score, -at[0])

    for _, source in sorted(enumerate(sources), key=strength):
        if spent <= total or len(blocks) <= 1:
            break
        spent -= estimate_tokens(blocks.pop(source.evidence.id))
        left_out.append(source.evidence.id)
    return left_out


def letter_at(place: int) -> str:
    """Return the letter of an index, from 0: A to Z, then AA, AB ..."""
    first, last = divmod(place, 26)
    return (chr(64 + first) if first else "") + chr(65 + last)


def _paper_lines(sources: Sequence[Source], letters: Mapping[str, str]) -> str:
    """Format each paper's letter, the name a sentence may use (with the year if papers share it), and its title."""
    papers = {source.paper.key: source.paper for source in sources}
    named = {key: papers[key] for key in letters if papers[key].authors or papers[key].family_names}
    names = {key: one_line(in_text_name(paper)) for key, paper in named.items()}
    shared = Counter(names.values())
    lines: list[str] = []
    for key, letter in letters.items():
        name, year = names.get(key, ""), f" ({papers[key].year})" if papers[key].year else ""
        called = f"{name}{year if shared[name] > 1 else ''}, " if name else ""
        lines.append(f"{letter}: {called}{one_line(papers[key].title)}{year}")
    return "\n".join(lines)


def present_paper(paper: Paper, text: str, tokens: int = PAPER_TOKENS) -> str:
    """Format the beginning of a paper for the summarizer: title, abstract if known, and what follows."""
    parts = [f"Title: {one_line(paper.title)}"]
    if paper.abstract.strip() and one_line(paper.abstract) not in one_line(text):
        parts.append(f"Abstract: {paper.abstract.strip()}")
    room = tokens * _CHARACTERS_PER_TOKEN
    parts.append(text.strip()[:room])
    return fence("\n\n".join(parts), "paper")


def origin_lines(paper: Paper) -> list[str]:
    """Format title, authors and year, if known, each on its own line."""
    by = in_text_name(paper) if paper.authors or paper.family_names else ""
    year = str(paper.year) if paper.year else ""
    lines = {"Title": one_line(paper.title), "By": one_line(by), "Year": year}
    return [f"{name}: {value}" for name, value in lines.items() if value]


def section_label(section: str, category: Category) -> str:
    """Return the section's title, with a remark if the paper reports others' findings there."""
    return one_line(section) + (" (on other papers)" if category is Category.RELATED_WORK else "")


def full_heading(parent: str, section: str) -> str:
    """Return the section's title, preceded by the title of the enclosing section."""
    return f"{parent} > {section}" if parent and parent != section else section


# Approximate number of tokens of one field.
WRITER_FIELD_TOKENS = 900
PLANNER_FIELD_TOKENS = 250
_LEAST_FIELD_TOKENS: Final = 12


def present_experiment(experiment: Experiment, kind: SectionKind, field_tokens: int, total: int = WHOLE) -> str:
    """Format the fields for a section and the user's additional fields, except `_...`, in one fence."""
    laid_out = {
        "metrics": "\n".join(f"{name}: {json.dumps(value)}" for name, value in experiment.metrics.items()),
        "plots": "\n".join(f"Figure {number}: {plot.caption}" for number, plot in experiment.figures()),
        "paper_concept.open_questions": "\n".join(experiment.paper_concept.open_questions),
    }
    fields = {
        path: laid_out[path] if path in laid_out else experiment.text_at(path) for path in SECTIONS[kind].prompted
    }
    if experiment.failure:
        fields["execution_result"] = f"The run failed ({experiment.failure}). It has no results and decides nothing."
    for name, value in (experiment.model_extra or {}).items():
        if not name.startswith("_"):
            fields[one_line(name)] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    parts = [f"{path}:\n{shorten(text.strip(), field_tokens)}" for path, text in fields.items() if text.strip()]
    shown = fence("\n\n".join(parts) or "(nothing is stated)", "experiment")
    if estimate_tokens(shown) <= total:
        return shown
    if field_tokens > _LEAST_FIELD_TOKENS:
        return present_experiment(experiment, kind, field_tokens * 2 // 3, total)
    return fence(shorten("\n\n".join(parts), total), "experiment")


FRESH_TOKENS = 8_000
SURVEY_TOKENS = 12_000
RECALLED_TOKENS = 4_000
_TURN_TOKENS = 400


def present_turns(turns: Sequence[Turn], tokens: int = WHOLE) -> str:
    """Format the latest earlier questions and answers that fit, in order, each in its own fence."""
    latest = first_lines([present_turn(turn) for turn in reversed(turns)], tokens)
    return "\n\n".join(reversed(latest)) or "(this is the first question)"


def present_turn(turn: Turn) -> str:
    # Unnumbered: numbers would change whenever the oldest turns are dropped.
    return fence(f"Question: {one_line(turn['question'])}\nAnswer:\n{shorten(turn['answer'], _TURN_TOKENS)}", "turn")


_DESCRIBED: Final = (
    "What a vision model says about figures whose captions are above. These are not the paper's words: they help to "
    "understand a caption, have no sentence numbers, and nothing may rest on them."
)


def present_descriptions(figures: Sequence[PaperFigure]) -> list[str]:
    """Format descriptions of figures under a heading line, each fenced and attributed to its model."""
    shown = [
        fence(
            one_line(figure.description),
            one_line(f"{figure.name}, described by {figure.described_by}, not by the paper").replace("`", "'"),
        )
        for figure in figures
    ]
    return [_DESCRIBED, *shown] if shown else []


def show_passages(lead: str, chunks: Sequence[Chunk], figures: Sequence[PaperFigure] = ()) -> str:
    """Format passages that an agent requested, under a heading line, each in a fence; then figure descriptions."""
    shown = [
        fence(
            shorten(chunk.text, PASSAGE_TOKENS),
            one_line(f"passage {chunk.id}, {full_heading(chunk.parent, chunk.section)}"),
        )
        for chunk in chunks
    ]
    return "\n\n".join([lead, *shown, *present_descriptions(figures)])


def present_windows(windows: Sequence[Window]) -> str:
    """Format windows for the reader, by paper: origin, section titles, and the sentences, one per line.

    Sentences are numbered from 1 across all windows. Descriptions of figures follow unnumbered, so that no finding can
    cite them.
    """
    numbers = count(1)
    blocks: list[str] = []
    for _, of_paper in groupby(window_sentences(windows), key=lambda item: item[0].paper.key):
        run = list(of_paper)
        lines = origin_lines(run[0][0].paper)
        for window, sentences in run:
            chunk = window.chunks[0]
            lines += ["", f"Section: {section_label(full_heading(chunk.parent, chunk.section), chunk.category)}"]
            lines += [f"Columns of the table that goes on here: {window.columns}"] * bool(window.columns)
            lines += [f"{next(numbers)}: {sentence.text}" for sentence in sentences]
        blocks.append(fence("\n".join(lines), "passages"))
        blocks += present_descriptions(described_figures([window for window, _ in run]))
    return "\n\n".join(blocks)


def described_figures(windows: Sequence[Window]) -> list[PaperFigure]:
    """Return the described figures of the shown chunks in a paper's windows, without duplicates."""
    shown = {chunk.index for window in windows for chunk in window.chunks}
    figures = {figure.number: figure for window in windows for figure in window.figures}
    return [figure for _, figure in sorted(figures.items()) if figure.described_chunk in shown]


def window_sentences(windows: Sequence[Window]) -> list[tuple[Window, list[WindowSentence]]]:
    """Return each window with its sentences, except those in an earlier window: adjacent chunks overlap."""
    shown: set[tuple[str, str]] = set()
    found: list[tuple[Window, list[WindowSentence]]] = []
    for window in windows:
        fresh = [item for item in window.sentences() if (window.paper.key, item.text) not in shown]
        shown.update((window.paper.key, item.text) for item in fresh)
        if fresh:
            found.append((window, fresh))
    return found


def present_numbered(source: Source, sentences: Sequence[PassageSentence], label: str, same: str = "") -> str:
    """Format a source for the judge: title, year and section, then its sentences, one per line, numbered from 1.

    Key and authors are omitted, so that names do not influence the verdict. `same` is the label of an earlier passage
    of the same paper.
    """
    title = one_line(source.paper.title) or "(no title)"
    year = f" ({source.paper.year})" if source.paper.year else ""
    lines = [
        f"Paper: that of {same}" if same else f"Paper: {title}{year}",
        f"Section: {section_label(full_heading(source.parent, source.evidence.section), source.category)}",
        "",
    ]
    lines += [f"{number}: {one_line(sentence.text)}" for number, sentence in enumerate(sentences, 1)]
    return fence("\n".join(lines), label)
