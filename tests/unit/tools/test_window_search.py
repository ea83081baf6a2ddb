"""Which hits are worth a window: those of near papers, spread over the papers."""

from __future__ import annotations

import pytest

from citeloom.tools.window_search import FoundChunk, order_hits, share_of_paper, shares_of_named, take_turns


def hits(*found: tuple[str, float]) -> list[FoundChunk]:
    return [FoundChunk(f"{key}:{place:05d}", cosine, ("N1",)) for place, (key, cosine) in enumerate(found)]


def keys(found: list[FoundChunk]) -> str:
    return "".join(hit.id[0] for hit in found)


def test_papers_far_from_all_needs_are_left_out_with_all_their_hits() -> None:
    found = hits(("a", 0.90), ("b", 0.80), ("c", 0.84), ("a", 0.70), ("b", 0.82))
    assert keys(order_hits(found, 0.08, 0)) == "aca", "the far hit of a near paper stays"
    assert keys(order_hits(found, 0.0, 0)) == "abcab"
    assert order_hits([], 0.08, 0) == []


def test_many_hits_of_one_paper_do_not_crowd_out_others() -> None:
    found = hits(("a", 0.9), ("a", 0.9), ("a", 0.9), ("b", 0.8), ("c", 0.8))
    assert keys(order_hits(found, 0.0, 3)) == "abaca"
    assert keys(order_hits(found, 0.0, 0)) == "aaabc"


@pytest.mark.parametrize(("papers", "share"), [(0, 1.0), (1, 1.0), (2, 0.7), (3, 0.5), (9, 0.5)])
def test_fewer_papers_get_larger_shares(papers: int, share: float) -> None:
    assert share_of_paper(papers, 0.5) == share


def test_chunks_of_named_papers_alternate_in_the_order_of_naming() -> None:
    found = ["a:00003", "a:00001", "b:00007", "a:00009", "b:00002"]
    assert take_turns(found, ["b", "a"]) == ["b:00007", "a:00003", "b:00002", "a:00001", "a:00009"]
    assert take_turns(found, ["a", "c", "b"]) == ["a:00003", "b:00007", "a:00001", "b:00002", "a:00009"]


def test_every_second_hit_goes_to_named_papers_weighted_by_how_often_and_early() -> None:
    shares = shares_of_named([["c", "b"], ["c"], ["c", "b", "a"]])
    assert shares == {"c": 3.0, "b": 1.0, "a": 1 / 3}
    found = hits(*[("a", 0.9)] * 4, *[("b", 0.9)] * 4, *[("c", 0.5)] * 4, ("d", 0.5))
    assert keys(order_hits(found, 0.0, 0, shares)) == "cacabacacbbbd"
    assert "d" not in keys(order_hits(found, 0.08, 0, shares)), "only a named paper may be far"
