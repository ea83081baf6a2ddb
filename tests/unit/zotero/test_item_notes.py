from __future__ import annotations

import pytest

from citeloom.zotero.item_entry import html_text, item_note
from citeloom.zotero.zotero_records import Annotation, ItemNote


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One <b>bold</b> &amp; <i>plain</i></p><p>Two</p>", "One bold & plain\n\nTwo"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ("<h1>T</h1>text<br/>next", "T\ntext\nnext"),
        ("<script>steal()</script><style>p{}</style><p onclick='x'>seen</p>", "seen"),
        ("<p>a<!-- hidden -->b</p><iframe src='http://x'></iframe>", "ab"),
        ("<img src='data:image/png;base64,AAAA'>caption", "caption"),
        ("plain text", "plain text"),
        ("<p>unclosed <b>markup", "unclosed markup"),
        ("<table><tr><td>1</td><td>2</td></tr></table>", "1\n2"),
        ("<script>never closed", ""),
        ("<a title='a > b'>named</a>, where p < 0.05 and a<b", "named, where p < 0.05 and a<b"),
        ("<p title=it's>seen</p>", "seen"),
        ("an <!-- open comment", "an <!-- open comment"),
        (f"&lt;b&gt; &#{'1' * 5_000}; &eacute;", "<b> \ufffd é"),
        ("", ""),
    ],
)
def test_a_note_is_its_visible_text(html: str, text: str) -> None:
    assert html_text(html) == text


def test_a_large_picture_does_not_push_the_text_out() -> None:
    assert html_text(f"<img src='data:image/png;base64,{'A' * 3_000_000}'><p>after</p>") == "after"


def test_notes_by_age_then_marks_by_page() -> None:
    notes = [ItemNote("B", "I", "<p>later</p>", "2024-02"), ItemNote("A", "I", "<p>first</p>", "2024-01")]
    marks = [
        Annotation("C", "F", "on  nine", "", "9", "00009"),
        Annotation("D", "F", "on two", "my remark", "2", "00002"),
        Annotation("E", "F", "", "a comment", "", "00003"),
        Annotation("G", "F", "", "", "4", "00004"),
    ]
    assert item_note(notes, marks) == ("first\n\nlater\n\np. 2: “on two” – my remark\n\na comment\n\np. 9: “on nine”")
    assert item_note([ItemNote("A", "I", "<p> </p>")], []) == ""
