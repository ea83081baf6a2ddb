"""Reads LaTeX as prose: citations of natbib and biblatex, inputs within the folder, macros, footnotes, captions.

It expands what authors write in running text and leaves out what readers see as formulas, tables and code. Whatever
cannot be read costs one notice and never the rest. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Final

from ..documents.bibliography import readable
from ..documents.safe_files import FileRefusedError, read_regular
from ..text.words import one_line, read_rules
from .manuscript import ListedReference, Manuscript, bracket_pairs

MOST_BYTES: Final = 4_000_000  # of all files together
_MOST_FILES: Final = 200
_DEEPEST: Final = 12
_MOST_NOTICES: Final = 20
_MOST_EXPANDED: Final = 400_000  # characters that macros may add

_SECTIONS: Final = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
_COMMANDS: Final = read_rules(__file__, "latex_commands")
_NO_CITATION, _REFERENCES, _BREAKS = (
    frozenset(_COMMANDS[kind].split()) for kind in ("no_citation", "references", "breaks")
)
_FLOATS, _FORMULAS, _SKIPPED, _VERBATIM = (
    frozenset(_COMMANDS["environments"][kind].split()) for kind in ("floats", "formulas", "skipped", "verbatim")
)
_DROPPED: Final = {name: int(count) for count, names in _COMMANDS["dropped"].items() for name in names.split()}
_SIGNS: Final = {
    **{sign: sign for sign in "%&_#${}"},
    **_COMMANDS["signs"],
    **dict.fromkeys((" ", ",", ";", ":", "!", "\\", "\n", *_COMMANDS["spaces"].split()), " "),
}
_UNITS: Final = _COMMANDS["units"]
_TYPED: Final = {"--": "\u2013", "---": "\u2014", "``": "\u201c", "''": "\u201d"}
NOTE: Final = "citeloomnote"  # the command of notes that an earlier check put into the margin
_DEFINITIONS: Final = frozenset("newcommand renewcommand providecommand newcommand* renewcommand* def".split())
_ACCENTS: Final = frozenset("`'^\"~=.cvuHkr")
_PATTERNS: Final = {name: re.compile(rule) for name, rule in _COMMANDS["patterns"].items()}
BRACE: Final = _PATTERNS["brace"]


class _LatexReading(Manuscript):
    def __init__(self, folder: Path) -> None:
        super().__init__("tex")
        self.folder = folder
        self.macros: dict[str, tuple[int, str]] = {}  # the number of arguments, and the body
        self.size = self.expanded = self.formulas = 0

    def note(self, line: str) -> None:
        if len(self.notices) < _MOST_NOTICES and line not in self.notices:
            self.notices.append(line)


def read_latex(path: str, text: str | None = None) -> Manuscript:
    """Read a LaTeX file, or `text` in its place, with its inputs. Raises `FileRefusedError`."""
    file = Path(path)
    reading = _LatexReading(file.parent.resolve())
    source = _load(reading, file, text)
    if source is None:
        raise FileRefusedError(reading.notices[-1].partition(": ")[2].rstrip("."))
    preamble, begin, body = source.partition("\\begin{document}")
    preamble, body = (preamble, body) if begin else ("", source)
    scan = _Scan(reading, 0, source)
    scan.definitions(0, len(preamble))
    try:
        scan.read(len(preamble + begin), len(preamble + begin + body.partition("\\end{document}")[0]))
    except RecursionError:
        raise FileRefusedError("nests its commands too deeply") from None
    if reading.formulas:
        noun = "formula" if reading.formulas == 1 else "formulas"
        reading.note(f"{file.name}: {reading.formulas} displayed {noun} are not checked.")
    return reading.finish()


def _load(reading: _LatexReading, file: Path, given: str | None = None) -> str | None:
    """Return a file's text, or the text `given` for it; None, with a notice, outside the folder or the limits."""
    name = file.name
    try:
        resolved = file.resolve()
        if not resolved.is_relative_to(reading.folder):
            reading.note(f"{file}: is outside the folder of the text and was not read.")
            return None
        name = str(resolved.relative_to(reading.folder))
        data = read_regular(resolved, MOST_BYTES) if given is None else given.encode(errors="replace")
    except FileRefusedError as error:
        reading.note(f"{name}: {error}.")
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "has an invalid name"
        reading.note(f"{name}: cannot be read ({reason}).")
        return None
    reading.size += len(data)
    if b"\0" in data:
        reading.note(f"{name}: is not a text file.")
        return None
    if reading.size > MOST_BYTES or len(reading.files) >= _MOST_FILES:
        reading.note(f"{name}: is more than the limit of {MOST_BYTES // 1_000_000} MB or {_MOST_FILES} files.")
        return None
    text = data.decode("utf-8-sig", "replace")
    reading.files.append(name)
    reading.sources.append(text)
    return text


class _Scan:
    """Scans one file, or the body of a macro, whose characters are all attributed to the place where it is used."""

    def __init__(
        self, reading: _LatexReading, unit: int, text: str, depth: int = 0, at: tuple[int, int] | None = None
    ) -> None:
        self._reading = reading
        self._unit = unit
        self._text = text
        self._depth = depth
        self._at = at
        self._footnotes: list[tuple[int, int]] = []
        self._unclosed: set[str] = set()

    def definitions(self, start: int, end: int) -> None:
        place = start
        while place < end:
            token = _PATTERNS["token"].match(self._text, place)
            if token is None:
                break
            place = token.end()
            name = token["command"][1:] if token["command"] else ""
            if name in _DEFINITIONS:
                place = self._define(name, place)
            elif name in ("addbibresource", "bibliography"):
                place = self._bibliography(place)
            elif name in ("input", "include"):
                place = self._input(place, preamble=True)

    def read(self, start: int, end: int) -> None:
        place = start
        while place < end:
            token = _PATTERNS["token"].match(self._text, place, end)
            if token is None:
                break
            place = self._token(token, end)
        notes, self._footnotes = self._footnotes, []
        for first, last in notes:
            self._paragraph(first)
            self.read(first, last)
            self._paragraph(last)

    def _token(self, token: re.Match[str], end: int) -> int:
        start, stop, prose = token.start(), token.end(), self._reading
        if token["command"]:
            return self._command(token["command"][1:], start, stop, end)
        if token["math"]:
            return self._math(token["math"], start, stop, min(end, stop + 4_000))
        if token["blank"]:
            notes, self._footnotes = self._footnotes, []
            self._paragraph(start)
            for first, last in notes:
                self.read(first, last)
                self._paragraph(last)
        elif token["space"] or token["tie"]:
            prose.space(self._unit, self._place(start)[0])
        elif not (token["comment"] or token["brace"]):
            self._add(_TYPED.get(token[0], token[0]), start, stop)
        return stop

    def _place(self, start: int, stop: int | None = None) -> tuple[int, int]:
        return self._at or (start, start if stop is None else stop)

    def _add(self, text: str, start: int, stop: int) -> None:
        self._reading.add(text, self._unit, *self._place(start, stop))

    def _paragraph(self, at: int) -> None:
        self._reading.paragraph(self._unit, self._place(at)[0])

    def _command(self, name: str, start: int, stop: int, end: int) -> int:
        bare, reading = name.rstrip("*"), self._reading
        if name in reading.macros:
            return self._expand(*reading.macros[name], start, stop)
        if name in _DEFINITIONS:
            return self._define(name, stop)
        if bare in ("begin", "end"):
            return self._environment(bare, start, stop, end)
        if bare in ("input", "include", "subfile"):
            return self._input(stop)
        if bare in ("bibliography", "addbibresource"):
            return self._bibliography(stop)
        if bare in _SECTIONS:
            _, inner, behind = self._argument(self._options(stop))
            self._paragraph(start)
            self._add("#" * _SECTIONS[bare] + " ", start, start)
            self.read(*inner)
            self._paragraph(behind)
            return behind
        if bare in ("label", "nocite") or bare in _REFERENCES:
            content, _, behind = self._argument(stop)
            if bare == "label":
                reading.labels.append(content.strip())
            elif bare == "nocite":
                reading.cited_silently += _PATTERNS["keys"].findall(content)
            else:
                for target in filter(None, (one.strip() for one in content.split(","))):
                    reading.point("label", target, target, self._unit, *self._place(start, behind))
            return behind
        if _PATTERNS["cites"].fullmatch(name) and bare not in _NO_CITATION and "cite" in name.lower():
            return self._citation(name, start, stop)
        return self._small_command(bare, start, stop, end)

    def _small_command(self, name: str, start: int, stop: int, end: int) -> int:
        if name in ("footnote", "footnotetext", "marginpar"):
            _, inner, stop = self._argument(self._options(stop))
            self._footnotes.append(inner)
            return stop
        if name in ("[", "("):
            return self._math("\\]" if name == "[" else "\\)", start, stop, min(end, stop + 8_000))
        if name in ("SI", "qty", "num", "unit", "si", "SIrange", "qtyrange"):
            return self._quantity(name, start, stop)
        if name in _BREAKS:
            self._paragraph(start)
            return self._options(stop) if name == "item" else stop
        if name in ("verb", "lstinline"):
            sign = self._text[stop : stop + 1]
            close = self._text.find("}" if sign == "{" else sign, stop + 1, stop + 400)
            return close + 1 if close > 0 else stop
        if name in ("href", "textcolor", "colorbox"):
            return self._argument(stop)[2]  # the second argument is prose
        if name == "iffalse":
            close = self._text.find("\\fi", stop, end)
            return close + 3 if close >= 0 else end
        if name in _DROPPED:
            for _ in range(_DROPPED[name]):
                stop = self._argument(self._options(stop))[2]
            return stop
        return self._sign(name, start, stop)

    def _sign(self, name: str, start: int, stop: int) -> int:
        if name in _SIGNS:
            if _SIGNS[name] == " ":
                self._reading.space(self._unit, self._place(start)[0])
                return self._options(stop) if name == "\\" else stop
            self._add(_SIGNS[name], start, stop)
            return stop + 2 if self._text.startswith("{}", stop) else stop
        if name in _ACCENTS:
            letter = re.compile(r"\s?(?:\{\\?[A-Za-z]\}|\\[ij](?![A-Za-z])|[A-Za-z])").match(self._text, stop)
            if letter:
                self._add(readable(f"\\{name}{letter[0]}"), start, letter.end())
                return letter.end()
        return self._options(stop) if name.isalpha() else stop

    def _argument(self, place: int) -> tuple[str, tuple[int, int], int]:
        """The braced argument at a place, the span of its content, and the position after it; empty if not found."""
        text = self._text
        first = place
        while first < len(text) and text[first] in " \t\n%":
            first = text.find("\n", first) + 1 or len(text) if text[first] == "%" else first + 1
        if not text.startswith("{", first):
            return "", (place, place), place
        close = self._closings.get(first)
        if close is None:
            return "", (place, place), first + 1
        return text[first + 1 : close], (first + 1, close), close + 1

    @cached_property
    def _closings(self) -> dict[int, int]:
        return bracket_pairs(BRACE, self._text)

    def _options(self, place: int) -> int:
        """The position after optional arguments in square brackets."""
        while True:
            first = place
            while first < len(self._text) and self._text[first] in " \t":
                first += 1
            close = self._text.find("]", first, first + 2_000) if self._text.startswith("[", first) else -1
            if close < 0:
                return place
            place = close + 1

    def _citation(self, name: str, start: int, stop: int) -> int:
        keys: list[str] = []
        place = stop
        while True:
            optional = self._options(place)
            content, _, behind = self._argument(optional)
            if behind == optional:
                break
            keys += _PATTERNS["keys"].findall(content.replace("%\n", ""))
            place = behind
            if not name.lower().rstrip("*").endswith("cites"):
                break
        if keys or place > stop:
            written = "; ".join(f"@{{{key}}}" for key in keys or [""])
            narrative = _PATTERNS["narrative"].fullmatch(name) and len(keys) == 1
            self._add(f"@{{{keys[0]}}}" if narrative else f"[{written}]", start, place)
        return place

    def _bibliography(self, stop: int) -> int:
        content, _, behind = self._argument(self._options(stop))
        names = [name.strip() for name in content.split(",") if name.strip()]
        self._reading.bibliographies += [name if name.endswith(".bib") else f"{name}.bib" for name in names]
        return behind

    def _input(self, stop: int, *, preamble: bool = False) -> int:
        content, _, behind = self._argument(stop)
        reading = self._reading
        name = content.strip()
        if not name or self._depth >= _DEEPEST:
            return behind
        file = reading.folder / name
        file = file if file.suffix else file.with_name(f"{file.name}.tex")
        if str(file.resolve()) in {str((reading.folder / known).resolve()) for known in reading.files}:
            return behind
        unit = len(reading.files)
        source = _load(reading, file)
        if source is not None:
            scan = _Scan(reading, unit, source, self._depth + 1)
            self._paragraph(stop)
            (scan.definitions if preamble else scan.read)(0, len(source))
            reading.paragraph(unit, len(source))
        return behind

    def _define(self, name: str, stop: int) -> int:
        text = self._text
        head = re.compile(
            r"\s{0,9}\{?\s{0,9}\\([A-Za-z@]{1,60})\s{0,9}\}?\s{0,9}(?:\[(\d)\])?(?:\[[^\[\]]{0,80}\])?(#1)?(#2)?"
        ).match(text, stop)
        if head is None:
            return stop
        content, _, behind = self._argument(head.end())
        count = int(head[2]) if head[2] else bool(head[3]) + bool(head[4])
        if behind > head.end() and head[1] != NOTE and f"\\{head[1]}" not in content:
            self._reading.macros[head[1]] = count, content
        return max(behind, head.end())

    def _expand(self, arguments: int, body: str, start: int, stop: int) -> int:
        place = stop
        for number in range(1, arguments + 1):
            content, _, place = self._argument(place)
            body = body.replace(f"#{number}", content)
        if arguments == 0 and self._text.startswith("{}", place):
            place += 2
        self._reading.expanded += len(body)
        if self._depth < _DEEPEST and self._reading.expanded <= _MOST_EXPANDED:
            at = self._at or (start, place)
            _Scan(self._reading, self._unit, body, self._depth + 1, at).read(0, len(body))
        else:
            self._reading.note(f"{self._reading.files[0]}: macros expand too far; some were left out.")
        return place

    def _environment(self, side: str, start: int, stop: int, end: int) -> int:
        content, _, behind = self._argument(stop)
        name = content.strip().rstrip("*")
        if side == "end":
            self._paragraph(start)
            return behind
        formula = name in _FORMULAS
        if not formula:
            self._paragraph(start)
        if not (formula or name in _FLOATS or name in _SKIPPED or name in _VERBATIM or name == "thebibliography"):
            return self._options(behind)
        closing = -1 if name in self._unclosed else self._text.find(f"\\end{{{content}}}", behind, end)
        close = closing if closing >= 0 else end
        if closing < 0:
            self._unclosed.add(name)
            return behind
        if formula:
            self._reading.labels += [label.strip() for label in _PATTERNS["label"].findall(self._text[behind:close])]
            self._formula(start, _PATTERNS["label"].sub("", self._text[behind:close]))
        elif name == "thebibliography":
            self._list_references(behind, close)
        elif name not in _VERBATIM:
            inside = self._text[behind:close]
            self._reading.labels += [label.strip() for label in _PATTERNS["label"].findall(inside)]
            if "\\caption" in inside and name != "algorithm":
                self._reading.uncaptioned["table" if "table" in name else "figure"] += 1
            for caption in re.finditer(r"\\caption\*?(?:of\{\w+\})?(?=\s*[\[{])", inside):
                _, inner, _ = self._argument(self._options(behind + caption.end()))
                self._paragraph(inner[0])
                self.read(*inner)
                self._paragraph(inner[1])
        return min(end, close + len(f"\\end{{{content}}}"))

    def _list_references(self, start: int, end: int) -> None:
        items = list(_PATTERNS["bibitem"].finditer(self._text, start, end))
        for item, following in zip(items, [*items[1:], None], strict=True):
            reading = _LatexReading(self._reading.folder)
            reading.files = list(self._reading.files)
            inner = _Scan(reading, 0, self._text)
            inner.read(item.end(), following.start() if following else end)
            self._reading.listed.append(ListedReference(item[1].strip(), " ".join("".join(reading.pieces).split())))

    def _math(self, sign: str, start: int, stop: int, end: int) -> int:
        close = self._text.find(sign, stop, end)
        if close < 0:
            return stop
        behind = close + len(sign)
        if sign in ("$$", "\\]"):
            self._formula(start, self._text[stop:close])
            return behind
        inside = self._text[stop:close].replace("\\%", "%").replace("\\,", "").strip()
        self._add(inside if _PATTERNS["plain_math"].fullmatch(inside) else f"${one_line(inside)}$", start, behind)
        return behind

    def _formula(self, start: int, inside: str) -> None:
        self._reading.formulas += 1
        self._reading.space(self._unit, self._place(start)[0])
        self._add("\u2026." if inside.rstrip().endswith(".") else "\u2026", start, start)
        self._reading.space(self._unit, self._place(start)[0])

    def _quantity(self, name: str, start: int, stop: int) -> int:
        """`\\SI{5}{\\milli\\gram}` as "5 mg"."""
        parts: list[str] = []
        place = self._options(stop)
        for _ in range({"num": 1, "unit": 1, "si": 1, "SIrange": 3, "qtyrange": 3}.get(name, 2)):
            content, _, place = self._argument(place)
            parts.append(re.sub(r"\\([A-Za-z]+)\s*", lambda unit: _UNITS.get(unit[1], unit[1]), content).strip("{} "))
        shown = f"{parts[0]} to {parts[1]} {parts[2]}" if len(parts) == 3 else " ".join(parts)
        self._add(shown.replace("~", " "), start, place)
        return place
