"""Ordinary surroundings for a degenerate text, for functions that take more than a text."""

from __future__ import annotations

from typing import Final

from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Source

PLAIN: Final = "Node degree explains most of the edges of the network [E1]. It is a strong baseline in 2 of 3 cases."
KEYS: Final = ("himmelstein2017systematic", "lee2020")
PIECE: Final = 40  # characters per piece of a streamed answer
_FIELDS: Final = {
    "paper_concept": {"title": "Node degree", "description": PLAIN},
    "results": "The baseline explains 72.5% of the edges.",
}
EXPERIMENT: Final = Experiment.model_validate(_FIELDS)


def chunk(text: str) -> Chunk:
    """A chunk whose text is `text`."""
    text = text.replace("\ud800", "\ufffd") or " "  # no library contains lone surrogates
    return Chunk(f"{KEYS[0]}:00004", KEYS[0], 4, text, "Results", "", Category.EVALUATION, 1, 1, 0, len(text), 9)


def paper(text: str = "On degree") -> Paper:
    """A paper of which only `text` is known."""
    return Paper(KEYS[0], text, (text,), 2017, venue=text, url=text, abstract=text, bibtex=f"@misc{{a,\n{text}\n}}")


def source(text: str = PLAIN, id: str = "E1", paper: Paper | None = None) -> Source:
    """A source with the passage `text`."""
    known = paper or Paper(KEYS[0], "On degree", ("Ada Himmelstein",), 2017, family_names=("Himmelstein",))
    whole = chunk(text)
    end = min(9, len(whole.text))
    scores = {"vector_score": 0.7, "llm_score": 0.8, "combined_score": 0.76}
    made = Evidence.of(whole, id=id, summary="Degree.", start=0, end=end, source_query="degree", **scores)
    return Source(made, known, whole.text)


SOURCES: Final = (source(), source(id="E2"), source(id="E3"))


def experiment(text: str) -> Experiment:
    """An experiment with the results `text`."""
    return Experiment.model_validate({**_FIELDS, "results": text.replace("\ud800", "")})
