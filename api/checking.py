"""Checks the user's text, or single claims, against the papers that they cite and the whole library."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from typing_extensions import TypedDict, Unpack

from ..claims.check_files import (
    LABELS,
    CheckFormat,
    careful_words,
    check_formats,
    comment_in_place,
    needs_attention,
    problem_lines,
    problems,
    remarks_of,
    shown_place,
    summary_lines,
    write_check,
)
from ..claims.claim_passages import ClaimPassage, choose_sentences, given_passages
from ..claims.claim_records import (
    CheckResult,
    ClaimInput,
    ClaimLabel,
    ClaimRecord,
    ClaimsResult,
    PassageRecord,
    RemarkedText,
    SentenceRecord,
    SourceRecord,
)
from ..claims.claim_verdicts import JudgedClaim, Progress, VerdictMemory
from ..claims.markup_readers import read_manuscript
from ..claims.reference_entries import entries_elsewhere, load_references
from ..claims.text_check import (
    CHECK_PARTS,
    MOST_PASSAGES,
    OTHER_MARK,
    OWN_MARK,
    CheckPart,
    ClaimChecker,
    ManuscriptCheck,
    elsewhere_records,
)
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..experiment import Experiment, load_experiment
from ..graph.prompt_fitting import run_fitted
from ..graph.session import Session
from ..metadata.services import open_services, service_hosts
from ..models.concurrency import gather_all
from ..models.http.endpoints import hash_key
from ..plurals import counted
from ..runs.sentence_check import soften_sentence
from ..stores.tables import own_id
from ..text.sentences import replace_spans
from ..tools.retrieval import Retrieval
from ..tools.scope import require_words
from .arguments import ArgumentError, require_positive, require_writable
from .blocking import blocking
from .citing import WORD_WEIGHT, ReadText

_PROMPTS: Final = ("claim_system", "claim_task", "uncited_system", "uncited_task", "small_judge_task")


async def acheck_claims(
    session: Session,
    claims: Sequence[ClaimInput | str],
    *,
    judge: bool = True,
    most: int = MOST_PASSAGES,
    fresh: bool = False,
) -> ClaimsResult:
    """Compare claims with papers or given passages; returns each claim's label, words and passages.

    Args:
        claims: sentences, or `ClaimInput` records that name the `papers` or `passages` to compare with; a bare sentence
            is compared with the passages nearest to it in the whole library.
        judge: whether a model judges; if not, the passages are returned, best first, and every label is "unjudged".
        most: passages per cited paper.
        fresh: judge again, without reusing answers.

    Raises `InputError` for an unknown key, and `PausedError` when a budget is reached or the endpoint is lost.
    """
    require_writable(session)
    require_positive("most", most)
    asked: list[ClaimInput] = [{"claim": item} if isinstance(item, str) else item for item in claims]
    for number, item in enumerate(asked):
        if not str(item.get("claim") or "").strip():
            raise ArgumentError(f"claims[{number}].claim is empty.", help="Give the sentence to check.")
        require_words(item["claim"])
        for key in item.get("papers") or ():
            await asyncio.to_thread(session.library.paper, key)
    run = own_id(f"check-{hash_key([dict(item) for item in asked])[:12]}")
    progress = Progress()

    async def work() -> list[ClaimRecord]:
        checker = await claim_checker(session, run, progress, most, judge=judge)
        passages = await gather_all(_find_passages(checker, item) for item in asked)
        judged = await checker.judge_claims(
            [
                checker.claim(item["claim"].strip(), (item.get("context") or "").strip(), found)
                for item, found in zip(asked, passages, strict=True)
            ]
        )
        return [_claim_record(item, claim) for item, claim in zip(asked, judged, strict=True)]

    with session.run(run, fresh=fresh):
        records = await run_fitted(session, run, work)
    return {
        "claims": records,
        "judged": sum(record["label"] != "unjudged" for record in records),
        "run": run,
        "usage": await session.usage(run),
        "warnings": _budget_warning(progress),
    }


async def acheck_text(
    session: Session,
    file: Path | str,
    *,
    experiment: Experiment | Path | str | None = None,
    bib: Path | str | None = None,
    only: Sequence[CheckPart] | CheckPart = (),
    max_calls: int | None = None,
    fresh: bool = False,
    look_up: bool = False,
    out: Path | str | None = None,
    formats: Sequence[CheckFormat] | CheckFormat = (),
    force: bool = False,
    in_place_comments: bool = False,
    on_notice: Callable[[str], None] = lambda _: None,
) -> CheckResult:
    """Check every sentence of the user's own text; the text itself is changed only on request.

    Args:
        file: the text: `.tex`, `.md`, `.qmd`, `.org`, `.docx`, `.typ` or `.pdf`.
        experiment: the `exp.json`, or its content, whose numbers the text may state without a source.
        bib: the bibliography, if the text does not name it.
        only: the parts to check: `claims`, `uncited`, `numbers`, `references`; all if omitted.
        max_calls: limit on model requests; beyond it, sentences stay unjudged, and the same call resumes later.
        fresh: judge again, without reusing answers.
        look_up: ask metadata services whether references that are not in the library exist.
        out: folder for the files in `formats`; none are written if omitted.
        formats: `html` (one-file report), `docx` (a copy with comments), `tex` (a copy with notes), `json`, `sarif`.
        force: replace files in `out` that exist already.
        in_place_comments: put the remarks into the `.docx` or `.tex` itself; the original is kept as `NAME.original`.
        on_notice: called with one line about the work ahead.

    Raises `InputError` for a file that cannot be read, and `PausedError` if the endpoint is lost.
    """
    path = Path(file)
    wanted, lacking = check_formats(formats, out, path)
    for line in lacking:
        on_notice(line)
    parts = frozenset((only,) if isinstance(only, str) else only)
    for part in parts.difference(CHECK_PARTS):
        raise ArgumentError(f"only: unknown part {part!r}.", help=f"Choose from {', '.join(CHECK_PARTS)}.")
    parts = parts or frozenset(CHECK_PARTS)
    require_writable(session)
    if max_calls is not None:
        require_positive("max_calls", max_calls)
        session = session.with_settings(max_calls=max_calls)
    own = (
        experiment if isinstance(experiment, Experiment | None) else await in_thread(load_experiment, Path(experiment))
    )
    manuscript = await in_thread(read_manuscript, path)
    library = await asyncio.to_thread(session.library.papers)
    references = await in_thread(load_references, manuscript, path, None if bib is None else Path(bib), library)
    read = ReadText(path, manuscript, references)
    result = await _check(session, read, parts, own, fresh, look_up, on_notice)
    if out is not None and wanted:
        result["files"] = await in_thread(write_check, result, manuscript, path, Path(out), wanted, force)
    if in_place_comments:
        result["kept"] = await in_thread(comment_in_place, result, manuscript, path)
    return result


async def acheck_read(
    session: Session, read: ReadText, *, only: Sequence[CheckPart], max_calls: int = 0
) -> CheckResult:
    """Check parts of a text open in an editor, with at most `max_calls` model requests; 0 checks without a model."""
    if max_calls:
        session = session.with_settings(max_calls=max_calls)
    return await _check(session, read, frozenset(only), judge=bool(max_calls))


async def asoften(
    session: Session,
    sentence: SentenceRecord,
    words: str,
    cited: Sequence[tuple[int, int, Sequence[str]]],
    max_calls: int,
) -> str:
    """Have the writer word a sentence of the user's text more cautiously.

    Args:
        session: the open library.
        sentence: the result of a check of the sentence.
        words: the sentence as written in the file.
        cited: the spans of the citations in `words`, each with its keys; they stay as written.
        max_calls: limit on model requests.

    Raises `NotEditableError` without a chat model or if it finds no other wording, and `PausedError`.
    """
    found = {source["key"]: source["passages"][0] for source in sentence["sources"] if source["passages"]}
    passages: list[tuple[str, PassageRecord]] = []
    written: dict[int, str] = {}
    citation_of: dict[str, int] = {}
    spans: list[tuple[int, int, str]] = []
    for start, end, keys in cited:
        begin = len(words[:start].rstrip(" ~\n"))
        names = [f"E{len(citation_of) + number}" for number in range(1, len(keys) + 1)]
        citation_of |= dict.fromkeys(names, begin)
        written[begin] = words[begin:end]
        spans.append((begin, end, f" {''.join(f'[{name}]' for name in names)}"))
        passages += [(name, found[key]) for name, key in zip(names, keys, strict=True) if key in found]
    run = own_id(f"soften-{hash_key([words])[:12]}")
    asked = session.with_settings(max_calls=max_calls)
    said = await soften_sentence(run, replace_spans(words, spans).strip(), passages, asked)
    said = re.sub(r"(?<!\s)\s*+\[(E\d+)\]", lambda marker: written.pop(citation_of.get(marker[1], -1), ""), said)
    ended = len(said.rstrip(" .!?"))
    return f"{said[:ended]}{''.join(written.values())}{said[ended:]}"


async def _check(
    session: Session,
    read: ReadText,
    parts: frozenset[CheckPart],
    own: Experiment | None = None,
    fresh: bool = False,
    look_up: bool = False,
    on_notice: Callable[[str], None] = lambda _: None,
    judge: bool = True,
) -> CheckResult:
    manuscript, references = read.manuscript, read.references
    run = own_id(f"check-{hash_key([read.file.name, manuscript.text, sorted(parts)])[:12]}")
    progress = Progress(on_notice)

    async def work() -> CheckResult:
        checker = await claim_checker(session, run, progress, MOST_PASSAGES, judge=judge)
        async with AsyncExitStack() as opened:
            services = None
            if look_up and "references" in parts:
                progress.on_notice(f"Asking {service_hosts(session.settings)} for the reference list.")
                services = await opened.enter_async_context(open_services(session.settings, session.library.metadata))
            check = ManuscriptCheck(manuscript, references, checker, parts, own, session.library.metadata, services)
            sentences, entries = await check.run()
        unknown = len(entries_elsewhere(references)) if "references" in parts and not look_up else 0
        exist = f"not checked whether {'it exists' if unknown == 1 else 'they exist'} (--look-up asks)"
        noted = [f"{counted(unknown, 'entry', 'entries')} not in the library: {exist}."] if unknown else []
        faults = [found["rule"] for item in (*sentences, *entries) for found in item["faults"]]
        return {
            "file": str(read.file),
            "format": manuscript.format,
            "words": len(manuscript.text.split()),
            "model": session.settings.address_of("judge")[0] if checker.judge is not None else "",
            "complete": not progress.stopped,
            "sentences": sentences,
            "references": entries,
            "counts": {
                "labels": dict(Counter(item["label"] for item in sentences if item["kind"] == "cited")),
                "kinds": dict(Counter(item["kind"] for item in sentences)),
                "rules": dict(Counter(faults)),
            },
            "run": run,
            "usage": {},
            "warnings": [*manuscript.notices, *references.notices, *noted, *_budget_warning(progress)],
        }

    with session.run(run, fresh=fresh):
        result = await run_fitted(session, run, work)
    result["usage"] = await session.usage(run)
    return result


class _ProseOptions(TypedDict, total=False):
    experiment: Experiment | None
    only: Sequence[CheckPart] | CheckPart
    max_calls: int | None
    fresh: bool
    look_up: bool
    on_notice: Callable[[str], None]


async def acheck_prose(
    session: Session,
    text: str,
    *,
    format: Literal["md", "tex", "typ"] = "md",
    bib: str = "",
    **options: Unpack[_ProseOptions],
) -> CheckResult:
    """Check a text given as a string, with `bib` the content of its bibliography; otherwise as `acheck_text`."""
    with TemporaryDirectory(prefix="citeloom-") as folder:
        file = Path(folder) / f"text.{format}"
        await asyncio.to_thread(file.write_text, text, encoding="utf-8", errors="replace")
        entries = Path(folder) / "references.bib"
        if bib.strip():
            await asyncio.to_thread(entries.write_text, bib, encoding="utf-8", errors="replace")
        here = f"{folder}{os.sep}"
        try:
            result = await acheck_text(session, file, bib=entries if bib.strip() else None, **options)
        except InputError as error:
            error.message = error.message.replace(here, "")
            raise
        warnings = [warning.replace(here, "") for warning in result["warnings"]]
        return {**result, "file": file.name, "warnings": warnings}


check_claims = blocking(acheck_claims)
check_text = blocking(acheck_text)


async def claim_checker(
    session: Session, run: str, progress: Progress, most: int = MOST_PASSAGES, *, judge: bool = True
) -> ClaimChecker:
    """Return a checker of claims billed to `run`, without a judge if none is configured or wanted."""
    role = (await session.roles_of(run)).claims if judge and "judge" not in session.extractive else None
    settings = session.settings
    prompts = [session.prompts[name].body for name in _PROMPTS]
    endpoint = session.custom_model_id or [*settings.address_of("judge")[:2], settings.temperature]
    identity = hash_key([endpoint, settings.judge_protocol, prompts])[:24]
    memory = VerdictMemory(session.journal, session.scope(run), identity)
    options = Retrieval(settings.retrieval_mode, bm25_weight=WORD_WEIGHT, rerank=settings.rerank)
    return ClaimChecker(session.library, role, memory, progress, options, most)


async def _find_passages(checker: ClaimChecker, item: ClaimInput) -> list[ClaimPassage]:
    text = " ".join(item["claim"].replace(OWN_MARK, " ").replace(OTHER_MARK, " ").split())
    before = (item.get("context") or "").strip()
    if "passages" in item:
        return choose_sentences(text, given_passages(item["passages"]), most=checker.most)
    if item.get("papers"):
        found = await checker.find(text, before, item["papers"], checker.most)
        return choose_sentences(text, [passage for of_paper in found.values() for passage in of_paper])
    return await checker.elsewhere(text, before, ())


def _claim_record(item: ClaimInput, claim: JudgedClaim) -> ClaimRecord:
    named = "passages" in item or bool(item.get("papers"))
    keys = dict.fromkeys(passage.chunk.key for passage in claim.passages)
    sources: list[SourceRecord] = [claim.source(key, key, key) for key in keys] if named else []
    label: ClaimLabel = claim.label if claim.passages else "unread"
    return {
        "claim": item["claim"],
        "label": label,
        "reason": claim.reason,
        "sources": sources,
        "elsewhere": [] if named else elsewhere_records(claim),
    }


def _budget_warning(progress: Progress) -> list[str]:
    if not progress.stopped:
        return []
    rest = "the other sentences were not judged. Repeat the check with a higher limit to resume it."
    return [f"{progress.stopped.rstrip('.')}; {rest}"]
