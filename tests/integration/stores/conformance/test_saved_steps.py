"""Checkpoints resume a graph on every backend, as plain values, and only the latest of a long thread is kept."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

import pytest
from langgraph.graph import END, START, StateGraph

from citeloom.sqlite import DamagedFileError
from citeloom.stores.home import Home

if TYPE_CHECKING:
    from citeloom.stores.home import Checkpoints


def added(old: list[str], new: list[str]) -> list[str]:
    return [*old, *new]


class State(TypedDict):
    done: Annotated[list[str], added]
    plan: dict[str, Any]


def graph(saver: Checkpoints, stop: list[bool]) -> Any:
    """Two steps, the second of which fails while `stop` says so."""

    def first(state: State) -> dict[str, Any]:
        return {"done": ["first"], "plan": {"queries": ["why “so”?"], "scores": [0.25, None]}}

    def second(state: State) -> dict[str, Any]:
        if stop[0]:
            raise InterruptedError
        return {"done": ["second"]}

    built = StateGraph(State)
    built.add_node("first", first)
    built.add_node("second", second)
    built.add_edge(START, "first")
    built.add_edge("first", "second")
    built.add_edge("second", END)
    return built.compile(checkpointer=cast(Any, saver))


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


async def test_a_graph_resumes_at_the_step_that_failed(backend: Home) -> None:
    async with backend.open_checkpoints() as saver:
        with pytest.raises(InterruptedError):
            await graph(saver, [True]).ainvoke({"done": [], "plan": {}}, config("a"), durability="sync")
    async with backend.open_checkpoints() as saver:
        assert (await graph(saver, [True]).aget_state(config("a"))).next == ("second",)
        values = await graph(saver, [False]).ainvoke(None, config("a"), durability="sync")
    assert values == {"done": ["first", "second"], "plan": {"queries": ["why “so”?"], "scores": [0.25, None]}}


async def test_deleting_or_shortening_one_thread_keeps_the_others(backend: Home) -> None:
    async with backend.open_checkpoints() as saver:
        runnable = graph(saver, [False])
        for thread in ("a", "b"):
            for _ in range(2):
                await runnable.ainvoke({"done": ["again"], "plan": {}}, config(thread), durability="sync")
        await saver.keep_latest("a")
        assert len([1 async for _ in runnable.aget_state_history(config("a"))]) == 1
        assert len([1 async for _ in runnable.aget_state_history(config("b"))]) > 2
        assert (await runnable.aget_state(config("a"))).values["done"] == ["again", "first", "second"] * 2
        await runnable.ainvoke({"done": ["more"], "plan": {}}, config("a"), durability="sync")
        assert (await runnable.aget_state(config("a"))).values["done"][-3:] == ["more", "first", "second"]
        await saver.adelete_thread("a")
        assert (await runnable.aget_state(config("a"))).values == {}
        assert (await runnable.aget_state(config("b"))).values["done"][0] == "again"


async def test_no_function_named_in_a_checkpoint_is_called(backend: Home) -> None:
    async with backend.open_checkpoints() as saver:
        made = cast(Any, saver)
        with pytest.raises(TypeError):
            made.serde.dumps_typed(pytest.approx)  # which LangGraph could only pickle
        kind, content = made.serde.dumps_typed(Decimal(1))  # names a type that no run has in its state
        with pytest.raises(DamagedFileError):
            made.serde.loads_typed((kind, content))
        with pytest.raises(DamagedFileError, match="unsupported encoding"):
            made.serde.loads_typed(("pickle", b"\x80\x04."))
