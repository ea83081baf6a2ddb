"""Judges of a user's text: a chat model, or a small checker that answers Yes or No to a document and a claim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import create_model, model_validator

from ...models.chat_caller import ChatCaller
from ...models.concurrency import gather_all
from ...models.context_size import UNLIMITED, Room
from ...prompts import PromptLibrary
from ..protocols import CitedClaim, UncitedKind, UncitedSentence, Verdict
from .clean_output import answer_text
from .judges import CLAIMS, ChatJudge, Rubric
from .prompt_format import one_line, present_lines, strip_markers
from .structured_output import StructuredAnswer

_AT_ONCE: Final = 60  # sentences in one call
_LONGEST: Final = 600  # characters of a sentence shown
_YES_OR_NO: Final = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_DOCUMENT: Final = 3_000  # tokens; what small checkers were trained on is shorter
_CHARACTERS: Final = 4  # per token
_ANSWER_TOKENS: Final = 16


class UncitedKinds(StructuredAnswer):
    """Base of the answers for several sentences: a field S1, S2 ... for each."""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {str(name).strip().upper(): str(kind).strip(" .\"'").lower() for name, kind in data.items()}


@lru_cache(maxsize=64)
def _kinds_model(count: int) -> type[UncitedKinds]:
    fields: dict[str, Any] = {f"S{number}": (UncitedKind, ...) for number in range(1, count + 1)}
    return create_model("UncitedKinds", __base__=UncitedKinds, **fields)


@dataclass(frozen=True)
class ChatClaimJudge(ChatJudge):
    """Implements `ClaimJudge` on a chat model."""

    rubric: Rubric = field(default=CLAIMS, kw_only=True)

    async def classify(self, sentences: Sequence[UncitedSentence]) -> list[UncitedKind | None]:
        """The kinds of sentences, asked for in batches; None where two attempts gave no valid answer."""
        batches = [sentences[start : start + _AT_ONCE] for start in range(0, len(sentences), _AT_ONCE)]
        found = await gather_all(self._kinds(batch) for batch in batches)
        return [kind for kinds in found for kind in kinds]

    async def _kinds(self, batch: Sequence[UncitedSentence]) -> list[UncitedKind | None]:
        task = self.prompts["uncited_task"].render(sentences=present_lines(list(_numbered(batch)), "sentences"))
        messages = [SystemMessage(self.prompts["uncited_system"].render()), HumanMessage(task)]
        answer = await self.ask(messages, _kinds_model(len(batch)))
        return [None if answer is None else getattr(answer, f"S{number}") for number in range(1, len(batch) + 1)]


def _numbered(batch: Sequence[UncitedSentence]) -> Iterator[str]:
    section = ""
    for number, sentence in enumerate(batch, 1):
        if sentence.section != section:
            section = sentence.section
            yield f"Section: {one_line(section)[:_LONGEST]}"
        yield f"S{number}: {one_line(sentence.text)[:_LONGEST]}"


@dataclass(frozen=True)
class SmallClaimJudge:
    """`ClaimJudge` on a checker of MiniCheck's protocol: "Document: ... Claim: ..." is answered Yes or No.

    It cannot tell contradiction or overstatement from missing support, and does not classify.
    """

    caller: ChatCaller
    prompts: PromptLibrary
    room: Room = UNLIMITED

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        """For each source of each claim, whether its paper supports the claim; together if no paper does alone."""
        return list(await gather_all(self._judge(claim) for claim in claims))

    async def _judge(self, claim: CitedClaim) -> tuple[Verdict, ...]:
        texts: dict[str, list[str]] = {}
        for source in claim.sources:
            shown = [item.text for item in source.passage] or [source.text]
            texts.setdefault(source.paper.key, []).append(" ".join(shown))
        sentence = one_line(strip_markers(claim.sentence))
        said = dict(zip(texts, await gather_all(self._ask(parts, sentence) for parts in texts.values()), strict=True))
        if len(texts) > 1 and "yes" not in said.values():
            together = await self._ask([part for parts in texts.values() for part in parts], sentence)
            said = dict.fromkeys(said, together) if together == "yes" else said
        any_yes = "yes" in said.values()
        verdicts = {
            "yes": Verdict("supported", "the checker found it in the passages"),
            "no": Verdict("supported" if any_yes else "unsupported", "the checker did not find it", adds="idle"),
            "": Verdict("unjudged", "the checker answered neither Yes nor No"),
        }
        return tuple(verdicts[said[source.paper.key]] for source in claim.sources)

    async def _ask(self, passages: Sequence[str], claim: str) -> Literal["yes", "no", ""]:
        document = one_line("\n".join(passages))[: _CHARACTERS * self.room.left(_DOCUMENT, claim)]
        task = self.prompts["small_judge_task"].render(document=document, claim=claim)
        answer = await self.caller.call([HumanMessage(task)], max_tokens=_ANSWER_TOKENS)
        found = _YES_OR_NO.match(answer_text(answer.message))
        if found is None:
            await self.caller.reject(answer)
            return ""
        return "yes" if found[1].lower() == "yes" else "no"

    async def classify(self, sentences: Sequence[UncitedSentence]) -> list[UncitedKind | None]:
        """None for each: it was trained for support alone."""
        return [None for _ in sentences]
