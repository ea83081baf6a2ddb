"""Questions that a run asks a person: their form, the valid answers, and the record of what was said.

A question is the value of an `interrupt()`. It has the keys of LangChain's human-in-the-loop middleware, which
agent-chat-ui shows (`action_requests`, `review_configs`), those of Agent Inbox (`action_request`, `config`), and under
`citeloom` the fields of a form. All values are lines of text, so that terminals, pages, Studio and MCP clients show the
same form; an answer has the form of either schema, or just names the fields to change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, cast, get_args

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..errors import InputError
from ..settings.config import Ask

ASKS: Final[tuple[Ask, ...]] = tuple(name for name in get_args(Ask) if name != "all")
Action = Literal["accept", "edit", "ignore"]
_TYPES: Final[Mapping[str, str]] = {
    **{name: name for name in ("accept", "edit", "ignore", "response")},
    **{"approve": "accept", "reject": "ignore", "respond": "response"},
}
_MOST_TEXT: Final = 20_000  # characters of a field
_TITLES: Final[Mapping[str, str]] = {
    "needs": "What has to be known",
    "evidence": "Evidence to write from",
    "sentences": "Doubtful sentences",
    "budget": "The budget is reached",
}


class AnswerError(InputError):
    """An answer to a question of a run does not have its form; the run still waits."""

    default_help = "The run still waits."


class FormField(TypedDict):
    """A field of a question; with `several` it has an entry a line."""

    name: str
    label: str
    value: str
    several: bool


class QuestionDetail(TypedDict):
    """What is asked, of which section, the fields that an answer can change, and the one that a free text fills."""

    ask: str
    section: str
    summary: str
    about: str
    fields: list[FormField]
    free_text: str


class PersonQuestion(TypedDict):
    """The value of an interrupt."""

    action_requests: list[dict[str, Any]]
    review_configs: list[dict[str, Any]]
    action_request: dict[str, Any]
    config: dict[str, bool]
    description: str
    citeloom: QuestionDetail


class Change(TypedDict):
    """One thing that a person changed; `before` is empty for what was added, `after` for what was dropped."""

    what: str
    before: str
    after: str


class SteeringRecord(TypedDict):
    """What a person said to a question of a run: who, when, and what it changed; nothing if it was accepted."""

    ask: str
    section: str
    by: str
    at: str
    action: Action
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """A valid answer: the fields that it changes, who gave it, and when."""

    action: Action
    fields: Mapping[str, str]
    by: str
    at: str

    def as_dict(self) -> dict[str, Any]:
        """The plain form in which a run is resumed."""
        return {"type": self.action, "args": dict(self.fields), "by": self.by, "at": self.at}


def expand_asks(given: Iterable[str]) -> list[Ask]:
    """The asks in the order of a run; "all" names each."""
    wanted = set(given)
    return [name for name in ASKS if name in wanted or "all" in wanted]


def form_field(name: str, label: str, value: str = "", *, several: bool = False) -> FormField:
    return {"name": name, "label": label, "value": value, "several": several}


def make_question(
    ask: Ask,
    summary: str,
    lines: Sequence[str],
    fields: list[FormField],
    *,
    section: str = "",
    free_text: str = "",
    may_ignore: bool = False,
) -> PersonQuestion:
    """A question; `lines` say what it is about, in Markdown, and a free text as answer fills the field `free_text`."""
    title = f"{_TITLES[ask]}{f' ({section})' if section else ''}"
    about = "\n".join(lines)
    explained = [f"- `{item['name']}`: {item['label']}" for item in fields if not item["value"]]
    description = "\n".join([f"**{title}: {summary}**", "", about, "", *explained]).strip()
    detail: QuestionDetail = {
        "ask": ask,
        "section": section,
        "summary": summary,
        "about": about,
        "fields": fields,
        "free_text": free_text,
    }
    args = {item["name"]: item["value"] for item in fields}
    decisions = ["approve", "edit", *(["reject"] if may_ignore or free_text else [])]
    return {
        "action_requests": [{"name": ask, "args": args, "description": description}],
        "review_configs": [{"action_name": ask, "allowed_decisions": decisions}],
        "action_request": {"action": ask, "args": args},
        "config": {
            "allow_accept": True,
            "allow_edit": True,
            "allow_respond": bool(free_text),
            "allow_ignore": may_ignore,
        },
        "description": description,
        "citeloom": detail,
    }


def read_answer(question: PersonQuestion, given: object) -> PersonAnswer:
    """The answer in any of its forms: `HumanResponse`, `{"decisions": [...]}`, "accept", or the fields to change.

    Raises `AnswerError` naming the field and what is possible.
    """
    if isinstance(given, Mapping) and isinstance(given.get("decisions"), list):
        given = {**given, "decisions": None, **_only(given["decisions"])}
    elif isinstance(given, list):
        given = _only(given)
    record = {"type": given} if isinstance(given, str) else given
    if not isinstance(record, Mapping):
        raise AnswerError("answer: is neither a text nor an object.", help='Give "accept", or the fields to change.')
    who, when = str(record.get("by") or "")[:200], str(record.get("at") or datetime.now(UTC).isoformat("T", "seconds"))
    if "type" not in record:
        record = {"type": "edit", "args": {name: record[name] for name in record if name not in ("by", "at")}}
    kind = _TYPES.get(str(record["type"]))
    args = record.get("edited_action", record.get("args", record.get("message")))
    if isinstance(args, Mapping) and isinstance(args.get("args"), Mapping):
        args = args["args"]  # of an action
    detail, config = question["citeloom"], question["config"]
    if kind in ("ignore", "response") and isinstance(args, str) and args.strip() and detail["free_text"]:
        kind, args = "edit", {detail["free_text"]: args}
    possible = [*("accept", "edit"), *(["ignore"] if config["allow_ignore"] else [])]
    if kind not in possible:
        raise AnswerError(f"answer: type {record['type']!r:.40} is not possible here; give {', '.join(possible)}.")
    fields = _changed_fields(detail, args) if kind == "edit" else {}
    return PersonAnswer(cast(Action, "accept" if kind == "edit" and not fields else kind), fields, who, when)


def _only(given: Sequence[object]) -> Mapping[str, Any]:
    if len(given) != 1 or not isinstance(given[0], Mapping):
        raise AnswerError("answer: expected one answer in the list.")
    return given[0]


def _changed_fields(detail: QuestionDetail, args: object) -> dict[str, str]:
    """The fields whose values differ from what was shown; a list is an entry a line."""
    if not isinstance(args, Mapping):
        raise AnswerError("answer: an edit has no fields.", help='Give them as args: {"type": "edit", "args": {...}}.')
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
            raise AnswerError(f"answer: field {name}: is longer than {_MOST_TEXT:,} characters.")
        if text != shown[name].strip():
            fields[name] = text
    return fields


def budget_question(flag: str, message: str, enough: float) -> PersonQuestion:
    """Whether the limit of the option `flag` is raised, to `enough` as proposed; ignoring it pauses the run."""
    fields = [form_field(flag.removeprefix("--").replace("-", "_"), f"The new limit ({flag})", f"{enough:.10g}")]
    lines = ["Accept to raise the limit as proposed, edit it, or ignore this to pause the run."]
    return make_question("budget", message, lines, fields, may_ignore=True)


def read_limit(question: PersonQuestion, answer: PersonAnswer) -> dict[str, float]:
    """The new limit by its setting; raises `AnswerError` unless it is a positive number."""
    (item,) = question["citeloom"]["fields"]
    name, text = item["name"], answer.fields.get(item["name"], item["value"])
    try:
        limit = float(text) if name == "max_cost" else int(text.replace(",", ""))
    except ValueError:
        limit = 0
    if not 0 < limit < 10**12:
        raise AnswerError(f"answer: field {name}: expected a positive number, got {text!r:.40}.")
    return {name: limit}
