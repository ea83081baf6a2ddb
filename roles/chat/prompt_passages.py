"""Formats passages of papers for a model: fenced, separated from instructions, with numbered sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, groupby
from typing import Final

from ...documents import Chunk
from ...documents.chunking import Window, WindowSentence
from ...documents.figures import PaperFigure
from ...text.sentences import sentence_spans
from ..inputs import PassageSentence, Source
from .prompt_format import PASSAGE_TOKENS, fenced, heading_of, one_line, origin_lines, place_of, shortened, tokens_of

_DESCRIBED: Final = (
    "What a vision model says about figures whose captions are above. These are not the paper's words: they help to "
    "understand a caption, have no sentence numbers, and nothing may rest on them."
)


def present_descriptions(figures: Sequence[PaperFigure]) -> list[str]:
    """Descriptions of figures under a line of ours, each fenced and marked as its model's; none without figures."""
    shown = [
        fenced(
            one_line(figure.description),
            one_line(f"{figure.name}, described by {figure.described_by}, not by the paper").replace("`", "'"),
        )
        for figure in figures
    ]
    return [_DESCRIBED, *shown] if shown else []


def show_passages(lead: str, chunks: Sequence[Chunk], figures: Sequence[PaperFigure] = ()) -> str:
    """Passages that an agent requested, each in its own fence, under a line of ours; then descriptions of figures."""
    shown = [
        fenced(
            shortened(chunk.text, PASSAGE_TOKENS),
            one_line(f"passage {chunk.id}, {heading_of(chunk.parent, chunk.section)}"),
        )
        for chunk in chunks
    ]
    return "\n\n".join([lead, *shown, *present_descriptions(figures)])


def present_windows(windows: Sequence[Window]) -> str:
    """Windows for the reader, grouped by paper: origin, section titles, and the sentences, one per line.

    Sentences are numbered from 1 through all windows. Descriptions of figures follow apart, without numbers, so that no
    finding can name them.
    """
    numbers = count(1)
    blocks: list[str] = []
    for _, of_paper in groupby(sentences_of(windows), key=lambda item: item[0].paper.key):
        run = list(of_paper)
        lines = origin_lines(run[0][0].paper)
        for window, sentences in run:
            chunk = window.chunks[0]
            lines += ["", f"Section: {place_of(heading_of(chunk.parent, chunk.section), chunk.category)}"]
            lines += [f"{next(numbers)}: {sentence.text}" for sentence in sentences]
        blocks.append(fenced("\n".join(lines), "passages"))
        blocks += present_descriptions(figures_of([window for window, _ in run]))
    return "\n\n".join(blocks)


def figures_of(windows: Sequence[Window]) -> list[PaperFigure]:
    """The described figures of windows of one paper, each once, without those of chunks that are not shown."""
    shown = {chunk.index for window in windows for chunk in window.chunks}
    figures = {figure.number: figure for window in windows for figure in window.figures}
    return [figure for _, figure in sorted(figures.items()) if figure.described_chunk in shown]


def sentences_of(windows: Sequence[Window]) -> list[tuple[Window, list[WindowSentence]]]:
    """Each window with its sentences, without those of an earlier window: neighbouring chunks share words."""
    shown: set[tuple[str, str]] = set()
    found: list[tuple[Window, list[WindowSentence]]] = []
    for window in windows:
        fresh = [item for item in window.sentences() if (window.paper.key, item.text) not in shown]
        shown.update((window.paper.key, item.text) for item in fresh)
        if fresh:
            found.append((window, fresh))
    return found


def numbered_sentences(text: str, start: int, end: int, tokens: int) -> list[tuple[int, int]]:
    """Spans of the sentences of `text` that a judge is shown: all, or as many around `text[start:end]` as fit.

    Rules of tables are left out; a text without a letter or digit is one span.
    """
    spans = [(left, right) for left, right in sentence_spans(text) if any(map(str.isalnum, text[left:right]))]
    if not spans:
        return [(0, len(text))]
    inside = [place for place, (left, right) in enumerate(spans) if left < end and start < right] or [0]
    low, high = inside[0], inside[-1]
    room = tokens - sum(tokens_of(text[left:right]) for left, right in spans[low : high + 1])
    while (low > 0 or high < len(spans) - 1) and room > 0:
        after = high < len(spans) - 1 and (low == 0 or high - inside[-1] <= inside[0] - low)
        place = high + 1 if after else low - 1
        room -= tokens_of(text[slice(*spans[place])])
        if room >= 0:
            low, high = min(low, place), max(high, place)
    return spans[low : high + 1]


def present_numbered(source: Source, sentences: Sequence[PassageSentence], label: str, same: str = "") -> str:
    """A source for the judge: title, year and section, then its sentences, one per line, numbered from 1.

    Key and authors are omitted, so that names do not influence the verdict. `same` is the passage that already showed
    the title.
    """
    title = one_line(source.paper.title) or "(no title)"
    year = f" ({source.paper.year})" if source.paper.year else ""
    lines = [
        f"Paper: that of {same}" if same else f"Paper: {title}{year}",
        f"Section: {place_of(source.evidence.section, source.category)}",
        "",
    ]
    lines += [f"{number}: {one_line(sentence.text)}" for number, sentence in enumerate(sentences, 1)]
    return fenced("\n".join(lines), label)
