"""Runs pandoc sandboxed, and converts Word, LaTeX, JATS, HTML and EPUB to markdown with it.

`--sandbox` keeps documents from accessing files and the network, but not citation styles: citeproc resolves a style's
parent outside of it. So styles are validated before they are passed to pandoc (`citations/references.py`), and any
remaining request goes to a proxy address where nothing listens.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..text.words import one_line, unescape_html
from .safe_files import FileRefusedError, read_regular, require_regular
from .sandbox import OutOfTimeError, run

_HEAP_EXHAUSTED: Final = 251  # exit code of GHC's runtime
_SIGNALLED: Final = 128
# Excludes the user's keys, and variables that change the limits of pandoc's runtime.
_PASSED_ON = re.compile(r"HOME|PATH|LANG|LC_\w+|TMPDIR|TEMP|TMP|XDG_\w+|PYPANDOC_PANDOC|SYSTEMROOT|APPDATA|USERPROFILE")
_NOBODY: Final = "http://127.0.0.1:9"
_NO_NET: Final = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _NOBODY)
_MESSAGE: Final = 200  # characters
_SECONDS: Final = 120.0


class PandocError(RuntimeError):
    """pandoc rejected its input or was stopped at a limit; the message is the reason in one line."""


class PandocLimitError(PandocError):
    """The input needs more time or memory than allowed."""


def pandoc(
    arguments: Sequence[str],
    files: Mapping[str, str | bytes] = MappingProxyType({}),
    *,
    seconds: float = _SECONDS,
    megabytes: int = 1500,
) -> bytes:
    """Run pandoc within limits and return its output; killed on cancellation. Raises `PandocError` and OSError.

    `files` are contents by the names that the arguments have for them; other paths must be absolute.
    """
    # Imported lazily: the import looks for the binary, which most commands do not need.
    import pypandoc

    limits = [
        "+RTS",
        f"-M{megabytes}m",
        "-A32m",
        "--RTS",
    ]  # few collections: a sixth less time for a list of references
    command = [pypandoc.get_pandoc_path(), *limits, "--sandbox", *arguments]
    try:
        environment = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
            for name, content in files.items():
                data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
                (Path(folder) / name).write_bytes(data)
            ended = run(command, seconds=seconds, env=environment | _NO_NET, cwd=folder)
    except OutOfTimeError:
        raise PandocLimitError(f"was not converted within {seconds:g} seconds") from None
    if ended.code == 0:
        return ended.output
    if ended.code == _HEAP_EXHAUSTED:
        raise PandocLimitError(f"takes more than {megabytes} MB of memory to convert")
    if ended.code > _SIGNALLED:
        raise PandocLimitError("exceeds the limits of time or output; not converted")
    raise PandocError(" ".join(ended.errors.split())[:_MESSAGE].rstrip(".") or f"pandoc ended with {ended.code}")


# The pandoc reader by extension. Divs and spans of a web page carry no visible text.
_BARE: Final = "-native_divs-native_spans"
FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {".docx": "docx", ".epub": f"epub{_BARE}", **dict.fromkeys((".html", ".htm"), f"html{_BARE}")}
    | dict.fromkeys((".tex", ".latex"), "latex")
    | dict.fromkeys((".xml", ".nxml", ".jats"), "jats")
)
_TO = "gfm-tex_math_gfm+tex_math_dollars+yaml_metadata_block-footnotes"
_BOX = re.compile(r"</?(?:div|section|span)\b[^<>]*>")
# pandoc writes "\\[12\\]" for a plain "[12]", and "\\>" for ">": correct markdown, but wrong in a quotation.
_ESCAPED_BRACKETS = re.compile(r"(?<!\\)\\\[([^\[\]\n]*?)\\\](?![(:\[])")
_ESCAPED_SIGN = re.compile(r"(?<!\\)\\(?=[<>](?:[\s\d=.]|$))(?<=.\\)")
_VERBATIM = re.compile(r"(`+[^`]*`+|(?<!\\)\$\$?(?:[^$\\]|\\.)*\$\$?)")  # code and formulas
_TABLE_LABEL: Final = re.compile(
    rb"(?P<before><table-wrap\b[^<>]*+>\s*+(?:<object-id\b[^<>]*+>[^<]*+</object-id>\s*+)*+)"
    rb"<label>(?P<label>(?:[^<]|</?(?:bold|italic|sc|sub|sup)>){1,80})</label>"
    rb"(?P<begins>\s*+<caption\b[^<>]*+>\s*+<(?:title|p)\b[^<>]*+>)?"
)
# What pandoc's reader of JATS leaves out of the metadata. A DOI whose signs markdown escapes would become another one.
_FRONT: Final = {
    "doi": re.compile(rb"<article-id\b[^<>]{0,100}?\bdoi\b[^<>]{0,100}>([^<&*#\\\x00]{1,300})</article-id>"),
    "journal": re.compile(rb"<journal-title>([^<\x00]{1,300})</journal-title>"),
}
_ARTICLE_FILTER: Final = Path(__file__).with_name("article.lua")
_MEGABYTES = 3000
# pandoc needs up to a hundred times the size of a text in memory; most of an archive is images.
_ARCHIVES: Final = frozenset({".docx", ".epub"})
_MOST_BYTES: Final = 300_000_000
_MOST_TEXT: Final = 50_000_000


def as_markdown(path: Path) -> str:
    """Convert the file to markdown with its metadata as YAML front matter; raises `FileRefusedError`."""
    kind = FORMATS[path.suffix.lower()]
    # pandoc would read an empty or wrong document.
    if path.suffix.lower() in _ARCHIVES:
        require_regular(path, most_bytes(path))
        data = b"archive" if path.stat().st_size else b""
    else:
        data = read_regular(path, most_bytes(path))
    if not data.strip():
        raise FileRefusedError("is empty")
    if kind == "latex" and b"\\documentclass" not in data:
        raise FileRefusedError("has no \\documentclass: it is part of another LaTeX file")
    if kind == "jats" and b"<article" not in data:
        raise FileRefusedError("is XML, but not a JATS article")
    options = ["--from", kind, "--to", _TO, "--standalone", "--wrap=none", "--markdown-headings=atx"]
    options += ["--lua-filter", str(_ARTICLE_FILTER)]
    front = data[: data.find(b"</front>")] if kind == "jats" else b""
    for name, pattern in _FRONT.items():
        if found := pattern.search(front):
            options += ["--metadata", f"{name}={unescape_html(one_line(found[1].decode('utf-8', 'replace')))}"]
    with _readable_copy(path, data if kind == "jats" else b"") as readable:
        arguments = [*options, "--strip-comments", "--", str(readable.resolve())]
        try:
            made = pandoc(arguments, megabytes=_MEGABYTES)
        except PandocLimitError as error:
            raise FileRefusedError(str(error)) from None
        except PandocError as error:
            raise FileRefusedError(f"cannot be read as {kind.partition('-')[0]} ({error})") from None
    return _remove_boxes(made.decode("utf-8", "replace"))


@contextmanager
def _readable_copy(path: Path, data: bytes) -> Iterator[Path]:
    """The file, or of a JATS article a copy with what pandoc skips: labels of tables, and floats after the text."""
    article = _TABLE_LABEL.sub(_label_in_caption, data)
    text_end, begins, ends = (article.find(tag) for tag in (b"</body>", b"<floats-group", b"</floats-group>"))
    if 0 <= text_end < begins < ends:
        floats = article[article.find(b">", begins) + 1 : ends]
        section = b"<sec><title>Figures and tables</title>" + floats + b"</sec>"
        behind = article[text_end:begins] + article[ends + len(b"</floats-group>") :]
        article = article[:text_end] + section + behind
    if article == data:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        copy = Path(folder) / "article.xml"
        copy.write_bytes(article)
        yield copy


def _label_in_caption(found: re.Match[bytes]) -> bytes:
    label = found["label"].strip().rstrip(b".:")
    begins = found["begins"] or b"<caption><p>"
    return found["before"] + begins + label + (b". " if found["begins"] else b"</p></caption>")


def _remove_boxes(text: str) -> str:
    lines: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        parts = [line] if fenced else _VERBATIM.split(_BOX.sub("", line))
        if not fenced:
            parts[::2] = [_ESCAPED_SIGN.sub("", _ESCAPED_BRACKETS.sub(r"[\1]", part)) for part in parts[::2]]
        if (bare := "".join(parts)).strip() or not line.strip():
            lines.append(bare)
    return "\n".join(lines)


def most_bytes(path: Path) -> int:
    """The size limit of a file with this extension."""
    return _MOST_BYTES if path.suffix.lower() in _ARCHIVES else _MOST_TEXT
