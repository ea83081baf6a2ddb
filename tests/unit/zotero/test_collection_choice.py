from __future__ import annotations

import pytest

from citeloom.errors import InputError
from citeloom.zotero.zotero_records import ZoteroCollection, ZoteroContent, ZoteroItem, ZoteroLibrary
from citeloom.zotero.zotero_source import WHOLE, choose_library, find_scopes, scope_members

COLLECTIONS = (
    ZoteroCollection("THESIS00", "Thesis"),
    ZoteroCollection("METHODS1", "Methods", "THESIS00"),
    ZoteroCollection("TEACHING", "Teaching"),
    ZoteroCollection("METHODS2", "Methods", "TEACHING"),
    ZoteroCollection("CYCLEAAA", "A", "CYCLEBBB"),
    ZoteroCollection("CYCLEBBB", "B", "CYCLEAAA"),
)
ITEMS = tuple(ZoteroItem(f"I{one.key[1:]}", "book", {}, (), frozenset({one.key})) for one in COLLECTIONS)
CONTENT = ZoteroContent(ITEMS, collections=COLLECTIONS)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Thesis", "THESIS00"),
        ("thesis", "THESIS00"),
        ("Thesis/Methods", "METHODS1"),
        ("/teaching/methods/", "METHODS2"),
        ("METHODS1", "METHODS1"),
    ],
)
def test_a_collection_is_chosen_by_name_path_or_key(name: str, key: str) -> None:
    assert find_scopes([name], CONTENT) == {key}


def test_without_a_name_the_whole_library_is_chosen() -> None:
    assert find_scopes([], CONTENT) == {WHOLE} and len(scope_members([WHOLE], CONTENT)[WHOLE]) == len(ITEMS)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Methods", r"Teaching/Methods \(METHODS2\); Thesis/"),
        ("Tesis", "'Thesis'"),
        ("zzzzz", "'A'"),
    ],
)
def test_an_unknown_or_ambiguous_name_is_refused(name: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        find_scopes([name], CONTENT)
    assert raised.match(said)


def test_a_library_without_collections_says_so() -> None:
    with pytest.raises(InputError, match="--collection Thesis"):
        find_scopes(["Thesis"], ZoteroContent(()))


def test_subcollections_are_included_and_a_cycle_ends() -> None:
    members = scope_members(["THESIS00", "CYCLEAAA", "GONE0000"], CONTENT)
    assert members["THESIS00"] == {"IHESIS00", "IETHODS1"}
    assert members["CYCLEAAA"] == {"IYCLEAAA", "IYCLEBBB"} and members["GONE0000"] == frozenset()


def test_a_group_is_chosen_by_name_or_id() -> None:
    groups = [ZoteroLibrary(1, "Weavers"), ZoteroLibrary(2, "Twins"), ZoteroLibrary(3, "Twins")]
    assert choose_library(groups, "weavers").group == choose_library(groups, "1").group == 1
    with pytest.raises(InputError, match="2, 3"):
        choose_library(groups, "Twins")
