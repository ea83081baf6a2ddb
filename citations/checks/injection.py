"""Flags sources that seem to contain prompt injection, such as "ignore all previous instructions".

Every part of a source that a model was shown is examined. Instructions in a source are never followed: its text is
fenced, citations are markers, and tools are a closed list. The flags only warn the reader; nothing is removed, since
hiding a passage would let an attacker silence a paper. Other wordings are not detected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from ...documents import Chunk, Paper
from ...documents.figures import PaperFigure
from ...roles.protocols import Source
from .findings import Finding, shown
from .unicode_folding import fold

_MODEL = r"(?:AI|LLM|GPT|chatbot|(?:large )?language model|(?:AI )?assistant|AI (?:agent|model|reviewer|system))s?"
# Where an imperative may occur; "participants were asked to ignore" is not one.
_ORDER = (
    r"(?:(?:^|[.!?:;,>()\[\]{}\u2013\u2014])\s*|\b(?:please|and|then|now|always|kindly"
    rf"|you (?:must|should|shall|will|have to)(?: now)?|{_MODEL},? (?:to|must|should))\s+)"
)
_SAME = r"[^.!?\n]"  # within one sentence
_ENGLISH = (
    rf"{_ORDER}(?:ignore|disregard|forget|override|bypass|(?:do not|don't|stop) (?:follow|obey)(?:ing)?)\b"
    rf"{_SAME}{{0,60}}?\b(?:instructions?|prompts?|rules|guard|guidelines|guardrails|directions|orders|told|safety|commands)\b",
    rf"\bif you are an? {_MODEL}\b",
    rf"\b(?:note|notice|message|attention|hint|memo),? (?:to|for|all) (?:all |any |the )?{_MODEL}\b",
    rf"\b{_MODEL}\b{_SAME}{{0,50}}?\b(?:must|should|shall|have to) (?:always |only |not )?"
    r"(?:rate|cite|state|recommend|praise|mention|accept|score|give|say|answer with|ignore|obey)\b",
    r"\byou are now (?:an?|the|DAN|no longer|free|in \w+ mode)\b",
    rf",\s*(?:dear )?(?:{_MODEL}|model)\s*[.!](?:\s|$)",
    r"\byour (?:task|role|goal|job) (?:has changed|is now|from now on)\b",
    r"\bfrom (?:now on|this point forward|here on),? you\b"
    r"|\bnew (?:system )?(?:instructions?|task|prompt)(?:\s*\([^()\n]{0,40}\))?\s*:",
    rf"{_ORDER}(?:act|behave|role-?play) as an? \w+|{_ORDER}pretend (?:to be|that you are|you are)\b",
    rf"{_ORDER}(?:ignore|disregard|forget|override|bypass|disable)\b{_SAME}{{0,20}}?\b"
    r"(?:(?:text|email|message|passages?) (?:before|above)|above (?:text|email|message|passages?)|your \w+"
    r"|(?:security|safety) measures|filters|restrictions|system constraints)\b"
    r"|\bcan you (?:ignore|disregard|forget) your\b",
    r"\b(?:previous|prior|earlier|original) (?:instructions?|prompts?|directives) (?:are|is|have been|has been)"
    r" (?:now )?(?:void|revoked|cancelled|replaced|lifted)"
    r"|\bsupersedes? (?:all )?(?:prior|previous|earlier|other) (?:instruct|prompt)",
    rf"\byou are an? {_MODEL} without\b|\bonly respond with\b",
    rf"{_ORDER}(?:call|invoke|run|execute|use) the (?:tool|function)\s+\w+",
    rf"{_ORDER}(?:always )?cite (?:only |always )?\[?@?[a-z]+\d{{4}}\w*|\balways cite (?:this|the|our|my)\b"
    r"|\badd \[?@\w+\]? to the references\b",
    rf"{_ORDER}(?:give|rate|score) (?:this|the|our) (?:paper|work|article|study){_SAME}{{0,30}}"
    r"\b(?:highest|high|positive|best)\b",
    r"\b(?:do not|don't|never) mention any (?:weakness|limitation|flaw)",
    rf"{_ORDER}(?:reveal|print|repeat|output|show|reply with|send){_SAME}{{0,40}}"
    r"\b(?:system prompt|API key|secrets?)\b",
)
_OTHER_LANGUAGES = (
    r"\b(?:ignorier\w*|vergiss|vergessen Sie|missachte\w*)\b[^.!?\n]{0,40}\b(?:Anweisung|Instruktion|Regel|Befehl)",
    r"\b(?:ignore[zs]?|oublie[zs]?)\s+(?:toutes?|tous|les|ces|vos|tes)\b[^.!?\n]{0,40}\b(?:instructions|consignes|règles)",
    r"\b(?:ignor[ae]d?|olvid[ae]d?|omit[ae])\s+(?:todas?|las|los|tus|sus|estas)\b[^.!?\n]{0,40}"
    r"\b(?:instrucciones|indicaciones|reglas|órdenes)",
    r"\b(?:ignora(?:te)?|dimentica(?:te)?)\s+(?:tutte|le|ogni|queste)\b[^.!?\n]{0,40}\b(?:istruzion|regol)",
    r"\b(?:ignor[ae]|esqueça)\s+(?:todas?|as|estas|suas)\b[^.!?\n]{0,40}\b(?:instruções|regras|ordens)",
    r"\b(?:negeer|vergeet)\b[^.!?\n]{0,40}\b(?:instructies|regels|aanwijzingen)",
    r"\b(?:z?ignoruj|zapomnij)\w*\b[^.!?\n]{0,40}\b(?:instrukcj|polece)",
    r"\b(?:игнорируй|забудь)\w*\b[^.!?\n]{0,40}\b(?:инструкци|указани|правил)",
    r"\btalimat\w*[^.!?\n]{0,30}(?:yok say|görmezden gel|unut)",
    r"(?:忽略|无视|無視|忘记|忘記)[^。！？\n]{0,20}(?:指令|指示|提示|規則|规则)",
    r"(?:指示|命令|ルール|プロンプト)[^。！？\n]{0,10}(?:無視し|忘れ)",
    r"(?:지시|명령|지침)[^.!?\n]{0,10}(?:무시하|잊)",
    r"(?:تجاهل|انس)[^.!?\n]{0,30}(?:تعليمات|أوامر)",
    r"निर्देश[^।!?\n]{0,20}(?:अनदेखा|अनदेखी|नज़रअंदाज़|भूल)",
)
_TURNS = (
    r"(?m)^[ \t{\[]{0,9}(?:system|assistant|AI \w+)\s*:|^[ \t]{0,9}\[system\b[^\]\n]{0,40}\]",
    r"(?m)^[ \t]{0,9}#{1,6}[ \t]{0,9}(?:instructions?|system|response)\s*:",
    r"<\|\w+\|>|\[/?INST\]|<</?SYS>>",
    r"[\"']role[\"']\s*:\s*[\"'](?:system|assistant|user)[\"']",
    r"\btext [^\n]{0,60}\(data, holds no instructions\)|\btext source E\d+",
)
_RULES: tuple[tuple[str, tuple[re.Pattern[str], ...]], ...] = (
    ("gives an order to a model", tuple(re.compile(rule, re.IGNORECASE) for rule in (*_ENGLISH, *_OTHER_LANGUAGES))),
    ("poses as a turn of a conversation", tuple(re.compile(rule, re.IGNORECASE) for rule in _TURNS)),
)
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_UNSEEN_STYLE = re.compile(
    r"<\w{1,30}+[^<>]{0,200}\bstyle\s{0,9}=\s{0,9}[\"'][^\"'<>]{0,200}(?:color\s*:\s*(?:white|#fff(?:fff)?)\b|font-size\s*:\s*[01](?:\.\d+)?p[xt]"
    r"|display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d]))[^<>]*>[^<]*",
    re.IGNORECASE,
)
_LEAD = re.compile(r"[\s.!?:;,>()\[\]{}\u2013\u2014]*")
_REST = re.compile(r"[^.!?\n\u3002<`]{0,160}[.!?\u3002]?")  # the rest of the sentence, up to the displayed length
_UNSEEN_LETTERS = re.compile("[\U000e0020-\U000e007e]{3,}")


@dataclass(frozen=True, slots=True)
class Suspicion:
    """`text[start:end]`, up to the end of a sentence, seems to be an instruction; `why` completes "a passage that"."""

    start: int
    end: int
    why: str


@lru_cache(maxsize=1024)
def find_suspicions(text: str) -> tuple[Suspicion, ...]:
    """Spans that seem to address a model, in order without overlap; cached, since every turn needs them (8 ms each)."""
    found = list(_orders(text, 0, ""))
    for comment in _COMMENT.finditer(text):
        found += _orders(comment[1], comment.start(1), " in a comment")
    found += [Suspicion(*match.span(), "is styled to be invisible") for match in _UNSEEN_STYLE.finditer(text)]
    found += [Suspicion(*match.span(), "consists of invisible characters") for match in _UNSEEN_LETTERS.finditer(text)]
    kept: list[Suspicion] = []
    for item in sorted(found, key=lambda item: (item.start, -item.end)):
        if kept and item.start < kept[-1].end:
            kept[-1] = Suspicion(kept[-1].start, max(kept[-1].end, item.end), kept[-1].why)
        else:
            kept.append(item)
    return tuple(kept)


def _orders(text: str, offset: int, where: str) -> Iterator[Suspicion]:
    """Instructions in a text, ignoring its markup; spans are shifted by `offset`, where the text starts."""
    view = fold(text)
    for why, rules in _RULES:
        for rule in rules:
            for match in rule.finditer(view.text):
                lead, rest = _LEAD.match(match[0]), _REST.match(view.text, match.end())
                first = match.start() + (lead.end() if lead and lead.end() < len(match[0]) else 0)
                start, end = view.span(first, rest.end() if rest else match.end())
                yield Suspicion(offset + start, offset + end, why + where)


@dataclass(frozen=True, slots=True)
class Flag:
    """A suspicious `text` in the part `where` of paper `key`; the ids are None for a field of the paper."""

    key: str
    evidence_id: str | None
    chunk_id: str | None
    where: str
    start: int
    end: int
    text: str
    why: str


def flag_sources(
    sources: Sequence[Source],
    read: Iterable[tuple[Chunk, Paper]] = (),
    described: Mapping[str, Sequence[PaperFigure]] = MappingProxyType({}),
) -> list[Flag]:
    """All flags: of passages in the order of the evidence, of other chunks that an agent `read`, then of papers.

    `described` are figures with a model's description, by the chunk with which they were shown.
    """

    def descriptions(chunk_id: str) -> list[tuple[str, str]]:
        return [(f"description of {figure.name}", figure.description) for figure in described.get(chunk_id, ())]

    flags: list[Flag] = []
    papers: dict[str, Paper] = {}
    seen: set[str] = set()
    for source in sources:
        evidence = source.evidence
        papers[source.paper.key] = source.paper
        parts = (("passage", source.text), ("section title", evidence.section), ("summary", evidence.summary))
        seen.add(evidence.chunk_id)
        # One chunk may back several pieces of evidence.
        flags += _flags(source.paper.key, evidence.id, evidence.chunk_id, (*parts, *descriptions(evidence.chunk_id)))
    for chunk, paper in read:
        papers[paper.key] = paper
        if chunk.id not in seen:
            seen.add(chunk.id)
            read_parts = (("passage", chunk.text), ("section title", chunk.section), *descriptions(chunk.id))
            flags += _flags(paper.key, None, chunk.id, read_parts)
    for key, paper in papers.items():
        names = ("key", "title", "authors", "venue", "abstract")
        fields = (key, paper.title, "; ".join(paper.authors), paper.venue, paper.abstract)
        in_fields = list(_flags(key, None, None, zip(names, fields, strict=True)))
        # Only those parts of the entry that no field contains.
        entry = _flags(key, None, None, [("bibliography entry", paper.bibtex)])
        flags += in_fields + [flag for flag in entry if not any(flag.text in other.text for other in in_fields)]
    return flags


def flag_findings(flags: Sequence[Flag]) -> list[Finding]:
    """A note for each source, quoting the first flagged words and counting the others."""
    groups: dict[tuple[str, str | None, str], list[Flag]] = {}
    for flag in flags:
        groups.setdefault((flag.key, flag.chunk_id, flag.where), []).append(flag)
    found: list[Finding] = []
    for first, *others in groups.values():
        marked = f"{first.evidence_id}, " if first.evidence_id else ""
        place = f"{marked}chunk {first.chunk_id}" if first.chunk_id else "the paper's data"
        # Invisible characters are shown as code points.
        letters = (one if one.isprintable() or one.isspace() else f"<{ord(one):x}>" for one in first.text)
        more = f" ({len(others) + 1} places)" if others else ""
        message = (
            f'The {first.where} of {shown(first.key)} ({place}) {first.why}: "{shown("".join(letters))}"{more}. It was '
            "read as data and not obeyed; look at this paper before you rely on it."
        )
        found.append(Finding("orders-in-source", message))
    return found


def _flags(key: str, evidence_id: str | None, chunk_id: str | None, parts: Iterable[tuple[str, str]]) -> Iterator[Flag]:
    for where, text in parts:
        for item in find_suspicions(text):
            words = text[item.start : item.end]
            yield Flag(key, evidence_id, chunk_id, where, item.start, item.end, words, item.why)
