"""Plans an ingest before anything is embedded or written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ..documents import Chunk, Paper, chunk_id, text_hash
from ..documents.bibliography import Refusal, extractive_summary, has_own_entry
from ..documents.chunking import CHUNKING_VERSION, make_note
from ..documents.figure_search import FoundFigure, find_figures
from ..documents.figures import FIGURES_VERSION, PaperFigure
from ..documents.image_extraction import ReadFigures
from ..documents.paper_names import item_path
from ..documents.types import Section
from ..models.embeddings.protocol import Vector
from ..stores.library import Library
from ..stores.paper_catalog import Change, PaperRecord
from ..stores.store_protocols import VectorKind
from .ingest_events import IngestReport
from .reading import SplitPapers
from .sources import SourcePaper, Sources

Outcome = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class PaperPlan:
    """A new or changed paper; `known` are the vectors that already exist, by text hash.

    `file` is None for a paper without a file; its `figures` have no images before `with_figures`.
    """

    record: PaperRecord
    text: str
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    known: Mapping[str, Vector]
    wants_summary: bool
    file: Path | None = None
    found: tuple[FoundFigure, ...] = ()
    figures: ReadFigures = field(default_factory=ReadFigures)

    def missing_texts(self) -> dict[str, str]:
        """The texts without a vector, by hash; the summary and the note last."""
        texts = {text_hash(chunk.text): chunk.text for chunk in self.chunks}
        for text in (self.record.summary, *self.record.passages):
            texts[text_hash(text)] = text
        return {name: text for name, text in texts.items() if name not in self.known}

    def with_figures(self, read: ReadFigures, before: Sequence[PaperFigure]) -> PaperPlan:
        """The plan with the images of its figures and its tables' chunks; descriptions of identical images are kept."""
        known = {figure.image_hash: figure for figure in before if figure.image_hash and figure.description}
        figures = tuple(
            figure.with_description(known[figure.image_hash]).with_described_chunk(self.chunks)
            if figure.image_hash in known
            else figure
            for figure in (figure.with_table_chunks(self.chunks) for figure in read.figures)
        )
        return replace(self, figures=replace(read, figures=figures))


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """Everything that one ingest will do, and its report if all of it succeeds."""

    files: int
    to_index: tuple[PaperPlan, ...]
    metadata_only: tuple[PaperRecord, ...]
    report: IngestReport

    def without(self, failed: Mapping[str, Refusal]) -> IngestPlan:
        """The plan without papers (by key) that failed during its execution."""
        to_index = tuple(plan for plan in self.to_index if plan.record.paper.key not in failed)
        added, updated = (
            tuple(key for key in keys if key not in failed) for keys in (self.report.added, self.report.updated)
        )
        new = sum(len({text_hash(chunk.text) for chunk in plan.chunks} - plan.known.keys()) for plan in to_index)
        refused = (*self.report.refused, *failed.values())
        report = replace(self.report, added=added, updated=updated, chunks_embedded=new, refused=refused)
        return replace(self, to_index=to_index, report=report)


def metadata_hash(paper: Paper) -> str:
    """A hash of a paper's metadata, without the path and content of its file."""
    left_out = {"source", "content_hash"}
    metadata = {name: value for name, value in asdict(paper).items() if name not in left_out}
    return text_hash(json.dumps(metadata, sort_keys=True))


def make_plan(
    library: Library,
    sources: Sources,
    *,
    prune: bool,
    rewrite_summaries: bool,
    chunking: tuple[int, int],
    split: SplitPapers,
) -> IngestPlan:
    """Compare the sources with the library; blocks, and tokenizes everything that has changed."""
    records = library.records()
    outcomes: dict[str, Outcome] = {}
    changed: list[tuple[SourcePaper, PaperRecord, bool]] = []
    metadata_only: list[PaperRecord] = []
    for source in sources.found:
        key = source.paper.key
        old = records.get(key)
        record = _record(source, old, chunking, library.embedding.count_tokens)
        wants_summary = rewrite_summaries and record.summary_kind != "model"
        outcomes[key] = "added" if old is None else "updated"
        if old is None or wants_summary or _indexed_parts(old) != _indexed_parts(record):
            changed.append((source, record, wants_summary))
            continue
        if old.metadata_hash == record.metadata_hash:
            outcomes[key] = "unchanged"
        if outcomes[key] == "updated" or old.paper.source != record.paper.source:
            metadata_only.append(record)
    to_index: list[PaperPlan] = []
    refused: dict[str, Refusal] = {}
    done = split([(source.paper.key, source.parsed) for source, _, _ in changed], chunking)
    for (source, record, wants_summary), chunks in zip(changed, done, strict=True):
        if isinstance(chunks, str) or not chunks:
            refused[source.paper.key] = Refusal(str(source.path), str(chunks or "contains no prose to search"))
            continue
        record = replace(record, chunk_count=len(chunks))
        parsed, file = source.parsed, source.path if source.folder is not None else None
        found = tuple(find_figures(parsed))
        to_index.append(PaperPlan(record, parsed.text, parsed.sections, chunks, {}, wants_summary, file, found))
    # Papers whose file in a walked folder is gone or now belongs to another key.
    folders = [folder.resolve() for folder in sources.folders]
    key_of_file = {source.paper.source: source.paper.key for source in sources.found}
    missing: dict[str, str | None] = {}
    for key, record in records.items():
        file = Path(record.paper.source)
        inside = key not in outcomes and any(file.is_relative_to(folder) for folder in folders)
        if inside and (record.paper.source in key_of_file or not file.is_file()):
            missing[key] = key_of_file.get(record.paper.source)
    reasons = {key: f"its file now belongs to {now}" if now else "its file is gone" for key, now in missing.items()}
    gone = [f"{key}: {why}; it stays until you remove it or ingest with --prune." for key, why in reasons.items()]
    report = IngestReport(
        added=tuple(key for key, outcome in outcomes.items() if outcome == "added"),
        updated=tuple(key for key, outcome in outcomes.items() if outcome == "updated"),
        unchanged=tuple(key for key, outcome in outcomes.items() if outcome == "unchanged"),
        removed=tuple(missing) if prune else (),
        refused=(*sources.refused, *sources.refused_entries),
        warnings=(*sources.warnings, *(() if prune else gone)),
    )
    files, with_known = len(sources.found) + len(sources.refused), _add_known_vectors(library, to_index)
    return IngestPlan(files, tuple(with_known), tuple(metadata_only), report).without(refused)


def _record(
    source: SourcePaper, old: PaperRecord | None, chunking: tuple[int, int], count_tokens: Callable[[str], int]
) -> PaperRecord:
    """The record of a source; keeps a model's summary of the same text.

    A paper without a `.bib` entry keeps the entry set in the library, unless it came from Zotero.
    """
    paper = source.paper
    given = old is not None and has_own_entry(old.paper) and not item_path(old.paper.bibtex)
    if old is not None and given and not has_own_entry(paper):
        read = {name: getattr(paper, name) for name in ("source", "content_hash", "pages", "ocr_pages")}
        paper = replace(old.paper, **read)
    record = PaperRecord(
        paper=paper,
        metadata_hash=metadata_hash(paper),
        chunking=f"{CHUNKING_VERSION}:{chunking[0]}:{chunking[1]}",
        summary=paper.abstract or extractive_summary(source.parsed),
        summary_kind="abstract" if paper.abstract else "extractive",
        chunk_count=old.chunk_count if old else 0,
        figures_version=FIGURES_VERSION,
    )
    if source.note:
        note = old.note if old is not None and old.chunking == record.chunking else None
        if note is None or note.text != source.note:
            note = make_note(source.note, count_tokens, target=chunking[0])
        record = replace(record, note=note)
    if old is not None and old.summary_kind == "model" and old.paper.content_hash == paper.content_hash:
        return replace(record, summary=old.summary, summary_kind="model")
    return record


def _indexed_parts(record: PaperRecord) -> tuple[object, ...]:
    """The values that determine the passages, vectors and figures of a paper."""
    paper = (record.paper.content_hash, record.paper.pages, record.chunking)
    return (*paper, record.summary, record.note, record.figures_version)


def _add_known_vectors(library: Library, plans: Sequence[PaperPlan]) -> list[PaperPlan]:
    """Add the library's vectors to the plans, before a write can delete the chunk that a text moved from."""
    records = library.records()
    keys = {record.summary: key for key, record in records.items()}  # by summary, since a paper's key may have changed
    passages = {
        text: chunk_id(key, place) for key, record in records.items() for place, text in enumerate(record.passages)
    }
    stored: dict[VectorKind, dict[str, str]] = {  # ids of stored vectors by the hash of their text
        "content": library.catalog.ids_by_text({name for plan in plans for name in plan.missing_texts()}),
        "summaries": {text_hash(text): keys[text] for plan in plans if (text := plan.record.summary) in keys},
        "notes": {
            text_hash(text): passages[text] for plan in plans for text in plan.record.passages if text in passages
        },
    }
    known: dict[str, Vector] = {}
    for kind, ids in stored.items():
        vectors = library.store.get_vectors(sorted(set(ids.values())), kind)
        known |= {name: vectors[place] for name, place in ids.items() if place in vectors}
    wanted = [(plan, plan.missing_texts().keys() & known.keys()) for plan in plans]
    return [replace(plan, known={name: known[name] for name in names}) for plan, names in wanted]


def complete_change(plan: PaperPlan, new: Mapping[str, Vector]) -> Change:
    """The change that adds a paper, with its known and new vectors."""
    vectors = {**plan.known, **new}
    matrix = np.stack([vectors[text_hash(chunk.text)] for chunk in plan.chunks])
    summary = vectors[text_hash(plan.record.summary)]
    change = Change(plan.record.paper.key, plan.record, plan.sections, plan.chunks, matrix, summary)
    change = replace(change, figures=plan.figures.figures, images=plan.figures.images)
    passages = [vectors[text_hash(text)] for text in plan.record.passages]
    return replace(change, note_vectors=np.stack(passages)) if passages else change
