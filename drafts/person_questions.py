"""Questions that a run asks a person: their form, the valid answers, and the record of what was said.

A question is the value of an `interrupt()`. It has the keys of LangChain's human-in-the-loop middleware, which
agent-chat-ui shows (`action_requests`, `review_configs`), those of Agent Inbox (`action_request`, `config`), and under
`citeloom` the fields of a form. All values are lines of text, so that every client can show the same form; an answer
has the form of either schema, or just names the fields to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast, get_args

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..errors import InputError
from ..settings.config import Ask

ASKS: Final[tuple[Ask, ...]] = tuple(name for name in get_args(Ask) if name != "all")
_TITLES: Final[Mapping[Ask, str]] = {
    "needs": "What has to be known",
    "evidence": "Evidence to write from",
    "sentences": "Doubtful sentences",
    "budget": "The budget is reached",
}
_OTHER_NAMES: Final = {"approve": "accept", "reject": "ignore", "respond": "response"}
_NOT_FIELDS: Final = ("by", "at", "question")  # of an answer that just names the fields to change
_MOST_TEXT: Final = 20_000  # characters of a field


class AnswerError(InputError):
    """An answer to a run's question has the wrong form; the run keeps waiting."""

    default_help = "The run still waits."


class QuestionField(TypedDict):
    """A field of a question; with `several` it has one entry per line."""

    name: str
    label: str
    value: str
    several: bool


class QuestionDetail(TypedDict):
    """What is asked (`about` is Markdown), and how it can be answered; a free text as answer fills `free_text`."""

    ask: Ask
    section: str
    summary: str
    about: str
    fields: list[QuestionField]
    free_text: str
    answers: list[str]


class SteeringChange(TypedDict):
    """One thing that a person changed; `before` is empty for what was added, `after` for what was dropped."""

    what: str
    before: str
    after: str


class SteeringRecord(TypedDict):
    """A person's answer to a run's question: who, when, and the changes; no changes if it was accepted."""

    ask: str
    section: str
    by: str
    at: str
    changes: list[SteeringChange]


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """A valid answer: "accept", "edit" or "ignore", the fields that it changes, who gave it, and when."""

    type: str
    args: Mapping[str, str]
    by: str
    at: str


def expand_asks(given: Iterable[str]) -> list[Ask]:
    """Return the asks in the order of a run; "all" stands for every ask."""
    wanted = set(given)
    return [name for name in ASKS if name in wanted or "all" in wanted]


def form_field(name: str, label: str, value: str = "", *, several: bool = False) -> QuestionField:
    return {"name": name, "label": label, "value": value, "several": several}


def make_question(
    ask: Ask, summary: str, lines: Sequence[str], fields: list[QuestionField], section: str = "", free_text: str = ""
) -> dict[str, Any]:
    """Build the value of an interrupt; `lines` say what it is about. Only a budget question may be ignored."""
    answers = ["accept", "edit", *(["ignore"] if ask == "budget" else [])]
    about = "\n".join(lines).strip()
    asked = {"ask": ask, "section": section, "summary": summary, "about": about}
    detail = cast(QuestionDetail, {**asked, "fields": fields, "free_text": free_text, "answers": answers})
    args = {item["name"]: item["value"] for item in fields}
    explained = [f"- `{item['name']}`: {item['label']}" for item in fields if not item["value"]]
    title = f"**{_TITLES[ask]}{f' ({section})' if section else ''}: {summary}**"
    description = "\n".join([title, "", detail["about"], "", *explained]).strip()
    decisions = ["approve", "edit", *(["reject"] if free_text or ask == "budget" else [])]
    return {
        "action_requests": [{"name": ask, "args": args, "description": description}],
        "review_configs": [{"action_name": ask, "allowed_decisions": decisions}],
        "action_request": {"action": ask, "args": args},
        "config": {
            **{"allow_accept": True, "allow_edit": True},
            **{"allow_respond": bool(free_text), "allow_ignore": ask == "budget"},
        },
        "description": description,
        "citeloom": detail,
    }


def budget_question(flag: str, message: str, enough: float) -> dict[str, Any]:
    """Ask whether to raise the limit of the option `flag`, proposing `enough`; ignoring the question pauses the run."""
    fields = [form_field(flag.removeprefix("--").replace("-", "_"), "The new limit", f"{enough:.10g}")]
    return make_question("budget", message, ["Accept to raise the limit, or edit it; ignore this to pause."], fields)


def read_answer(detail: QuestionDetail, given: object) -> PersonAnswer:
    """The answer in any of its forms: `HumanResponse`, `{"decisions": [...]}`, "accept", or the fields to change.

    Raises `AnswerError` naming the field and what is possible.
    """
    by, at = (str(given.get(name) or "") if isinstance(given, Mapping) else "" for name in ("by", "at"))
    if isinstance(given, Mapping) and "decisions" in given:
        given = given["decisions"]
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    record = given if isinstance(given, Mapping) else {"type": given}
    if "type" not in record:
        record = {"type": "edit", "args": {name: record[name] for name in record if name not in _NOT_FIELDS}}
    kind = _OTHER_NAMES.get(str(record["type"]), record["type"])
    args = record.get("edited_action", record.get("args", record.get("message")))
    args = args["args"] if isinstance(args, Mapping) and isinstance(args.get("args"), Mapping) else args
    if kind in ("ignore", "response") and isinstance(args, str) and args.strip() and detail["free_text"]:
        kind, args = "edit", {detail["free_text"]: args}
    if kind not in detail["answers"]:
        possible = ", ".join(detail["answers"])
        raise AnswerError(f"answer: type {record['type']!r:.40} is not possible here; give {possible}.")
    fields = _changed_fields(detail, args) if kind == "edit" else {}
    at = at or datetime.now(UTC).isoformat("T", "seconds")
    return PersonAnswer("accept" if kind == "edit" and not fields else str(kind), fields, by[:200], at)


def _changed_fields(detail: QuestionDetail, args: object) -> dict[str, str]:
    """The fields whose values differ from what was shown; a list has one entry per line."""
    if not isinstance(args, Mapping):
        raise AnswerError(
            "answer: the edit lacks its fields.", help='Give them as args: {"type": "edit", "args": {...}}.'
        )
    shown = {item["name"]: item["value"] for item in detail["fields"]}
    fields: dict[str, str] = {}
    for name, value in args.items():
        if name not in shown:
            raise AnswerError(f"answer: there is no field {name!r:.60}; there are {', '.join(shown)}.")
        entries = value if isinstance(value, list) else [value]
        if not all(entry is None or isinstance(entry, str | int | float) for entry in entries):
            raise AnswerError(f"answer: field {name}: expected a text or a list of texts, got {value!r:.60}.")
        text = "\n".join(str(entry) for entry in entries if entry is not None).strip()
        if len(text) > _MOST_TEXT:
            raise AnswerError(f"answer: field {name} is longer than {_MOST_TEXT:,} characters.")
        if text != shown[name].strip():
            fields[name] = text
    return fields


def read_limit(detail: QuestionDetail, answer: PersonAnswer) -> dict[str, float]:
    """The new limit by its setting; raises `AnswerError` unless it is a positive number."""
    name, proposed = detail["fields"][0]["name"], detail["fields"][0]["value"]
    text = answer.args.get(name, proposed)
    try:
        limit = float(text) if name == "max_cost" else int(text.replace(",", ""))
    except ValueError:
        limit = 0
    if not 0 < limit < 10**12:
        raise AnswerError(f"answer: field {name}: expected a positive number, got {text!r:.40}.")
    return {name: limit}
