"""Many threads use both ends of a blocking link at once, and all of them end."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.blocking.pairs import PATIENCE, Started, blocking_pair

from becket import CallTimeout
from becket.blocking import BlockingContext, BlockingPeer
from becket.peer.loops.thread_loop import ThreadLoop


def serve(peer: BlockingPeer) -> None:
    peer.handle("echo")(lambda params: params)
    peer.on("tell")(lambda params: None)

    @peer.handle("nest")
    def nest(params: Any, ctx: BlockingContext) -> Any:
        return ctx.call("echo", params)

    @peer.handle("work", thread=True)
    def work(params: Any, ctx: BlockingContext) -> Any:
        return ctx.call("nest", params)

    @peer.handle("down")
    def down(params: list[int], ctx: BlockingContext) -> list[int]:
        return [ctx.call("down", [params[0] - 1])[0] + 1] if params[0] else [0]

    @peer.handle("count")
    def count(params: list[int], ctx: BlockingContext) -> list[int]:
        for number in range(params[0]):
            ctx.progress(number)
        return params


def do_much(peer: BlockingPeer, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(30):
        match chance.choice(["echo", "nest", "work", "down", "tell", "pending", "stream", "leave", "timeout"]):
            case "echo" | "nest" | "work" as method:
                assert peer.call(method, [number], timeout=15) == [number]
            case "down":
                assert peer.call("down", [number % 6], timeout=15) == [number % 6]
            case "tell":
                peer.notify("tell", [number])
            case "pending":
                pending = [peer.begin("echo", [each], timeout=15) for each in range(3)]
                pending[1].cancel()
                assert [pending[0].result(), pending[2].result()] == [[0], [2]]
            case "stream":
                with peer.stream("count", [10]) as run:
                    assert list(run) == list(range(10))
                    assert run.result() == [10]
            case "leave":
                with peer.stream("count", [10]) as run:
                    next(iter(run))
            case "timeout":
                try:
                    peer.call("nest", [number], timeout=0.0005)
                except CallTimeout:
                    pass


@pytest.mark.parametrize("dialect", ["plain", "native"])
@pytest.mark.parametrize("seed", range(4))
def test_threads_that_do_everything_at_once_all_finish(seed: int, dialect: str) -> None:
    with blocking_pair(dialect=dialect) as (left, right):
        serve(left)
        serve(right)
        threads = [Started(do_much, (left, right)[each % 2], seed * 100 + each) for each in range(6)]
        for thread in threads:
            thread.result()


class AddsRightBeforeThePoll:
    """A waiter that is checked last before a poll: another thread adds something meanwhile."""

    def __init__(self, loop: ThreadLoop, function: Callable[[], object]) -> None:
        self._add = lambda: loop.call_from_thread(function)

    @property
    def is_done(self) -> bool:
        thread = threading.Thread(target=self._add)
        thread.start()
        thread.join()
        return False


def test_work_that_another_thread_adds_right_before_a_poll_is_done_at_once() -> None:
    loop = ThreadLoop()
    done = threading.Event()
    waiter: Any = AddsRightBeforeThePoll(loop, done.set)

    def pump() -> None:
        with loop.locked():
            while not done.is_set():
                loop.run_once(waiter)

    pumping = threading.Thread(target=pump, daemon=True)
    pumping.start()
    is_done = done.wait(60)
    loop.call_soon(done.set)  # wakes a pump that sleeps, so that nothing is left of it
    pumping.join(60)
    loop.close()
    loop.join()

    assert is_done


def test_nested_calls_of_handlers_in_threads_each_have_a_thread() -> None:
    count = 50  # more than the 40 threads that anyio has for a whole program
    all_run = threading.Barrier(count)
    with blocking_pair() as (left, right):

        @right.handle("outer", thread=True)
        def outer(params: list[int], ctx: BlockingContext) -> int:
            all_run.wait(PATIENCE)
            return ctx.call("inner", params, returns=int)

        @left.handle("inner", thread=True)
        def inner(params: list[int]) -> int:
            return params[0]

        calls = [Started(left.call, "outer", [number]) for number in range(count)]
        assert [call.result() for call in calls] == list(range(count))
