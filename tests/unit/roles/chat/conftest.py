"""A scripted chat model, and a small paper with an experiment to ask it about."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.documents.chunking import Window
from citeloom.experiment import Experiment, parse_experiment
from citeloom.models.chat_caller import Answer
from citeloom.models.journal.streaming import TextListener
from citeloom.prompts import PROMPT_NAMES, PromptLibrary
from citeloom.roles.protocols import PassageSentence, SectionBrief, Source
from citeloom.text.sentences import sentence_spans

CHUNK_TEXT = (
    "Degree alone predicts most edges of a network.\n\n"
    "We compared it with embeddings on 20 networks. It was as good on 17 of them. "
    "On a separate network it failed. The code is available."
)


class ScriptedCaller:
    """Answers with the next item of its script and remembers what it was asked; fails when the script is used up."""

    def __init__(self, *script: str | dict[str, Any] | AIMessage) -> None:
        self._script = list(script)
        self.asked: list[list[BaseMessage]] = []
        self.options: list[dict[str, Any]] = []
        self.rejected: list[str] = []
        self.cache_messages: list[Sequence[BaseMessage] | None] = []

    async def call(
        self,
        messages: Sequence[BaseMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        cache_messages: Sequence[BaseMessage] | None = None,
        listener: TextListener | None = None,
    ) -> Answer:
        self.asked.append(list(messages))
        self.cache_messages.append(cache_messages)
        self.options.append({"tools": tuple(tools), "schema": schema, "max_tokens": max_tokens})
        assert self._script, "the script is used up: one call too many"
        item = self._script.pop(0)
        if isinstance(item, dict):
            item = json.dumps(item)
        message = item if isinstance(item, AIMessage) else AIMessage(item)
        if listener is not None:
            listener.piece(str(message.text))
        return Answer(message, key=f"call-{len(self.asked)}")

    async def reject(self, answer: Answer) -> None:
        self.rejected.append(answer.key)

    def text(self, call: int = -1) -> str:
        """All that the model was shown in one call."""
        return "\n".join(str(message.text) for message in self.asked[call])


@pytest.fixture
def scripted() -> type[ScriptedCaller]:
    return ScriptedCaller


@pytest.fixture(params=["shipped", "replaced"])
def prompts(request: pytest.FixtureRequest, tmp_path: Path) -> PromptLibrary:
    """The shipped prompts, and a library in which every one was replaced by other words."""
    if request.param == "shipped":
        return PromptLibrary()
    return replaced_prompts(tmp_path / "prompts")


def replaced_prompts(folder: Path) -> PromptLibrary:
    folder.mkdir()
    shipped = PromptLibrary()
    for name in PROMPT_NAMES:
        variables = sorted(shipped[name].variables)
        body = " ".join(["Lorem ipsum", *(f"{{{{{variable}}}}} dolor" for variable in variables)])
        (folder / f"{name}.md").write_text(f"---\nvariables: [{', '.join(variables)}]\n---\n{body}\n")
    return PromptLibrary(folder)


@pytest.fixture
def paper() -> Paper:
    return Paper(
        key="zietz2024probability",
        title="The probability of edge existence",
        authors=("Michael Zietz", "Casey Greene", "Daniel Himmelstein"),
        year=2024,
        abstract="Node degree explains much of edge prediction.",
    )


@pytest.fixture
def make_chunk(paper: Paper) -> Callable[..., Chunk]:
    def make(text: str = CHUNK_TEXT, category: Category = Category.EVALUATION) -> Chunk:
        return Chunk(
            id=f"{paper.key}:00007",
            key=paper.key,
            index=7,
            text=text,
            section="Degree as a baseline",
            parent="Results",
            category=category,
            level=2,
            page=None,
            start=0,
            end=len(text),
            tokens=len(text) // 4,
        )

    return make


@pytest.fixture
def make_window(paper: Paper, make_chunk: Callable[..., Chunk]) -> Callable[..., Window]:
    def make(**given: Any) -> Window:
        chunk = make_chunk(**given)
        return Window(paper, (chunk,), (chunk.id,), (0.8,), ("N1",))

    return make


@pytest.fixture
def make_source(paper: Paper, make_chunk: Callable[..., Chunk]) -> Callable[..., Source]:
    def make(
        id: str = "E1",
        text: str = CHUNK_TEXT,
        summary: str = "Degree is a strong baseline.",
        score: float = 0.7,
    ) -> Source:
        chunk = make_chunk(text)
        evidence = Evidence.of(
            chunk,
            id=id,
            summary=summary,
            start=0,
            end=min(46, len(text)),
            vector_score=0.8,
            llm_score=0.6,
            combined_score=score,
            source_query="degree bias",
        )
        spans = [(start, end) for start, end in sentence_spans(text) if any(map(str.isalnum, text[start:end]))]
        passage = tuple(PassageSentence(chunk.id, start, end, text[start:end]) for start, end in spans)
        return Source(evidence, paper, text, chunk.category, passage)

    return make


@pytest.fixture
def experiment() -> Experiment:
    return parse_experiment(
        {
            "paper_concept": {
                "title": "A degree-based baseline",
                "description": "Biomedical networks carry inspection bias.",
                "open_questions": ["How much of the performance is degree?"],
            },
            "hypothesis": {
                "description": "Degree suffices.",
                "method_combination": "XSwap and an edge prior",
            },
            "experimental_plan": "1. Permute. 2. Predict.",
            "experiment_code": "def prior(): ...",
            "execution_result": {"stdout": "AUROC max 0.9971"},
            "metrics": {"auroc_max": 0.9971},
            "plots": [{"path": "a.png", "caption": "Calibration of the prior."}],
            "verdict": "supported",
            "reasoning": "Degree alone reconstructs 17 of 20 networks.",
            "results": "AUROC from 0.7697 to 0.9971.",
            "summary": "Node degree explains a large share.",
            "limitations": "Only biomedical networks.",
            "_source": {"doi": "10.1093/gigascience/giae001"},
        }
    )


@pytest.fixture
def make_brief(experiment: Experiment, make_source: Callable[..., Source]) -> Callable[..., SectionBrief]:
    def make(**given: Any) -> SectionBrief:
        fields: dict[str, Any] = {
            "kind": "discussion",
            "experiment": experiment,
            "sources": (make_source(),),
            "queries": ("degree bias",),
            "searches_left": 5,
            "words": 400,
        }
        return SectionBrief(**(fields | given))

    return make
