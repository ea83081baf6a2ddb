"""Finds missing citations: sentences about others' work without a source, and reliance on a single paper.

Sentences that make no claim need none: lead-ins, transitions, questions. Each kind is recognised by an allowlist of
words, so a sentence with any other content word is checked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...roles.disagreements import find_disagreements
from ...roles.protocols import Source
from ...text.wordings import AUXILIARIES, is_participle, is_verb, telling_words
from ...text.words import one_line, one_of, read_rules
from ..markers import CitedSentence, line_start, quoted_spans, sentences, within
from .fabricated_citations import NEEDED
from .findings import Finding
from .support_findings import states_only_absence

_LEAD: Final = re.compile(
    r"(?P<mark>\*\*|__|\*|_)(?P<words>(?:(?!\*|__|_\W)(?:[^\n\d]|(?<=\w)\d)){1,80})(?P=mark)[.:]?"
)
_LIST_MARK: Final = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,3}[.)])[ \t]+)*")
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_LONGEST_LEAD: Final = 8  # words
_OTHERS, _NO_CLAIM = (read_rules(__file__, "claim_wordings")[name] for name in ("others", "no_claim"))
_QUESTIONS, _ARTICLES, _LINKS, _PAST, _COUNT, _POINTS, _BETWEEN = (
    frozenset(_NO_CLAIM[name].split())
    for name in ("questions", "articles", "links", "past", "count", "points", "between")
)
_PLURAL: Final = re.compile(r"[a-z-]{3,}[^sui]s")
_OF_A_TRANSITION: Final = _COUNT | _POINTS | _BETWEEN
_COUNTS: Final = _COUNT | {"these", "this"}
_OF_WORK: Final = re.compile(r"\b(lines?|strands?|groups?)\sof\s(?:work|research|evidence|argument|thought)\b")
_ANNOUNCES: Final = one_of(_NO_CLAIM["announces"])
_LONGEST_TRANSITION: Final = 14  # words

_STRENGTH: Final = one_of(_NO_CLAIM["strength"], re.IGNORECASE)
_ASKED: Final = re.compile(_NO_CLAIM["asked"], re.IGNORECASE)


def is_lead_in(text: str, sentence: CitedSentence, following: CitedSentence | None) -> bool:
    """Whether a sentence is a few bold words at the start of a line that name what follows without a claim.

    Unless what follows has a citation, there must be only one word, or no word that could be a verb.
    """
    begin = line_start(text, sentence.start)
    found = _LEAD.fullmatch(sentence.text.strip())
    mark = _LIST_MARK.match(text, begin, sentence.end)
    first = mark is not None and mark.end() >= sentence.start
    if not found or not first or following is None or text[sentence.end : following.start].count("\n") > 1:
        return False
    words = [word.lower() for word in _WORD.findall(found["words"])]
    if not 0 < len(words) <= _LONGEST_LEAD:
        return False
    if not following.ids and len(words) > 1 and any(is_verb(word) or is_participle(word) for word in words):
        return False
    if words[0] in _QUESTIONS:
        return True
    # The first word may be an imperative or a participle, the last a noun.
    for word, object_ in zip(words[1:], [*words[2:], ""], strict=False):
        # "impairs memory", "halve the risk": a verb, by what follows it
        names = word not in _LINKS if object_ in _ARTICLES else _PLURAL.fullmatch(word) and object_ not in _LINKS
        if word in AUXILIARIES or word in _PAST or (object_ and (is_verb(word) or names)):
            return False
    return True


def is_transition(sentence: CitedSentence, following: CitedSentence | None) -> bool:
    """Whether a sentence only announces points, such as "Three lines of work bear on this."; something must follow."""
    plain = _OF_WORK.sub(r"\1", sentence.text.lower())
    words = re.findall(r"[\w%]+", plain)
    counts = _OF_A_TRANSITION.issuperset(words) and not _COUNTS.isdisjoint(words)
    return following is not None and len(words) <= _LONGEST_TRANSITION and counts and bool(_ANNOUNCES.search(plain))


_OTHERS_WORK, _FOUND, _OWN, _WANTED, _LEFT_OPEN = (
    one_of(_OTHERS[name], re.IGNORECASE) for name in ("work", "found", "own", "wanted", "left_open")
)
_HEADING = re.compile(r"[ \t]*(?:#|\||```|~~~)")
_BOLD_LINE = re.compile(r"[ \t]*(?:[-+*][ \t]+)?(\*\*|__)(?:(?!\1)[^\n]){1,80}\1:?[ \t]*(?:\n|\Z)")
_LINE_READ = 400  # characters of a line that decide whether it is a bold heading
_AROUND = 200  # characters that contain two words
_FEWEST_CITATIONS = 5
_FEWEST_PAPERS = 3
_LARGEST_SHARE = 0.6


def uncited_sentences(text: str, own_words: str) -> list[CitedSentence]:
    """Sentences that report others' work without a citation, except the experiment's own words and quotations."""
    quoted = quoted_spans(text)
    starts = [start for start, _ in quoted]
    own = one_line(own_words).casefold()
    placed, uncited = sentences(text), list[CitedSentence]()
    for sentence, following in zip(placed, [*placed[1:], None], strict=False):
        if sentence.ids or is_transition(sentence, following) or _HEADING.match(text, line_start(text, sentence.start)):
            continue
        pieces, done = list[str](), sentence.start
        for start, end in (quoted[n] for n in within(starts, sentence.start, sentence.end)):
            pieces.append(text[done : max(done, start)])
            done = max(done, end)
        if reports_others_work(" ".join([*pieces, text[done : sentence.end]]), own):
            uncited.append(sentence)
    return uncited


def unsupported_findings(text: str, *, declined: bool = False) -> list[Finding]:
    """A finding for each uncited statement; headings, questions, lead-ins and remarks on gaps are not statements.

    An answer that `declined` ends with the study that would answer the question.
    """
    placed = sentences(text)
    found: list[Finding] = []
    for sentence, following in zip(placed[:-1] if declined else placed, [*placed[1:], None], strict=False):
        words, begin = sentence.text.strip(" *_-"), line_start(text, sentence.start)
        states_nothing = (
            sentence.ids
            or _HEADING.match(text, begin)
            or _BOLD_LINE.match(text[begin : begin + _LINE_READ])
            or is_lead_in(text, sentence, following)
            or is_transition(sentence, following)
            or _STRENGTH.fullmatch(sentence.text)  # how many papers support something is shown by the markers
            or states_only_absence(sentence)
            or (NEEDED in words or _LEFT_OPEN.search(words) or _WANTED.search(words))
            or (words.endswith(("?", ":")) or not any(map(str.isalpha, words)))
        )
        if not states_nothing:
            found.append(Finding.about(sentence, "citation-missing", "cites nothing."))
    return found


def balance_findings(text: str, sources: Sequence[Source]) -> list[Finding]:
    """A note if one paper has most of the citations although the evidence offers several."""
    keys = {source.evidence.id: source.paper.key for source in sources}
    offered = set(keys.values())
    counted = Counter(keys[id] for sentence in sentences(text) for id in sentence.ids if id in keys)
    total = counted.total()
    if len(offered) < _FEWEST_PAPERS or total < _FEWEST_CITATIONS:
        return []
    offer = f"though the evidence comes from {len(offered)} papers."
    return [
        Finding("one-sided", f"{most} of {total} citations are to one paper, {key}, {offer}")
        for key, most in counted.most_common(1)
        if most > _LARGEST_SHARE * total
    ]


def other_side_findings(text: str, sources: Sequence[Source]) -> list[Finding]:
    """A note for each sentence citing one side of a paper that may contradict itself, if the other is cited nowhere.

    Only an effect against no effect counts, as when an abstract names one that the results do not find significant.
    """
    cited = sentences(text)
    known = {identifier for sentence in cited for identifier in sentence.ids}
    found: list[Finding] = []
    for pair in find_disagreements(sources):
        names = (pair.first.evidence.id, pair.second.evidence.id)
        said = [name for name in names if name in known]
        if not pair.inside or not pair.of_none or len(said) != 1:
            continue
        (unsaid,) = set(names) - set(said)
        citing = (sentence for sentence in cited if said[0] in sentence.ids)
        sentence = next((one for one in citing if pair.outcome & telling_words(one.text).keys()), None)
        if sentence is not None:  # else it is cited for something else
            message = f"cites [{said[0]}]; the same paper may say otherwise in [{unsaid}]."
            found.append(Finding.about(sentence, "other-side-unsaid", message, names))
    return found


def reports_others_work(words: str, own: str = "") -> bool:
    """Whether a sentence reports others' work in a phrase (with two words around it) that is not in the `own` text."""
    if _OWN.search(words):
        return False
    asked = [match.span() for match in _ASKED.finditer(words)]
    for match in _OTHERS_WORK.finditer(words):
        start, end = match.span()
        # A question may name works, but stating what they found is still a claim.
        in_question = match["named"] and any(first <= start and end <= last for first, last in asked)
        if in_question and not _FOUND.match(words, end):
            continue
        before, after = words[max(0, start - _AROUND) : start].split()[-2:], words[end : end + _AROUND].split()[:2]
        # "preprints and published papers" may be what the experiment studies.
        studied = len(before) > 1 and match[0].casefold().startswith("published")
        if one_line(" ".join([*before, match[0], *([] if studied else after)])).casefold() not in own:
            return True
    return False
