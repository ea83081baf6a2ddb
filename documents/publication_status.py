"""A paper's status since publication: retractions, concerns, corrections, and other versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

NoticeKind = Literal["retraction", "expression_of_concern", "correction", "reinstatement"]
VersionKind = Literal["preprint", "article", "version"]

NOTICE_KINDS: Final[tuple[NoticeKind, ...]] = get_args(NoticeKind)
VERSION_KINDS: Final[tuple[VersionKind, ...]] = get_args(VersionKind)
# Crossref's types of updates and the natures in Retraction Watch's file, in the form of `notice_kind`.
_NAMES: Final[dict[NoticeKind, str]] = {
    "retraction": "retraction withdrawal removal",
    "correction": "partial_retraction correction corrigendum erratum addendum clarification",
    "expression_of_concern": "expression_of_concern concern",
    "reinstatement": "reinstatement",
}
_KINDS: Final = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_LABELS: Final[dict[NoticeKind, str]] = {  # most serious first
    "retraction": "retracted",
    "expression_of_concern": "expression of concern",
    "reinstatement": "reinstated",
    "correction": "corrected",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """A published notice on a paper; `date` is ISO, as far as known, `doi` that of the notice itself."""

    kind: NoticeKind
    source: str
    doi: str = ""
    date: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """Another version of a paper, such as the article that a preprint became."""

    kind: VersionKind
    doi: str
    source: str


@dataclass(frozen=True, slots=True)
class PublicationStatus:
    """The notices on a paper and its other versions, as reported by any source."""

    notices: tuple[Notice, ...] = ()
    versions: tuple[Version, ...] = ()

    @property
    def retracted(self) -> bool:
        """Whether the paper is retracted and was not reinstated on the same day or later."""
        dates = [notice.date for notice in self.notices if notice.kind == "retraction"]
        again = [notice.date for notice in self.notices if notice.kind == "reinstatement"]
        return bool(dates) and (not again or max(dates) > max(again))

    @property
    def label(self) -> str:
        """The most serious notice in a word or two; empty if there is none."""
        kinds = {notice.kind for notice in self.notices if notice.kind != "retraction" or self.retracted}
        return next((label for kind, label in _LABELS.items() if kind in kinds), "")

    def lines(self) -> list[str]:
        """One line for each notice, with everybody who reports it, and one for each other version."""
        notices = [_notice_line(group) for group in _group_reports(self.notices)]
        versions: dict[tuple[str, str], list[str]] = {}
        for version in self.versions:
            versions.setdefault((version.kind, version.doi), []).append(version.source)
        named = {"preprint": "Preprint of it", "article": "Published as", "version": "Another version"}
        return notices + [
            f"{named[kind]}: https://doi.org/{doi} ({_join_names(sources)})"
            for (kind, doi), sources in versions.items()
        ]

    def retraction_line(self) -> str:
        """The line of the latest retraction; empty if there is none."""
        retractions = [group for group in _group_reports(self.notices) if group[0].kind == "retraction"]
        return _notice_line(retractions[-1]) if retractions else ""

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.label, "notices": self.lines()}


def notice_kind(name: str) -> NoticeKind | None:
    """The kind of a notice by its name in the source; None for a notice without effect, such as a new edition."""
    return _KINDS.get("_".join(name.strip().lower().replace("-", " ").replace("_", " ").split()))


def _group_reports(notices: Iterable[Notice]) -> list[list[Notice]]:
    """Group reports of the same notice, including reports without its DOI, ordered by date."""
    groups: dict[tuple[str, str], list[Notice]] = {}
    for notice in sorted(notices, key=lambda item: (not item.doi, item.date, item.kind, item.source)):
        same = [key for key in groups if key[0] == notice.kind and (not notice.doi or key[1] == notice.doi)]
        groups.setdefault(same[-1] if same else (notice.kind, notice.doi), []).append(notice)
    return sorted(groups.values(), key=lambda group: max(notice.date for notice in group))


def _notice_line(group: list[Notice]) -> str:
    first = group[0]
    date = next((notice.date for notice in group if notice.date), "")
    reason = next((notice.reason for notice in group if notice.reason), "")
    said = f"{_LABELS[first.kind].capitalize()}{f' on {date}' if len(date) == 10 else f' in {date}' if date else ''}"
    address = f": https://doi.org/{first.doi}" if first.doi else ""
    return f"{said} ({_join_names(notice.source for notice in group)}){address}{f'; {reason}' if reason else ''}"


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
