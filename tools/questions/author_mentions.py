"""Finds the papers that a question names by their authors: "Olah et al. (2020)", "what did Greene find in 2021?"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...documents import Paper

_TOKEN = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|[^\w\s]")
_YEAR = re.compile(r"((?:1[5-9]|20|21)\d\d)[a-d]?")
_KEY_NAME = re.compile(r"([a-z][a-z'-]*)(?:1[5-9]|20|21)\d\d")
_JOINS = frozenset({"and", "&", ",", "or", "und", "et", "y"})
# Words after which a year limits a period rather than naming a paper.
_BOUNDS = frozenset({"since", "after", "before", "until", "till", "between", "than"})
_RANGE = frozenset({"to", "until", "till", "and", "-", "–"})
# Words next to a name that mark it as a person; without one "Brown adipose tissue" would be a paper by Brown.
_BEFORE_A_PERSON = frozenset("by did does do has have had what's according to with and or & than as".split())
_OF_A_PERSON = frozenset("paper papers study article group team lab".split())  # after "the" and a name
_OTHERS = (["et", "al"], ["and", "colleagues"], ["and", "others"], ["and", "coworkers"])
_AFTER_A_PERSON = frozenset(
    """
    say says said claim claims claimed show shows showed find finds found report reports reported argue argues
    argued write writes wrote suggest suggests suggested conclude concludes concluded propose proposes proposed
    describe describes described use uses used mean means define defines defined publish published
    """.split()
)


@dataclass(frozen=True, slots=True)
class _Mention:
    """Authors named together, the years that follow them, and whether they are certainly people."""

    names: tuple[str, ...]
    years: tuple[int, ...]
    and_others: bool
    person: bool


def papers_by_author(question: str, papers: Sequence[Paper]) -> list[set[str]]:
    """For each mention of authors the keys of the papers that it may refer to.

    A name without a year counts only when it refers to a single paper; one with a year may refer to several. A year in
    which the author has no paper refers to none.
    """
    authors = {paper.key: _authors(paper) for paper in papers}
    tokens = [match.group() for match in _TOKEN.finditer(question)]
    mentions, loose_years = _mentions(tokens, {name for names in authors.values() for name in names})
    years = {paper.key: paper.year for paper in papers}
    groups: list[set[str]] = []
    for mention in mentions:
        wanted = mention.years or (loose_years if mention.person else ())
        if not wanted and not mention.person:
            continue
        for year in wanted or (None,):
            group = _meant(mention, authors, {key for key in authors if year is None or years[key] == year})
            if year is not None or len(group) == 1:
                groups.append(group)
    return [group for group in groups if group]


def led_by(name: str, papers: Sequence[Paper]) -> set[str]:
    """The keys of the papers whose first author has a family name, folded, or whose key has it as its name."""
    return {paper.key for paper in papers if name in _authors(paper)[:1] or name in _key_name(paper)}


def folded(text: str) -> str:
    """A text in lower case without accents."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in plain if not unicodedata.combining(character))


def _authors(paper: Paper) -> tuple[str, ...]:
    """The family names of a paper, folded; the name in its key first, since people use that too."""
    names = [folded(name) for name in paper.family_names]
    names = [*(name for name in _key_name(paper) if name not in names), *names]
    return tuple(name for name in names if name)


def _key_name(paper: Paper) -> tuple[str, ...]:
    """The name in a paper's key, folded."""
    in_key = _KEY_NAME.match(folded(paper.key))
    return (in_key.group(1),) if in_key else ()


def _meant(mention: _Mention, authors: Mapping[str, tuple[str, ...]], among: set[str]) -> set[str]:
    """Papers by all the authors named; those led or written by them alone come before others."""
    found = {key for key in among if set(mention.names) <= set(authors[key])}
    led = {key for key in found if authors[key][0] == mention.names[0]}
    alone = {key for key in led or found if set(authors[key]) == set(mention.names)}
    if len(mention.names) > 1 and not mention.and_others and alone:
        return alone
    return led or found


def _mentions(tokens: Sequence[str], known: set[str]) -> tuple[list[_Mention], tuple[int, ...]]:
    """The authors named, and the years that stand next to none of them."""
    mentions: list[_Mention] = []
    loose: list[int] = []
    longest = max((len(name.split()) for name in known), default=0)
    index = 0
    while index < len(tokens):
        name, after = _name_at(tokens, index, known, longest)
        if name is None:
            year = _YEAR.fullmatch(tokens[index])
            if year and not _in_a_range(tokens, index):
                loose.append(int(year.group(1)))
            index += 1
            continue
        before = tokens[index - 1].lower() if index else ""
        names, index = _joined(tokens, [name], after, known, longest)
        mention, index = _completed(tokens, names, index, before)
        mentions.append(mention)
    return mentions, tuple(loose)


def _in_a_range(tokens: Sequence[str], index: int) -> bool:
    """True when a year limits a period: "since 2015", "from 2015 to 2020", "between 2015 and 2020"."""
    before = [token.lower() for token in tokens[max(0, index - 3) : index]]
    following = [token.lower() for token in tokens[index + 1 : index + 3]]
    if before[-1:] and before[-1] in _BOUNDS:
        return True
    opens = bool(following) and following[0] in _RANGE and len(following) == 2 and bool(_YEAR.fullmatch(following[1]))
    closes = len(before) >= 2 and before[-1] in _RANGE and bool(_YEAR.fullmatch(before[-2]))
    return opens or closes


def _name_at(tokens: Sequence[str], index: int, known: set[str], longest: int) -> tuple[str | None, int]:
    """The longest author's name that starts at a token, and where it ends.

    Names start with a capital, or are immediately followed by a year, "et al." or "and colleagues".
    """
    for size in range(min(longest, len(tokens) - index), 0, -1):
        written = list(tokens[index : index + size])
        written[-1] = re.sub(r"['’]s?$", "", written[-1])
        name = folded(" ".join(written))
        if name in known and (written[-1][:1].isupper() or _cited_behind(tokens, index + size)):
            return name, index + size
    return None, index


def _cited_behind(tokens: Sequence[str], index: int) -> bool:
    following = [token.lower() for token in tokens[index : index + 2] if token != "("]
    return following[:2] in _OTHERS or bool(following and _YEAR.fullmatch(following[0]))


def _joined(
    tokens: Sequence[str], names: list[str], index: int, known: set[str], longest: int
) -> tuple[tuple[str, ...], int]:
    """The names that follow with "and" or commas between."""
    while index < len(tokens):
        step = index
        while step < len(tokens) and tokens[step].lower() in _JOINS:
            step += 1
        name, after = _name_at(tokens, step, known, longest) if step > index else (None, index)
        if name is None:
            break
        names.append(name)
        index = after
    return tuple(names), index


def _completed(tokens: Sequence[str], names: tuple[str, ...], index: int, before: str) -> tuple[_Mention, int]:
    """The mention with "et al." and the years that directly follow it."""
    following = [token.lower() for token in tokens[index : index + 3]]
    and_others = following[:2] in _OTHERS
    possessive = tokens[index - 1].endswith(("'s", "’s", "s'", "s’"))
    person = (
        and_others
        or possessive
        or len(names) > 1
        or before in _BEFORE_A_PERSON
        or (bool(following) and following[0] in _AFTER_A_PERSON)
        or (before == "the" and bool(following) and following[0] in _OF_A_PERSON)
    )
    index += 2 if and_others else 0
    years: list[int] = []
    for step, token in _years_behind(tokens, index):
        years.append(int(token[:4]))
        index = step
    return _Mention(names, tuple(years), and_others, person), index


def _years_behind(tokens: Sequence[str], index: int) -> Iterator[tuple[int, str]]:
    """The years at an index, with brackets, commas and "and" between; each with where it ends."""
    while index < len(tokens):
        token = tokens[index]
        if _YEAR.fullmatch(token):
            yield index + 1, token
        elif token.lower() not in {"(", "[", ",", ".", "and", "&", "'s"}:
            return
        index += 1
