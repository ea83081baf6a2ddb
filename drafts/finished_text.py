"""Finishes a draft for the reader: replaces invalid citations and reports the findings that remain.

With `strict`, sentences that fail a check are left out. A section repeats the user's own statements and citations; an
answer that cites nothing says what was searched instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..citations.checks.draft_checks import check_draft, replace_invalid_citations
from ..citations.checks.findings import Finding
from ..citations.checks.support_findings import absence_findings, support_findings
from ..citations.citation_styles import MarkedSentence, leave_out, marked_sentences
from ..citations.export.section_files import section_title
from ..citations.markers import marker_ids, normalise_markers
from ..citations.user_citations import insert_user_statements, left_to_other_sections
from ..experiment import experiment_warnings
from ..plurals import counted
from ..roles.protocols import AnswerBrief, Draft
from ..text.words import foreign_language
from .written_draft import QuestionSearch, WrittenDraft, searches_of

# "passages": passages close to the question that no model has judged; whether they answer it is unknown.
Outcome = Literal["answered", "passages", "nothing"]
_NO_ANSWER = "The library does not answer this question"
_NO_QUESTION = "You asked for nothing to look up, so nothing was searched. What would you like to know?"
_IN_ENGLISH = (
    "The question seems to be in {language}, and the bundled models know English only. Ask in English, or use a"
    " multilingual embedding model (CITELOOM_EMBEDDING_MODEL)."
)
_NONE_READ = (
    "The model could read none of the {passages}: its answers were not valid. Whether the library answers this question"
    " is unknown. Use another chat model (CITELOOM_CHAT_MODEL); `citeloom setup` tries one."
)
_ALL_LEFT_OUT = "Every sentence of the answer failed a check and was left out, as requested."


@dataclass(frozen=True, slots=True)
class FinishedText:
    """A draft that is safe to show, still with its markers.

    `text` ends with the `tables`, which are not checked again. `replaced` are findings whose words were replaced,
    `left` those that remain in the text, and `out` the sentences that a strict run leaves out; the spans `unmarked` get
    no marks, and the citations of the sentences `typed` stay where the user typed them. `lost` are warnings about what
    the text lacks.
    """

    written: WrittenDraft
    text: str = ""
    lost: Sequence[str] = ()
    replaced: Sequence[Finding] = ()
    left: Sequence[Finding] = ()
    out: Sequence[MarkedSentence] = ()
    unmarked: Sequence[tuple[int, int]] = ()
    typed: frozenset[str] = frozenset()
    tables: str = ""

    @property
    def prose(self) -> str:
        """The text without the tables at its end."""
        return self.text.removesuffix(self.tables)

    @property
    def title(self) -> str:
        """The heading of a section, or the question."""
        brief = self.written.brief
        return brief.question if isinstance(brief, AnswerBrief) else section_title(brief.kind)

    @property
    def input_warnings(self) -> list[str]:
        """Warnings about the experiment."""
        brief = self.written.brief
        return [] if isinstance(brief, AnswerBrief) else experiment_warnings(brief.experiment)


def finish_text(
    written: WrittenDraft,
    known_keys: Sequence[str],
    *,
    strict: bool,
    extractive: bool,
    earlier: Mapping[str, str] | None = None,
) -> FinishedText:
    """Remove from the draft whatever must not reach the reader; blocks.

    `known_keys` are those of the library. An `extractive` draft has the user's words and verbatim quotes only, and is
    not checked. `earlier` are the finished texts of a paper's previous sections by name; repeating them is a finding.
    """
    brief, draft, sources = written.brief, written.draft, written.sources
    final = FinishedText(written, draft.text, written.lost)
    cited = {*marker_ids(normalise_markers(draft.text))} & {source.evidence.id for source in sources}
    if isinstance(brief, AnswerBrief) and written.search and not cited:
        return replace(final, text=_nothing_found(written, written.search, len(known_keys), judged=not extractive))
    tables = "".join(f"\n\n{table}" for table in written.tables)
    if extractive:
        return replace(final, text=final.text + tables, tables=tables)
    lead = f"{_NO_ANSWER}.\n\n" if draft.declined and isinstance(brief, AnswerBrief) else ""
    text, replaced = replace_invalid_citations(
        lead + draft.text, sources, brief.experiment.words, known_keys=known_keys, word_for_word=brief.word_for_word
    )
    lost = list(written.lost)
    if not isinstance(brief, AnswerBrief):
        before = list((earlier or {}).values())
        text = insert_user_statements(text, brief.kind, brief.experiment, before, known_keys)
        lost += left_to_other_sections(text, brief.kind, brief.experiment, before, known_keys)

    def check(text: str) -> list[Finding]:
        # Marking may fix more or less than it names, so only what remains in the text is reported.
        drafted, own = Draft(text, draft.truncated), brief.experiment
        known: dict[str, Any] = {"experiment": own, "known_keys": known_keys, "preferences": brief.preferences}
        found = [*check_draft(drafted, sources, kind=brief.kind, earlier=earlier, **known)]
        found += support_findings(text, written.verdicts)
        found += [item for item in absence_findings(text, written.unmet) if not item.span or item.span[0] >= len(lead)]
        return found

    text, left, out = _check_text(text, check, strict=strict, kind=brief.kind)
    if not text and isinstance(brief, AnswerBrief):
        text = _ALL_LEFT_OUT
    return replace(final, text=text + tables, tables=tables, lost=lost, replaced=replaced, left=left, out=out)


def _check_text(
    text: str, check: Callable[[str], list[Finding]], *, strict: bool, kind: str
) -> tuple[str, list[Finding], list[MarkedSentence]]:
    """Check the text; with `strict`, leave out failing sentences until none is left: each removal may break another."""
    out: list[MarkedSentence] = []
    while True:
        found = check(text)
        failing = marked_sentences(text, found) if strict else []
        if not failing:
            return text, found, out
        out += failing
        text = leave_out(text, failing)
        if not any(map(str.isalnum, text)):
            nothing = f"Nothing is left of the {kind}: every sentence failed a check and was left out."
            return "", [Finding("empty", nothing)], out


def _nothing_found(written: WrittenDraft, search: QuestionSearch, papers: int, *, judged: bool) -> str:
    """The message if no passage was found; only if a reader `judged` can it say that the library has no answer."""
    if search.route["kind"] == "remark":
        return _NO_QUESTION
    language = foreign_language(written.brief.question) if isinstance(written.brief, AnswerBrief) else ""
    shown, lost = (sum(record[name] for record in searches_of(written.queries)) for name in ("shown", "unreadable"))
    if lost and lost == shown:
        return _NONE_READ.format(passages=counted(lost, "passage"))
    passages = counted(shown - lost, "passage")
    looked = counted(len(search.shortlist), "paper")
    if search.route["track"] == "one_paper":
        looked_at = f"{passages} of {search.shortlist[0]}"
    elif search.route["papers"] or search.limited:
        looked_at = f"{passages} of the {looked} named"
    else:
        looked_at = f"{passages} of the {looked} nearest by summary among {counted(papers, 'paper')}"
    said = (
        f"{_NO_ANSWER}: no relevant passage was found."
        if judged
        else "Nothing near: no passage of the library is near to this question."
    )
    lines = [f"{said} Looked at: {looked_at}.", *([_IN_ENGLISH.format(language=language)] if language else [])]
    return "\n\n".join(lines)
