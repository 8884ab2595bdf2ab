"""Tasks of asyncio are cancelled unless a shielded scope of anyio prevents it, however they wait."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace

import anyio
import pytest

from becket.peer.loops._asyncio_fast import ShieldAwareCanceller, is_anyio_shielded


async def test_a_task_is_cancelled_at_once_where_nothing_shields_it() -> None:
    task = asyncio.ensure_future(asyncio.sleep(60))
    await asyncio.sleep(0)
    ShieldAwareCanceller(asyncio.get_running_loop()).cancel(task)
    await asyncio.sleep(0)
    assert task.cancelled()


async def test_a_finished_task_is_not_cancelled() -> None:
    task = asyncio.ensure_future(asyncio.sleep(0))
    await task
    ShieldAwareCanceller(asyncio.get_running_loop()).cancel(task)
    assert not task.cancelled()


async def test_a_task_that_only_yields_is_checked_in_each_iteration() -> None:
    turns = 0

    async def work() -> None:
        nonlocal turns
        with anyio.CancelScope(shield=True):
            for _ in range(5):
                await asyncio.sleep(0)
                turns += 1
        await asyncio.sleep(60)

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    canceller = ShieldAwareCanceller(asyncio.get_running_loop())
    canceller.cancel(task)
    canceller.cancel(task)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (turns, task.cancelling()) == (5, 1)


async def test_a_task_that_leaves_one_shield_for_the_next_is_cancelled_after_the_last() -> None:
    events = [asyncio.Event() for _ in range(3)]
    seen: list[int] = []

    async def work() -> None:
        for number, event in enumerate(events):
            with anyio.CancelScope(shield=True), anyio.CancelScope():
                await event.wait()
                seen.append(number)
        await asyncio.sleep(60)

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    ShieldAwareCanceller(asyncio.get_running_loop()).cancel(task)
    for event in events:
        assert not task.done()
        event.set()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [0, 1, 2]


async def test_anyio_keeps_the_scopes_of_a_task_where_they_are_looked_up() -> None:
    # If this fails, anyio has changed: a handler that is cancelled within a shield would be torn out of it.
    task = asyncio.current_task()
    assert task is not None
    with anyio.CancelScope(shield=True), anyio.CancelScope():
        await asyncio.sleep(0)
        assert is_anyio_shielded(task)
    assert not is_anyio_shielded(task)


async def test_a_scope_without_a_shield_does_not_shield() -> None:
    async def work() -> None:
        with anyio.CancelScope(), anyio.move_on_after(60):
            await asyncio.sleep(60)

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    assert not is_anyio_shielded(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("keeps", [{}, {"_task_states": {}}, None])
async def test_an_anyio_with_another_scope_layout_shields_nothing(
    keeps: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = asyncio.ensure_future(asyncio.sleep(0))
    with monkeypatch.context() as patch:
        if keeps is None:
            patch.delitem(sys.modules, "anyio._backends._asyncio")
        else:
            patch.setitem(sys.modules, "anyio._backends._asyncio", SimpleNamespace(**keeps))  # type: ignore[arg-type]
        assert not is_anyio_shielded(task)
    await task
