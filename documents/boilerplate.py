"""Recognises boilerplate lines of a paper: addresses, licences, page headers, entries of the reference list."""

from __future__ import annotations

import re
from typing import Final

_ADDRESS = re.compile(  # bounded: 1,500 characters
    r"[\s\[(<*]*(?:(?:doi|url|available (?:at|from)|see|source|pmid|pmcid|arxiv|https?)[\s:]+)*"
    r"(?:(?:https?://|www\.|doi:|arxiv:|url:|info:doi/|pmid:|pmc)\S+|10\.\d{4,9}/\S+)[\s\])>.*]*"
    r"(?:for(?:\s\w+){1,3}\.?|\(?(?:last\s)?(?:accessed|retrieved|visited)(?:\s(?:on\s)?[\w,]+){1,4}\)?\.?)?\s*",
    re.IGNORECASE,
)
_FURNITURE = re.compile(  # bounded: 1,500 characters
    r"""\s*[*_]*(?:
        this\ is\ an\ open[\s-]access\ article | (?:copyright|\u00a9|\(c\))\s?[:\d(\u00a9]
      | (?:published|distributed|available|licensed|released)\ (?:\w+\ ){0,3}under\ (?:the\ terms\ of\ )?
        (?:a|the|an)\ (?:\w+\ )?(?:creative\ commons|cc[\s-]by)
      | (?:the\ )?copyright\ holder\ (?:for|has) | all\ rights\ reserved
      | (?:which\ was\ not\ )?certified\ by\ peer\ review | (?:bio|med)rxiv\ preprint
      | it\ is\ made\ available\ under\ a | author\ manuscript\b | downloaded\ from\b
      | (?:received|accepted|published|revised|submitted|last\ modified)\s?:?\s
        (?:\d{1,2}\s\w+\s\d{4}|\w+\s\d{1,2},\s\d{4})
      | (?:page|p\.)\s\d{1,4}(?:\s?(?:of|/)\s?\d{1,4})?[\s.]*$ | \d{1,4}\s?(?:/|of)\s?\d{1,4}\s*$
      | (?:plos|elife|nature|bmc|peerj|frontiers|proc(?:eedings)?)\b[^.]{0,60}\|[^.]{0,80}$
      | (?:e-?mail|correspondence|\*?corresponding\ author)s?\s?(?:to|address)?\s?:
      | (?:citation|editor|handling\ editor|academic\ editor)\s?:\s
      | (?:last\ )?(?:accessed|retrieved)\ (?:on\ |in\ )?(?:\d{1,2}\ )?\w+(?:\ \d{1,2},)?\ (?:19|20)\d\d\.?$
      | (?:these|both|the\ first\ \w+)\ authors\ (?:have\ )?contributed\ equally | (?:present|current)\ address\s?:
      | [^|]{0,80}\|[^|]{0,80}(?:\|[^|]{0,80}){0,5}\b(?:volume|vol\.|issue|e\d{4,6})\b
      | (?-i:[A-Z])[\w.&\ ]{2,60}\.?\ \d{1,4}(?:\ ?\(\d{1,4}\))?
        [,:]\ ?e?\d{1,6}\s?[-\u2013]\s?e?\d{1,6}\ \((?:19|20)\d\d\)\.?$
      | this\ manuscript\ \(.{0,80}\)\ was\ automatically\ generated
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_NOTE_MARK = re.compile(
    r"\s*(?:\^[^\s^]{1,10}\^|<sup>[^<>]{1,10}</sup>|\[\^[^\[\]]{1,20}\]:|\\?[*\u2020\u2021\u00a7]{1,3})\s*"
)
_NUMBER = re.compile(r"\s*(?:\d{1,4}[.)]|\[\d{1,4}\]|\\\[\d{1,4}\\\]|[-*+\u2022])\s+")
_DEFINITION = re.compile(r"\s*\[(?!\^)[^\[\]\n]{1,200}\]:\s*\S+")
_SHORT_NAMES = re.compile(
    r"[*_]*(?:(?:van|von|de|del|der|den|di|da|la|le|du|ten)\s)*[^\W\d_a-z][\w'\u2019-]+(?:[\s-][^\W\d_a-z][\w'\u2019-]+){0,2},?\s"
    r"(?:[A-Z]\.?[\s-]?){1,4}(?:[,.;:(&*]|\s?(?:and|et al)\b|\s\()"
)
_FULL_NAMES = re.compile(
    r"(?:[^\W\d_a-z][\w.'\u2019-]*\s){1,3}[^\W\d_a-z][\w'\u2019-]+(?:,\s(?:and\s)?(?:[^\W\d_a-z][\w.'\u2019-]*\s){1,3}"
    r"[^\W\d_a-z][\w'\u2019-]+){0,40}(?:,?\sand\s[^.]{3,60})?\.\s\(?(?:19|20)\d\d[a-z]?\)?\."
)
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d[a-z]?(?!\d)")
_PLACE: Final = re.compile(
    r"\d\s?(?:\(\d[^()]{0,12}\))?\s?[:,]\s?(?:pp?\.?\s?)?[eE]?\d|\bdoi\b|10\.\d{4,9}/|arxiv|pmid|https?://|\bpp?\.\s?\d|\bIn:?\s(?:Proc|Adv)|\bPress\b|\bpreprint\b",
    re.IGNORECASE,
)
_LONGEST = 1_500  # characters per reference
_HEADING_WORDS = 8
_ENDS = re.compile(
    r"[.?!:;,)\]\u2026*_|=\u201d\"](?:\^[^\s^]{1,20}\^|<sup>[^<>]{1,20}</sup>|\s?\[[^\[\]]{1,80}\]){0,3}\s*$"
)


def is_furniture(line: str) -> bool:
    """Whether a line or sentence is publication boilerplate: journal data, licence, page number."""
    line = line[:_LONGEST]
    mark = _NOTE_MARK.match(line)
    body = line[mark.end() :] if mark else line
    return bool(_FURNITURE.match(body) or _ADDRESS.fullmatch(body))


def is_reference(entry: str) -> bool:
    """Whether a paragraph or list item is an entry of the reference list, or a link target."""
    if _DEFINITION.match(entry):
        return True
    if len(entry) > _LONGEST:
        return False
    numbered = _NUMBER.match(entry)
    body = entry[numbered.end() :] if numbered else entry
    if not _YEAR.search(body):
        return False
    if _FULL_NAMES.match(body):
        return True
    return bool(_SHORT_NAMES.match(body) and _PLACE.search(body))


def is_lone_heading(paragraph: str) -> bool:
    """Whether a one-line paragraph is an unmarked heading: bold, or a few words without a final stop."""
    line = paragraph.strip()
    if "\n" in line or not line:
        return False
    words = line.split()
    if len(line) > 2 and line.startswith(("**", "__")) and line.endswith(("**", "__", "**.", "**:")):
        inner = line.strip("*_.: ")
        return len(words) <= _HEADING_WORDS + 4 and "**" not in inner and "__" not in inner
    first = line.lstrip('"\u201c(*_')[:1]
    return len(words) <= _HEADING_WORDS and (first.isupper() or first.isdigit()) and not _ENDS.search(line)
