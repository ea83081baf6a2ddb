from __future__ import annotations

import pytest

from citeloom.zotero.item_entry import html_text, item_note
from citeloom.zotero.zotero_records import Record, build_content


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
def test_a_note_becomes_its_visible_text(html: str, text: str) -> None:
    assert html_text(html) == text


def test_a_large_picture_does_not_crowd_out_the_text() -> None:
    assert html_text(f"<img src='data:image/png;base64,{'A' * 3_000_000}'><p>after</p>") == "after"


def test_notes_are_ordered_by_age_and_highlights_by_page() -> None:
    records: dict[str, Record] = {
        "I": {"itemType": "book"},
        "F": {"itemType": "attachment", "parentItem": "I"},
        "B": {"itemType": "note", "parentItem": "I", "note": "<p>later</p>", "dateAdded": "2024-02"},
        "A": {"itemType": "note", "parentItem": "I", "note": "<p>first</p>", "dateAdded": "2024-01"},
        "C": {"annotationText": "on  nine", "annotationPageLabel": "9", "annotationSortIndex": "00009"},
        "D": {"annotationText": "on two", "annotationComment": "my remark", "annotationPageLabel": "2"},
        "E": {"annotationComment": "a comment", "annotationSortIndex": "00003"},
        "G": {"annotationPageLabel": "4", "annotationSortIndex": "00004", "annotationText": None},
    }
    marks = {key: {"itemType": "annotation", "parentItem": "F", **records[key]} for key in "CDEG"}
    content = build_content(records | marks)
    note = item_note(content.notes["I"], content.annotations["F"])
    assert note == "first\n\nlater\n\np. 2: “on two” – my remark\n\na comment\n\np. 9: “on nine”"
    blank = build_content({"I": records["I"], "A": {**records["A"], "note": "<p> </p>"}})
    assert item_note(blank.notes["I"], []) == ""
