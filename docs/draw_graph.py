"""Draw the section graph as a Mermaid picture, for the README.

python docs/draw_graph.py            print the picture
python docs/draw_graph.py --write    put it between the markers in README.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from citeloom.graph.graphs import section_graph

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN = "<!-- section graph -->"
END = "<!-- /section graph -->"


def picture() -> str:
    """The compiled graph as a fenced Mermaid block, without the colours, which are for light pages only."""
    lines = section_graph().get_graph().draw_mermaid(with_styles=False).strip().splitlines()
    return "\n".join(["```mermaid", *(line.replace("\t", "    ").rstrip() for line in lines), "```"])


def between_markers(text: str) -> str | None:
    """What stands between the markers, or None when they are not there, once each and in order."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        return None
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip()


def renewed(text: str) -> str:
    """The text with the picture as it is now between the markers, which are put at its end when missing."""
    if between_markers(text) is None:
        return f"{text.rstrip()}\n\n{BEGIN}\n{picture()}\n{END}\n".lstrip()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return f"{before}{BEGIN}\n{picture()}\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the section graph as a Mermaid picture.")
    parser.add_argument("--write", action="store_true", help="put it between the markers in README.md")
    if parser.parse_args().write:
        text = README.read_text(encoding="utf-8") if README.exists() else ""
        README.write_text(renewed(text), encoding="utf-8")
    else:
        sys.stdout.write(picture() + "\n")


if __name__ == "__main__":
    main()
