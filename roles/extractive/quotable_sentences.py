"""Selects sentences of a source that can be quoted because they make sense without their neighbours.

The rules were derived from bad quotes that careless selection takes from real papers: pointers to figures, plans,
sentences that depend on the previous one, half a citation, a line of a table. A passage is quoted whole or not at all,
so the words between the quotation marks are always a sentence of the source, without its closing citation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from ...text.sentences import sentence_spans

MIN_WORDS = 8
MAX_WORDS = 45
_FEWEST_LETTERS = 0.65  # of the words
_LONGEST_CITATION = 300  # characters, at the end of a sentence

# Openings that depend on the previous sentence, or that only guide the reader.
_LEANING = re.compile(
    r"""^(?:
        (?:This|These|Those|That|It|Its|They|Their|He|She|His|Her|Such|Here|There|Both|Each|Either|Neither|One|Some|Many|
           Most|Another|Other|Others|Several|All|None|Two|Three|Which|Who|What|How|Why|When|Where)\b(?![-])
      | (?:However|But|And|Or|Nor|So|Yet|Thus|Therefore|Hence|Moreover|Furthermore|Additionally|Also|Finally|Lastly|
           First|Firstly|Second|Secondly|Third|Thirdly|Fourth|Next|Then|Instead|Nevertheless|Nonetheless|Conversely|
           Similarly|Likewise|Consequently|Accordingly|Indeed|Specifically|Overall|Meanwhile|Interestingly|Notably|
           Importantly|Surprisingly|Unfortunately|Fortunately|Subsequently|Otherwise|Again|Further|Still|Rather|
           Alternatively|Already|Ultimately|Collectively|Together|Conceptually|Now|Later|Afterwards|Particularly)\b
      | The\ (?:method|inference|algorithm|procedure|approach|framework|package|analysis|model|pipeline|study|dataset|
           experiment|idea|goal|task|process|generated\ \w+|selected\ \w+|primary\ focus)s?\b(?!\ (?:of|for|behind|in|that|which|to|from|with|on|
           used|based|called|named)\b)
      | \w+ly,\s | [A-Z],\s | \(?[a-zA-Z]\)\s | If\ a\b | Future\ work\b | To\ (?:reach|do|this)\b
      | (?:For\ (?:example|instance|this|these|that|each|such)|In\ (?:addition|contrast|particular|fact|turn|short|summary|other\ words|
           conclusion|general|this|these|that|such|our|the\ (?:following|previous|next|above|present|current|former|latter|
           same|first|second|third)|both|one|each|all|another|general\ terms|some\ cases)|
           On\ (?:the\ (?:other|one|contrary)|average|this|that|aggregate)|As\ (?:a\ (?:result|consequence|
           comparison|first)|an\ example|such|expected|mentioned|noted|described|shown|discussed|before|with|in|we|seen)|To\ (?:this|that|our|the\ best|
           do|answer|illustrate|address|test|assess|evaluate|examine|investigate|explore|determine|summarize|make|further|
           better|avoid|account)|
           Note\ that|See\b|Recall\b|Let\b|Given\ (?:this|these|that|the\ above)|With\ (?:this|these|that)|
           At\ (?:this|that|the\ same|each)|By\ (?:contrast|this|these)|From\ (?:this|these|here)|After\ (?:this|these|that)|
           Because\ of\ (?:this|these)|Due\ to\ (?:this|these)|Despite\ (?:this|these)|Under\ (?:this|these)|
           Of\ (?:these|the|note)|Among\ (?:these|them|the)|Within\ (?:this|these|each)|Based\ on\ (?:this|these|our|the)|
           Using\ (?:this|these|our|the)|If\ (?:so|not|this|these)|Like\ (?:this|these))\b
    )""",
    re.VERBOSE,
)

# What a sentence out of context must not contain: pointers, first-person plans, citations inside, markup, formulas.
_UNFIT = re.compile(
    r"""
      \b(?:[Ff]igs?|[Ff]igures?|[Tt]ables?|[Ss]ections?|[Ee]qs?|[Ee]quations?|[Aa]ppendix|[Ss]upplement\w*|[Aa]lgorithm\ \d|
          [Pp]anels?|[Bb]ox|[Ll]isting|[Ss]1|[Tt]heorem|[Ll]emma|[Pp]roposition|[Cc]hapter|[Cc]olumns?|[Rr]ows?)\b(?:\.|\ \(?[A-Z\d]|\ above|\ below|$)?
    | \b(?:here|Here|I|my|you|your|let's|et\ al)\b
    | \b(?:above|below|aforementioned|previously|hereafter|respectively|latter|former|
          this\ (?:paper|study|work|article|section|review|manuscript|analysis|approach|method|model|dataset|data|case|
          tutorial|example|tool|package|project|finding|figure|result|reason|issue|problem|setting|context|way|type|kind|end)|
          (?:this|these)\ \w+|those\ (?!of\b|with\b|from\b|in\b)\w+|such\ (?:an?|networks|methods|models|approaches|data|cases)|
          the\ (?:paper|study|authors?|present|current|reviewers?|manuscript|following|same|two|three|latter|former|resulting|proposed|other|remaining|previous|first|second|third|last|next))\b
    | \[@|@[\w:]|\\|\[\d|\[[A-Z]|https?:|www\.|doi|[\[\]{}$|`<>=~^•†‡§]|\*\*|__
    | \b(?:like\ this|as\ follows|the\ following|works)$ | \bhow\ (?:much|many|far|often)[,;]
    | \.\.\.|…|["“”«»„]|\?|!|;\ and\ \d|^\W
    """,
    re.VERBOSE,
)

_PLAN = re.compile(
    r"\b(?:[Ww]e|[Oo]ur)\s(?:\w+ly\s|then\s|also\s|next\s|first\s)?(?:will|would|plan|aim|hope|intend|discuss|describe|explore|outline|"
    r"begin|start|refer|thank|acknowledge|wanted|sought|wish|now|turn|goal|aims?|plans?)\b"
)
_POINTER = (  # in brackets: harmless, unlike a sentence about a figure
    r"\((?:[Ss]ee (?:also )?)?(?:[Ss]uppl\w* )?(?:[Ff]igs?|[Ff]igures?|[Tt]ables?|[Ss]ections?|[Aa]ppendix|[Ss]uppl\w*)\b[^()]{0,60}\)"
)
_TRAILING_CITATIONS = re.compile(  # bounded: 300 characters
    rf"(?:\s*(?:{_POINTER}|\[(?:-?@|\d)[^\[\]]*\](?:\([^()\s]*\))?|\\\[\d[\d\s,;–-]*\\\]|\^\[?\d[\d,\s–-]*\]?\^|<sup>[^<]*</sup>))+(?=\.?$)"
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|can|could|may|might|will|would|should|must|does|do|did|"
    r"fell|rose|grew|gave|made|found|led|came|became|began|broke|brought|built|chose|cut|drew|drove|felt|held|kept|left|"
    r"lay|lost|met|ran|saw|sank|set|shrank|spent|spoke|split|spread|stood|took|thought|went|won|wrote|"
    r"[a-z]+(?:s|ed|es))\b"
)
_CAPTION = re.compile(
    r"^(?:The (?:(?:red|blue|green|black|grey|gray|orange|dashed|dotted|solid|vertical|horizontal)\b|_?[xy]_?-axis|plot|graph|line|bars?|dots?|points?) |(?:Top|Bottom|Left|Right|Upper|Lower)\b[^.]{0,30}\b(?:plots?|panels?)\b|[^.]{0,80}\b(?:colou?red|circles?|arrows?|dark blue|light blue)\b[^.]{0,120}\brepresents?\b|Heatmap|Boxplots?|Scatter|(?:Red|Blue|Green|Black|Grey|Gray|Orange|Solid|Dashed|Dotted) (?:dots?|lines?|bars?|points?|circles?)|Illustration|Overview of|Distribution of)"
)
# Openings and words that are acceptable, since the sentence is shown as its authors'.
_EXISTS = re.compile(
    r"(?:There (?:is|are|was|were)(?: also)?|(?:All|Most|Many)(?= (?!of\b|these\b|those\b)[a-z])|Of(?= the \w+ that\b)) "
)
_POINTERS = re.compile(rf"\s(?![^)@]{{0,80}}@){_POINTER}")  # a key would be quoted
_QUOTED = re.compile(r'(?<!\w)"([^"“”]{1,60})"(?!\w)')
_THE_SAME = re.compile(r"\bthe same\b")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
# A value or a comparison as reported in papers: "AUROC = 97.4%", "p \\< 0.001".
_VALUE = re.compile(r"(?<=[\w*])\s?\\?[=<>≤≥≈]\s?(?=[-−+]?\d)")

# What authors announce, define or wish for is no evidence; what they did is, for a statement on methods.
_ANNOUNCES: Final = re.compile(
    r"""
      ^(?:[A-Z][^,]{0,60},\ )?[Ww]e\ (?:\w+ly\ |also\ |first\ |thus\ |then\ )?(?:study|investigate|examine|explore|analy[sz]e|review|present|introduce|propose|
          develop|describe|consider|evaluate|compare|ask|address|seek|focus|need|want|wish|anticipate|foresee|believe|hope|
          expect|hypothesi[sz]ed?|highlight|recommend|are\ (?:trying|interested|concerned)|do\ not\ claim|advocate)\b
    | ^(?:An?|The|One|Another|Our)\ (?:[\w-]+\ ){0,5}(?:task|problem|goal|aim|objective|purpose|challenge|application|idea|work)s?\b
          [^.]{0,60}?\b(?:is|are|was|were|reveals|highlights|paves)\b
    | ^[\w-]+(?:\ [\w-]+){0,4}\ (?:is|are)\ (?:an?|the|one\ of)\ (?:[\w-]+\ ){0,4}(?:task|type|kind|form|technique|process|suite|class|field|branch|
          package|library|matrix|graph|repository|database|language|way|means)s?\b
    | \b(?:is|are)\ the\ (?:[\w-]+\ ){0,2}(?:task|problem|process|study|set|number)s?\ of\b
    | \b(?:[Ff]uture\ (?:areas?|work|research|studies|directions?|efforts?|improvements?|technolog\w+|advances?)|[Ww]e\ (?:note|foresee|envision)|
          new\ opportunities|paves?\ the\ way|remains?\ to\ be|promising|well-studied\ area|continue\ to\ grow|constantly\ growing)\b
    | \b(?:several|various|many|a\ number\ of|long\ line\ of)\ (?:[\w-]+\ )?(?:refinements|improvements|approaches|methods|studies|solutions|work)\b
    | ^(?:[^\s,]+\ ){1,7}?(?:may\ |can\ |typically\ |often\ )?represents?\ | \b(?:is|are)\ (?:treated|regarded|formulated|seen)\ as\b
    | \b(?:would|could)\ (?:\w+ly\ )?(?:reduce|improve|increase|allow|enable|require|help|benefit)\b
    | \b(?:refers?\ to|(?:is|are)\ (?:defined\ as|known\ as|called|concerned\ with)|stands?\ for|[Ww]e\ (?:want|need|wish|would\ like|are\ trying)\ to)\b
    """,
    re.VERBOSE,
)
_DONE: Final = (
    r"train|us|measur|comput|calculat|perform|appli|apply|fitt|test|evaluat|consider|collect|download|deriv|estimat|select|split|sampl|"
    r"construct|implement|normali[sz]|compar|assess|examin|quantifi|record|access|encounter|includ|remov|hypothesi[sz]|"
    r"summari[sz]|divid|generat|aggregat|extract|convert|obtain|conduct|sav|tagg|scor|analy[sz]|report|establish"
)
_PROCEDURE: Final = re.compile(
    rf"\b[Ww]e (?:\w+ly |then |also |next |first )?(?:(?:{_DONE})(?:ed|e|ing)?|built|build|ran|run|chose|took|take|fit|made)\b"
    rf"|\b(?:was|were) (?:\w+ly |then |also )?(?:(?:{_DONE})ed|built|run|chosen|taken|fit|carried out)\b"
    r"|\b(?:is|are) (?:then )?(?:trained|computed|calculated|fitted|recorded|sampled|aggregated|split|divided)\b"
)
_AIMED: Final = re.compile(
    r"\bto (?:measure|test|assess|determine|examine|see|ask|evaluate|investigate|quantify) (?:how|if|whether|the|what|which)\b"
)
_REPORTS: Final = (
    r"found|find|finds|observ(?:e|es|ed)|show(?:s|ed|n)?|reveal(?:s|ed)?|demonstrat(?:es|ed)|suggest(?:s|ed)?|outperform\w*|"
    r"improv(?:e|es|ed)|increas(?:e|es|ed)|decreas(?:e|es|ed)|reduc(?:e|es|ed)|lower(?:s|ed)|higher|better|worse|fewer|"
    r"larger|smaller|fell|rose|rais(?:e|es|ed)|achiev(?:e|es|ed)|reach(?:es|ed)|resulting in|resulted|yield(?:s|ed)|"
    r"afford(?:s|ed|ing)|led to|leads? to"
)
_REPORT: Final = re.compile(rf"(?<!to )\b(?:{_REPORTS})\b")
Genre = Literal["announcement", "procedure", "other"]


def genre_of(sentence: str) -> Genre:
    """What a sentence does in its paper: announces or defines something, says what was done, or something else."""
    if _ANNOUNCES.search(sentence):
        return "announcement"
    done = _AIMED.search(sentence) or (_PROCEDURE.search(sentence) and not _REPORT.search(sentence))
    return "procedure" if done else "other"


@dataclass(frozen=True, slots=True)
class QuotablePassage:
    """A quotable span of a chunk: `chunk.text[start:end] == text`, a sentence without its closing citation."""

    text: str
    start: int
    end: int


def quotable_passages(chunk_text: str) -> list[QuotablePassage]:
    """The quotable sentences of a chunk, in order."""
    passages = []
    for start, end in sentence_spans(chunk_text):
        body = chunk_text[start:end].rstrip()
        if body.startswith("**") and body.endswith("**"):  # a statement that its authors set in bold
            body = body[2:-2]
            start += 2
        trailing = _TRAILING_CITATIONS.search(body, max(0, len(body) - _LONGEST_CITATION))
        if trailing:
            body = body[: trailing.start()]
        elif body.endswith("."):
            body = body[:-1]
        else:
            continue
        body = body.rstrip(" .")
        if "\n\n" not in body and is_quotable(" ".join(body.split())):
            passages.append(QuotablePassage(body, start, start + len(body)))
    return passages


def is_quotable(sentence: str) -> bool:
    """True when a sentence (on one line, without its full stop) says something by itself, out of its paper.

    Authors may say what they did and found, and give values; a sentence must not depend on its neighbours.
    """
    plain = _without_values(sentence)
    words = plain.split()
    if not MIN_WORDS <= len(words) <= MAX_WORDS or not plain[0].isupper():
        return False
    if any(rule.match(plain) for rule in (_LEANING, _CAPTION)) or _UNFIT.search(plain) or _PLAN.search(plain):
        return False
    if plain.count("(") != plain.count(")") or plain.count("*") % 2 or plain.count("_") % 2:
        return False
    letters = _WORD.findall(plain)
    return len(letters) >= _FEWEST_LETTERS * len(words) and bool(_VERB.search(" ".join(words[1:])))


def _without_values(sentence: str) -> str:
    """Remove acceptable elements: signs before values, quoted words, openings such as "All", "(Figure 2)"."""
    plain = _THE_SAME.sub("the", _QUOTED.sub(r"\1", _VALUE.sub(" ", _POINTERS.sub("", sentence))))
    plain = " ".join((_EXISTS.sub("", plain, count=1) if _EXISTS.match(plain) else plain).split())
    return plain[:1].upper() + plain[1:] if sentence[:1].isupper() else plain
