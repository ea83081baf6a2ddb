"""Who agrees with a claim: an evidence table with a column of stances, and its evaluation.

A stance is for or against the claim as it stands. What holds for other people, doses, times or settings is neither, and
a result that found no difference is distinguished from one in the other direction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..roles.protocols import Need, TableColumn
from .cells import cell_text, describe_column

# From against to for, in the order of the picture.
STANCES: Final = ("against", "no difference", "other condition", "mixed", "for")
STANCE: Final = "stance"
_NOT_JUDGED: Final = "not judged"
_DIRECTION: Final = "which way the outcome of the claim went in this study"
_DIRECTIONS: Final = ("increased", "decreased", "no difference", "other")


def stance_column(claim: str, name: str = STANCE) -> TableColumn:
    """The column of what studies say on a claim."""
    asks = (
        f"the paper's stance on the claim “{claim}”: for, if its results bear the claim out; against, if they go the "
        "other way; no difference, if none was found where the claim says that there is one; mixed, if its own results "
        "disagree; other condition, if they bear on it only for other people, doses, times, comparisons or settings. "
        "The condition says what the result holds for. No cell if it reports nothing on the claim"
    )
    return TableColumn(name, asks, "choice", options=STANCES[::-1], queries=(claim,))


def agreement_columns(claim: str, *, judged: bool) -> tuple[TableColumn, ...]:
    """The columns of a claim; without a chat model (`judged`) only that of the nearest sentences."""
    direction = TableColumn("direction", _DIRECTION, "choice", options=_DIRECTIONS, queries=(claim,))
    about = [direction, *(describe_column(TableColumn(name)) for name in ("design", "n"))]
    return (stance_column(claim), *(about if judged else ()))


def claim_needs(claims: Sequence[str]) -> tuple[Need, ...]:
    """What papers are screened for."""
    return tuple(Need(f"N{number}", claim, (claim,)) for number, claim in enumerate(claims, 1))


def is_stance(column: Mapping[str, Any]) -> bool:
    """Whether a column of a table's JSON holds stances on a claim, which is its query."""
    return tuple(column["options"]) == STANCES[::-1] and bool(column["queries"])


def stance_of(cell: Mapping[str, Any]) -> str:
    """The stance in a cell; empty if its paper says nothing on the claim."""
    if cell["status"] == "not_judged":
        return _NOT_JUDGED if cell["value"] else ""
    found = {item["value"].casefold() for item in (cell, *cell["alternatives"])} & {*STANCES}
    return "mixed" if len(found) > 1 else next(iter(found), "")


def stances(table: Mapping[str, Any], column: str = STANCE) -> Iterator[dict[str, Any]]:
    """The studies that say something on the claim of a column, those for it first, with the words that decide."""
    order = {name: place for place, name in enumerate((*STANCES[::-1], _NOT_JUDGED))}
    found = [(stance, row) for row in table["rows"] if (stance := stance_of(row["cells"][column]))]
    for stance, row in sorted(found, key=lambda item: order[item[0]]):
        cell = row["cells"][column]
        others = {name: other for name, other in row["cells"].items() if name in ("direction", "design", "n")}
        yield {
            **{name: row[name] for name in ("key", "title", "year", "study", "changed")},
            "stance": stance,
            "condition": cell["condition"],
            **{name: cell_text(others[name]) if name in others else "" for name in ("direction", "design", "n")},
            **{name: cell[name] for name in ("quote", "page", "chunk_id", "start", "end", "edited")},
            "spans": [span for item in (cell, *cell["alternatives"]) for span in item["spans"]],
        }


def agreement_record(table: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of `agree`, from that of its table."""
    studies = list(stances(table))
    telling = {study["key"] for study in studies}
    read = {row["key"]: row for row in table["rows"] if row["key"] not in telling}
    papers: dict[str, set[str]] = defaultdict(set)
    for study in studies:
        papers[study["stance"]].add(study["key"])
    silent = [{**{name: row[name] for name in ("key", "title", "year")}, "reason": ""} for row in read.values()]
    return {
        "claim": table["question"],
        **{name: table[name] for name in ("table_id", "papers", "screened", "removed", "notice")},
        "counts": {name: len(papers[name]) for name in (*STANCES[::-1], _NOT_JUDGED) if papers[name]},
        "studies": studies,
        "silent": [*silent, *table["left_out"]],
    }


def disagreements(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims on which papers of a table disagree, each with what differs and the passages of both sides."""
    found: list[dict[str, Any]] = []
    for column in filter(is_stance, table["columns"]):
        studies = list(stances(table, column["name"]))
        sides = [[item for item in studies if item["stance"] in side] for side in (("for",), STANCES[:2])]
        if len({item["key"] for item in studies if item["stance"] in ("for", *STANCES[:2])}) > 1 and all(sides):
            reason = "; ".join(f"{item['key']}: {item['stance']}" for side in sides for item in side)
            found.append({"claim": column["queries"][0], "reason": reason, "passages": [*sides[0], *sides[1]]})
    return found


def agreement_lines(record: Mapping[str, Any]) -> list[str]:
    """The counts of an agreement as lines for people."""
    counts = [f"{number} {name}" for name, number in record["counts"].items()]
    others = record["screened"] - len(record["silent"]) - len({study["key"] for study in record["studies"]})
    line = f"{', '.join(counts) or 'No paper says anything on it'}; {len(record['silent'])} read without a result on it"
    more = f", {others} excluded by their cards" if others > 0 else ""
    return [f"{line}{more}, of {record['papers']} papers in scope."]
