"""Plans searches without a chat model: what the section will state, and what the experiment is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage

from citeloom.models.briefs import SectionBrief
from citeloom.models.extractive.plans import paragraphs
from citeloom.models.extractive.themes import core_phrases, vocabulary

_MIN_WORDS: Final = 6


class ExtractivePlanner:
    """Implements `SearchPlanner`: one turn of searches, then none.

    It searches for the statements that no default query held, those with fewest numbers first (numbers find
    noise), and for the experiment's weightiest themes.
    """

    def open(self, brief: SectionBrief) -> list[BaseMessage]:
        """No messages: nobody reads them."""
        return []

    async def plan(self, messages: Sequence[BaseMessage], brief: SectionBrief) -> AIMessage:
        """A message with at most `searches_left` calls of `search_evidence`; none on the second turn."""
        if any(isinstance(message, AIMessage) for message in messages):
            return AIMessage("The statements and themes have been searched for.")
        queries = planned_queries(brief)[: brief.searches_left]
        calls = [
            {
                "name": "search_evidence",
                "args": {"query": query},
                "id": f"search_{number}",
                "type": "tool_call",
            }
            for number, query in enumerate(queries, start=1)
        ]
        return AIMessage("", tool_calls=calls)


def planned_queries(brief: SectionBrief) -> list[str]:
    """The searches in the order of their worth: two statements, then a theme, and so on."""
    asked = " ".join(" ".join(query.split()) for query in brief.queries)
    statements = [
        statement.about
        for paragraph in paragraphs(brief.kind, brief.experiment)
        for statement in paragraph
        if len(statement.about.split()) >= _MIN_WORDS and statement.about not in asked
    ]
    statements = sorted(dict.fromkeys(statements), key=lambda text: sum(map(str.isdigit, text)) > 3)
    description = " ".join(brief.experiment.paper_concept.description.split())
    if description and description not in asked:
        statements.insert(0, description)
    known = vocabulary([(source.paper.key, source.text) for source in brief.sources])
    themes = core_phrases(brief.experiment, known)
    mixed: list[str] = []
    while statements or themes:
        mixed += [*statements[:2], *themes[:1]]
        statements, themes = statements[2:], themes[1:]
    return mixed
