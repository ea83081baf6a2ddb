"""Imports a text that was exported and edited elsewhere: the state of each sentence, and sections with markers.

A sentence is kept (its words and citations are the run's), edited, moved, split, merged, new or gone. The resulting
sections contain every imported word; citations are recognised by their field, else by key, number, or authors and year
that identify one cited paper.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from typing_extensions import TypedDict

from ..citations.checks.findings import shorten_words
from ..citations.checks.number_parsing import claimed_numbers, given_numbers
from ..citations.citation_styles import show_group
from ..citations.cited_works import WorkIndex, find_author_year_works, parse_keys
from ..citations.export.plot_figures import figure_lines
from ..citations.export.section_files import section_title
from ..citations.markers import MARKER, marker_ids, sentences
from ..documents import Evidence, Paper
from ..documents.edited_documents import HELD, EditedDocument, read_edited
from ..documents.marker_escaping import unescape
from ..documents.paper_names import in_text_name
from ..documents.plain_text import plain_text
from ..documents.safe_files import FileRefusedError
from ..errors import InputError
from ..graph.session import Session
from ..stores.home import written_files
from ..stores.run_register import EditedSentence, WrittenFiles
from ..text.sentences import replace_spans
from ..text.words import close_gaps
from .edited_text import EditableSection, EditableText, NotEditableError, editable_text, edited_record
from .result_record import StoredRecord, stored

_ALIKE: Final = 0.6  # minimum share of common words
_WORD: Final = re.compile(r"[^\W_]+")
_BRACKET: Final = re.compile(r"\(([^()]{4,300})\)")
_PREFIXED: Final = re.compile(
    r"\s?\[(?P<before>(?=[^\[\]@]{0,200}[^\W\d_])[^\[\]@;]{1,200}[^\[\]@;\s])\s{0,20}(?P<cited>@[^\[\]]{1,400})\]"
)
_NARRATIVE: Final = re.compile(
    r"(?P<group>\[[^\[\]]{0,400}\])|(?<![\w@/.-])@(?P<key>\w[\w:./-]{0,200}(?<=\w))(?: \[(?P<place>[^\[\]@]{1,200})\])?"
)
_CITED_KEY: Final = re.compile(r"(?<![\w@/.-])@\w[\w:./-]{0,200}(?<=\w)")
_LOCATING: Final = frozenset({"al", "and", "et", "p", "page", "pages", "pp"})
_SIGNS: Final = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u2011": "-"}
)
_FIELD_ID: Final = re.compile(r"(?:E[1-9]\d{0,5}-)+\d+")


class ImportedSentence(TypedDict):
    """A sentence: its state, its text now (empty if gone) and in the run, and the keys that it cites."""

    state: str
    section: str
    text: str
    was: str
    keys: list[str]


@dataclass
class ImportedSection:
    """An imported section with its citation `fields`; `unknown` are citations without evidence.

    `now` has the run's remaining sentences, with markers, by position; `reverted` are sentences that the user had
    edited but that are again as the run wrote them.
    """

    section: EditableSection
    fields: Sequence[Mapping[str, Any]]
    sentences: list[ImportedSentence] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    reverted: list[str] = field(default_factory=list)
    now: dict[str, str] = field(default_factory=dict)

    def shown_text(self, found: re.Match[str]) -> str:
        """Return the text that a field showed."""
        return str(self.fields[int(found[1])]["shown"]) if int(found[1]) < len(self.fields) else ""

    def release(self, words: str) -> str:
        """Replace placeholders by the text that their fields showed, for citations that are not the run's."""
        self.unknown += [text for found in HELD.finditer(words) if (text := self.shown_text(found).strip())]
        return HELD.sub(self.shown_text, words)


def import_sections(text: EditableText, document: EditedDocument, file: Path) -> tuple[list[ImportedSection], str]:
    """Split a document into the run's sections, and the text before the first one.

    Without section headings the whole document is the run's only section; raises `NotEditableError` if the run has
    several.
    """
    every = {name: item for section in text.sections for name, item in _by_id(section).items()}
    # A paragraph may have been moved from another section, with its evidence.
    titles = {
        section_title(section.kind): replace(section, evidence=tuple({**_by_id(section), **every}.values()))
        for section in text.sections
    }
    words = _remove_figures(document.text, text.run.result or {})
    headings = _headings(words, titles)
    ends = [*(heading.start() for heading in headings[1:]), len(words)]
    before = words[: headings[0].start() if headings else len(words)]
    exact = file.suffix == ".md"  # its citations are in the form that was shown
    if len(titles) == 1:
        (only,) = titles.values()
        body, before = (re.sub(r"\A\s*# [^\n]*\n", "", part) for part in (words, before))  # remove a changed title
        if headings and (headings[0]["level"] == "#" or not before.strip()):  # else it is a heading within the section
            body = f"{before}\n\n{words[headings[0].end() :]}"
        return [_import_section(only, body, document.fields, exact=exact)], ""
    if not headings:
        raise NotEditableError(f"{file} has none of the paper's headings.", help=f"Keep them: {', '.join(titles)}.")
    bodies = {line["title"]: words[line.end() : end] for line, end in zip(headings, ends, strict=True)}
    made = [_import_section(titles[title], bodies.get(title, ""), document.fields, exact=exact) for title in titles]
    return made, before.strip()


def new_numbers(sentences: Iterable[ImportedSentence]) -> list[str]:
    """Describe changed sentences that contain new numbers: the numbers and the sentence's first words."""
    found = []
    for sentence in sentences:
        text, known = sentence["text"], {number.value for number in given_numbers(sentence["was"])}
        numbers = claimed_numbers(text, small_counts=True) if sentence["was"] else ()
        if added := [text[number.start : number.end] for number in numbers if number.value not in known]:
            found.append(f"{', '.join(added)} ({shorten_words(text)})")
    return found


def remove_entries(paragraphs: Iterable[str], references: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the paragraphs after the references' heading that are not entries of any reference."""
    keys, titles = set[str](), list[Counter[str]]()
    for reference in references:
        keys.add(str(reference["key"]))
        titles.append(Counter(_WORD.findall(plain_text(reference["title"]).casefold())))
    found = []
    for words in paragraphs:
        said = Counter(_WORD.findall(words.casefold()))
        entry = any((said & title).total() >= 0.8 * title.total() for title in titles if title)
        if not entry and not any(key in words for key in keys):
            found.append(words)
    return found


def _headings(words: str, titles: Iterable[str]) -> list[re.Match[str]]:
    """Find the lines with the section titles; of repeated titles the highest heading, others are sub-headings."""
    found: dict[str, re.Match[str]] = {}
    named = "|".join(map(re.escape, titles))
    for line in re.finditer(rf"(?m)^(?:(?P<level>#+) )?\**(?P<title>{named})\**[ \t]*$", words):
        known = found.setdefault(line["title"], line)
        if line["level"] and len(line["level"]) < len(known["level"] or "#" * 7):
            found[line["title"]] = line
    return sorted(found.values(), key=lambda line: line.start())


def use_edited_sections(record: StoredRecord, folder: Path, session: Session) -> tuple[StoredRecord, dict[str, Path]]:
    """Put texts of files edited in `folder` into the paper; returns it with the files by section.

    Blocks. Raises `InputError`.
    """
    files, runs = _edited_files(record, folder, written_files(session.home)), session.home.runs()
    edits = runs.edits(record["thread_id"])
    imported = sum(edit.position < 0 for edit in edits)
    if not files and not imported:
        return record, files
    run = replace(runs.get(record["thread_id"]), result=dict(record))
    text = editable_text(run, edits if imported else ())
    alone = [replace(text, sections=(section,)) for section in text.sections]
    by_hand = [replace_by_file(one, files[kind]) if (kind := one.sections[0].kind) in files else one for one in alone]
    edited = edited_record(replace(text, sections=tuple(one.sections[0] for one in by_hand)), session)
    names = ", ".join([*(path.name for path in files.values()), *(["the text that you imported"] if imported else [])])
    said = f"{names} {'was' if len(files) + imported == 1 else 'were'} edited by hand: the paper has your text."
    return stored({**edited, "warnings": list(dict.fromkeys([said, *edited["warnings"], *record["warnings"]]))}), files


def _edited_files(record: StoredRecord, folder: Path, written: WrittenFiles) -> dict[str, Path]:
    """Find the paper's section files that differ from what the run wrote, by section."""
    found = {}
    for section in record["sections"]:
        path = folder / f"{section['section']}.md"
        with suppress(OSError, ValueError, KeyError, TypeError):  # the run's record is not beside it
            run = json.loads(path.with_suffix(".json").read_text("utf-8"))["thread_id"]
            if path.is_file() and not written.has(path) and run == record["thread_id"]:
                found[str(section["section"])] = path
    return found


def replace_by_file(text: EditableText, file: Path) -> EditableText:
    """Replace the text's sections by those of an edited markdown file; blocks. Raises `InputError`."""
    return replace(
        text, sections=tuple(item.section for item in import_sections(text, read_document(file, file), file)[0])
    )


def read_document(file: Path, path: Path, *, reject: bool = False) -> EditedDocument:
    """Read an edited document, named `path` in errors, with tracked changes accepted or rejected.

    Blocks. Raises `InputError`.
    """
    try:
        return read_edited(file, reject=reject)
    except FileRefusedError as error:
        raise InputError(f"{path}: {error}.", help="Give the .docx, .odt, .tex or .md that you edited.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from None


def _remove_figures(markdown: str, record: Mapping[str, Any]) -> str:
    """Remove the record's images and captions from the markdown; edited captions stay."""
    for figure in record.get("figures", ()):
        image, _, caption = figure_lines([figure]).partition("\n\n")
        markdown = re.sub(rf"(?m)^!\[Figure {figure['number']}\]\([^()\n]*\)$", "", markdown.replace(image, ""))
        if caption:  # whole paragraphs only: "shown in Figure 1." ends like the caption of an untitled plot
            markdown = re.sub(rf"(?m)^{re.escape(caption)}$", "", markdown)
    return markdown


def _by_id(section: EditableSection) -> dict[str, Evidence]:
    return {item.id: item for item in section.evidence}


@dataclass(frozen=True, slots=True)
class _Incoming:
    """A sentence of the document at `start:end` of a line; `bare` and `words` are for comparison."""

    line: int
    start: int
    end: int
    text: str
    bare: str
    words: Counter[str]


def _import_section(
    section: EditableSection, body: str, fields: Sequence[Mapping[str, Any]], *, exact: bool
) -> ImportedSection:
    made, own_ids = ImportedSection(section, fields), {item["id"] for item in section.record["evidence"]}
    lines = body.strip().splitlines()
    incoming = [
        _Incoming(number, found.start, found.end, found.text, *_strip_to_compare(found.text, section))
        for number, line in enumerate(lines)
        for found in sentences(line)
    ]
    stored = [_strip_to_compare(item.text, section) for item in section.sentences]
    matches = _match(incoming, stored)
    in_order = _longest_ascending([olds[0] for olds in matches if olds])
    moved = {old for olds in matches for old in olds[:1] if old not in in_order}
    times = Counter(olds[0] for olds in matches if len(olds) == 1)
    edits: dict[int, list[tuple[int, int, str]]] = {}
    typed: list[str] = []
    for item, olds in zip(incoming, matches, strict=True):
        old = olds[0] if olds else -1
        same = bool(olds) and item.bare == stored[old][0]
        marked, own = _mark_sentence(item, old, made, same=same)
        kept = same and not (own and exact) and _same_citations(item, marked, section, old)
        if kept:
            marked, own = section.sentences[old].text, []
        typed += own
        edits.setdefault(item.line, []).append((item.start, item.end, marked))
        if kept and _strip_to_compare(section.current(section.first + old), section)[0] != item.bare:
            made.reverted.append(section.as_shown()[old])
        if olds:
            made.now.setdefault(str(section.first + old), marked)
        state = "moved" if old in moved else "kept" if kept else "edited"
        state = "new" if not olds else "merged" if len(olds) > 1 else "split" if times[old] > 1 else state
        was = " ".join(section.as_shown()[place] for place in olds)
        keys = {evidence.key for evidence in section.evidence if evidence.id in marker_ids(marked)}
        now = HELD.sub(made.shown_text, item.text)
        made.sentences.append(
            {"state": state, "section": section.kind, "text": " ".join(now.split()), "was": was, "keys": sorted(keys)}
        )
    used = {old for olds in matches for old in olds}
    for place, words in enumerate(section.as_shown()):
        if place not in used:
            made.sentences.append({"state": "gone", "section": section.kind, "text": "", "was": words, "keys": []})
    text = "\n".join(replace_spans(line, edits.get(number, []), made.release) for number, line in enumerate(lines))
    found = set(marker_ids(text))
    evidence = tuple(item for item in section.evidence if item.id in found or item.id in own_ids)
    brought = [item.as_dict() for item in evidence if item.id not in own_ids]
    checked = {"typed": sorted(typed), "evidence": brought, "sentences": made.now}
    imported = EditedSentence(-1, text, checked)
    made.section = replace(section, evidence=evidence, edits={}, imported=imported)
    return made


def _strip_to_compare(text: str, section: EditableSection) -> tuple[str, Counter[str]]:
    """Strip citations, markup and characters that word processors replace; returns the text and its words."""
    bare = HELD.sub("", MARKER.sub("", text)).translate(_SIGNS)
    keys = tuple(evidence.key for evidence in section.evidence)
    bare = _BRACKET.sub(lambda found: "" if keys and found[1].lstrip(" @-").startswith(keys) else found[0], bare)
    bare = re.sub(r"\[@?[^\[\]]{1,300}\]", lambda found: found[0] if _PREFIXED.match(found[0]) else "", bare)
    plain = close_gaps(plain_text(bare).replace("\\", ""))
    plain = re.sub(r":?-{3,}:?", "---", plain)  # the rule of a table
    plain = re.sub(r" ?\| ?", "|", plain)
    return plain, Counter(_WORD.findall(plain.casefold()))


def _match(incoming: Sequence[_Incoming], stored: Sequence[tuple[str, Counter[str]]]) -> list[list[int]]:
    """Find the stored sentences that each incoming sentence equals or was made from."""
    exact: dict[str, list[int]] = {}
    for place, (bare, _) in enumerate(stored):
        exact.setdefault(bare, []).append(place)
    matches: list[list[int]] = [[exact[item.bare].pop(0)] if exact.get(item.bare) else [] for item in incoming]
    left = sorted(place for places in exact.values() for place in places)
    for number, item in enumerate(incoming):
        if matches[number] or not item.words:
            continue
        shared = {place: sum((item.words & stored[place][1]).values()) for place in left if stored[place][1]}
        within = [place for place, count in shared.items() if count >= _ALIKE * stored[place][1].total()]
        contains = [place for place, count in shared.items() if count >= _ALIKE * item.words.total()]
        if len(within) > 1 and sum(shared[place] for place in within) <= item.words.total() + 2:
            matches[number] = within
        elif within or contains:
            matches[number] = [max([*within, *contains], key=lambda place: shared[place])]
    return matches


def _longest_ascending(places: Sequence[int]) -> set[int]:
    """Find the longest ascending series of places; other places were moved."""
    series: list[list[int]] = []  # for each length, the series that ends first
    for place in places:
        at = bisect_left(series, place, key=lambda one: one[-1])
        series[at : at + 1] = [[*(series[at - 1] if at else ()), place]]
    return set(series[-1]) if series else set()


def _same_citations(item: _Incoming, marked: str, section: EditableSection, old: int) -> bool:
    """Whether an unchanged sentence has the same citations; none are needed if a later sentence shows them."""
    wanted, now = set(section.sentences[old].ids), set(marker_ids(marked))
    if not now:
        return not wanted or section.rendered.sentences[old].covered
    emphasis = item.text.count("*") == section.sentences[old].text.count("*")
    return emphasis and (bool(now & wanted) or not wanted)


def _mark_sentence(item: _Incoming, old: int, made: ImportedSection, *, same: bool) -> tuple[str, list[str]]:
    """Put markers into a sentence; also returns the sentences in which the user placed a citation.

    If the words are the `same`, a key keeps its evidence.
    """
    section, fields = made.section, made.fields
    held: dict[str, str] = {}

    def hold(number: str) -> str:
        ids = _evidence_of(fields[int(number)], section) if int(number) < len(fields) else []
        if not ids:
            return made.release(f"\ue300{number}\ue301")
        held[number] = "".join(f"[{identifier}]" for identifier in ids)
        return f"\ue300{number}\ue301"

    words = HELD.sub(lambda found: hold(found[1]), item.text)
    words = _NARRATIVE.sub(lambda found: _cite_narrative(found, section), words)
    words = _BRACKET.sub(lambda found: _cite_by_names(found, section), words)
    words = _PREFIXED.sub(lambda found: _cite_prefixed(found, section), words)
    marked, typed = section.add_markers(words, old, sure=same)
    made.unknown += _CITED_KEY.findall(marked)
    return HELD.sub(lambda found: held.get(found[1], ""), marked), typed or ([item.text] if held else [])


def _evidence_of(cited: Mapping[str, Any], section: EditableSection) -> list[str]:
    """Find the evidence that a field names by id, else evidence of its papers; none if a paper has none."""
    known = _by_id(section)
    keys = [_key_of(item, section) for item in cited["items"]]
    ids = cited["id"].split("-")[:-1] if _FIELD_ID.fullmatch(cited["id"]) else []
    named = [identifier for identifier in ids if identifier in known and known[identifier].key in keys]
    for key, item in zip(keys, cited["items"], strict=True):
        if not any(known[identifier].key == key for identifier in named):
            own = [evidence for evidence in section.evidence if evidence.key == key]
            pages = [
                evidence for evidence in own if str(evidence.page) in re.findall(r"\d+", str(item.get("locator", "")))
            ]
            if not own:
                return []
            named.append((pages or own)[0].id)
    return named


def _key_of(item: Mapping[str, Any], section: EditableSection) -> str:
    """Find the key of a cited item: by our key, else by the reference with the same DOI or title."""
    data = item["itemData"] if isinstance(item.get("itemData"), dict) else {}
    keys = {evidence.key for evidence in section.evidence}
    for name in (item.get("id"), data.get("citation-key"), data.get("id")):
        if str(name) in keys:
            return str(name)
    doi, title = str(data.get("DOI", "")).casefold(), _WORD.findall(str(data.get("title", "")).casefold())
    for reference in section.record["references"]:
        if (doi and reference["doi"].casefold() == doi) or _WORD.findall(reference["title"].casefold()) == title:
            return str(reference["key"])
    return ""


def _cite_prefixed(found: re.Match[str], section: EditableSection) -> str:
    """Rewrite a bracket with words before known keys as words, citation, and pages without evidence."""
    known = {(item.key, item.page) for item in section.evidence}
    works = parse_keys(found["cited"], {key for key, _ in known})
    pages = [str(page) for work in works for page in sorted(work.pages) if (work.key, page) not in known]
    placed = f" (p. {', '.join(pages)})" if pages else ""
    return f", {found['before']} [{found['cited']}]{placed}" if works else found[0]


def _cite_narrative(found: re.Match[str], section: EditableSection) -> str:
    """Replace a key used as a word ("as @lee2022 say") by the authors and a citation, if the run has it."""
    if found["group"] or not any(item.key == found["key"] for item in section.evidence):
        return found[0]
    papers = {item["key"]: item for item in section.record["references"]}
    named = papers.get(found["key"], {"title": "", "authors": (), "year": None})
    name = in_text_name(Paper(found["key"], named["title"], tuple(named["authors"]), named["year"]))
    place = f", {found['place']}" if found["place"] else ""
    return f"{name} [@{found['key']}{place}]"


def _cite_by_names(found: re.Match[str], section: EditableSection) -> str:
    """Turn a bracket with authors and year into a citation, if it clearly names cited papers.

    A bracket that says more ("but see ..."), or that the run has as plain text, is left as the user's words.
    """
    works = find_author_year_works(found[0])
    named = {word for work in works for word in _WORD.findall(work.shown.casefold())}
    said = {word for word in _WORD.findall(found[0].casefold()) if not word[0].isdigit()}
    if not said <= named | _LOCATING or found[0] in unescape(section.record["with_markers"]):
        return found[0]
    papers = [
        Paper(item["key"], item["title"], tuple(item["authors"]), item["year"]) for item in section.record["references"]
    ]
    keys = [WorkIndex(papers).key_of(work) for work in works]
    ids = [next((item.id for item in section.evidence if item.key == key), "") for key in keys]
    if not ids or not all(ids):
        return found[0]
    numbers = {key: number for number, key in enumerate(section.record["numbering"], 1)}
    return show_group(ids, _by_id(section), section.record["cite_style"], numbers)
