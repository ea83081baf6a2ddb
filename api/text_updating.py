"""`update`: which finished texts and tables a changed library concerns, and what they become if that is accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from typing_extensions import TypedDict

from ..claims.claim_verdicts import Progress
from ..claims.text_check import ClaimChecker
from ..evidence_tables.stored_tables import load_table
from ..graph.prompt_fitting import fitted
from ..graph.session import Session
from ..models.http.endpoints import hash_key
from ..runs.edited_text import cited_sections
from ..runs.execution import run_request
from ..runs.run_requests import request_to_resume
from ..runs.text_updates import UpdateItem, accepted_edit, compare_table, compare_text
from ..stores.evidence_table_register import StoredTable
from ..stores.home import Home
from ..stores.run_register import RunHead
from ..stores.tables import own_id
from .arguments import ArgumentError, at_least_one, one_or_more, require_writable
from .blocking import blocking
from .checking import claim_checker
from .evidence_tables import amake_table

_TABLES = ("table-", "agree-", "contradictions-")


class UpdateRecord(TypedDict):
    """What needs another look, what was accepted now, and how many texts had to be compared.

    `complete` is false if a limit left sentences unjudged: the same call with a higher limit continues.
    """

    items: list[UpdateItem]
    accepted: list[UpdateItem]
    compared: int
    unchanged: int
    complete: bool
    run: str
    usage: dict[str, Any]


async def aupdate_texts(
    session: Session,
    runs: Sequence[str] | str = (),
    *,
    accept: Sequence[str] = (),
    accept_all: bool = False,
    max_calls: int | None = None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> UpdateRecord:
    """Compare finished texts and tables with the library as it is now; accept what is named.

    Without a change since the last comparison nothing is searched and no model is called. Only new and changed papers
    are searched, and a model judges only what is near. An accepted sentence becomes an edit of its run, whose own text
    stays; an accepted answer is asked again, and of a table only what changed is read.

    Args:
        runs: ids of runs or tables; all tables, and the latest run of each question and experiment, if omitted.
        accept: ids of items to accept; one that was accepted before is unknown.
        accept_all: accept all items.
        max_calls: limit on model requests; sentences beyond it are not judged.
        on_notice: called with one line for each text that is compared.

    Raises `InputError` for an unknown run or id, and `PausedError` if the endpoint is lost.
    """
    require_writable(session)
    if max_calls is not None:
        at_least_one("max_calls", max_calls)
        session = session.with_settings(max_calls=max_calls)
    version, records = await asyncio.to_thread(lambda: (session.library.version(), session.library.records()))
    name, progress, home = own_id(f"update-{version}"), Progress(), session.home
    found: dict[str, dict[str, Any]] = {}
    compared = 0
    with session.run(name):
        checker = await claim_checker(session, name, progress)
        statuses = await asyncio.to_thread(
            session.library.metadata.statuses, [record.paper for record in records.values()]
        )
        hashes = {key: record.paper.content_hash for key, record in records.items()}
        retracted = sorted(key for key, status in statuses.items() if status.retracted)
        comparison = _Comparison(session, checker, version, hashes, retracted)
        known = await asyncio.to_thread(home.runs().comparisons)
        texts = await asyncio.to_thread(_texts, home, one_or_more(runs))
        for text_id, text in texts.items():
            stamp, found[text_id] = known.get(text_id, ("", {}))
            if stamp != (now := await asyncio.to_thread(comparison.stamp, text)):
                compared += 1
                on_notice(f"Comparing {text_id} with the library.")
                work = partial(comparison.compare, text, found[text_id].get("since", ""), now)
                found[text_id] = await fitted(session, name, work)
        items = [item for record in found.values() for item in record["items"]]
        if unknown := set(accept) - {item["id"] for item in items}:
            raise ArgumentError(f"accept: there is no item {min(unknown)}; there are {len(items)}.")
        accepted = [item for item in items if accept_all or item["id"] in accept]
        rest = [item for item in items if item not in accepted]
        for text_id in {item["run"]: 0 for item in accepted}:
            await _accept(session, home, [item for item in accepted if item["run"] == text_id])
            left = [item for item in rest if item["run"] == text_id]
            now = await asyncio.to_thread(comparison.stamp, texts[text_id])
            await comparison.keep(text_id, left, found[text_id]["since"], now)
    return {
        "items": rest,
        "accepted": accepted,
        "compared": compared,
        "unchanged": len(found) - compared,
        "complete": not progress.stopped,
        "run": name,
        "usage": await session.usage(name),
    }


update_texts = blocking(aupdate_texts)


def pending_updates(session: Session) -> list[UpdateItem]:
    """What the last comparison found and nobody has accepted; blocks, and compares nothing."""
    known = session.home.runs().comparisons()
    return [item for _, record in known.values() for item in record["items"]]


def _texts(home: Home, named: Sequence[str]) -> dict[str, RunHead | StoredTable]:
    """The texts to compare, by id; blocks."""
    tables, runs = home.evidence_tables(), home.runs()
    chosen: list[RunHead | StoredTable] = [*runs.latest_finished(), *tables.all()]
    if named:
        chosen = [tables.get(name) if name.startswith(_TABLES) else runs.get(name) for name in named]
    for text in chosen:
        if isinstance(text, RunHead) and text.status != "finished":
            raise ArgumentError(f"runs: {text.thread_id} is not finished.", help="Resume it first (runs resume ID).")
    return {text.thread_id if isinstance(text, RunHead) else text.table_id: text for text in chosen}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison of texts with a version of the library, whose papers have these `hashes`."""

    session: Session
    checker: ClaimChecker
    version: str
    hashes: Mapping[str, str]
    retracted: Sequence[str]

    def stamp(self, text: RunHead | StoredTable) -> str:
        """What a comparison depends on; the same again means that there is nothing to do. Blocks."""
        if isinstance(text, StoredTable):
            table = self.session.home.evidence_tables().get(text.table_id)
            return hash_key([self.version, self.retracted, table.updated_at])
        edits = [[edit.position, edit.text] for edit in self.session.home.runs().edits(text.thread_id)]
        judge = self.session.settings.address_of("judge")[:2] if self.checker.judge else ""
        return hash_key([self.version, judge, self.retracted, edits])

    async def compare(self, text: RunHead | StoredTable, since: str, stamp: str) -> dict[str, Any]:
        """Compare a text with what changed `since` a version, if any, and store what needs another look."""
        home, library = self.session.home, self.session.library
        if isinstance(text, StoredTable):
            table = await asyncio.to_thread(load_table, library, home.evidence_tables(), text.table_id)
            found = await asyncio.to_thread(compare_table, table, library)
            named = {"run": text.table_id, "kind": "table", "title": text.question}
        else:
            run = await asyncio.to_thread(home.runs().get, text.thread_id)
            edits = await asyncio.to_thread(home.runs().edits, text.thread_id)
            hashes = await asyncio.to_thread(home.runs().library, since or run.library_version)
            papers = (run.result or {}).get("report", {}).get("papers", {})
            known = [key for key, paper in papers.items() if paper.get("status") == "retracted"]
            found = await compare_text(cited_sections(run, edits), self.checker, hashes, known)
            named = {"run": run.thread_id, "kind": run.section, "title": run.title}
        items = [cast("UpdateItem", {**item, **named}) for item in found]
        for item in items:  # an id follows from what an item says, so that a repeated request accepts no other item
            said = ("run", "section", "position", "sentence", "reason", "detail", "keys")
            item["id"] = hash_key([dict(item)[name] for name in said])[:8]
        await asyncio.to_thread(home.runs().note_library, self.version, self.hashes)
        return await self.keep(named["run"], items, since, stamp)

    async def keep(self, text_id: str, items: Sequence[UpdateItem], since: str, stamp: str) -> dict[str, Any]:
        """Store what of a text needs another look; a comparison that a limit stopped is repeated."""
        record = {"items": items, "since": since if items else self.version}
        kept = "" if self.checker.progress.stopped else stamp
        await asyncio.to_thread(self.session.home.runs().keep_comparison, text_id, kept, record)
        return record


async def _accept(session: Session, home: Home, items: Sequence[UpdateItem]) -> None:
    """Accept items of one text: make the edits, ask an answer again, or read a table again."""
    text_id, kind = items[0]["run"], items[0]["kind"]
    if kind == "table":
        table = await asyncio.to_thread(home.evidence_tables().get, text_id)
        if any(item["action"] for item in items):
            await amake_table(session, table.question, papers=table.plan["papers"])
        return
    run = await asyncio.to_thread(home.runs().get, text_id)
    if kind == "research":
        await run_request(replace(request_to_resume(run), thread_id=None, fresh=False), session)
        return
    sections = cited_sections(run, await asyncio.to_thread(home.runs().edits, text_id))
    for item in items:
        section = next(part for part in reversed(sections) if part.first <= item["position"])
        edit = await asyncio.to_thread(accepted_edit, item, section, session.library)
        await asyncio.to_thread(home.runs().edit, text_id, edit)
