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
from ...text.question_subject import AUXILIARIES, is_participle, is_verb
from ...text.statement_words import telling_words
from ...text.words import one_line
from ..markers import CitedSentence, line_start, sentences, within
from ..quotations import quoted_spans
from .fabricated_citations import NEEDED
from .findings import Finding
from .support_findings import states_only_absence

_LEAD: Final = re.compile(
    r"(?P<mark>\*\*|__|\*|_)(?P<words>(?:(?!\*|__|_\W)(?:[^\n\d]|(?<=\w)\d)){1,80})(?P=mark)[.:]?"
)
_LIST_MARK: Final = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,3}[.)])[ \t]+)*")
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_LONGEST_LEAD: Final = 8  # words
_QUESTIONS: Final = frozenset("how what when where which who why whether".split())
_ARTICLES: Final = frozenset("a an the its their".split())
_LINKS: Final = frozenset(
    "about across after against among and around as at before between beyond by during for from in inside into of on"
    " or over than that through to under upon versus vs which with within without".split()
)
_PAST: Final = frozenset("beat became fell found gave grew kept led lost made rose saw shrank won".split())
_PLURAL: Final = re.compile(r"[a-z-]{3,}[^sui]s")

# The words of a transition, which counts and announces the points of the text itself.
_COUNT: Final = "two three four five six seven several first second third fourth next last following".split()
_POINTS: Final = (
    "answer answers approach approaches argument arguments aspect aspects caveat caveats evidence family families"
    " finding findings group groups idea ideas issue issues kind kinds limit limitations limits line lines method"
    " methods part parts point points question questions reason reasons respect respects result results route routes"
    " side sides step steps strand strands theme themes thing things topic topics view views way ways"
    " experiment experiments paper papers passage passages review reviews source sources studies study survey surveys"
    " trial trials"
).split()
_BETWEEN: Final = (
    "a also an and are as be bear bears below by can come comes concern concerns considered differ differs discussed"
    " distinguished emerge emerges fall falls first follow follows from grouped has have here in into is it main matter"
    " matters of on one out recur recurs relevant sorted stand stands taken that the their them then these they this"
    " those to turn"
).split()
_OF_A_TRANSITION: Final = frozenset([*_COUNT, *_POINTS, *_BETWEEN])
_COUNTS: Final = frozenset([*_COUNT, "these", "this"])
_OF_WORK: Final = re.compile(r"\b(lines?|strands?|groups?)\sof\s(?:work|research|evidence|argument|thought)\b")
_ANNOUNCES: Final = re.compile(
    r"\b(?:bears?\son|stands?\sout|emerges?|follows?|recurs?|matters?|falls?\sinto|concerns?|comes?\s(?:first|next|in)"
    r"|differs?\sin\s(?:\w+\s){1,2}(?:kinds|points|respects|ways)"
    r"|(?:is|are|be)\s(?:taken|considered|grouped|sorted|distinguished|discussed|relevant)"
    r"|ha(?:s|ve)\s(?:\w+\s){1,2}(?:parts|sides|steps))\b"
)
_LONGEST_TRANSITION: Final = 14  # words

_STRENGTH: Final = re.compile(
    r"\W*(?:(?:(?:all|most|much)\sof\s)?(?:this|these|it|that|what\sfollows)|(?:all|both|these|the)\s(?:findings|results"
    r"|statements|points|numbers)|the\sevidence)\s(?:here\s|above\s|all\s)?(?:comes?|rests?|stems?|relies|rely|is|are)\s"
    r"(?:only\s)?(?:from|on|of)\s(?:only\s)?(?:a\ssingle|one|the\ssame|two|three|four|five|several)\s(?:papers?|stud(?:y|ies)|sources?|reviews?|trials?)"
    r"(?:,?\s(?:and\s)?so\s(?:[\w-]+\s){0,6}[\w-]+)?\W*",
    re.IGNORECASE,
)

# The object of a question: nothing is claimed about it yet. It ends where a clause makes a statement.
_ASKED: Final = re.compile(
    r"\b(?:(?:we|it)\s(?:[\w-]+\s){0,2}?(?:asks?|asked|examined?|investigated?|test(?:ed)?|studied|study|address(?:ed)?"
    r"|assess(?:ed)?|determined?)|questions?:|(?:open|unclear|unknown|untested|not\s(?:yet\s)?(?:known|clear|settled)|remains?\sto\sbe\s(?:asked|seen|shown|tested)))"
    r"\s(?:how|why|whether|which|what|when|where|if|to\swhat\sextent)\b[^;]*?"
    r"(?=;|,\sand\s(?!how|why|whether|which|what|when|where|if|to\swhat)|,?\s(?:although|though|but|while|whereas|since|because|as|however)\s|$)",
    re.IGNORECASE,
)


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
    return (
        following is not None
        and len(words) <= _LONGEST_TRANSITION
        and _OF_A_TRANSITION.issuperset(words)
        and not _COUNTS.isdisjoint(words)
        and bool(_ANNOUNCES.search(plain))
    )


_WORK = (
    r"(?:studies|study|works?|research|reports?|findings?|literature|authors|groups|benchmarks?|papers?|investigations?"
    r"|observations|advances|evidence)"
)
_OTHERS_WORK = re.compile(
    rf"\b(?P<named>(?:previous|prior|earlier|past|recent|existing|published)\s(?:[\w-]+\s){{0,2}}?{_WORK}\b)"
    r"|\b(?:several|many|numerous|most|some)\s(?:(?!of\b)[\w-]+\s)?(?:studies|authors|groups|reports|researchers|works?|reviews)\b"
    r"|\b(?:has|have)\s(?:long\s|often\s|also\s|widely\s|repeatedly\s|previously\s|recently\s|frequently\s)?been\s(?:long\s)?"
    r"(?:shown|reported|demonstrated|observed|described|recogni[sz]ed|established|suggested|argued|proposed|documented"
    r"|noted|linked|associated|implicated|criticised|criticized)\b"
    r"|\b(?:is|are)\s(?:well|widely|generally|commonly|routinely|frequently)[\s-](?:known|accepted|established"
    r"|recogni[sz]ed|believed|assumed|used|applied|adopted|reported|regarded|considered)\b"
    r"|\bthe\sliterature\s(?:\w+\s)?(?:suggests|shows|reports|describes|agrees|indicates|holds|contains|offers)\b"
    r"|\b(?:researchers|others|scholars|(?<!our\s)authors)\s(?:have|had|found|showed|report(?:ed)?|argued?|proposed)\b"
    r"|(?<!these\s)(?<!those\s)(?<!two\s)\bstudies\s(?:of|on|that|have|suggest|show|report|find|typically|commonly|often)\b"
    r"|\bbody\sof\s(?:evidence|work|literature|research)\b|\baccording\sto\s(?:published|earlier|previous|recent)\b"
    r"|\bwas\s(?:first\s|originally\s)?(?:introduced|proposed)\s(?:to|by|in|as|for)\b",
    re.IGNORECASE,
)
_FOUND = re.compile(
    r"\s(?:ha(?:ve|s|d)|found|show(?:ed|s)?|report(?:ed|s)?|observed?|suggest(?:ed|s)?|claim(?:ed|s)?|fail(?:ed|s)?|s(?:ee|aw)"
    r"|disagreed?|agreed?|demonstrated?|proposed?|reach(?:ed)?|did|do)\b",
    re.IGNORECASE,
)
# The experiment itself, future work, and what nobody has done.
_OWN = re.compile(
    r"\b(?:future|further|more)\s(?:[\w-]+\s){0,2}?(?:work|studies|study|research|experiments?)\b|\bto\sour\sknowledge\b"
    r"|\bthis\s(?:study|work|experiment|paper)\b|\bof\sours\b|\bour\s(?:own\s)?(?:previous|earlier|prior)\b"
    r"|\bwhether\b[^.]{0,300}\b(?:open|unclear|unknown|to be)\b|\?\W{0,40}$",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[ \t]*(?:#|\||```|~~~)")
# What kind of study is missing: "A trial in children would answer this."
_WANTED = re.compile(
    r"\b(?:trial|stud(?:y|ies)|survey|experiment|cohort|review|meta-analysis|comparison|analysis|data)\b[^.;]{0,200}"
    r"\bwould\s(?:be\s(?:needed|required)|answer|settle|decide|show|tell|have\sto)\b",
    re.IGNORECASE,
)
# Statements that sources lack something, and text that introduces a list.
_LEFT_OPEN = re.compile(
    r"\b(?:sources?|passages?|papers?|library|evidence|excerpts?)\b[^.]{0,80}?\b(?:do|does|did|is|are)\s?n[o']t\b"
    r"|\b(?:no|none|nothing|neither)\b[^.]{0,60}\b(?:sources?|passages?|papers?|library|evidence|excerpts?)\b"
    r"|\b(?:not|un)\s?(?:answered|addressed|covered|stated|said|reported|clear)\b[^.]{0,40}\b(?:here|sources?|passages?|library)\b"
    r"|\bthe\s(?:sources|passages|library)\s(?:says?|holds?|gives?|contains?|offers?)\s(?:only\s)?(?:very\s)?(?:little|few|neither)\b"
    r"|\bleaves?\b[^.]{0,40}\bopen\b|\bremains?\s(?:open|unanswered)\b",
    re.IGNORECASE,
)
_BOLD_LINE = re.compile(r"[ \t]*(?:[-+*][ \t]+)?(\*\*|__)(?:(?!\1)[^\n]){1,80}\1:?[ \t]*(?:\n|\Z)")
_LETTER = re.compile(r"[^\W\d_]")
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


def unsupported_findings(text: str) -> list[Finding]:
    """A finding for each uncited statement; headings, questions, lead-ins and remarks on gaps are no statements."""
    placed = sentences(text)
    return [
        Finding.about(sentence, "citation-missing", "cites nothing.")
        for sentence, following in zip(placed, [*placed[1:], None], strict=False)
        if not sentence.ids and _states(text, sentence, following)
    ]


def _states(text: str, sentence: CitedSentence, following: CitedSentence | None) -> bool:
    begin = line_start(text, sentence.start)
    if _HEADING.match(text, begin) or _BOLD_LINE.match(text[begin : begin + _LINE_READ]):
        return False
    if is_lead_in(text, sentence, following) or is_transition(sentence, following):
        return False
    # How many papers support something is shown by the markers.
    if _STRENGTH.fullmatch(sentence.text) or states_only_absence(sentence):
        return False
    words = sentence.text.strip(" *_-")
    if NEEDED in words or _LEFT_OPEN.search(words) or _WANTED.search(words):
        return False
    return bool(_LETTER.search(words)) and not words.endswith(("?", ":"))


def balance_findings(text: str, sources: Sequence[Source]) -> list[Finding]:
    """A note if one paper has most of the citations although the evidence offers several."""
    keys = {source.evidence.id: source.paper.key for source in sources}
    offered = set(keys.values())
    counted = Counter(keys[id] for sentence in sentences(text) for id in sentence.ids if id in keys)
    total = sum(counted.values())
    if len(offered) < _FEWEST_PAPERS or total < _FEWEST_CITATIONS:
        return []
    key, most = counted.most_common(1)[0]
    offer = f"though the evidence comes from {len(offered)} papers."
    finding = Finding("one-sided", f"{most} of {total} citations are to one paper, {key}, {offer}")
    return [finding] if most > _LARGEST_SHARE * total else []


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
        if one_line(" ".join([*before, match[0], *after])).casefold() not in own:
            return True
    return False
