"""Fills evidence tables with a chat model, one call per paper; words are sliced from the paper by sentence number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import Field, field_validator

from ...documents.chunking import Window, WindowSentence
from ...models.context_size import WHOLE, group_batches
from ..protocols import COLUMN_KINDS, CellReading, ColumnKind, PaperCard, RowReading, StudyReading, TableColumn
from .chat_reader import merge_sentences
from .model_answers import ChatRole, StructuredAnswer, lowercase, parse_numbers
from .prompt_format import estimate_tokens, fence, one_line, present_lines, present_windows, window_sentences

_MOST_COLUMNS: Final = 8  # proposed when the user names none
_MOST_SENTENCES: Final = 6  # per cell
_VALUE: Final = 300  # characters
_CLAIM: Final = 400
_CARD_TOKENS: Final = 16_000


class PlannedColumn(StructuredAnswer):
    """A column as the model describes it."""

    name: str = Field(min_length=1, description="One to three words.")
    asks: str = Field("", description="What stands in a cell.")
    kind: ColumnKind = Field("text", description="The kind of its values.")
    unit: str = Field("", description="The unit of its numbers, or empty.")
    options: tuple[str, ...] = Field((), description="The allowed values of a choice.")
    queries: tuple[str, ...] = Field((), description="Searches worded as a paper would.")

    _on_one_line = field_validator("name", "asks")(one_line)

    @field_validator("kind", mode="before")
    @classmethod
    def _known_kind(cls, value: object) -> object:
        return plain if (plain := lowercase(value)) in COLUMN_KINDS else "text"


class ColumnPlan(StructuredAnswer):
    """The planned columns."""

    columns: list[PlannedColumn] = Field(min_length=1, description="The columns in their order.")


class DisputedClaims(StructuredAnswer):
    """Claims on which papers may disagree."""

    claims: list[str] = Field(description="One sentence each.")


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value) if isinstance(value, int | float) else value


class ReadCell(StructuredAnswer):
    """A cell as the model returns it."""

    column: str = Field(description="The column's name.")
    value: str = Field(description="The value as printed.")
    unit: str = Field("", description="Its unit, or empty.")
    condition: str = Field("", description="What it holds for, or empty.")
    formula: str = Field("", description="Arithmetic on printed numbers, or empty.")
    sentences: list[int] = Field(description="Numbers of the sentences that state it.")

    _as_text = field_validator("value", "unit", "condition", "formula", mode="before")(_text)
    _as_numbers = field_validator("sentences", mode="before")(parse_numbers)


class ReadStudy(StructuredAnswer):
    """One study as the model returns it."""

    study: str = Field("", description="Its name; empty if it is the only one.")
    cells: list[ReadCell] = Field(description="The cells that the passages state.")

    _as_text = field_validator("study", mode="before")(_text)


class ReadRow(StructuredAnswer):
    """The model's answer for one paper."""

    belongs: bool = Field(description="Whether the paper belongs in the table.")
    reason: str = Field(description="Why, in at most 25 words.")
    studies: list[ReadStudy] = Field(description="One object for each study.")


class ChatCellReader(ChatRole):
    """Proposes the columns of a table, and reads its rows from papers."""

    async def propose_columns(
        self, question: str, names: Sequence[str], titles: Sequence[str]
    ) -> tuple[TableColumn, ...]:
        """Describe the named columns; without names, propose columns that answer the question.

        `titles` are of papers that the table is about. A column without a valid answer keeps only its name.
        """
        system = self.prompts["columns_system"].render(most=_MOST_COLUMNS)
        task = self.prompts["columns_task"].render(
            question=fence(question, "question"),
            columns=present_lines(names, "columns"),
            titles=present_lines(titles, "titles"),
        )
        plan = await self.ask([SystemMessage(system), HumanMessage(task)], ColumnPlan)
        if plan is None:
            self.note("The columns were not described, since the model gave no valid answer in two attempts.")
        planned = [TableColumn(**item.model_dump()) for item in (plan.columns if plan else [])]
        by_name = {column.name.casefold(): column for column in planned}
        if not names:
            return tuple(by_name.values())[:_MOST_COLUMNS]
        return tuple(by_name.get(name.casefold(), TableColumn(name)) for name in names)

    async def propose_claims(self, topic: str, cards: Sequence[PaperCard], most: int) -> tuple[str, ...]:
        """Propose at most `most` claims on which the papers may disagree, from the cards that fit into a prompt."""
        system, task = self.prompts["disputed_system"].render(most=most), self.prompts["disputed_task"]
        room = self.room.left(_CARD_TOKENS, system, task.render(topic=topic, cards=""))
        shown = next(group_batches(cards, lambda card: {card.key: estimate_tokens(card.text)}, room, len(cards)), [])
        text = task.render(topic=fence(topic, "topic"), cards=fence("\n\n".join(card.text for card in shown), "cards"))
        answer = await self.ask([SystemMessage(system), HumanMessage(text)], DisputedClaims)
        if answer is None:
            self.note("No claims were proposed, since the model gave no valid answer in two attempts.")
        named = [one_line(claim)[:_CLAIM] for claim in (answer.claims if answer else [])]
        return tuple(dict.fromkeys(claim for claim in named if claim))[:most]

    async def read_row(
        self, question: str, columns: Sequence[TableColumn], windows: Sequence[Window], studies: Sequence[str] = ()
    ) -> RowReading | None:
        """Read the windows of one paper that fit, only for the given `studies` if there are any.

        Returns None if two attempts give no valid answer.
        """
        system = self.prompts["cells_system"].render()

        def task(passages: str) -> str:
            return self.prompts["cells_task"].render(
                question=fence(question, "question"),
                columns=present_lines([_column_line(column) for column in columns], "columns"),
                studies=present_lines(studies, "studies"),
                passages=passages,
            )

        shown = list(windows)
        room = self.room.left(WHOLE, system, task(""))
        while len(shown) > 1 and sum(window.tokens for window in shown) > room:
            shown.pop()
        sentences = [sentence for _, own in window_sentences(shown) for sentence in own]
        if not sentences:
            return None
        messages = [SystemMessage(system), HumanMessage(task(present_windows(shown)))]
        answer = await self.ask(messages, ReadRow)
        if answer is None:
            self.note(f"{shown[0].paper.key}: not read, since the model gave no valid answer in two attempts.")
            return None
        known = {column.name.casefold(): column for column in columns}
        names = {study.casefold(): study for study in reversed(studies)}
        read = [
            StudyReading(
                names.get((name := one_line(item.study).strip(" .")).casefold(), name),
                tuple(cell for one in item.cells if (cell := _convert_cell(one, known, sentences)) is not None),
            )
            for item in answer.studies
        ]
        return RowReading(answer.belongs, one_line(answer.reason), tuple(read) if answer.belongs else ())


def _column_line(column: TableColumn) -> str:
    parts = [column.kind if column.kind != "choice" else f"one of: {'; '.join(column.options)}"]
    parts += [f"in {column.unit}"] * bool(column.unit)
    return f"{column.name} ({', '.join(parts)}): {column.asks or column.name}"


def _convert_cell(
    item: ReadCell, columns: dict[str, TableColumn], sentences: Sequence[WindowSentence]
) -> CellReading | None:
    """Convert a cell; None if the column is unknown, the value not allowed, or value or words are missing."""
    column = columns.get(one_line(item.column).casefold())
    value = one_line(item.value)[:_VALUE]
    named = [sentences[number - 1] for number in item.sentences if 1 <= number <= len(sentences)][:_MOST_SENTENCES]
    if column is None or not value or not named:
        return None
    if column.kind == "choice":
        value = next((option for option in column.options if option.casefold() == value.casefold()), "")
    if column.kind == "yes/no":
        value = value.casefold() if value.casefold() in ("yes", "no") else ""
    unit, condition, formula = map(one_line, (item.unit, item.condition, item.formula))
    return CellReading(column.name, value, unit, condition, formula, merge_sentences(named)) if value else None
