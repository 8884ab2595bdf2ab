"""Records are passed to a store that may wait for a disk, without a thread for each."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.host.stand_ins import hosted

from becket.contract.memory import Append, Appended, Query
from becket.errors import Busy
from becket.host.serving.services import AsyncStore
from becket.peer.loops.async_loops import current_loop
from becket.stores.in_memory import InMemoryStore
from becket.stores.sqlite import SqliteStore
from becket.stores.store import AppendCallback

pytestmark = pytest.mark.loops


class SlowStore(InMemoryStore):
    """Reports the outcome of its records on request, in a thread of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[Append, AppendCallback]] = []

    def append_nowait(self, append: Append, done: AppendCallback) -> None:
        self.waiting.append((append, done))

    def settle(self, outcome: BaseException | None = None) -> None:
        def notify() -> None:
            for append, done in self.waiting:
                done(self.append(append) if outcome is None else outcome)  # type: ignore[arg-type]

        thread = threading.Thread(target=notify)
        thread.start()
        thread.join()


class Elsewhere:
    """A store that may wait for a disk, as a host sees it."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def append_and_wait(async_store: AsyncStore, append: Append) -> Any:
    """Returns the outcome of a record, as a link sees it."""
    has_come, outcomes = anyio.Event(), list[Any]()
    deferred = async_store.append(append)

    def respond(request: Any, outcome: Any) -> None:
        outcomes.append(outcome)
        has_come.set()

    deferred.attach(None, respond)
    await has_come.wait()
    return outcomes[0]


async def test_responses_that_come_together_reach_the_loop_with_one_call() -> None:
    store, loop = SlowStore(), await current_loop()
    async_store = AsyncStore(store, loop)
    calls: list[object] = []
    call = loop.call_from_thread
    loop.call_from_thread = lambda function: (calls.append(function), call(function))  # type: ignore[method-assign,assignment,func-returns-value]
    responses: list[Appended] = []

    async def keep(number: int) -> None:
        responses.append(await append_and_wait(async_store, Append("notes", str(number))))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(keep, number)
            await anyio.wait_all_tasks_blocked()
            store.settle()
    assert sorted(response.id or 0 for response in responses) == list(range(1, 21))
    assert len(calls) == 1
    loop.close()


async def test_a_refused_append_returns_the_error() -> None:
    store, loop = SlowStore(), await current_loop()
    async_store = AsyncStore(store, loop)

    async def keep() -> None:
        assert isinstance(await append_and_wait(async_store, Append("notes", "x")), Busy)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep)
            await anyio.wait_all_tasks_blocked()
            store.settle(Busy("records", 1))
    loop.close()


async def test_a_record_whose_caller_has_left_is_stored_and_its_response_dropped() -> None:
    store, loop = SlowStore(), await current_loop()
    async_store = AsyncStore(store, loop)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append_and_wait, async_store, Append("notes", "kept"))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        store.settle()
        await anyio.wait_all_tasks_blocked()
    assert [record.content for record in store.query(Query("notes"))] == ["kept"]
    loop.close()


def test_a_response_that_comes_after_the_end_of_the_loop_goes_nowhere(anyio_backend_name: str) -> None:
    store = SlowStore()

    async def leave() -> None:
        loop = await current_loop()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append_and_wait, AsyncStore(store, loop), Append("notes", "kept"))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        loop.close()

    anyio.run(leave, backend=anyio_backend_name)
    store.settle()
    assert [record.content for record in store.query(Query("notes"))] == ["kept"]


async def test_an_extension_appends_many_at_once_and_all_are_there(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    try:
        with anyio.fail_after(60):
            async with hosted(store=store) as (_, child), anyio.create_task_group() as tasks:
                for number in range(50):
                    params = {"namespace": "notes", "content": f"{number:02}"}
                    tasks.start_soon(child.call, "memory.append", params)
        contents = [record.content for record in store.query(Query("notes", limit=100))]
        assert sorted(contents) == [f"{number:02}" for number in range(50)]
    finally:
        store.close()


async def test_a_cancelled_append_gets_a_response_at_once_and_is_stored_all_the_same() -> None:
    store = SlowStore()
    with anyio.fail_after(60):
        async with hosted(store=Elsewhere(store)) as (_, child):  # type: ignore[arg-type]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.call, "memory.append", {"namespace": "notes", "content": "late"})
                while not store.waiting:
                    await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
            again = {"namespace": "notes", "content": "next"}
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.call, "memory.append", again)
                while len(store.waiting) < 2:
                    await anyio.wait_all_tasks_blocked()
                store.settle()
    assert [record.content for record in store.query(Query("notes"))] == ["next", "late"]
