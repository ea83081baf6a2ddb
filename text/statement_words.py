"""What the words of a statement tell: its subject, measured results, their direction, and whether it weighs sources.

English patterns of bounded length; a statement that matches none counts as telling nothing of the kind.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from .words import is_generic, is_stop, split_words

Direction = Literal["up", "down", "none", ""]

NAMED: Final = 2  # weight of a number or name
_NUMBER: Final = re.compile(r"\d{1,12}(?:[.,]\d{1,12}){0,3}")
_EXAMINED: Final = 1_000  # characters of a statement


def telling_words(text: str) -> dict[str, int]:
    """The numbers and uncommon words of a text with a weight, which is higher for a number or name."""
    words = [word for word in split_words(text) if not is_stop(word) and not is_generic(word.form)]
    weights = {word.form: 1 if word.surface.islower() else NAMED for word in words}
    return weights | dict.fromkeys(_NUMBER.findall(text), NAMED)


_MEASURES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # an effect
        r"\d\s?(?:%|percent\b|per\scent\b|percentage\spoints?\b|-?fold\b|times\b)"
        r"|\b(?:odds|hazard|risk|rate|likelihood)\s(?:ratio|difference|reduction)s?\b"
        r"|\b(?:OR|RR|HR|AUC|AUROC|MD|SMD|F1|R2|rho|r|d)\s?[=:,]\s?[-\u2212]?\d",
        # a size of a group
        r"\bn\s?=\s?\d|\b\d[\d,]{0,11}\s(?:[a-z-]{1,30}\s){0,2}(?:patients|participants|children|adults|women|men"
        r"|subjects|individuals|people|students|samples|controls|cases|mice|rats|trials|studies|genomes|networks)\b",
        # a test
        r"\bp\s?[<=>\u2264\u2265]\s?0?[.,]\d|\bCI\b|\bconfidence\sinterval|\b(?:SD|SE|SEM|IQR)\b|\u00b1"
        r"|\bstandard\s(?:deviation|error)|\bsignifican",
    )
)


def count_measures(text: str) -> int:
    """How much of a result a statement gives: an effect, the size of a group, a test (0-3)."""
    return sum(pattern.search(text[:_EXAMINED]) is not None for pattern in _MEASURES)


_NONE: Final = re.compile(
    r"\b(?:no|not|nor|neither|without|never)\b[^.;]{0,40}?\b(?:significan\w*|differen\w*|differ|effects?|associat\w*"
    r"|chang\w*|improv\w*|benefit\w*|better|correlat\w*|relat\w*|reduc\w*|increas\w*)"
    r"|\bnon-?significant|\binsignificant|\bunchanged\b",
    re.IGNORECASE,
)
_UP: Final = re.compile(
    r"\b(?:increas\w*|higher|rose|raised|improv\w*|better|larger|more|greater|gain\w*|outperform\w*)\b", re.IGNORECASE
)
_DOWN: Final = re.compile(
    r"\b(?:decreas\w*|lower\w*|fell|reduc\w*|declin\w*|worse\w*|smaller|fewer|less|underperform\w*)\b", re.IGNORECASE
)


def direction(text: str) -> Direction:
    """Whether a statement says that something rose, fell, or showed no effect; empty for none or several of these."""
    text = text[:_EXAMINED]
    if _NONE.search(text):
        return "none"
    up, down = _UP.search(text) is not None, _DOWN.search(text) is not None
    return "" if up == down else "up" if up else "down"


_OUTCOME_REACH: Final = 45  # characters on either side of what rose, fell or did not differ


def outcome_words(text: str) -> set[str]:
    """The telling words next to what a statement says rose, fell or did not differ; empty if it says none."""
    text = text[:_EXAMINED]
    pattern = {"none": _NONE, "up": _UP, "down": _DOWN}.get(direction(text))
    match = pattern.search(text) if pattern else None
    if match is None:
        return set()
    return set(telling_words(text[max(0, match.start() - _OUTCOME_REACH) : match.end() + _OUTCOME_REACH]))


_QUANTIFIED: Final = r"(?:all|both|most|many|some|several|few|none|neither|each|two|three|four|five|half|majority)"
_WEIGHS: Final = re.compile(
    rf"\b{_QUANTIFIED}\s(?:of\s)?(?:(?:the|these|those)\s)?(?:[\w-]{{1,30}}\s){{0,3}}"
    r"(?:stud(?:y|ies)|trials?|surveys?|papers|works|experiments|analyses|reviews?|sources|groups|cohorts|authors|teams)\b"
    r"|\b(?:evidence|findings|results|ground|support|literature)\b[^.;:]{0,60}\b(?:weak|strong|mixed|thin|firm|limited"
    r"|consistent|inconsistent|conflicting|disagrees?|differs?|agrees?|diverges?|confirm\w*|points?|favou?rs?|suggests?)\b"
    r"|\b(?:taken\stogether|on\sbalance|overall|in\ssum|balance\sof\s(?:the\s)?evidence|outweighs?|same\sdirection)\b"
    r"|\b(?:more|less|larger|smaller|higher|lower|faster|slower|better|worse|fewer|stronger|weaker)\b[^.;]{0,80}\bthan\b"
    rf"|\bwhy\s(?:the|these|{_QUANTIFIED})\s[^.;]{{0,40}}\bdiffer|\b(?:agree|disagree|contradict|conflict|converge)\b",
    re.IGNORECASE,
)


def weighs_sources(sentence: str) -> bool:
    """Whether a sentence weighs, counts or compares what several sources say, rather than reporting one of them."""
    return _WEIGHS.search(sentence[:_EXAMINED]) is not None
