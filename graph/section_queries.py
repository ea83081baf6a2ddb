"""Builds a section's searches: the default queries of its type, and planned needs without the user's own results.

An embedding model silently drops all but a few hundred tokens, so longer fields are condensed by rules: code to its
names and comments, a log to its words, prose to the first words of every sentence. The user's own results are removed
from needs, even if a model writes them despite the prompt, since they would find unrelated results.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ..citations.checks.number_tracing import trace_numbers
from ..experiment import Experiment, SectionKind
from ..roles.protocols import Need
from ..section_kinds import SECTIONS
from ..text.sentences import sentence_spans
from ..text.words import is_stop, plain_wording, read_rules, split_words

QUERY_TOKENS = 300
_LONGEST_WORD = 200  # characters
_READ_CHARACTERS = 200_000  # of a field

_IDENTIFIER_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])")
_VALUE = re.compile(r"\b(?:None|null|NaN|nan|True|False)\b|(?<![A-Za-z\d])\d[\d.]{0,40}[eE][-+−]?\d+\b")
_WORD = re.compile(r"[A-Za-z][\w'-]*[A-Za-z0-9]")


def default_queries(kind: SectionKind, experiment: Experiment, count_tokens: Callable[[str], int]) -> list[str]:
    """Return the queries with which every run of a section starts.

    Empty fields give none; queries that differ only in case, white space or punctuation are merged. A verdict
    ("supported") is not searchable by itself, so it is joined to the hypothesis. If all fields of the section are
    empty, its fallback fields are used.
    """
    spec = SECTIONS[kind]
    instead = [path for group in spec.required for path in group]
    filled = any(experiment.text_at(path).strip() for path in spec.queried)
    queries: list[str] = []
    for path in spec.queried if filled else instead:
        query = condense(path, experiment.text_at(path), count_tokens)
        if path == "verdict" and query:
            query = condense(path, f"{experiment.hypothesis.description} {query}", count_tokens)
        if query and plain_wording(query) not in map(plain_wording, queries):
            queries.append(query)
    return queries


def condense(path: str, text: str, count_tokens: Callable[[str], int]) -> str:
    """Condense a field to one query of at most `QUERY_TOKENS` tokens."""
    text = text[:_READ_CHARACTERS]
    if path == "experiment_code":
        text = code_subject(text)
    elif path in ("execution_result.stdout", "metrics"):
        text = log_subject(text)
    else:
        text = " ".join(text.split())
    if count_tokens(text) <= QUERY_TOKENS:
        return text
    # As many sentences as fit, in order, each cut to its first words.
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    share = max(8, QUERY_TOKENS // max(1, len(sentences)))
    kept: list[str] = []
    for sentence in sentences:
        part = _first_words(sentence, share, count_tokens)
        if count_tokens(" ".join([*kept, part])) > QUERY_TOKENS:
            break
        kept.append(part)
    return " ".join(kept)


def code_subject(code: str) -> str:
    """Extract the subject of code: its docstrings and comments, then the words in its names."""
    prose: list[str] = []
    names: list[str] = []
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        names = _IDENTIFIER_PART.findall(code)
    else:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                prose.append(ast.get_docstring(node) or "")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names += _IDENTIFIER_PART.findall(node.name)
            elif isinstance(node, ast.alias):
                names += _IDENTIFIER_PART.findall(node.asname or node.name)
            elif isinstance(node, ast.Name | ast.Attribute):
                names += _IDENTIFIER_PART.findall(node.id if isinstance(node, ast.Name) else node.attr)
    prose += re.findall(r"#\s*(.+)", code)
    words = list(dict.fromkeys(name.lower() for name in names))
    return " ".join(" ".join([*prose, " ".join(words)]).split())


def log_subject(text: str) -> str:
    """Extract the subject of a log or metrics table: its words, each once, without numbers."""
    words = _WORD.findall(_VALUE.sub(" ", text.replace("_", " ")))
    return " ".join(dict.fromkeys(words))


def _first_words(sentence: str, tokens: int, count_tokens: Callable[[str], int]) -> str:
    # A word has at least one token, so only the first `tokens` words are considered.
    words = [word[:_LONGEST_WORD] for word in sentence.split()[:tokens]]
    counts = range(2, len(words) + 1)
    fit = bisect_right(counts, tokens, key=lambda count: count_tokens(" ".join(words[:count])))
    return " ".join(words[: 1 + fit])


_RULES: Final = read_rules(__file__, "query_rules")["patterns"]
_VERDICT, _OWN = (re.compile(_RULES[name], re.IGNORECASE) for name in ("verdict", "own"))
_LEFT_OVER, _SPACED = (re.compile(_RULES[name]) for name in ("left_over", "spaced"))
_ROUNDS: Final = 4  # of cleaning: each removal may expose another match


def without_own_results(needs: Sequence[Need], experiment: Experiment) -> tuple[Need, ...]:
    """Remove the experiment's numbers and verdicts, and words that refer to the user's own work, from needs.

    Queries and needs that are meaningless without them are dropped; the remaining needs keep their ids.
    """
    kept: list[Need] = []
    for need in needs:
        texts = [_strip_own_results(text, experiment) for text in (need.text, *need.queries)]
        queries = tuple(dict.fromkeys(filter(None, texts[1:]))) or tuple(filter(None, texts[:1]))
        if queries:
            kept.append(replace(need, text=texts[0] or queries[0], queries=queries))
    return tuple(kept)


def _strip_own_results(text: str, experiment: Experiment) -> str:
    """Remove the user's own results from a need or query; empty if it has nothing else."""
    own = [
        (trace.start, trace.end)
        for trace in trace_numbers(text, (), experiment)
        if trace.origin and any(map(str.isdigit, text[trace.start : trace.end]))
    ]
    left = text
    for start, end in reversed(own):
        left = f"{left[:start]} {left[end:]}"
    left = _OWN.sub(" ", _VERDICT.sub(" ", left))
    if left == text:
        return text
    for _ in range(_ROUNDS):
        left = " ".join(_SPACED.sub("", _LEFT_OVER.sub(" ", left)).split()).strip(" ,;:\u2013\u2014-")
    return left if any(not is_stop(word) for word in split_words(left)) else ""
