"""Functions that process answers of servers and models, and passages formatted for a model, each called with a text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from citeloom.citations.checks.findings import Finding
from citeloom.citations.markers import sentences
from citeloom.documents import chunking, paragraph_kinds, passages, plain_text
from citeloom.drafts import sentence_edits
from citeloom.models.http import response_body, responses
from citeloom.models.http.failures import BrokenAnswerError, ServerRefusalError
from citeloom.roles.chat import chat_reader, judges, prompt_format
from citeloom.roles.extractive import statement_needs
from citeloom.roles.protocols import CitedClaim, Need, NeedCoverage
from tests.support.reader_company import PIECE, PLAIN, SOURCES, chunk, paper, source

Reader = Callable[[str], object]


@dataclass(frozen=True)
class _Response:
    """A server's answer with the given body, in small parts."""

    body: bytes
    headers: Mapping[str, str]

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.body), PIECE):
            yield self.body[start : start + PIECE]


def _streamed(body: str) -> None:
    response = _Response(body.encode("utf-8", "replace"), {})
    _refusable(lambda: asyncio.run(responses.read_stream(response, len)))


def _events(text: str, delta: Callable[[str], object]) -> str:
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    lines = [json.dumps({"choices": [{"delta": delta(piece)}]}) for piece in pieces]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])


def _a_call(text: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": {"name": "search", "arguments": text}}]}


def _refusable(read: Callable[[], object]) -> None:
    try:
        read()
    except (BrokenAnswerError, ServerRefusalError, ConnectionError, ValueError) as error:
        str(error)


def _whole_answer(text: str) -> None:
    call = {"function": {"name": text, "arguments": text}}
    message = {"content": text, "refusal": text, "tool_calls": [call] * 3}
    usage = {"prompt_tokens": text, "completion_tokens": text}
    _refusable(
        lambda: responses.read_answer({"choices": [{"message": message, "finish_reason": text}], "usage": usage})
    )


def _judged(text: str) -> None:
    """A claim formatted for the judge, and an answer about it."""
    claims = [CitedClaim(text, SOURCES[:2], text), CitedClaim(PLAIN, (source(text),), PLAIN)]
    asked = judges._prepare_claims(claims, judges._TOKENS_AT_ONCE)
    list(judges._lines(asked))
    for item in asked:
        for passage in item.passages.values():
            prompt_format.present_numbered(passage.source, passage.sentences, "passage E1")
    said = {"does": text, "sentences": text}
    judges._usable_verdicts(
        {text: {}, "P1": {text: said, "E1": said, "verdict": text, "reason": text}}, asked, judges.DRAFTS
    )


def _verdict(text: str) -> None:
    passages = {"E1": judges.JudgedPassage.of(source(text), 900)}
    said = {
        "reason": text,
        f"passage {text}": {},
        "verdict": "supported",
        "E1": {"does": "supports", "sentences": text},
    }
    _refusable(lambda: judges.to_verdicts(judges.verdict_model(("E1",)).model_validate(said), passages))


def _reading(text: str) -> None:
    finding = {"statement": text, "sentences": [text, 1], "need": text, "score": text}
    _refusable(lambda: chat_reader.PassageReading.model_validate({"findings": [finding]}))
    _refusable(lambda: chat_reader.PassageReading.model_validate({"findings": {text: finding}}))
    chat_reader.first_words(text, 60)


def _presented(text: str) -> object:
    window = chunking.Window(paper(text), (chunk(text),), (chunk(text).id,), (0.7,))
    return prompt_format.present_windows([window])


def need(text: str) -> NeedCoverage:
    """A need with the words `text`, which searches for them did not find."""
    return NeedCoverage(Need("N1", text, (text,)), ("E1",), 1, 1, (text,), "in vain")


def _repaired(answer: Callable[[str, str], str]) -> Reader:
    """All sentences of a draft failing, each answered by `answer` from the text and the sentence."""

    def repair(text: str) -> object:
        records = [Finding("unsupported", "Say less.", (item.start, item.end)).as_dict() for item in sentences(text)]
        attempt = {"draft": {"text": text, "truncated": False}, "findings": records}
        failing = sentence_edits.failing_sentences(attempt, SOURCES)  # type: ignore[arg-type]
        edits = sentence_edits.make_edits(text, failing, [answer(text, item.shown.text) for item in failing], PLAIN)
        return sentence_edits.apply_edits(text, edits)

    return repair


PASSAGES: Final[Mapping[str, Reader]] = {
    "readable_units": lambda text: passages.readable_units(chunk(text).text),
    "readable_units, of a caption": lambda text: passages.readable_units(chunk(f"Figure 2. {text}").text),
    "readable_units, of a list": lambda text: passages.readable_units(chunk(f"- {text}\n- {text}").text),
    "split_parts, of a passage": lambda text: list(passages.split_parts(text)),
    "plain_text": plain_text.plain_text,
    "plain_formula": plain_text.plain_formula,
    "plain_text, a formula": lambda text: plain_text.plain_text(f"$${text}$$"),
    "caption_kind": paragraph_kinds.caption_kind,
    "caption_label": paragraph_kinds.caption_label,
    "split_caption": lambda text: paragraph_kinds.split_caption(chunk(text).text, 0, len(text)),
    "panel_starts": paragraph_kinds.panel_starts,
    "is_panelled": lambda text: paragraph_kinds.is_panelled(f"(A) One. (B) Two. {text}"),
    "is_boilerplate": paragraph_kinds.is_boilerplate,
    "is_reference": paragraph_kinds.is_reference,
    "is_lone_heading": paragraph_kinds.is_lone_heading,
    "format_table": lambda text: plain_text.format_table(text, text, below=True),
    "format_table, rows": lambda text: plain_text.format_table(f"| {text[:40]} |\n" * 2_000, text, below=False),
    "format_table, in HTML": lambda text: plain_text.format_table(f"<table><tr><td>{text}", "", below=False),
    "present_windows": _presented,
}
ANSWERS: Final[Mapping[str, Reader]] = {
    "a stream": _streamed,
    "a stream, in lines of data": lambda text: _streamed(f"data: {text}\n\ndata:{text}"),
    "a stream, of text": lambda text: _streamed(_events(text, lambda piece: {"content": piece})),
    "a stream, of a call": lambda text: _streamed(_events(text, _a_call)),
    "parse_json": lambda text: _refusable(lambda: response_body.parse_json(text.encode("utf-8", "replace"))),
    "read_answer": _whole_answer,
    "token_count": responses.token_count,
    "what a judge is shown": _judged,
    "verdicts_from": _verdict,
    "PassageReading": _reading,
    "searchable": statement_needs.strip_own_results,
    "section_needs": lambda text: statement_needs.section_needs([text]),
    "repairing, the same": _repaired(lambda text, sentence: sentence),
    "repairing, a piece for each": _repaired(lambda text, sentence: f"Yet {text[: len(sentence)]}."),
    "repairing, all taken out": _repaired(lambda text, sentence: ""),
}
