"""One task of trio watches the descriptors of all links: each function is called for its own, and for nothing else."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextvars import ContextVar, copy_context

import pytest
import trio
import trio.testing

from becket.peer.loops.trio_poller import TrioPoller, find_poller

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="epoll is Linux's")

Pipe = tuple[int, int]
WHO: ContextVar[str] = ContextVar("who")


@pytest.fixture
def pipes() -> Iterator[list[Pipe]]:
    opened = [os.pipe2(os.O_NONBLOCK) for _ in range(3)]
    yield opened
    for fd in {fd for pipe in opened for fd in pipe}:
        os.close(fd)


def poller() -> TrioPoller:
    found = find_poller()
    assert found is not None
    return found


def test_each_descriptor_has_its_own_function_in_its_own_context(pipes: list[Pipe]) -> None:
    called: list[tuple[int, str]] = []

    async def main() -> None:
        for number, (read_end, write_end) in enumerate(pipes):
            context = copy_context()
            context.run(WHO.set, f"link {number}")

            def read(read_end: int = read_end, number: int = number) -> None:
                os.read(read_end, 1)
                called.append((number, WHO.get()))

            poller().watch(read_end, False, context, read)
            os.write(write_end, b"x" * (number + 1))
        while len(called) < 6:
            await trio.testing.wait_all_tasks_blocked(0.01)
        for read_end, _ in pipes:
            poller().unwatch(read_end, False)

    trio.run(main)
    assert sorted(called) == [(0, "link 0"), *[(1, "link 1")] * 2, *[(2, "link 2")] * 3]


def test_a_ready_descriptor_is_skipped_once_another_function_has_unregistered_it(pipes: list[Pipe]) -> None:
    called: list[str] = []

    async def main() -> None:
        first, second = pipes[0][0], pipes[1][0]

        def end_both(name: str) -> None:
            called.append(name)
            for fd in (first, second):
                poller.unwatch(fd, False)

        poller = find_poller()
        assert poller is not None
        poller.watch(first, False, copy_context(), lambda: end_both("first"))
        poller.watch(second, False, copy_context(), lambda: end_both("second"))
        for _, write_end in pipes[:2]:
            os.write(write_end, b"x")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert poller.is_ended

    trio.run(main)
    assert len(called) == 1


def test_a_descriptor_may_be_read_and_written_and_a_poller_without_any_is_replaced(pipes: list[Pipe]) -> None:
    async def main() -> None:
        before = len(os.listdir("/proc/self/fd"))
        written = trio.Event()
        write_end = pipes[0][1]
        first = poller()
        first.watch(write_end, True, copy_context(), written.set)
        with trio.fail_after(60):
            await written.wait()
        first.unwatch(write_end, True)
        first.unwatch(write_end, True)
        await trio.testing.wait_all_tasks_blocked()
        assert poller() is not first
        poller().watch(write_end, True, copy_context(), int)
        poller().unwatch(write_end, True)
        await trio.testing.wait_all_tasks_blocked()
        assert len(os.listdir("/proc/self/fd")) == before

    trio.run(main)


def test_an_interruption_in_a_function_reaches_the_main_task_and_the_others_continue(pipes: list[Pipe]) -> None:
    called: list[str] = []

    async def main() -> None:
        def interrupt() -> None:
            os.read(pipes[0][0], 1)
            signal.raise_signal(signal.SIGINT)
            called.append("not interrupted")

        def read() -> None:
            os.read(pipes[1][0], 1)
            called.append("read")

        ours = poller()
        ours.watch(pipes[0][0], False, copy_context(), interrupt)
        ours.watch(pipes[1][0], False, copy_context(), read)
        os.write(pipes[0][1], b"x")
        try:
            with trio.fail_after(60):
                await trio.sleep_forever()
        except KeyboardInterrupt:
            called.append("interrupted")
        os.write(pipes[1][1], b"x")
        await trio.testing.wait_all_tasks_blocked(0.01)
        for read_end, _ in pipes[:2]:
            ours.unwatch(read_end, False)

    trio.run(main)
    assert called == ["interrupted", "read"]


def test_a_function_that_fails_ends_neither_the_poller_nor_the_program(
    pipes: list[Pipe], internal_errors: list[logging.LogRecord]
) -> None:
    async def main() -> None:
        def fail() -> None:
            os.read(pipes[0][0], 1)
            raise ValueError("a fault")

        ours = poller()
        ours.watch(pipes[0][0], False, copy_context(), fail)
        os.write(pipes[0][1], b"xx")
        await trio.testing.wait_all_tasks_blocked(0.01)
        ours.unwatch(pipes[0][0], False)

    trio.run(main)
    assert len(internal_errors) == 2
    internal_errors.clear()
