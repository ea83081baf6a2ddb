"""Questions of runs to a person: what a run waits with, and `answer_run`, which answers it and goes on."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Unpack

from ..drafts.person_questions import AnswerError as AnswerError
from ..errors import WaitingError as WaitingError
from .arguments import require_writable, requires_open
from .blocking import blocking
from .stored_runs import find_run

if TYPE_CHECKING:
    from ..graph.run_events import OnEvent
    from ..graph.session import Session
    from ..runs.result_record import ResultRecord
    from .running import RunOptions


def person_name() -> str:
    """The name under which an answer is kept: that of the user of this machine, if it has one."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""


def signed_answer(answer: object, by: str | None = None) -> dict[str, Any]:
    """An answer with who gave it (by default the user of this machine), and when.

    `answer` is "accept", the fields to change, or a `HumanResponse`.
    """
    at = datetime.now(UTC).isoformat("T", "seconds")
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    given = dict(answer) if isinstance(answer, Mapping) else {"type": answer}
    return {**given, "by": person_name() if by is None else by, "at": at}


@requires_open
async def aanswer_run(
    session: Session,
    run_id: str,
    answer: object = "accept",
    *,
    by: str | None = None,
    on_event: OnEvent | None = None,
    **options: Unpack[RunOptions],
) -> ResultRecord:
    """Answer the question that a run waits with, and go on with it; returns the JSON of the finished run.

    Args:
        run_id: the run, by its id or the beginning of it.
        answer: "accept", the fields to change ({"N2": "a better need", "add": ["another"]}), "ignore" where that is
            possible, or an answer as agent-chat-ui gives it. With `question`, it is for that question only.
        by: who answers; by default the user of this machine.
        on_event: called with each event (`docs/events.md`) except `done`, the return value.
        options: as in `RunOptions`: `out`, `formats` ...

    Raises `WaitingError` if the run asks something else next, `AnswerError` for an answer of the wrong form, with which
    it still waits, `AnsweredError` if it was answered meanwhile, and what `research` raises.
    """
    from ..runs.run_requests import request_to_resume, require_same_run, text_settings_of
    from .running import run

    require_writable(session)
    record = await asyncio.to_thread(find_run, session.home, run_id)
    own = session.with_all_settings(text_settings_of(record, session.settings, session.home))
    request = request_to_resume(record)
    await asyncio.to_thread(require_same_run, record, request, own)
    return await run(request, own, on_event, answer=signed_answer(answer, by), **options)


answer_run = requires_open(blocking(aanswer_run))
