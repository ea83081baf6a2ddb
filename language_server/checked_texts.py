"""Converts the results of a check for editors: diagnostics, quick fixes, symbols and verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types as lsp
from pygls.workspace import Workspace

from ..api import checking, citing, library_papers, results
from ..api.messages import shorten
from ..errors import CiteloomError
from .manuscript_documents import CitedKey, ManuscriptDocument, cited_keys, open_document

if TYPE_CHECKING:
    from ..api.homes import Session

_SEVERITIES: Final = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
# For each format, a citation in a sentence that has none, and a key added to a citation.
_CITING: Final = {
    ".tex": ("~\\cite{%s}", ",%s"),
    ".typ": (" @%s", " @%s"),
    ".org": (" [cite:@%s]", ";@%s"),
}
_PANDOC_CITING: Final = (" [@%s]", "; @%s")
_EMPTY: Final = re.compile(r"cite[A-Za-z]{0,20}\*?(?:\[[^\[\]]{0,200}\]){0,2}\{\}|\[@\]")
SOFTENED: Final = "claim-overstated"  # the rule whose sentences can be softened
_OFFERED: Final = 3
_SHOWN: Final = 80  # characters of a title or a sentence


@dataclass(frozen=True)
class CheckedText:
    """The result of checking one version of a document; `judged` has the sentences that a model judged, by claim."""

    version: int
    read: citing.ReadText
    result: checking.CheckResult
    sentences: tuple[checking.SentenceRecord, ...]
    judged: dict[str, checking.SentenceRecord]
    keys: tuple[CitedKey, ...]

    def at(self, start: int, end: int) -> Iterator[checking.SentenceRecord]:
        """Yield the main file's sentences that overlap a span."""
        for sentence in self.sentences:
            first, last = _span(sentence)
            if first <= end and start <= last:
                yield sentence

    def verdict(self, document: ManuscriptDocument, place: int) -> list[str]:
        """Return the check's result for the sentence at an offset, as lines of markdown."""
        found = next(self.at(place, place), None) if self.version == document.version else None
        if found is None:
            return []
        name = [f"**{checking.LABELS[found['label']]}**"] if found["label"] != "unjudged" else []
        return [*name, *checking.problem_lines(found)]


def _span(sentence: checking.SentenceRecord) -> tuple[int, int]:
    return sentence["place"]["start"] or 0, sentence["place"]["end"] or 0


async def check_document(
    session: Session, document: ManuscriptDocument, parts: Sequence[checking.CheckPart], max_calls: int
) -> CheckedText:
    """Check a document's current text."""
    version, source = document.version or 0, document.source  # the document may change during the check
    read = await citing.aread_text(session, document.file, source)
    result = await checking.acheck_read(session, read, only=parts, max_calls=max_calls)
    main = read.manuscript.files[0]
    sentences = tuple(item for item in result["sentences"] if item["place"]["file"] == main)
    judged = {item["claim"]: item for item in sentences if item["label"] not in ("unjudged", "unread")}
    keys = tuple(cited_keys(source, document.suffix))
    return CheckedText(version, read, result, sentences, judged, keys)


def keep_verdicts(checked: CheckedText, other: CheckedText) -> CheckedText:
    """Add the verdicts of another check of the document for sentences whose words are the same."""
    judged = other.judged | checked.judged
    sentences: list[checking.SentenceRecord] = []
    for item in checked.sentences:
        if item["label"] == "unjudged" and (found := other.judged.get(item["claim"])):
            label, reason = found["label"], found["reason"]
            item = {
                **item,
                "label": label,
                "reason": reason,
                "sources": found["sources"],
                "elsewhere": found["elsewhere"],
            }
        sentences.append(item)
    kept = {item["claim"]: judged[item["claim"]] for item in sentences if item["claim"] in judged}
    return replace(checked, sentences=tuple(sentences), judged=kept)


def diagnostics(document: ManuscriptDocument, checked: CheckedText) -> list[lsp.Diagnostic]:
    """Return a document's problems, each at the citation key concerned, else at its sentence."""
    found: list[lsp.Diagnostic] = []

    def add(span: tuple[int, int], rule: str, severity: str, message: str) -> None:
        place = document.range(*span)
        found.append(lsp.Diagnostic(place, message, _SEVERITIES[severity], code=rule, source="citeloom"))

    for sentence in checked.sentences:
        first, last = _span(sentence)
        near = [f"{item['key']}: \u201c{shorten(item['shown'], 160)}\u201d" for item in sentence["elsewhere"][:1]]
        for rule, severity, message in checking.problems(sentence):
            if rule == "claim-not-in-library":
                continue  # shown by a hover; as diagnostics they would hide the others
            keys = [key for key in checked.keys if first <= key.start <= last and message.startswith(f"{key.key} ")]
            span = (keys[0].start, keys[0].end) if keys else (first, last)
            add(span, rule, severity, "\n".join([message, *near]))
    for entry in checked.result["references"]:
        cited = [key for key in checked.keys if key.key == entry["key"]]
        for found_fault in entry["faults"] if cited else ():
            for key in cited if found_fault["rule"] == "retracted" else cited[:1]:
                add((key.start, key.end), found_fault["rule"], found_fault["severity"], found_fault["message"])
    return found


async def code_actions(
    session: Session,
    document: ManuscriptDocument,
    checked: CheckedText,
    span: tuple[int, int],
    given: Sequence[lsp.Diagnostic],
    workspace: Workspace,
) -> list[lsp.CodeAction]:
    """Return the quick fixes at a span: cite another paper, add a citation or an entry, show a paper's words."""
    actions: list[lsp.CodeAction] = []

    def add(
        title: str, edits: dict[str, list[lsp.TextEdit]] | None, *rules: str, command: lsp.Command | None = None
    ) -> None:
        meant = [item for item in given if item.code in rules]
        edit = lsp.WorkspaceEdit(edits) if edits else None
        actions.append(lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, meant or None, edit=edit, command=command))

    for sentence in checked.at(*span):
        first, last = _span(sentence)
        keys = [key for key in checked.keys if first <= key.start <= last]
        rules = [rule for rule, _, _ in checking.problems(sentence)]
        if sentence["label"] == "overstated":
            _add_softer(session, document, sentence, keys, add)
        offered: Sequence[checking.PassageRecord | results.SuggestedCitation] = sentence["elsewhere"]
        if not keys and not offered:
            offered = (await citing.asuggest_citations(session, sentence["claim"], most=_OFFERED))["papers"]
        for item in offered:
            own, what = checked.read.keys.get(item["key"], item["key"]), shorten(item["title"], _SHOWN)
            where = f", p. {item['page']}" if item["page"] is not None else ""
            if len(keys) == 1:
                edit = lsp.TextEdit(document.range(keys[0].start, keys[0].end), own)
                add(f"Cite {own}{where} instead: {what}", {document.uri: [edit]}, *rules)
            edit = _insert_citation(document, keys, first, last, own)
            add(f"Cite {own}{where}{' as well' if keys else ''}: {what}", {document.uri: [edit]}, *rules)
        for key in keys:
            await _add_entry(session, document, checked, key, workspace, add)
            if paper := await paper_of(session, checked.read, key.key):
                command = lsp.Command("Show the passage", "citeloom.showPassage", arguments=[paper, sentence["claim"]])
                add(f"Show the words of {key.key}", None, command=command)
    return actions


def _add_softer(
    session: Session,
    document: ManuscriptDocument,
    sentence: checking.SentenceRecord,
    keys: Sequence[CitedKey],
    add: Any,
) -> None:
    """Offer to soften a sentence: by replacing listed words, and by the writer's model."""
    first, last = _span(sentence)
    words = document.source[first:last]
    found = [
        item
        for item in checking.careful_words(words)
        if not any(key.whole[0] < first + item[1] and first + item[0] < key.whole[1] for key in keys)
    ]
    edits = [lsp.TextEdit(document.range(first + start, first + end), new) for start, end, new in found]
    if edits:
        said = ", ".join(f"{words[start:end]} \u2192 {new}" for start, end, new in found)
        add(f"Soften: {shorten(said, _SHOWN)}", {document.uri: edits}, SOFTENED)
    if "writer" not in session.extractive:
        command = lsp.Command("Soften", "citeloom.soften", arguments=[document.uri, sentence["claim"]])
        add("Have the chat model word it more cautiously", None, SOFTENED, command=command)


async def soften_edit(
    session: Session, document: ManuscriptDocument, checked: CheckedText, claim: str, max_calls: int
) -> lsp.TextEdit | None:
    """Have the writer's model word a sentence more cautiously; None if the text no longer has it."""
    sentence = next((item for item in checked.sentences if item["claim"] == claim), None)
    if sentence is None or checked.version != document.version:
        return None
    first, last = _span(sentence)
    own = (key for key in checked.keys if first <= key.start < last)
    grouped = groupby(own, lambda key: key.whole)
    cited = [(start - first, end - first, [key.key for key in keys]) for (start, end), keys in grouped]
    said = await checking.asoften(session, sentence, document.source[first:last], cited, max_calls)
    return lsp.TextEdit(document.range(first, last), said)


async def paper_of(session: Session, read: citing.ReadText | None, written: str) -> str:
    """Return the library's key for a citation key or number of a text; empty if the library has no such paper."""
    if read is not None and (found := read.paper_of(written)):
        return found
    try:
        return (await library_papers.apaper(session, written)).key
    except CiteloomError:
        return ""


def _insert_citation(
    document: ManuscriptDocument, keys: Sequence[CitedKey], first: int, last: int, key: str
) -> lsp.TextEdit:
    """Insert a key into an empty citation, after a sentence's last key, or before its full stop."""
    first_form, more_form = _CITING.get(document.suffix, _PANDOC_CITING)
    if not keys and (empty := _EMPTY.search(document.source, first, last)):
        place = empty.end() - 1
        return lsp.TextEdit(document.range(place, place), key)
    if keys:
        place = keys[-1].end
        if document.source[place : place + 1] == "}" and document.suffix != ".tex":
            place += 1
        return lsp.TextEdit(document.range(place, place), more_form % key)
    place = last
    while place > 0 and document.source[place - 1] in ".!?\u2026 \n":
        place -= 1
    return lsp.TextEdit(document.range(place, place), first_form % key)


async def _add_entry(
    session: Session, document: ManuscriptDocument, checked: CheckedText, key: CitedKey, workspace: Workspace, add: Any
) -> None:
    """Offer fixes for a key without an entry: add the library's entry, or cite a similar key."""
    read = checked.read
    if not read.references.complete or key.key in read.references.entries or key.key == "*":
        return
    paper = await paper_of(session, None, key.key)
    if not paper:
        for near in read.near_keys(key.key):
            edit = lsp.TextEdit(document.range(key.start, key.end), near)
            add(f"Cite {near} instead of {key.key}", {document.uri: [edit]}, "key-without-entry")
        return
    bib = next((each for each in (open_document(file, workspace) for file in read.bibliographies) if each), None)
    entry = (await library_papers.apaper(session, paper)).bibtex.strip()
    if bib is not None and entry:
        end = len(bib.source)
        text = f"{'' if bib.source.endswith(chr(10)) else chr(10)}\n{entry}\n"
        edit = lsp.TextEdit(bib.range(end, end), text)
        add(f"Add the entry of {key.key} to {Path(bib.path).name}", {bib.uri: [edit]}, "key-without-entry")


def symbols(document: ManuscriptDocument, checked: CheckedText) -> list[lsp.DocumentSymbol]:
    """Return a text's claims (sentences with citations) under their section headings."""
    found: list[lsp.DocumentSymbol] = []
    for sentence in checked.sentences:
        if sentence["kind"] != "cited":
            continue
        span = document.range(*_span(sentence))
        label = "" if sentence["label"] == "unjudged" else checking.LABELS[sentence["label"]]
        name = shorten(sentence["claim"], _SHOWN)
        symbol = lsp.DocumentSymbol(name, lsp.SymbolKind.String, span, span, label or None)
        section = sentence["section"] or document.file.name
        if not found or found[-1].name != section:
            found.append(lsp.DocumentSymbol(section, lsp.SymbolKind.Namespace, span, span, children=[]))
        found[-1].children = [*(found[-1].children or []), symbol]
        found[-1].range = lsp.Range(found[-1].range.start, span.end)
    return found
